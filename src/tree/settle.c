// SPDX-License-Identifier: Apache-2.0
#include "tree/settle.h"

#include "base/account.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "ext4/ext4.h"
#include "source/extent.h"
#include "tree/emit.h"
#include "walk/reach.h"
#include "walk/walk.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Rounds in which a file may be read once more. */
#define ROUNDS 3

/* What lies so close together is read in one go. */
#define MERGE_GAP MIB

/* A file that was laid out anew, as it was then. */
struct adopted {
	uint32_t node;
	bool over;	 /* its account is settled: it is not looked at again */
	char sha256[65]; /* of its size bytes, before they are read into the image */
};

struct settle {
	struct settle_config cfg;
	unsigned round;
	struct adopted *adopted;
	size_t adopted_count, adopted_cap;
	struct extent_list *again; /* of the round under way */
};

struct settle *settle_new(const struct settle_config *cfg, struct err *err)
{
	struct settle *s = calloc(1, sizeof *s);

	if (s)
		s->cfg = *cfg;
	else
		err_nomem(err);
	return s;
}

void settle_free(struct settle *s)
{
	if (s)
		free(s->adopted);
	free(s);
}

static struct model_node *node_of(struct settle *s, uint32_t node)
{
	return &s->cfg.model->nodes[node];
}

/* The filesystem that holds it: a mounted root has no name. */
static const struct settle_volume *volume_of(struct settle *s, uint32_t node)
{
	uint32_t at = node;

	while (at != MODEL_ROOT && node_of(s, at)->name != 0)
		at = node_of(s, at)->parent;
	for (size_t i = 0; i < s->cfg.volume_count; i++)
		if (s->cfg.volumes[i].root == at)
			return &s->cfg.volumes[i];
	return &s->cfg.volumes[0];
}

static int note(struct settle *s, enum account_kind kind, uint32_t node, const char *detail,
		struct err *err)
{
	autofree char *path = model_path(s->cfg.model, node);

	if (!path)
		return err_nomem(err);
	account_add(s->cfg.account, kind, path, "%s", detail);
	log_debug("%s: %s", path, detail);
	return 0;
}

/* --- what can be done with a suspect ------------------------------------------ */

/* The same for each name of the node. */
static int note_names(struct settle *s, enum account_kind kind, uint32_t node, const char *detail,
		      struct err *err)
{
	uint32_t count;
	const struct model_name *names = model_names(s->cfg.model, node, &count);

	for (uint32_t i = 0; i < count; i++) {
		autofree char *dir = model_path(s->cfg.model, names[i].dir);
		const char *name = model_string(s->cfg.model, names[i].name);
		autofree char *path =
			dir ? str_format("%s%s%s", dir, dir[1] ? "/" : "", name) : NULL;

		if (!path)
			return err_nomem(err);
		account_add(s->cfg.account, kind, path, "%s", detail);
	}
	return count ? 0 : note(s, kind, node, detail, err);
}

static int take_out(struct settle *s, uint32_t node, enum account_kind kind, const char *why,
		    struct err *err)
{
	if (ext4_remove(volume_of(s, node)->fs, node, err) < 0)
		return -1;
	return note_names(s, kind, node, why, err);
}

static int hash_range(struct sha256 *hash, int fd, uint64_t from, uint64_t end, struct err *err)
{
	uint8_t buf[64 * KIB];

	for (uint64_t at = from; at < end; at += sizeof buf) {
		size_t len = (size_t)MIN(end - at, sizeof buf);

		if (interrupt_check(err) < 0)
			return -1;
		if (io_pread(fd, buf, len, at, NULL) != (ssize_t)len)
			return err_set(err, ERR_FAILED, "cut short");
		if (sha256_update(hash, buf, len, err) < 0)
			return -1;
	}
	return 0;
}

