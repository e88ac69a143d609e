/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TREE_EMIT_H
#define CCSNAP_TREE_EMIT_H

#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a tree's files while the image is made, from many threads.  Each
 * read is followed by a look at the file: one that is no longer what the walk
 * saw becomes a suspect for the settle pass; what is missing reads as zeros
 * meanwhile.
 */
struct emit;
struct err;
struct reach;

struct emit_config {
	const struct model *model;
	struct reach *reach;
	unsigned open_files; /* how many stay open between reads */
	bool keep_going;     /* what cannot be read is a suspect, too, not an error */
};

struct emit *emit_new(const struct emit_config *cfg, struct err *err);
void emit_free(struct emit *e); /* NULL is fine */

/* len bytes of the node's file at offset; zeros behind its size. */
int emit_read(struct emit *e, uint32_t node, void *buf, size_t len, uint64_t offset,
	      struct err *err);

struct emit_suspect {
	uint32_t node;
	int sys_errno; /* why it could not be read; 0: it was */
	uint64_t size; /* so many bytes were there at the least */
};

/* Those since the last call (malloc, each node once, in no order); closes
 * every file.  No reads are under way.
 */
size_t emit_take_suspects(struct emit *e, struct emit_suspect **suspects);

#endif
