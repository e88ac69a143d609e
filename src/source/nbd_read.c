// SPDX-License-Identifier: Apache-2.0
#include "source/nbd_inner.h"

#include "base/err.h"
#include "base/size.h"

#include <errno.h>

/* QEMU works on no more for a client at a time. */
enum { PIECES_MAX = 16 };

/* One request, inside the export, aligned, not larger than allowed. */
struct piece {
	uint8_t *buf;
	size_t len;
	uint64_t offset;
	int whole; /* its answer has to come in one piece */
	int64_t cookie;
};

/* A read as pieces.  Several are under way at a time and are awaited in the disk's
 * order, whatever order their answers come in.  All of a read's pieces are in the one
 * connection that the thread has, and none is left in it when the read ends,
 * unless the connection is given up: so none ever writes to a buffer later.
 */
struct flight {
	struct nbd_disk *disk;
	struct connection *c;
	uint8_t *buf; /* of what is still to be asked for */
	size_t len;
	uint64_t offset;
	struct piece pieces[PIECES_MAX]; /* from first on, as a ring */
	unsigned first, count;
};

/* libnbd has put the bytes into the buffer by itself. */
static int ignore_chunk(void *ctx, const void *bytes, size_t count, uint64_t offset,
			unsigned status, int *error)
{
	(void)ctx, (void)bytes, (void)count, (void)offset, (void)status, (void)error;
	return 0;
}

static void piece_send(struct nbd_disk *disk, struct connection *c, struct piece *p)
{
	const nbd_chunk_callback ignore = { .callback = ignore_chunk };

	p->whole = atomic_load(&disk->whole_answers);
	p->cookie =
		p->whole ? nbd_aio_pread_structured(c->nbd, p->buf, p->len, p->offset, ignore,
						    NBD_NULL_COMPLETION, LIBNBD_CMD_FLAG_DF)
			 : nbd_aio_pread(c->nbd, p->buf, p->len, p->offset, NBD_NULL_COMPLETION, 0);
}

static int say_where(const struct piece *p, struct err *err)
{
	return err_context(err, "cannot read at offset %llu", (unsigned long long)p->offset);
}

/* As nbd_await. */
static int piece_wait(struct nbd_disk *disk, struct connection *c, struct piece *p, struct err *err)
{
	int rc = nbd_await(disk, c, p->cookie, err);

	if (rc == 0 && errno == EOVERFLOW && p->whole) {
		atomic_store(&disk->whole_answers, 0); /* too long for one piece */
		piece_send(disk, c, p);
		return piece_wait(disk, c, p, err);
	}
	return rc < 0 ? say_where(p, err) : rc;
}

static int read_part(struct nbd_disk *disk, struct connection *c, const struct piece *whole,
		     size_t at, size_t len, struct err *err)
{
	struct piece part = { .buf = whole->buf + at, .len = len, .offset = whole->offset + at };

	piece_send(disk, c, &part);
	return piece_wait(disk, c, &part, err);
}

/* The piece was answered with an error (errno): halve it until one unit is left. */
static int find_bad_offset(struct nbd_disk *disk, struct connection *c, const struct piece *p,
			   struct err *err)
{
	size_t unit = MAX(disk->align, (size_t)NBD_SECTOR), good = 0, end = p->len;
	int cause = errno;

	while (end - good > unit) {
		size_t half = (size_t)round_up((end - good) / 2, unit);
		int rc = read_part(disk, c, p, good, half, err);

		if (rc < 0)
			return -1;
		if (rc > 0)
			good += half;
		else
			end = good + half;
	}
	errno = cause;
	return err_errno(err, ERR_FAILED, "cannot read at offset %llu",
			 (unsigned long long)(p->offset + good));
}

static int is_aborted(const void *disk)
{
	return nbd_is_aborted(disk);
}

static int flight_send(struct flight *f, struct err *err)
{
	struct piece *p = &f->pieces[(f->first + f->count) % PIECES_MAX];
	size_t n = MIN(f->len, f->disk->piece_size);

	if (pace_wait(&f->disk->pace, n, is_aborted, f->disk) < 0)
		return nbd_give_up(f->c, err);
	*p = (struct piece){ .buf = f->buf, .len = n, .offset = f->offset };
	piece_send(f->disk, f->c, p);
	f->count++;
	f->buf += n;
	f->len -= n;
	f->offset += n;
	return 0;
}

/* The first one in the disk's order, which stays where it is until the next is sent. */
static struct piece *flight_next(struct flight *f)
{
	struct piece *p = &f->pieces[f->first];

	f->first = (f->first + 1) % PIECES_MAX;
	f->count--;
	return p;
}

/* The answers to the pieces behind a bad one are of no use, but they do come. */
static int flight_fail(struct flight *f, const struct piece *bad, struct err *err)
{
	int cause = errno;

	while (f->count > 0)
		if (nbd_await(f->disk, f->c, flight_next(f)->cookie, err) < 0)
			return say_where(bad, err);
	errno = cause;
	return find_bad_offset(f->disk, f->c, bad, err);
}

/* While a limited reader rests, no answer may lie unread: QEMU, which serves from its main loop,
 * would stand still with its guest if the export ended then.
 */
static unsigned most_at_once(const struct nbd_disk *disk)
{
	return disk->pace.bytes_per_second ? 1 : PIECES_MAX;
}

int nbd_read_aligned(struct nbd_disk *disk, struct connection *c, uint8_t *buf, size_t len,
		     uint64_t offset, struct err *err)
{
	struct flight f = { .disk = disk, .c = c, .buf = buf, .len = len, .offset = offset };

	while (f.len > 0 || f.count > 0) {
		struct piece *p;
		int rc;

		while (f.len > 0 && f.count < most_at_once(disk))
			if (flight_send(&f, err) < 0)
				return -1;
		p = flight_next(&f);
		rc = piece_wait(disk, c, p, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			return flight_fail(&f, p, err);
	}
	return 0;
}
