/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_MODEL_H
#define CCSNAP_EXT4_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What filesystems are to hold: inodes, names, attributes, and which blocks of
 * each file are data.  Bytes of files stay where they are and are read by
 * whoever made the model.  Memory grows with the number of entries only.
 *
 * Nodes are numbered from 0, the root directory.  A directory on which another
 * filesystem is mounted is one node, that filesystem's root another one.
 * One thread at a time.
 */
struct err;

#define MODEL_ROOT  0u
#define MODEL_NONE  UINT32_MAX
#define MODEL_BLOCK 4096u

enum model_data {
	MODEL_HOLES,  /* no data, whatever the size */
	MODEL_DENSE,  /* every block up to the size */
	MODEL_SPARSE, /* the node's segments */
};

/* Blocks of a file that are data, in units of MODEL_BLOCK; ascending, never touching. */
struct model_segment {
	uint32_t block, count;
};

struct model_node {
	uint64_t size;	   /* of a regular file; length of a link's target */
	int64_t mtime_sec; /* any; what ext4 cannot hold is clamped there */
	uint32_t mtime_nsec;
	uint32_t mode; /* type and permissions, as st_mode */
	uint32_t uid, gid;
	uint32_t flags;			 /* FS_*_FL that a user can set (linux/fs.h) */
	uint32_t rdev_major, rdev_minor; /* of devices */
	uint32_t xattrs;		 /* a set of the model; 0: none */

	uint32_t parent; /* the directory of its first name; a mounted root: the mount point */
	uint32_t name;	 /* that name: model_string; 0 ("") for a root */
	uint32_t names;	 /* how many lead here */

	uint32_t first, count; /* directory: entries; sparse file: segments */
	uint32_t mounted;      /* directory: the root mounted here, or MODEL_NONE */
	uint32_t ino;	       /* in the image; ext4_build's */
	uint8_t data;	       /* enum model_data */
	uint8_t reader_flags;  /* for whoever reads the bytes */

	/* Owned: a link's target, or the bytes of a file that was made or
	 * edited here.  NULL: the file is read where it was found.
	 */
	char *content;

	/* Where it was found, as stat gave it; 0 for what was made here. */
	uint64_t found_dev, found_ino;
	int64_t found_ctime_sec;
	uint32_t found_ctime_nsec;
};

struct model_entry {
	uint32_t name, node;
};

/* An extended attribute as the system calls have it: full name, value in the
 * kernel's form.
 */
struct model_xattr {
	const char *name;
	const void *value;
	size_t size;
};

struct model_xattr_set {
	struct model_xattr *at; /* sorted by name; all in one allocation */
	size_t len;
};

/* A name of a node that has several. */
struct model_name {
	uint32_t node, dir, name;
};

struct model {
	struct model_node *nodes;
	uint32_t node_count, node_cap;
	struct model_entry *entries;
	uint32_t entry_count, entry_cap;
	struct model_segment *segments;
	uint32_t segment_count, segment_cap;
	char *strings;
	uint32_t strings_len, strings_cap;
	struct model_xattr_set *sets; /* [0] is the empty one */
	uint32_t set_count, set_cap;
	struct model_index *index; /* finds equal sets */
	struct model_name *names;  /* model_index_names; NULL: not made */
	uint32_t names_len;
};

void model_init(struct model *m);
void model_free(struct model *m);
void model_free_sets(struct model *m); /* part of model_free */

static inline const char *model_string(const struct model *m, uint32_t string)
{
	return m->strings + string;
}

/* A copy of *node, without names; its number, or MODEL_NONE.  Takes content. */
uint32_t model_add(struct model *m, const struct model_node *node, struct err *err);

/* One more name for node in dir (len bytes, no NUL in them).  Cheap while the
 * names of one directory are added in one go.
 */
int model_link(struct model *m, uint32_t dir, const char *name, size_t len, uint32_t node,
	       struct err *err);

/* Take away the name; what lies beneath a directory goes with it. */
void model_unlink(struct model *m, uint32_t dir, const char *name);

/* Once the model is final: so that model_names has an answer, until the next model_link
 * or model_unlink.
 */
int model_index_names(struct model *m, struct err *err);

/* All names of a node that has several; NULL when it has not, or there is no index. */
const struct model_name *model_names(const struct model *m, uint32_t node, uint32_t *count);

/* Append to the segments of node, which were the last to be added to. */
int model_add_segment(struct model *m, uint32_t node, uint32_t block, uint32_t count,
		      struct err *err);

/* The number of the set that equals list (in any order). */
int model_xattrs(struct model *m, const struct model_xattr *list, size_t len, uint32_t *set,
		 struct err *err);

bool model_has_xattr(const struct model *m, uint32_t node, const char *name);

/* How many blocks of data the file has. */
uint64_t model_data_blocks(const struct model *m, uint32_t node);

/* The node of that name in dir, MODEL_NONE when there is none. */
uint32_t model_lookup(const struct model *m, uint32_t dir, const char *name);

/* Walk a path from the root, through mounts; symbolic links in the model are
 * followed inside of it as if the root were "/".  MODEL_NONE when there is no
 * such node.
 */
enum model_last { MODEL_FOLLOW, MODEL_NOFOLLOW };
uint32_t model_resolve(const struct model *m, const char *path, enum model_last last);

/* "/usr/bin/true" (malloc) of the first name; NULL without memory. */
char *model_path(const struct model *m, uint32_t node);

/* Sort the entries of each directory by bytes. */
void model_sort(struct model *m);

#endif
