/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_INTERRUPT_H
#define CCSNAP_INTERRUPT_H

struct err;

/* SIGINT, SIGTERM, SIGHUP and SIGQUIT become a flag that long work looks at; a
 * second one changes nothing, so clean-up is never cut short.  SIGPIPE and SIGXFSZ
 * are ignored: the write that caused them says EPIPE or EFBIG instead.
 */
void interrupt_install(void);

/* The first signal that came, or 0. */
int interrupt_pending(void);

/* 0, or -1 with ERR_INTERRUPTED when a signal came. */
int interrupt_check(struct err *err);

#endif