/* Blocks that hold data, up to the size that the node has. */
static int hash_node(struct settle *s, struct sha256 *hash, uint32_t node, int fd, struct err *err)
{
	const struct model_node *n = node_of(s, node);
	const struct model_segment *seg = s->cfg.model->segments + n->first;

	if (n->data == MODEL_DENSE)
		return hash_range(hash, fd, 0, n->size, err);
	for (uint32_t i = 0; n->data == MODEL_SPARSE && i < n->count; i++) {
		uint64_t from = (uint64_t)seg[i].block * MODEL_BLOCK;
		uint64_t end = from + (uint64_t)seg[i].count * MODEL_BLOCK;

		if (hash_range(hash, fd, from, MIN(end, n->size), err) < 0)
			return -1;
	}
	return 0;
}

/* "" when it cannot be read, which equals no other; -1 only for a signal. */
static int digest(struct settle *s, uint32_t node, int fd, char sha256[65], struct err *err)
{
	struct sha256 *hash = sha256_start(err);

	if (!hash || hash_node(s, hash, node, fd, err) < 0 || sha256_finish(hash, sha256, err) < 0)
		sha256[0] = '\0';
	sha256_stop(hash);
	return interrupt_check(err);
}

static struct adopted *find_adopted(struct settle *s, uint32_t node)
{
	for (size_t i = 0; i < s->adopted_count; i++)
		if (s->adopted[i].node == node)
			return &s->adopted[i];
	return NULL;
}

static struct adopted *add_adopted(struct settle *s, uint32_t node, struct err *err)
{
	struct adopted *known = find_adopted(s, node);

	if (known)
		return known;
	if (!array_room(s->adopted, s->adopted_cap, s->adopted_count + 1)) {
		err_nomem(err);
		return NULL;
	}
	s->adopted[s->adopted_count] = (struct adopted){ .node = node };
	return &s->adopted[s->adopted_count++];
}

static int read_again(struct settle *s, uint32_t node, struct err *err)
{
	const struct settle_volume *volume = volume_of(s, node);

	return ext4_locate(volume->fs, node, volume->base, s->again, err);
}

/* Lay the file out as it is now, and have it read again. */
static int adopt(struct settle *s, uint32_t node, int fd, struct err *err)
{
	struct adopted *adopted = add_adopted(s, node, err);

	if (!adopted || walk_again(s->cfg.walk, s->cfg.model, node, fd, err) < 0 ||
	    ext4_replace(volume_of(s, node)->fs, node, err) < 0 ||
	    digest(s, node, fd, adopted->sha256, err) < 0)
		return -1;
	return read_again(s, node, err);
}

/* Is the file longer now, and its beginning still what it was? */
static bool only_grew(struct settle *s, uint32_t node, int fd, const struct stat *now,
		      struct err *err)
{
	const struct adopted *adopted = find_adopted(s, node);
	char sha256[65];

	return adopted && *adopted->sha256 && (uint64_t)now->st_size > node_of(s, node)->size &&
	       digest(s, node, fd, sha256, err) == 0 && strcmp(sha256, adopted->sha256) == 0;
}

static int cut(struct settle *s, uint32_t node, uint64_t size, struct err *err)
{
	struct model_node *n = node_of(s, node);
	uint64_t blocks = round_up(size, MODEL_BLOCK) / MODEL_BLOCK;

	if (size >= n->size)
		return 0;
	n->size = size;
	while (n->data == MODEL_SPARSE && n->count > 0) {
		struct model_segment *last = &s->cfg.model->segments[n->first + n->count - 1];

		if (last->block < blocks) {
			last->count = (uint32_t)MIN(last->count, blocks - last->block);
			break;
		}
		n->count--;
	}
	return ext4_replace(volume_of(s, node)->fs, node, err);
}

/* Nothing more is to be done with the file than to tell how it is. */
static int conclude(struct settle *s, uint32_t node, enum account_kind kind, const char *detail,
		    struct err *err)
{
	struct adopted *adopted = add_adopted(s, node, err);

	if (!adopted)
		return -1;
	adopted->over = true;
	return note(s, kind, node, detail, err);
}

