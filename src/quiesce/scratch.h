/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SCRATCH_H
#define CCSNAP_SCRATCH_H

#include "base/cleanup.h"

#include <stdint.h>

/* A directory for one run's socket, scratch file or overlay: new, with a name of ours and random
 * letters (the tag), open to QEMU's own user and to us alone.
 *
 * Where the hypervisor is at the other end of ssh nothing can be made there: the names then
 * lie in the directory that the user named, and start with the tag.
 */
struct domain;
struct err;
struct hardware;
struct scratch;

#define SCRATCH_PREFIX "ccsnap-"

struct scratch_config {
	const struct hardware *hardware; /* whose QEMU it is */
	struct domain *domain;
	const char *dir; /* NULL: /var/lib/ccsnap/scratch for root, else in $XDG_RUNTIME_DIR or
			  * the cache directory */
	uint64_t bytes;	 /* so much has to be free */
};

/* ERR_REFUSED, with what to do: no such directory, QEMU's user cannot reach or write it (tried
 * with that user's rights), too little space, a path too long for a socket.
 */
struct scratch *scratch_open(const struct scratch_config *cfg, struct err *err);

const char *scratch_dir(const struct scratch *s);    /* NULL at the other end of ssh */
const char *scratch_socket(const struct scratch *s); /* paths as QEMU sees them */
const char *scratch_file(const struct scratch *s);

/* Bytes free there now; UINT64_MAX: unknown. */
uint64_t scratch_free_bytes(const struct scratch *s);

/* A socket of this host on which the one at QEMU's answers: itself, or a forward over ssh that
 * lives as long as s.
 */
const char *scratch_reach_socket(struct scratch *s, struct err *err);

/* Remove what is there, and the directory. */
void scratch_close(struct scratch *s); /* NULL is fine */

/* Remove what a dead run left: only names of ours, in a directory of ours. */
int scratch_clear(const char *dir, struct err *err);

CLEANUP_TYPE(struct scratch, scratch, scratch_close)
#define autoscratch CLEANUP(scratch_cleanup)

#endif
