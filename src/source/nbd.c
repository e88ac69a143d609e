// SPDX-License-Identifier: Apache-2.0
#include "source/nbd.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/size.h"
#include "source/extent.h"

#include <errno.h>
#include <libnbd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SECTOR = 512,
	POLL_MS = 100, /* how late an abort may be noticed */
	CONNECT_SECONDS = 30,
	ALIGN_MAX = 64 * 1024, /* of requests, as the protocol recommends */
};

#define REQUEST_MAX (32 * MIB) /* when the server states no limit */
#define STATUS_MAX  (GIB)      /* bytes asked about at once */

struct connection {
	struct nbd_handle *nbd;
	int busy;
	atomic_int given_up; /* dead, or a command is under way in it: not to be used again */
};

struct nbd_disk {
	struct source source;
	uint64_t export_size;
	size_t request_max, align;
	int has_status; /* the server can tell what is allocated */

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

static struct nbd_disk *nbd_of(struct source *src)
{
	return (struct nbd_disk *)src;
}

static int say_aborted(struct err *err)
{
	return err_set(err, ERR_FAILED, "reading was given up");
}

static int say_gone(struct err *err)
{
	return err_set(err, ERR_FAILED, "the NBD server is gone");
}

/* libnbd's words for what just failed in this thread. */
static int say_nbd(const char *what, struct err *err)
{
	return err_set(err, ERR_FAILED, "%s: %s", what, nbd_get_error());
}

/* A connection for this thread alone.  Never waits for good: who has one gives
 * it back, and an abort wakes everybody.
 */
static struct connection *take_connection(struct nbd_disk *disk, struct err *err)
{
	struct connection *found = NULL;
	unsigned alive = 1;

