/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CHAIN_H
#define CCSNAP_CHAIN_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* The layers of one disk, and the job that works on them, as a domain's XML tells. */
struct err;

/* One file, or the like. */
struct chain_layer {
	char *kind, *source; /* as those of struct virt_disk */
	char *format;	     /* NULL: not said */
	unsigned index;	     /* libvirt's name for it is TARGET[INDEX]; 0: it has none */
};

struct chain {
	struct chain_layer *layers; /* from the one that the guest writes to downwards */
	size_t count;
	char *mirror;	 /* the job that copies it: "active-commit", "copy"; NULL: none */
	char *copied_to; /* by that job: a source */
	bool is_ready;	 /* what it copies to is equal, so that it can take over */
};

/* Of that disk in a domain's XML; ERR_FAILED when there is no such disk.  chain_free it. */
int chain_read(const char *domain_xml, const char *target, struct chain *out, struct err *err);

/* The place of a file in it; SIZE_MAX: it is not there. */
size_t chain_find(const struct chain *chain, const char *path);

void chain_free(struct chain *chain);
#define autochain CLEANUP(chain_free)

#endif
