/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TABLES_H
#define CCSNAP_TABLES_H

/* Does all that an image's tables name lie inside the file?  QEMU reads what
 * lies behind the end as zeros, so a file that was cut short would be captured
 * without a word.
 */
struct err;
struct reader;

/* Of a file that references_parse has accepted.  Refused (ERR_REFUSED) when
 * something lies outside.  Takes time and reads bytes in proportion to the
 * tables; ends early on a signal.
 */
int tables_check(const struct reader *in, const char *format, struct err *err);

/* The same for one sparse extent of a vmdk that has no descriptor in it. */
int tables_check_vmdk_extent(const struct reader *in, struct err *err);

#endif