	pthread_mutex_lock(&disk->lock);
	while (!found && alive > 0 && !atomic_load(&disk->aborted)) {
		alive = 0;
		for (unsigned i = 0; i < disk->count && !found; i++) {
			struct connection *c = &disk->connections[i];

			alive += !c->given_up;
			found = c->busy || c->given_up ? NULL : c;
		}
		if (!found && alive > 0)
			pthread_cond_wait(&disk->freed, &disk->lock);
	}
	if (found)
		found->busy = 1;
	pthread_mutex_unlock(&disk->lock);
	if (!found && alive > 0)
		say_aborted(err);
	else if (!found)
		say_gone(err);
	return found;
}

static void give_connection(struct nbd_disk *disk, struct connection *c)
{
	pthread_mutex_lock(&disk->lock);
	c->busy = 0;
	pthread_cond_broadcast(&disk->freed);
	pthread_mutex_unlock(&disk->lock);
}

/* Wait for the command.  1 when it was done, 0 when the server answered with
 * an error (errno), -1 with err when no answer will come.  In the last case the
 * connection is never polled again, so nothing writes to the buffer any more.
 */
static int await(struct nbd_disk *disk, struct connection *c, int64_t cookie, struct err *err)
{
	int rc = 0;

	if (cookie < 0) {
		atomic_store(&c->given_up, 1);
		return say_nbd("the NBD connection is unusable", err);
	}
	while (rc == 0) {
		rc = nbd_aio_command_completed(c->nbd, (uint64_t)cookie);
		if (rc > 0)
			return 1;
		if (rc < 0) {
			errno = nbd_get_errno();
			if (!nbd_aio_is_dead(c->nbd) && !nbd_aio_is_closed(c->nbd))
				return 0;
		} else if (atomic_load(&disk->aborted) || interrupt_pending()) {
			atomic_store(&c->given_up, 1);
			return interrupt_check(err) < 0 ? -1 : say_aborted(err);
		} else {
			rc = nbd_poll(c->nbd, POLL_MS) < 0 ? -1 : 0;
		}
	}
	atomic_store(&c->given_up, 1);
	return say_gone(err);
}

/* libnbd has put the bytes into the buffer by itself. */
static int ignore_chunk(void *ctx, const void *bytes, size_t count, uint64_t offset,
			unsigned status, int *error)
{
	(void)ctx, (void)bytes, (void)count, (void)offset, (void)status, (void)error;
	return 0;
}

/* One request, inside the export, aligned, not larger than allowed. */
static int read_request(struct nbd_disk *disk, struct connection *c, uint8_t *buf, size_t len,
			uint64_t offset, struct err *err)
{
	const int whole = atomic_load(&disk->whole_answers);
	const nbd_chunk_callback ignore = { .callback = ignore_chunk };
	int64_t cookie = whole ? nbd_aio_pread_structured(c->nbd, buf, len, offset, ignore,
							  NBD_NULL_COMPLETION, LIBNBD_CMD_FLAG_DF)
			       : nbd_aio_pread(c->nbd, buf, len, offset, NBD_NULL_COMPLETION, 0);
	int rc = await(disk, c, cookie, err);

	if (rc == 0 && errno == EOVERFLOW && whole) {
		atomic_store(&disk->whole_answers, 0); /* too long for one piece */
		return read_request(disk, c, buf, len, offset, err);
	}
	if (rc < 0)
		err_context(err, "cannot read at offset %llu", (unsigned long long)offset);
	return rc;
}

/* The request was answered with an error: halve it until one unit is left. */
static int find_bad_offset(struct nbd_disk *disk, struct connection *c, uint8_t *buf, size_t len,
			   uint64_t offset, struct err *err)
{
	size_t unit = MAX(disk->align, (size_t)SECTOR), good = 0;
	int cause = errno;

	while (len - good > unit) {
		size_t half = (size_t)round_up((len - good) / 2, unit);
		int rc = read_request(disk, c, buf + good, half, offset + good, err);

		if (rc < 0)
			return -1;
		if (rc > 0)
			good += half;
		else
			len = good + half;
	}
	errno = cause;
	return err_errno(err, ERR_FAILED, "cannot read at offset %llu",
			 (unsigned long long)(offset + good));
}

/* Any length, but aligned. */
static int read_aligned(struct nbd_disk *disk, struct connection *c, uint8_t *buf, size_t len,
			uint64_t offset, struct err *err)
{
	while (len > 0) {
		size_t n = MIN(len, disk->request_max);
		int rc = read_request(disk, c, buf, n, offset, err);

		if (rc < 0)
			return -1;
		if (rc == 0)
			return find_bad_offset(disk, c, buf, n, offset, err);
		buf += n;
		offset += n;
		len -= n;
	}
	return 0;
}

static int read_unaligned(struct nbd_disk *disk, struct connection *c, uint8_t *buf, size_t len,
			  uint64_t offset, struct err *err)
{
	uint64_t start = round_down(offset, disk->align);
	uint64_t end = MIN(round_up(offset + len, disk->align), disk->export_size);
	autofree uint8_t *wide = malloc((size_t)(end - start));

	if (!wide)
		return err_nomem(err);
	if (read_aligned(disk, c, wide, (size_t)(end - start), start, err) < 0)
		return -1;
	memcpy(buf, wide + (offset - start), len);
	return 0;
}

static int nbd_read_at(struct source *src, void *buf, size_t len, uint64_t offset, struct err *err)
{
	struct nbd_disk *disk = nbd_of(src);
	size_t there =
		offset < disk->export_size ? (size_t)MIN(len, disk->export_size - offset) : 0;
	struct connection *c;
	int rc = 0;

	memset((uint8_t *)buf + there, 0, len - there);
	if (there == 0)
		return 0;
	c = take_connection(disk, err);
	if (!c)
		return -1;
	if (offset % disk->align == 0 && there % disk->align == 0)
		rc = read_aligned(disk, c, buf, there, offset, err);
	else
		rc = read_unaligned(disk, c, buf, there, offset, err);
	give_connection(disk, c);
	return rc;
}

/* What one answer about block status says, from offset on. */
struct status {
	struct extent_list *out;
	uint64_t at, limit;
	struct err err;
	int failed;
};

static int take_status(void *ctx, const char *context, uint64_t offset, uint32_t *entries,
		       size_t count, int *error)
{
	struct status *status = ctx;

	(void)offset;
	if (strcmp(context, LIBNBD_CONTEXT_BASE_ALLOCATION) != 0 || *error)
		return 0;
	for (size_t i = 0; i + 1 < count && !status->failed; i += 2) {
		uint64_t n = MIN(entries[i], status->limit - status->at);

		if (extent_list_add(status->out, status->at, n,
				    (entries[i + 1] & LIBNBD_STATE_ZERO) != 0, &status->err) < 0)
			status->failed = 1;
		status->at += n;
	}
	return 0;
}

/* Ask once about [*at, limit), which moves *at.  1 when it did, 0 when the
 * server cannot tell.
 */
static int ask_status(struct nbd_disk *disk, struct connection *c, uint64_t *at, uint64_t limit,
		      struct extent_list *out, struct err *err)
{
	struct status status = { .out = out, .at = *at, .limit = limit };
	uint64_t end = MIN(round_up(limit, disk->align), disk->export_size);
	nbd_extent_callback callback = { .callback = take_status, .user_data = &status };
	int64_t cookie = nbd_aio_block_status(c->nbd, MIN(end - *at, STATUS_MAX), *at, callback,
					      NBD_NULL_COMPLETION, 0);
	int rc = await(disk, c, cookie, err);

	if (rc < 0)
		return -1;
	if (status.failed) {
		*err = status.err;
		return -1;
	}
	rc = status.at > *at;
	*at = status.at;
	return rc;
}

static int nbd_extents(struct source *src, uint64_t offset, uint64_t length,
		       struct extent_list *out, struct err *err)
{
	struct nbd_disk *disk = nbd_of(src);
	uint64_t at = offset, end = offset + length, limit = MIN(end, disk->export_size);
	struct connection *c;
	int rc = 1;

