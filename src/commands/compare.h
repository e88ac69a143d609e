/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_COMPARE_H
#define CCSNAP_COMPARE_H

/* Is an image a disk?  Read by the pipeline, with all its threads, protection against
 * stalls, and signals.
 */
struct err;
struct pipeline_config;
struct source;

/* All of image can be read and, unless disk is NULL, is what that begins with;
 * ERR_FAILED names the first offset that differs.  disk is at least as large.
 */
int compare_disks(const struct pipeline_config *cfg, struct source *image, struct source *disk,
		  struct err *err);

#endif
