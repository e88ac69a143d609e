/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_NBD_H
#define CCSNAP_NBD_H

#include "source/source.h"

/* A disk that an NBD server exports, over several connections at once: each
 * thread that reads has one to itself meanwhile.
 */
struct err;

struct nbd_config {
	const char *name;	 /* for messages */
	const char *export_name; /* "" for the default export */

	/* Stream sockets, connected to the server; taken over, closed on
	 * failure, too.
	 */
	const int *sockets;
	unsigned socket_count;
};

/* Returns within half a minute, whatever the server does; its messages do not
 * begin with the name.  The source's sector_size is left 0, its check is NULL.
 */
struct source *nbd_source_open(const struct nbd_config *cfg, struct err *err);

#endif