	if (disk->has_status && at < limit) {
		c = take_connection(disk, err);
		if (!c)
			return -1;
		while (rc > 0 && at < limit && at % disk->align == 0)
			rc = ask_status(disk, c, &at, limit, out, err);
		give_connection(disk, c);
		if (rc < 0)
			return err_context(err, "cannot tell what is allocated at offset %llu",
					   (unsigned long long)at);
	}
	if (at < limit && extent_list_add(out, at, limit - at, false, err) < 0)
		return -1;
	at = MAX(at, limit);
	return at < end ? extent_list_add(out, at, end - at, true, err) : 0;
}

static void nbd_abort(struct source *src)
{
	struct nbd_disk *disk = nbd_of(src);

	atomic_store(&disk->aborted, 1);
	pthread_mutex_lock(&disk->lock);
	pthread_cond_broadcast(&disk->freed);
	pthread_mutex_unlock(&disk->lock);
}

static void nbd_source_close(struct source *src)
{
	struct nbd_disk *disk = nbd_of(src);

	for (unsigned i = 0; i < disk->count; i++)
		nbd_close(disk->connections[i].nbd);
	pthread_cond_destroy(&disk->freed);
	pthread_mutex_destroy(&disk->lock);
	free(disk->connections);
	free(src->name);
	free(disk);
}

static const struct source_ops nbd_ops = {
	.name = "nbd",
	.extents = nbd_extents,
	.read_at = nbd_read_at,
	.abort = nbd_abort,
	.close = nbd_source_close,
};

/* Takes the socket over. */
static struct nbd_handle *begin_handshake(const struct nbd_config *cfg, int fd, struct err *err)
{
	autoclose int sock = fd;
	struct nbd_handle *nbd = nbd_create();

	if (!nbd) {
		say_nbd("cannot prepare an NBD connection", err);
		return NULL;
	}
#if LIBNBD_HAVE_NBD_SET_PREAD_INITIALIZE
	nbd_set_pread_initialize(nbd, false); /* a failed read's buffer is never looked at */
#endif
	if (nbd_set_export_name(nbd, cfg->export_name) < 0 ||
	    nbd_add_meta_context(nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) < 0 ||
	    nbd_aio_connect_socket(nbd, steal_fd(&sock)) < 0) {
		say_nbd("cannot connect to the NBD server", err);
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
		if (clock_seconds_since(start_ns) > CONNECT_SECONDS)
			return err_set(err, ERR_FAILED,
				       "the NBD server did not answer within %d seconds",
				       CONNECT_SECONDS);
		if (nbd_poll(nbd, POLL_MS) < 0)
			return say_nbd("cannot connect to the NBD server", err);
	}
	if (nbd_aio_is_ready(nbd) > 0)
		return 0;
	return err_set(err, ERR_FAILED, "the NBD server closed the connection");
}

/* The limits that hold for all connections are those of the first. */
static int take_limits(struct nbd_disk *disk, struct nbd_handle *nbd, struct err *err)
{
	int64_t size = nbd_get_size(nbd);
	int64_t align = nbd_get_block_size(nbd, LIBNBD_SIZE_MINIMUM);
	int64_t most = nbd_get_block_size(nbd, LIBNBD_SIZE_MAXIMUM);

	if (size < 0 || size > INT64_MAX - SECTOR)
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
	disk->source.size = round_up(disk->export_size, SECTOR);
	disk->source.padding = disk->source.size - disk->export_size;
	return 0;
}

static int connect_all(struct nbd_disk *disk, const struct nbd_config *cfg, struct err *err)
{
	uint64_t start = clock_ns();

	for (unsigned i = 0; i < cfg->socket_count; i++) {
		struct nbd_handle *nbd = begin_handshake(cfg, cfg->sockets[i], err);

		if (!nbd) {
			while (++i < cfg->socket_count)
				close(cfg->sockets[i]);
			return -1;
		}
		disk->connections[disk->count++].nbd = nbd;
	}
	for (unsigned i = 0; i < disk->count; i++) {
		struct nbd_handle *nbd = disk->connections[i].nbd;

		if (finish_handshake(nbd, start, err) < 0 ||
		    (i == 0 && take_limits(disk, nbd, err) < 0))
			return -1;
		if (nbd_get_size(nbd) != (int64_t)disk->export_size)
			return err_set(err, ERR_FAILED,
				       "the NBD server states another size for each connection");
	}
	return 0;
}

struct source *nbd_source_open(const struct nbd_config *cfg, struct err *err)
{
	struct nbd_disk *disk = calloc(1, sizeof *disk);
	struct connection *connections = calloc(cfg->socket_count, sizeof *connections);
	char *name = strdup(cfg->name);

	if (!disk || !connections || !name) {
		for (unsigned i = 0; i < cfg->socket_count; i++)
			close(cfg->sockets[i]);
		free(disk);
		free(connections);
		free(name);
		err_nomem(err);
		return NULL;
	}
	disk->source.ops = &nbd_ops;
	disk->source.name = name;
	disk->connections = connections;
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->freed, NULL);
	if (connect_all(disk, cfg, err) < 0) {
		nbd_source_close(&disk->source);
		return NULL;
	}
	return &disk->source;
}
