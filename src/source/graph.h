/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GRAPH_H
#define CCSNAP_GRAPH_H

#include "source/held.h"
#include "source/source.h"

#include <stddef.h>

/* All the files that make up a disk image, each opened and checked by us: the
 * image itself, what it is based on, and where its data lies.  QEMU then gets
 * them as descriptors and has no name to follow.
 */
struct err;

struct layer {
	char *format;
	size_t file;	   /* index into the graph's files */
	size_t data_file;  /* likewise; NO_FILE for none */
	size_t descriptor; /* a vmdk's, written by us from the checked one; NO_FILE for none */
};

#define NO_FILE SIZE_MAX

/* Of the files in the child: 3 is its socket. */
#define GRAPH_FIRST_FD 4

struct graph {
	struct held *files;
	size_t file_count;
	struct layer *layers; /* the topmost first, each based on the next */
	size_t layer_count;
	unsigned sector_size; /* 0: not recorded */
	uint64_t size;	      /* of the disk, as its header says */
};

/* Refused (ERR_REFUSED): a file that names another without cfg->allow_backing;
 * with it, a name that is no plain path, has no recorded format or leads back
 * to where it came from; a damaged file; one in use.
 */
int graph_open(struct graph *graph, const struct source_config *cfg, struct err *err);

/* The json: file name for QEMU, where file i is open as GRAPH_FIRST_FD + i.
 * malloc.
 */
char *graph_json(const struct graph *graph, enum source_intent intent, struct err *err);

/* Could every file be flushed? */
int graph_is_synced(const struct graph *graph);

/* Are all of them as they were? */
int graph_check(const struct graph *graph, struct err *err);

/* Is that one of them? */
int graph_has(const struct graph *graph, const struct stat *st);

void graph_close(struct graph *graph);

#endif
