/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_WALK_H
#define CCSNAP_WALK_WALK_H

#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Looks at every entry of a tree once and enters it into a model.  Nothing is
 * opened but directories and regular files, which shows whether they may be read
 * and what flags and holes they have; nothing is followed, nothing changes, not
 * even access times where we may.
 */
struct account;
struct err;
struct excludes;
struct mounts;
struct reach;

/* A regular file that is left out wherever it turns up: by device and inode. */
struct walk_own {
	uint64_t dev, ino;
	const char *what; /* "of the image store", "a swap file in use" */
};

struct walk_config {
	int root_fd;
	struct excludes *excludes;
	const struct mounts *mounts;
	const struct walk_own *own;
	size_t own_count;
	bool keep_going;       /* over what cannot be read: entered as unreadable, left out */
	bool measure_excluded; /* add up the bytes below what is excluded */
	struct account *account;

	/* Called now and then with the number of entries so far. */
	void (*progress)(void *ctx, uint64_t entries);
	void *progress_ctx;
};

/* Regular files whose content somebody may still be writing: changed so short
 * before they were looked at that the next change may leave no trace in the
 * times.  A bit of reader_flags.
 */
#define WALK_RACY 1u

struct walk_totals {
	uint64_t files, directories, symlinks, devices, fifos, sockets;
	uint64_t hard_links; /* names besides the first */
	uint64_t data_bytes; /* in blocks that hold data, each inode once */
	uint64_t apparent_bytes;
	uint64_t times_newest; /* seconds: the newest mtime of all, 0 for none above it */
	uint32_t boot_root;    /* node of a separate /boot's root, or MODEL_NONE */
	uint32_t esp_root;     /* of a mounted ESP, or MODEL_NONE */
	const struct mount *boot, *esp;
};

/* Node MODEL_ROOT is the source itself.  ERR_FAILED for what cannot be read
 * unless keep_going; ERR_INTERRUPTED.  After it the model is sorted.
 */
int tree_walk(const struct walk_config *cfg, struct model *model, struct walk_totals *totals,
	      struct err *err);

/* Look again at a regular file after the walk: its size, times, owner, mode,
 * attributes and holes go into the node, from fd.  For the settle pass.
 */
int walk_again(const struct walk_config *cfg, struct model *model, uint32_t node, int fd,
	       struct err *err);

#endif
