// SPDX-License-Identifier: Apache-2.0
#include "dest/payload.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/size.h"
#include "dest/dest.h"
#include "dest/http.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE (512 * KIB)
#define TURNS (HASH_AHEAD + 1)

/* A piece is read from the file once.  It is hashed by other threads while it is copied
 * out to whoever sends it, so that both always get the same bytes: a file that somebody
 * writes to meanwhile is noticed by its digests, whatever was sent; where none are known,
 * by its times.
 */
struct payload {
	struct http_upload upload; /* ->ctx is this */
	int fd;
	char *name;
	struct dest *dest;
	unsigned which;

	/* One pass. */
	struct hash *hash; /* NULL: none was begun, or it is complete */
	uint64_t given;	   /* bytes that were asked for */
	uint64_t loaded;   /* bytes that are in the pieces, up to the current one's end */
	unsigned turn;
	uint8_t *pieces; /* TURNS; outlives hash */

	struct stat before;

	bool is_whole; /* digests are of a whole pass */
	struct digests digests;
};

static int read_file(const struct payload *p, void *buf, size_t len, uint64_t offset,
		     struct err *err)
{
	size_t done;
	ssize_t n = io_pread_until(p->fd, buf, len, offset, &done, interrupt_pending);

	if (n < 0 && interrupt_check(err) < 0)
		return -1;
	if (n < 0)
		return err_errno(err, ERR_FAILED, "cannot read %s at offset %llu", p->name,
				 (unsigned long long)(offset + done));
	if ((size_t)n < len)
		return err_set(err, ERR_FAILED,
			       "%s became shorter while it was sent: it ends at %llu of %llu bytes",
			       p->name, (unsigned long long)offset + (size_t)n,
			       (unsigned long long)p->upload.size);
	return 0;
}

static void end_pass(struct payload *p)
{
	hash_stop(p->hash);
	p->hash = NULL;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A file that is written to is read torn, some of it old and some new. */
static int check_unchanged(const struct payload *p, struct err *err)
{
	const struct stat *then = &p->before;
	struct stat now;

	if (fstat(p->fd, &now) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", p->name);
	if (now.st_size == then->st_size && is_same_time(now.st_mtim, then->st_mtim) &&
	    is_same_time(now.st_ctim, then->st_ctim))
		return 0;
	return err_set(err, ERR_FAILED,
		       "%s changed while it was sent; send it when nothing writes to it", p->name);
}

static int begin_pass(struct payload *p, struct err *err)
{
	end_pass(p);
	if (check_unchanged(p, err) < 0)
		return -1;
	p->given = p->loaded = 0;
	p->is_whole = false;
	p->hash = hash_start(p->which, err);
	return p->hash ? 0 : -1;
}

static int complete_pass(struct payload *p, struct err *err)
{
	if (hash_finish(p->hash, &p->digests, err) < 0)
		return -1;
	end_pass(p);
	p->is_whole = true;
	return 0;
}

/* The next piece, which the threads begin to hash. */
static int load(struct payload *p, struct err *err)
{
	size_t n = (size_t)MIN(p->upload.size - p->loaded, PIECE);
	uint8_t *piece;

	p->turn = (p->turn + 1) % TURNS;
	piece = p->pieces + p->turn * PIECE;
	if (read_file(p, piece, n, p->loaded, err) < 0 || hash_post(p->hash, piece, n, err) < 0)
		return -1;
	p->loaded += n;
	return 0;
}

/* Out of the current piece, which all but its end is given from. */
static size_t give(struct payload *p, uint8_t *buf, size_t len)
{
	uint64_t left = p->loaded - p->given;
	size_t n = (size_t)MIN(left, len), at = (size_t)(p->given % PIECE);

	memcpy(buf, p->pieces + p->turn * PIECE + at, n);
	p->given += n;
	return n;
}

static void tell(const struct payload *p, size_t len)
{
	p->dest->receipt.sent_bytes += len;
	if (p->dest->progress)
		p->dest->progress(p->dest->progress_ctx, p->given);
}

static int payload_read(void *ctx, void *buf, size_t len, uint64_t offset, struct err *err)
{
	struct payload *p = ctx;

	if (offset == 0 && begin_pass(p, err) < 0)
		return -1;
	assert(p->hash && offset == p->given && len <= p->upload.size - offset);
	for (size_t done = 0; done < len;) {
		if (p->given == p->loaded && load(p, err) < 0)
			return -1;
		done += give(p, (uint8_t *)buf + done, len - done);
	}
	tell(p, len);
	return 0;
}

struct payload *payload_new(int fd, const char *name, uint64_t size, unsigned which,
			    struct dest *dest, struct err *err)
{
	autopayload struct payload *p = calloc(1, sizeof *p);

	if (p) {
		p->upload = (struct http_upload){ .size = size, .read = payload_read, .ctx = p };
		p->fd = fd;
		p->dest = dest;
		p->which = which;
		p->name = strdup(name);
		p->pieces = malloc(TURNS * PIECE);
	}
	if (!p || !p->name || !p->pieces) {
		err_nomem(err);
		return NULL;
	}
	if (fstat(fd, &p->before) < 0) {
		err_errno(err, ERR_FAILED, "cannot look at %s", name);
		return NULL;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return steal(&p);
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	end_pass(p);
	free(p->pieces);
	free(p->name);
	free(p);
}

const struct http_upload *payload_upload(struct payload *p)
{
	return &p->upload;
}

/* --- digests --- */

/* To the end of the last pass, or through one of its own. */
static int run_pass(struct payload *p, struct err *err)
{
	bool was_sent = p->hash && p->given == p->upload.size;

	if (!was_sent && begin_pass(p, err) < 0)
		return -1;
	while (p->loaded < p->upload.size)
		if (interrupt_check(err) < 0 || load(p, err) < 0)
			return -1;
	return complete_pass(p, err);
}

/* Computed, if it was, and not what it was known to be? */
static bool differs(const char *computed, const char *known)
{
	return *computed && *known && strcmp(computed, known) != 0;
}

static bool is_known(const struct digests *computed, const struct digests *known)
{
	return (*computed->sha256 && *known->sha256) || (*computed->sha512 && *known->sha512);
}

static bool is_other(const struct digests *computed, const struct digests *known)
{
	return differs(computed->sha256, known->sha256) || differs(computed->sha512, known->sha512);
}

static void add_known(struct digests *out, const struct digests *known)
{
	if (!*out->sha256) {
		memcpy(out->sha256, known->sha256, sizeof out->sha256);
		out->checkpoints = known->checkpoints;
	}
	if (!*out->sha512)
		memcpy(out->sha512, known->sha512, sizeof out->sha512);
}

int payload_digests(struct payload *p, const struct digests *known, struct digests *out,
		    struct err *err)
{
	struct digests digests;

	if (!p->is_whole && run_pass(p, err) < 0)
		return -1;
	digests = p->digests;
	if (known && is_other(&digests, known))
		return err_set(err, ERR_FAILED,
			       "%s is not what its manifest says, or has changed since; what was "
			       "sent is not what was meant",
			       p->name);
	if (!(known && is_known(&digests, known)) && check_unchanged(p, err) < 0)
		return -1;
	if (known)
		add_known(&digests, known);
	*out = digests;
	return 0;
}
