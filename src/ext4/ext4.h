/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_EXT4_H
#define CCSNAP_EXT4_EXT4_H

#include "base/cleanup.h"
#include "ext4/model.h"

#include <stdint.h>

/* A model laid out as an ext4 filesystem: all metadata in memory, the blocks of
 * files given places, their bytes left where they are.  Same model and
 * configuration, same bytes.  Features: DESIGN and docs/design.md.
 *
 * Built and edited by one thread (libext2fs); ext4_piece may be called by any
 * number of threads while nobody edits.
 */
struct account;
struct err;
struct ext4;
struct extent_list;

struct ext4_config {
	struct model *model; /* nodes get their ino; must outlive the filesystem */
	uint32_t root;	     /* the node that is the root directory */
	uint8_t uuid[16];    /* the hash seed is derived from it */
	const char *label;   /* up to 16 bytes; NULL: none */
	uint32_t time;	     /* seconds, not 0: every time stamp that is no file's */

	/* How large: at least so many bytes free for an ordinary user, at
	 * least min_size, a multiple of step (of 4096 when 0).
	 */
	uint64_t free_bytes, min_size, step;

	struct account *account; /* attributes that ext4 cannot hold */
};

struct ext4 *ext4_build(const struct ext4_config *cfg, struct err *err);
void ext4_close(struct ext4 *fs); /* NULL is fine */

uint64_t ext4_size(const struct ext4 *fs);	 /* bytes of its partition */
uint64_t ext4_free_bytes(const struct ext4 *fs); /* for an ordinary user */

enum ext4_piece_kind { EXT4_ZERO, EXT4_META, EXT4_DATA };

struct ext4_piece {
	enum ext4_piece_kind kind;
	uint64_t length; /* never 0 */

	/* DATA: these bytes of this node; what lies behind the node's size
	 * is zero.
	 */
	uint32_t node;
	uint64_t offset;
};

/* What is at offset, as far as it is of one kind (DATA: of one file), at most
 * length bytes.  offset and length are inside the filesystem; at an offset that is
 * no multiple of 4096 the piece begins in the middle of a block.
 */
struct ext4_piece ext4_piece(const struct ext4 *fs, uint64_t offset, uint64_t length);

/* Copy from an EXT4_META piece. */
void ext4_copy_meta(const struct ext4 *fs, uint8_t *dst, size_t len, uint64_t offset);

/* The node's size, attributes, data or segments were changed in the model: lay
 * it out anew.  Its blocks are kept when they are as many at the same places.
 * Not for directories.  ERR_FAILED when the filesystem is full.
 */
int ext4_replace(struct ext4 *fs, uint32_t node, struct err *err);

/* Take a node that is no directory out of the filesystem, with all its names;
 * the model keeps it.
 */
int ext4_remove(struct ext4 *fs, uint32_t node, struct err *err);

/* Bring the metadata in line after ext4_replace and ext4_remove, and append
 * what is different from the last time (metadata, not the files' data) as
 * extents at base + offset.
 */
int ext4_commit(struct ext4 *fs, uint64_t base, struct extent_list *changed, struct err *err);

/* Append where the node's data lies, at base + offset, as extents. */
int ext4_locate(const struct ext4 *fs, uint32_t node, uint64_t base, struct extent_list *out,
		struct err *err);

CLEANUP_TYPE(struct ext4, ext4, ext4_close)
#define autoext4 CLEANUP(ext4_cleanup)

#endif
