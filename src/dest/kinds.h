/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_KINDS_H
#define CCSNAP_KINDS_H

#include <stdint.h>

/* The constructors behind dest_kinds[], where rest is what follows the colon,
 * and what the kinds share.
 */
struct dest;
struct dest_config;
struct err;

/* A store: each image NAME+suffix has a manifest NAME.manifest.json and may have
 * a report NAME.report.json beside it.
 */
struct dest *folder_open(const struct dest_config *cfg, const char *rest, struct err *err);

/* Just a file. */
struct dest *file_open(const struct dest_config *cfg, const char *rest, struct err *err);

/* "glance[:CLOUD]": OpenStack's image service. */
struct dest *glance_open(const struct dest_config *cfg, const char *rest, struct err *err);

/* "http:" and "https:": a server that takes files by PUT.  Only the size of what is there
 * afterwards proves it (receipt.verified_by is "size", verified stays false), since no
 * digest comes from there.  There is no list, and so nothing to fetch or remove.
 */
struct dest *put_open(const struct dest_config *cfg, const char *rest, struct err *err);

/* The file at path is the one behind fd, size bytes long: fills in dest->receipt. */
int dest_prove_file(struct dest *dest, int fd, const char *path, uint64_t size, struct err *err);

/* What would stand in the way of need more bytes in this directory: its
 * permissions, a read-only filesystem, free space and inodes, ulimit -f.
 * Changes nothing there; sets dest's free_bytes and free_known.
 */
int dest_check_room(struct dest *dest, int dirfd, const char *dir, uint64_t need, struct err *err);

/* The same for a directory that is still to be made. */
int dest_check_room_above(struct dest *dest, const char *dir, uint64_t need, struct err *err);

#endif
