/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TREE_H
#define CCSNAP_TREE_H

#include "source/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A directory tree as a virtual disk: planned once (walked, edited for the
 * image, laid out, all metadata in memory), then read like any other disk, file
 * data coming straight from the files.
 */
struct account;
struct err;
struct walk_own;

enum tree_boot {
	TREE_BOOT_REQUIRED, /* nothing bootable: refused */
	TREE_BOOT_WANTED,   /* a data disk then, with a warning */
	TREE_BOOT_NONE,	    /* a data disk */
};

struct tree_config {
	const char *path;
	const char *const *excludes, *const *exclude_globs,
					     *const *exclude_files; /* NULL-ended or NULL */
	const char *const *include_mounts;
	bool one_file_system, keep_going;
	bool default_excludes;	  /* those of a running system */
	bool allow_idle_excludes; /* one may hit nothing */
	enum tree_boot boot;
	const char *reset;		/* identity_reset's list */
	const char *image_name;		/* names are derived from it */
	const char *label;		/* of the root filesystem; NULL: the source's */
	uint64_t free_bytes, disk_size; /* 0: not asked for */
	unsigned sector_size;		/* 0: 512 */
	enum source_intent intent;
	unsigned threads, stall_seconds;
	const struct walk_own *own;
	size_t own_count;
	struct account *account; /* outlives the source */
	void (*progress)(void *ctx, uint64_t entries);
	void *progress_ctx;
};

/* What the plan found out; strings are the source's. */
struct tree_facts {
	uint64_t files, directories, symlinks, devices, fifos, sockets, hard_links;
	uint64_t data_bytes;
	uint64_t free_bytes; /* in the root filesystem of the image */
	const char *root_uuid, *root_label, *uuid_origin;
	const char *kernel; /* version or path; NULL: none */
	bool boots_bios, boots_uefi;

	/* As the tree says it, any bytes; NULL: it does not. */
	const char *os_id, *os_version; /* of os-release */
	const char *machine;		/* "x86_64" */
	const char *provenance;		/* text of a file (dest/provenance.h) */
	size_t provenance_len;

	/* What each exclude left out; bytes only when intent is SOURCE_LOOK. */
	const struct exclude_use *excludes;
	size_t exclude_count;
};

struct source *tree_open(const struct tree_config *cfg, struct err *err);
const struct tree_facts *tree_facts(const struct source *src);

#endif
