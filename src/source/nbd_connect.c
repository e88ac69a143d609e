// SPDX-License-Identifier: Apache-2.0
#include "source/nbd_inner.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "source/nbd.h"

#include <unistd.h>

enum {
	ALIGN_MAX = 64 * 1024, /* of requests, as the protocol recommends */
	RATE_SHARE = 4,	       /* a request takes no more than this part of a second */
};

#define REQUEST_MAX (32 * MIB) /* when the server states no limit */

/* Many in flight hide the server's delay, and none is so large that it would be cold
 * when the last byte of it is here.
 */
#define PIECE_SIZE (256 * KIB)

/* Takes the socket over. */
static struct nbd_handle *begin_handshake(const struct nbd_config *cfg, int fd, struct err *err)
{
	autoclose int sock = fd;
	struct nbd_handle *nbd = nbd_create();

	if (!nbd) {
		nbd_say("cannot prepare an NBD connection", err);
		return NULL;
	}
#if LIBNBD_HAVE_NBD_SET_PREAD_INITIALIZE
	nbd_set_pread_initialize(nbd, false); /* a failed read's buffer is never looked at */
#endif
	if (nbd_set_export_name(nbd, cfg->export_name) < 0 ||
	    nbd_add_meta_context(nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) < 0 ||
	    nbd_aio_connect_socket(nbd, steal_fd(&sock)) < 0) {
		nbd_say("cannot connect to the NBD server", err);
		nbd_close(nbd);
		return NULL;
	}
	return nbd;
}

static int finish_handshake(struct nbd_handle *nbd, uint64_t start_ns, struct err *err)
{
	while (nbd_aio_is_connecting(nbd) > 0) {
		if (interrupt_check(err) < 0)
			return -1;
		if (clock_seconds_since(start_ns) > NBD_CONNECT_SECONDS)
			return err_set(err, ERR_FAILED,
				       "the NBD server did not answer within %d seconds",
				       NBD_CONNECT_SECONDS);
		if (nbd_poll(nbd, NBD_POLL_MS) < 0)
			return nbd_say("cannot connect to the NBD server", err);
	}
	if (nbd_aio_is_ready(nbd) > 0)
		return 0;
	return err_set(err, ERR_FAILED, "the NBD server closed the connection");
}

/* Under a limit a request is no burst by itself. */
static size_t piece_size(const struct nbd_disk *disk, uint64_t bytes_per_second)
{
	uint64_t unit = MAX(disk->align, (size_t)NBD_SECTOR);
	uint64_t most = PIECE_SIZE;

	if (bytes_per_second)
		most = MIN(most, bytes_per_second / RATE_SHARE);
	return (size_t)MIN(MAX(round_down(most, unit), unit), disk->request_max);
}

/* The limits that hold for all connections are those of the first. */
static int take_limits(struct nbd_disk *disk, struct nbd_handle *nbd, struct err *err)
{
	int64_t size = nbd_get_size(nbd);
	int64_t align = nbd_get_block_size(nbd, LIBNBD_SIZE_MINIMUM);
	int64_t most = nbd_get_block_size(nbd, LIBNBD_SIZE_MAXIMUM);

	if (size < 0 || size > INT64_MAX - NBD_SECTOR)
		return err_set(err, ERR_FAILED, "the NBD server states an impossible size");
	if (align < 0 || align > ALIGN_MAX || (align & (align - 1)))
		return err_set(err, ERR_FAILED, "the NBD server states an impossible block size");
	disk->export_size = (uint64_t)size;
	disk->align = align > 0 ? (size_t)align : 1;
	disk->request_max = most > 0 ? (size_t)MIN((uint64_t)most, REQUEST_MAX) : REQUEST_MAX;
	disk->request_max = MAX((size_t)round_down(disk->request_max, disk->align), disk->align);
	disk->has_status = nbd_can_meta_context(nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) > 0;
	if (nbd_can_df(nbd) > 0)
		atomic_store(&disk->whole_answers, 1);
	disk->source.size = round_up(disk->export_size, NBD_SECTOR);
	disk->source.padding = disk->source.size - disk->export_size;
	return 0;
}

static int begin_all(struct nbd_disk *disk, const struct nbd_config *cfg, struct err *err)
{
	for (unsigned i = 0; i < cfg->socket_count; i++) {
		struct nbd_handle *nbd = begin_handshake(cfg, cfg->sockets[i], err);

		if (!nbd) {
			while (++i < cfg->socket_count)
				close(cfg->sockets[i]);
			return -1;
		}
		disk->connections[disk->count++].nbd = nbd;
	}
	return 0;
}

int nbd_connect_all(struct nbd_disk *disk, const struct nbd_config *cfg, struct err *err)
{
	uint64_t start = clock_ns();

	if (begin_all(disk, cfg, err) < 0)
		return -1;
	for (unsigned i = 0; i < disk->count; i++) {
		struct nbd_handle *nbd = disk->connections[i].nbd;

		if (finish_handshake(nbd, start, err) < 0 ||
		    (i == 0 && take_limits(disk, nbd, err) < 0))
			return -1;
		if (nbd_get_size(nbd) != (int64_t)disk->export_size)
			return err_set(err, ERR_FAILED,
				       "the NBD server states another size for each connection");
	}
	disk->piece_size = piece_size(disk, cfg->bytes_per_second);
	return 0;
}
