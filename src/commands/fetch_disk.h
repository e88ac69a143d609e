/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FETCH_DISK_H
#define CCSNAP_FETCH_DISK_H

/* fetch --to-disk: the image of a store becomes what a disk holds, all of it, and that
 * is read back.  ERR_REFUSED as long as nothing was written.  s->info.file becomes the
 * disk's path.
 */
struct err;
struct options;
struct stored;

int fetch_to_disk(struct stored *s, const struct options *opt, struct err *err);

#endif