static int give_up(struct settle *s, const struct emit_suspect *suspect, struct err *err)
{
	if (cut(s, suspect->node, suspect->size, err) < 0)
		return -1;
	return conclude(s, suspect->node, ACCOUNT_CHANGED,
			"changed while it was read, again and again", err);
}

/* What stands at all of the node's names now, if that is one regular file. */
static bool find_replacement(struct settle *s, uint32_t node, struct stat *found)
{
	uint32_t count;
	const struct model_name *names = model_names(s->cfg.model, node, &count);
	bool any = false;

	for (uint32_t i = 0; i < count; i++) {
		struct stat now;

		if (reach_stat_name(s->cfg.reach, names[i].dir,
				    model_string(s->cfg.model, names[i].name), &now) < 0)
			return false;
		if (!S_ISREG(now.st_mode) ||
		    (any && (now.st_ino != found->st_ino || now.st_dev != found->st_dev)))
			return false;
		*found = now;
		any = true;
	}
	return any;
}

/* Something else stands at its name: a regular file is the same file by name. */
static int follow_replacement(struct settle *s, uint32_t node, struct stat *now)
{
	struct model_node *n = node_of(s, node);
	struct stat ignored;

	errno = ESTALE;
	if (n->names > 1 ? !find_replacement(s, node, now) : !S_ISREG(now->st_mode))
		return -1;
	n->found_dev = now->st_dev;
	n->found_ino = now->st_ino;
	return reach_file(s->cfg.reach, node, &ignored);
}

static int settle_open(struct settle *s, const struct emit_suspect *suspect, int fd,
		       struct err *err)
{
	uint32_t node = suspect->node;
	struct stat now;
	uint64_t size;

	if (fstat(fd, &now) < 0)
		return take_out(s, node, ACCOUNT_VANISHED, "cannot be looked at again", err);
	size = (uint64_t)MIN(now.st_size, now.st_blocks * 512);
	if (only_grew(s, node, fd, &now, err))
		return conclude(s, node, ACCOUNT_GREW, "grew while it was captured", err);
	if (s->round > ROUNDS || size > s->cfg.budget)
		return give_up(s, suspect, err);
	s->cfg.budget -= size;
	return reach_is_unchanged(node_of(s, node), &now) && suspect->size >= node_of(s, node)->size
		       ? read_again(s, node, err)
		       : adopt(s, node, fd, err);
}

static int settle_one(struct settle *s, const struct emit_suspect *suspect, struct err *err)
{
	const struct adopted *known = find_adopted(s, suspect->node);
	struct stat now = { 0 };
	uint32_t node = suspect->node;
	autoclose int fd = -1;

	if (known && known->over)
		return 0;
	fd = reach_file(s->cfg.reach, node, &now);
	if (fd < 0 && reach_is_gone(errno))
		fd = follow_replacement(s, node, &now);
	if (fd < 0 && reach_is_gone(errno))
		return take_out(s, node, ACCOUNT_VANISHED, "gone before it could be read", err);
	if (suspect->sys_errno && !reach_is_gone(suspect->sys_errno))
		return take_out(s, node, ACCOUNT_UNREADABLE, strerror(suspect->sys_errno), err);
	if (fd < 0) /* it could be read before: that is kept */
		return give_up(s, suspect, err);
	return settle_open(s, suspect, fd, err);
}

/* --- rounds ------------------------------------------------------------------- */

static int commit(struct settle *s, struct err *err)
{
	for (size_t i = 0; i < s->cfg.volume_count; i++)
		if (ext4_commit(s->cfg.volumes[i].fs, s->cfg.volumes[i].base, s->again, err) < 0)
			return -1;
	return 0;
}

int settle_round(struct settle *s, struct extent_list *again, struct err *err)
{
	autofree struct emit_suspect *suspects = NULL;
	size_t count = emit_take_suspects(s->cfg.emit, &suspects);

	s->again = again;
	s->round++;
	for (size_t i = 0; i < count; i++)
		if (settle_one(s, &suspects[i], err) < 0)
			return -1;
	if (commit(s, err) < 0)
		return -1;
	extent_list_merge(again, MERGE_GAP);
	return 0;
}
