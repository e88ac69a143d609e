/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_NBD_H
#define CCSNAP_NBD_H

#include "source/source.h"

/* A disk that an NBD server exports, over several connections at once: each
 * thread that reads has one to itself meanwhile, with several requests in it.
 */
struct err;

/* Threads share them: QEMU does the reading of each image in one thread, so
 * more would only cost descriptors.  One more is for extents.
 */
enum { NBD_READERS_MAX = 16 };

enum { NBD_CONNECT_SECONDS = 30 };

struct nbd_config {
	const char *name;	   /* for messages */
	const char *export_name;   /* "" for the default export */
	uint64_t bytes_per_second; /* of all connections together; 0: no limit */
	unsigned stall_seconds;	   /* how long an answer may take; 0: for ever */

	/* Stream sockets, connected to the server; taken over, closed on
	 * failure, too.
	 */
	const int *sockets;
	unsigned socket_count;
};

/* Returns within NBD_CONNECT_SECONDS, whatever the server does; its messages do not
 * begin with the name.  The source's sector_size is left 0, its check is NULL.
 */
struct source *nbd_source_open(const struct nbd_config *cfg, struct err *err);

#endif
