/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_NBD_INNER_H
#define CCSNAP_NBD_INNER_H

#include "base/pace.h"
#include "source/source.h"

#include <libnbd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What the files nbd*.c share, and nobody else sees. */
struct err;
struct nbd_config;

enum {
	NBD_SECTOR = 512,
	NBD_POLL_MS = 100, /* how late an abort may be noticed */
};

struct connection {
	struct nbd_handle *nbd;
	int busy;
	atomic_int given_up; /* dead, or a command is under way in it: not to be used again */
};

struct nbd_disk {
	struct source source;
	uint64_t export_size;
	size_t request_max, align; /* what the server takes */
	size_t piece_size;	   /* what is asked for at once, between the two */
	int has_status;		   /* the server can tell what is allocated */
	unsigned stall_seconds;	   /* 0: wait for any answer for ever */
	struct pace pace;

	/* Ask for each answer in one piece, as long as the server can: qemu-nbd
	 * then reports a read error, where it would hang up otherwise.
	 */
	atomic_int whole_answers;

	atomic_int aborted;
	pthread_mutex_t lock; /* guards busy of the connections */
	pthread_cond_t freed; /* one of them is free again, or aborted is set */
	struct connection *connections;
	unsigned count;
};

/* libnbd's words for what just failed in this thread.  -1, like the next. */
int nbd_say(const char *what, struct err *err);

/* Has somebody told us to end, or a signal?  Then nobody waits for what is under way in
 * c, so it is not to be used again; err says who.  -1.
 */
int nbd_is_aborted(const struct nbd_disk *disk);
int nbd_give_up(struct connection *c, struct err *err);

/* Wait for the command.  1 when it was done, 0 when the server answered with
 * an error (errno), -1 with err when no answer will come.  In the last case the
 * connection is never polled again, so nothing writes to the buffer any more.
 */
int nbd_await(const struct nbd_disk *disk, struct connection *c, int64_t cookie, struct err *err);

/* Any length, but inside the export and aligned (nbd_read.c). */
int nbd_read_aligned(struct nbd_disk *disk, struct connection *c, uint8_t *buf, size_t len,
		     uint64_t offset, struct err *err);

/* Fill in the connections and what the server says of itself (nbd_connect.c).  Takes
 * the sockets over.
 */
int nbd_connect_all(struct nbd_disk *disk, const struct nbd_config *cfg, struct err *err);

#endif
