// SPDX-License-Identifier: Apache-2.0
#include "source/nbd.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "source/extent.h"
#include "source/nbd_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_MAX (GIB) /* bytes asked about at once */

static struct nbd_disk *nbd_of(struct source *src)
{
	return (struct nbd_disk *)src;
}

int nbd_say(const char *what, struct err *err)
{
	return err_set(err, ERR_FAILED, "%s: %s", what, nbd_get_error());
}

static int say_gone(struct err *err)
{
	return err_set(err, ERR_FAILED, "the NBD server is gone");
}

static int say_aborted(struct err *err)
{
	return interrupt_check(err) < 0 ? -1 : err_set(err, ERR_FAILED, "reading was given up");
}

int nbd_is_aborted(const struct nbd_disk *disk)
{
	return atomic_load(&disk->aborted) || interrupt_pending();
}

int nbd_give_up(struct connection *c, struct err *err)
{
	atomic_store(&c->given_up, 1);
	return say_aborted(err);
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

enum answer { ANSWER_GOOD, ANSWER_ERROR, ANSWER_NOT_YET, ANSWER_NEVER };

static enum answer look(const struct connection *c, int64_t cookie)
{
	int rc = nbd_aio_command_completed(c->nbd, (uint64_t)cookie);

	errno = rc < 0 ? nbd_get_errno() : 0;
	if (rc > 0)
		return ANSWER_GOOD;
	if (nbd_aio_is_dead(c->nbd) || nbd_aio_is_closed(c->nbd))
		return ANSWER_NEVER;
	return rc < 0 ? ANSWER_ERROR : ANSWER_NOT_YET;
}

static int is_stalled(const struct nbd_disk *disk, uint64_t start_ns)
{
	return disk->stall_seconds && clock_seconds_since(start_ns) >= disk->stall_seconds;
}

static int say_stalled(const struct nbd_disk *disk, struct connection *c, struct err *err)
{
	atomic_store(&c->given_up, 1);
	return err_set(err, ERR_FAILED,
		       "no answer from the NBD server for %u seconds (see --stall-timeout)",
		       disk->stall_seconds);
}

int nbd_await(const struct nbd_disk *disk, struct connection *c, int64_t cookie, struct err *err)
{
	uint64_t start = clock_ns();
	enum answer answer;

	if (cookie < 0) {
		atomic_store(&c->given_up, 1);
		return nbd_say("the NBD connection is unusable", err);
	}
	while ((answer = look(c, cookie)) == ANSWER_NOT_YET) {
		if (nbd_is_aborted(disk))
			return nbd_give_up(c, err);
		if (is_stalled(disk, start))
			return say_stalled(disk, c, err);
		nbd_poll(c->nbd, NBD_POLL_MS);
	}
	if (answer != ANSWER_NEVER)
		return answer == ANSWER_GOOD;
	atomic_store(&c->given_up, 1);
	return say_gone(err);
}

static int read_unaligned(struct nbd_disk *disk, struct connection *c, uint8_t *buf, size_t len,
			  uint64_t offset, struct err *err)
{
	uint64_t start = round_down(offset, disk->align);
	uint64_t end = MIN(round_up(offset + len, disk->align), disk->export_size);
	autofree uint8_t *wide = malloc((size_t)(end - start));

	if (!wide)
		return err_nomem(err);
	if (nbd_read_aligned(disk, c, wide, (size_t)(end - start), start, err) < 0)
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
		rc = nbd_read_aligned(disk, c, buf, there, offset, err);
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
	int rc = nbd_await(disk, c, cookie, err);

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

static struct nbd_disk *disk_new(const struct nbd_config *cfg, struct err *err)
{
	struct nbd_disk *disk = calloc(1, sizeof *disk);
	struct connection *connections = calloc(cfg->socket_count, sizeof *connections);
	char *name = strdup(cfg->name);

	if (!disk || !connections || !name) {
		free(disk);
		free(connections);
		free(name);
		err_nomem(err);
		return NULL;
	}
	disk->source.ops = &nbd_ops;
	disk->source.name = name;
	disk->connections = connections;
	disk->stall_seconds = cfg->stall_seconds;
	pace_init(&disk->pace, cfg->bytes_per_second);
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->freed, NULL);
	return disk;
}

struct source *nbd_source_open(const struct nbd_config *cfg, struct err *err)
{
	struct nbd_disk *disk = disk_new(cfg, err);

	if (!disk) {
		for (unsigned i = 0; i < cfg->socket_count; i++)
			close(cfg->sockets[i]);
		return NULL;
	}
	if (nbd_connect_all(disk, cfg, err) < 0) {
		nbd_source_close(&disk->source);
		return NULL;
	}
	return &disk->source;
}
