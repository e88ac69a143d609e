// SPDX-License-Identifier: Apache-2.0
#include "base/hash_inner.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PIECE	  (512 * KIB)
#define HOLE_STEP (256 * MIB) /* so that progress moves within long holes */

/* Where a file is read, and what is known of its holes. */
struct span {
	int fd;
	int copy; /* where it is copied to, -1: nowhere */
	const char *name;
	uint64_t size;
	uint64_t data_end; /* no need to ask again before this */
	bool synced;
};

/* Bytes that are said to be a hole from offset on, 0 for data. */
static uint64_t ask_hole(struct span *span, uint64_t offset)
{
	off_t data = lseek(span->fd, (off_t)offset, SEEK_DATA), hole;

	if (data < 0 && errno == ENXIO)
		return span->size - offset;
	if (data > (off_t)offset)
		return MIN((uint64_t)data, span->size) - offset;
	hole = data < 0 ? -1 : lseek(span->fd, (off_t)offset, SEEK_HOLE);
	span->data_end = hole > (off_t)offset ? (uint64_t)hole : span->size;
	return 0;
}

/* A hole is believed only once the file is synced, since some filesystems
 * show data that is still on its way as one; data wrongly shown costs nothing
 * but time.  Where nothing can be synced, everything is read.
 */
static int hole_at(struct span *span, uint64_t offset, uint64_t *length, struct err *err)
{
	*length = offset < span->data_end ? 0 : ask_hole(span, offset);
	if (*length == 0 || span->synced)
		return 0;
	if (fsync(span->fd) == 0) {
		span->synced = true;
		*length = ask_hole(span, offset);
	} else if (errno == EINVAL || errno == EROFS) {
		span->data_end = span->size;
		*length = 0;
	} else {
		return err_errno(err, ERR_FAILED, "cannot sync %s", span->name);
	}
	return 0;
}

static int read_piece(const struct span *span, void *buf, size_t len, uint64_t offset,
		      struct err *err)
{
	size_t done;
	ssize_t n = io_pread(span->fd, buf, len, offset, &done);

	if (n < 0)
		return err_errno(err, ERR_FAILED, "cannot read %s at offset %llu", span->name,
				 (unsigned long long)(offset + done));
	if ((size_t)n < len)
		return err_set(err, ERR_FAILED,
			       "%s became shorter while it was read: it ends at %llu", span->name,
			       (unsigned long long)(offset + done));
	return 0;
}

static int copy_piece(const struct span *span, const void *buf, size_t len, uint64_t offset,
		      struct err *err)
{
	if (span->copy < 0 || io_pwrite(span->copy, buf, len, offset) == 0)
		return 0;
	return err_errno(err, ERR_FAILED, "cannot write the copy of %s", span->name);
}

/* The next piece into the hash; data is still being worked on in buf when
 * this returns.  *length: how much that was.
 */
static int feed(struct hash *hash, struct span *span, uint64_t offset, void *buf, uint64_t *length,
		struct err *err)
{
	uint64_t hole;

	if (interrupt_check(err) < 0 || hole_at(span, offset, &hole, err) < 0)
		return -1;
	if (hole > 0) {
		*length = MIN(hole, HOLE_STEP);
		return hash_zeros(hash, *length, err);
	}
	*length = MIN(MIN(span->data_end, span->size) - offset, PIECE);
	if (read_piece(span, buf, (size_t)*length, offset, err) < 0 ||
	    copy_piece(span, buf, (size_t)*length, offset, err) < 0)
		return -1;
	return hash_post(hash, buf, (size_t)*length, err);
}

static int check_length(const struct span *span, struct err *err)
{
	struct stat st;

	if (fstat(span->fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", span->name);
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < span->size)
		return err_set(err, ERR_FAILED, "%s is shorter than expected: %llu of %llu bytes",
			       span->name, (unsigned long long)st.st_size,
			       (unsigned long long)span->size);
	return 0;
}

/* The buffers must outlive the work on them, so that the hash is at rest when this
 * returns well, and has to be stopped before bufs go when it does not.
 */
static int feed_all(struct hash *hash, struct span *span, uint8_t *bufs,
		    void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err)
{
	uint64_t length, offset = 0;
	unsigned turn = 0;

	if (check_length(span, err) < 0)
		return -1;
	posix_fadvise(span->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	for (; offset < span->size; offset += length) {
		void *buf = bufs + turn++ % (HASH_AHEAD + 1) * PIECE;

		if (feed(hash, span, offset, buf, &length, err) < 0)
			return -1;
		if (progress)
			progress(ctx, offset + length);
	}
	return 0;
}

static uint8_t *make_bufs(struct err *err)
{
	uint8_t *bufs = malloc((HASH_AHEAD + 1) * PIECE);

	if (!bufs)
		err_nomem(err);
	return bufs;
}

static int digest_span(struct span *span, struct digests *out,
		       void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err)
{
	autofree uint8_t *bufs = make_bufs(err);
	autohash struct hash *hash = bufs ? hash_start(HASH_OURS, err) : NULL; /* ends first */

	if (!hash || feed_all(hash, span, bufs, progress, ctx, err) < 0)
		return -1;
	return hash_finish(hash, out, err);
}

int hash_file(int fd, const char *name, uint64_t size, struct digests *out,
	      void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err)
{
	struct span span = { .fd = fd, .copy = -1, .name = name, .size = size };

	return digest_span(&span, out, progress, ctx, err);
}

int hash_copy(int from, int to, const char *name, uint64_t size, struct digests *out,
	      void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err)
{
	struct span span = { .fd = from, .copy = to, .name = name, .size = size };

	if (digest_span(&span, out, progress, ctx, err) < 0)
		return -1;
	/* a hole at the end was not written */
	if (ftruncate(to, (off_t)size) < 0)
		return err_errno(err, ERR_FAILED, "cannot write the copy of %s", name);
	return 0;
}

int hash_file_by_name(int fd, const char *name, uint64_t size, const char *algorithm, char *hex,
		      struct err *err)
{
	struct span span = { .fd = fd, .copy = -1, .name = name, .size = size };
	autofree uint8_t *bufs = make_bufs(err);
	autohash struct hash *hash = NULL; /* ends first */
	int started = bufs ? hash_start_by_name(algorithm, &hash, err) : -1;

	if (started <= 0)
		return started;
	if (feed_all(hash, &span, bufs, NULL, NULL, err) < 0 ||
	    hash_finish_by_name(hash, hex, err) < 0)
		return -1;
	return 1;
}
