/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OUTFILE_REPORT_H
#define CCSNAP_OUTFILE_REPORT_H

/* A report at a name of its own, put there whole, in one step.  It replaces
 * nothing but a report.
 */
struct err;
struct outfile_place;

/* Nothing at name, or an empty file, or a report as we write it: what else is
 * there is not replaced by a report, --overwrite or not.  Changes nothing.
 */
int outfile_check_report(int dirfd, const char *dir, const char *name, struct err *err);

/* In place of what outfile_check_report allows.  Waits for nobody but the
 * directory's lock, also after a signal; sweeps only what this name left.  Its
 * errors are ERR_FAILED: whatever they are, they come too late to refuse the run.
 */
int outfile_replace(const struct outfile_place *place, const char *text, struct err *err);

/* The same for a path. */
int outfile_replace_path(const char *path, const char *text, struct err *err);

#endif
