/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_COMMANDS_H
#define CCSNAP_COMMANDS_H

/* One function a verb.  Each returns the exit code (0, or 3 when it is done
 * with warnings), or -1 with what is to be told.
 */
struct err;
struct options;

int command_create(const struct options *opt, struct err *err);
int command_convert(const struct options *opt, struct err *err);
int command_verify(const struct options *opt, struct err *err);
int command_list(const struct options *opt, struct err *err);
int command_upload(const struct options *opt, struct err *err);
int command_fetch(const struct options *opt, struct err *err);
int command_inspect(const struct options *opt, struct err *err);
int command_recover(const struct options *opt, struct err *err);
int command_prune(const struct options *opt, struct err *err);

#endif
