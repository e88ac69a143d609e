// SPDX-License-Identifier: Apache-2.0
#include "walk/holes.h"

#include "base/interrupt.h"
#include "base/size.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

/* Segments between two looks at the signals. */
#define CHECK_EVERY 1024u

/* Data in blocks: [start, end). */
struct run {
	uint64_t start, end;
};

/* The next data at or behind *pos, outward to whole blocks.  1, 0 when there is
 * none, -1 when the filesystem cannot tell.
 */
static int next_run(int fd, uint64_t size, uint64_t *pos, struct run *out)
{
	off_t data = *pos < size ? lseek(fd, (off_t)*pos, SEEK_DATA) : (off_t)size;
	off_t hole;

	if (data < 0)
		return errno == ENXIO ? 0 : -1;
	if ((uint64_t)data >= size)
		return 0;
	hole = lseek(fd, data, SEEK_HOLE);
	if (hole <= data || (uint64_t)data < *pos)
		return -1;
	*pos = MIN((uint64_t)hole, size);
	*out = (struct run){ (uint64_t)data / MODEL_BLOCK, div_up(*pos, MODEL_BLOCK) };
	return 1;
}

/* What lies beyond 32 bits of blocks is more than a file can have in ext4; its
 * size alone says so.
 */
static int add_run(struct model *model, uint32_t node, const struct run *run, struct err *err)
{
	uint64_t end = MIN(run->end, UINT32_MAX);

	if (run->start >= end)
		return 0;
	return model_add_segment(model, node, (uint32_t)run->start, (uint32_t)(end - run->start),
				 err);
}

static int interrupted(unsigned runs, struct err *err)
{
	return runs % CHECK_EVERY == CHECK_EVERY - 1 ? interrupt_check(err) : 0;
}

/* *data gets what is known in the end; DENSE: what was added does not count. */
static int add_runs(struct model *model, uint32_t node, int fd, enum model_data *data,
		    struct err *err)
{
	uint64_t size = model->nodes[node].size, pos = 0;
	struct run next, last = { 0 };
	unsigned runs = 0;
	int more;

	while ((more = next_run(fd, size, &pos, &next)) > 0) {
		if (interrupted(runs++, err) < 0)
			return -1;
		if (next.start <= last.end && last.end > 0) {
			last.end = next.end;
			continue;
		}
		if (add_run(model, node, &last, err) < 0)
			return -1;
		last = next;
	}
	*data = MODEL_SPARSE;
	if (more < 0 || (last.start == 0 && last.end == div_up(size, MODEL_BLOCK)))
		*data = MODEL_DENSE;
	else if (last.end == 0)
		*data = MODEL_HOLES;
	else
		return add_run(model, node, &last, err);
	return 0;
}

/* What is allocated tells little: it counts blocks that were never written
 * (fallocate) or hold attributes, and not bytes that lie in the inode.  One block is
 * not worth the question, unless it takes no room at all.
 */
static bool is_worth_asking(uint64_t size, uint64_t allocated)
{
	return size > MODEL_BLOCK || (size > 0 && allocated == 0);
}

/* Most files have no hole, which one question tells. */
static bool is_dense(int fd, uint64_t size)
{
	off_t hole = lseek(fd, 0, SEEK_HOLE);

	return hole < 0 || (uint64_t)hole >= size;
}

int holes_find(struct model *model, uint32_t node, int fd, uint64_t allocated, struct err *err)
{
	struct model_node *n = &model->nodes[node];
	enum model_data data = n->size ? MODEL_DENSE : MODEL_HOLES;

	n->first = n->count = 0;
	if (is_worth_asking(n->size, allocated) && !is_dense(fd, n->size) &&
	    add_runs(model, node, fd, &data, err) < 0)
		return -1;
	n->data = (uint8_t)data;
	if (data != MODEL_SPARSE)
		n->first = n->count = 0;
	return 0;
}
