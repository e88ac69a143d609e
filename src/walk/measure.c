// SPDX-License-Identifier: Apache-2.0
#include "walk/measure.h"

#include "base/cleanup.h"
#include "base/interrupt.h"
#include "ext4/model.h"
#include "walk/beneath.h"
#include "walk/listing.h"
#include "walk/reach.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* A model of the directories alone, because reach opens those of any depth with
 * few descriptors.  Its nodes are the list of what is still to be looked into.
 */
struct measure {
	struct model model;
	struct reach *reach;
	struct listing listing;
	uint64_t bytes;
};

static int add_directory(struct measure *m, uint32_t parent, const char *name,
			 const struct statx *st, struct err *err)
{
	const struct model_node node = {
		.mode = S_IFDIR,
		.found_dev = statx_dev(st),
		.found_ino = st->stx_ino,
	};
	uint32_t id = model_add(&m->model, &node, err);

	if (id == MODEL_NONE)
		return -1;
	return name ? model_link(&m->model, parent, name, strlen(name), id, err) : 0;
}

static bool is_elsewhere(const struct statx *a, const struct statx *b)
{
	if (a->stx_mask & b->stx_mask & STATX_MNT_ID)
		return a->stx_mnt_id != b->stx_mnt_id;
	return a->stx_dev_major != b->stx_dev_major || a->stx_dev_minor != b->stx_dev_minor;
}

static int measure_one(struct measure *m, uint32_t dir, int fd, const struct statx *dir_st,
		       const char *name, struct err *err)
{
	struct statx st;

	if (strchr(name, '/') ||
	    statx(fd, name, LOOK_FLAGS, STATX_BASIC_STATS | STATX_MNT_ID, &st) < 0 ||
	    is_elsewhere(dir_st, &st))
		return 0;
	m->bytes += st.stx_blocks * 512;
	return S_ISDIR(st.stx_mode) ? add_directory(m, dir, name, &st, err) : 0;
}

static int measure_directory(struct measure *m, uint32_t dir, struct err *err)
{
	autoclose int fd = reach_directory(m->reach, dir);
	struct statx st;

	if (interrupt_check(err) < 0)
		return -1;
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
	    listing_read(&m->listing, fd) < 0)
		return 0;
	for (size_t i = 0; i < m->listing.count; i++)
		if (measure_one(m, dir, fd, &st, m->listing.names[i], err) < 0)
			return -1;
	return 0;
}

static int measure_all(struct measure *m, int fd, struct err *err)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
		return 0;
	m->reach = reach_new(&m->model, fd, err);
	if (!m->reach || add_directory(m, MODEL_NONE, NULL, &st, err) < 0)
		return -1;
	for (uint32_t dir = 0; dir < m->model.node_count; dir++)
		if (measure_directory(m, dir, err) < 0)
			return -1;
	return 0;
}

int measure_below(int dirfd, const char *name, uint64_t *bytes, struct err *err)
{
	autoclose int fd = quiet_open(dirfd, name, O_DIRECTORY);
	struct measure m = { 0 };
	int ret;

	*bytes = 0;
	if (fd < 0)
		return 0;
	model_init(&m.model);
	ret = measure_all(&m, fd, err);
	*bytes = m.bytes;
	reach_free(m.reach);
	listing_free(&m.listing);
	model_free(&m.model);
	return ret;
}
