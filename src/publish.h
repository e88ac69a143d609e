/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PUBLISH_H
#define CCSNAP_PUBLISH_H

/* The step that every story ends with: the finished image goes to its destination, and
 * the report says what became of it, also when that failed.  dest must outlive the
 * report.
 */
struct dest;
struct err;
struct image_info;
struct report;

int publish_image(struct dest *dest, struct image_info *info, struct report *r, struct err *err);

#endif
