// SPDX-License-Identifier: Apache-2.0
#include "ext4/order.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "ext4/create.h"

#include <ext2fs/ext2fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOST_FOUND	"lost+found"
#define LINKS_MAX	65000u /* EXT4_LINK_MAX */
#define FIRST_INO	12u
#define NAME_LENGTH_MAX 255u
#define LINK_LENGTH_MAX 4095u
#define FILE_BLOCKS_MAX (UINT64_C(0xffffffff)) /* logical blocks have 32 bits */

static int refuse(const struct model *model, uint32_t node, const char *why, struct err *err)
{
	autofree char *path = model_path(model, node);

	return err_set(err, ERR_REFUSED, "%s: %s; exclude it", path ? path : "?", why);
}

/* --- files ---------------------------------------------------------------------- */

static int link_check(const struct model *model, uint32_t node, struct err *err)
{
	const struct model_node *n = &model->nodes[node];

	if (!n->content || n->size == 0 || n->size > LINK_LENGTH_MAX ||
	    memchr(n->content, '\0', n->size))
		return refuse(model, node, "the target of the symbolic link is none for ext4", err);
	return 0;
}

static int file_check(const struct model *model, uint32_t node, struct err *err)
{
	if (div_up(model->nodes[node].size, MODEL_BLOCK) > FILE_BLOCKS_MAX)
		return refuse(model, node, "files end at 16 TiB in ext4", err);
	return 0;
}

int node_check(const struct model *model, uint32_t node, struct err *err)
{
	switch (model->nodes[node].mode & S_IFMT) {
	case S_IFLNK:
		return link_check(model, node, err);
	case S_IFREG:
		return file_check(model, node, err);
	case S_IFDIR:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return 0;
	}
	return refuse(model, node, "a type of file that ext4 does not know", err);
}

/* Content that the model owns has no holes. */
static bool is_dense(const struct model_node *n)
{
	if (S_ISLNK(n->mode))
		return n->size > SHORT_LINK_MAX;
	return S_ISREG(n->mode) && n->size > 0 && (n->content || n->data == MODEL_DENSE);
}

uint32_t data_segments(const struct model_node *n)
{
	if (is_dense(n))
		return 1;
	return S_ISREG(n->mode) && !n->content && n->data == MODEL_SPARSE ? n->count : 0;
}

struct model_segment data_segment(const struct model *model, const struct model_node *n, uint32_t i)
{
	const uint64_t blocks = div_up(n->size, MODEL_BLOCK);
	struct model_segment s;

	if (is_dense(n))
		return (struct model_segment){ 0, (uint32_t)blocks };
	s = model->segments[n->first + i];
	if (s.block >= blocks)
		s.count = 0;
	else if (s.count > blocks - s.block)
		s.count = (uint32_t)(blocks - s.block);
	return s;
}

uint64_t data_blocks(const struct model *model, const struct model_node *n)
{
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < data_segments(n); i++)
		blocks += data_segment(model, n, i).count;
	return blocks;
}

/* --- numbering ------------------------------------------------------------------ */

static const char *entry_name(const struct model *model, const struct model_entry *entry)
{
	return model_string(model, entry->name);
}

/* A directory that moved while it was listed may have shown a name twice. */
static bool is_repeated(const struct model *model, const struct model_node *dir, uint32_t i)
{
	const struct model_entry *entry = &model->entries[dir->first + i];

	return i > 0 && str_equal(entry_name(model, entry), entry_name(model, entry - 1));
}

static bool is_lost_found(const struct order *o, uint32_t dir, const struct model_entry *entry)
{
	return dir == o->root && str_equal(entry_name(o->model, entry), LOST_FOUND);
}

static void take_number(struct order *o, uint32_t ino, struct model_node *n, uint32_t node)
{
	n->ino = ino;
	o->nodes[o->count++] = node;
}

static int number_entry(struct order *o, struct model_node *nodes, uint32_t dir,
			const struct model_entry *entry, struct err *err)
{
	const uint32_t node = entry->node;
	struct model_node *n = &nodes[node];
	const bool is_dir = S_ISDIR(n->mode), lost_found = is_lost_found(o, dir, entry);
	const size_t len = strlen(entry_name(o->model, entry));

	if (lost_found)
		o->make_lost_found = false;
	if (len == 0 || len > NAME_LENGTH_MAX)
		return refuse(o->model, node, "names have 1 to 255 bytes in ext4", err);
	if (o->links[node]++ > 0) {
		if (is_dir)
			return refuse(o->model, node, "a directory with two names", err);
		if (o->links[node] > LINKS_MAX)
			return refuse(o->model, node, "a file has 65000 names at most in ext4",
				      err);
		return 0;
	}
	if (node_check(o->model, node, err) < 0)
		return -1;
	take_number(o, is_dir && lost_found ? EXT4_INO_LOST_FOUND : ++o->last_ino, n, node);
	return 0;
}

/* To be taken from the end: the first directory last. */
static uint32_t push_directories(const struct order *o, uint32_t dir, uint32_t *stack,
				 uint32_t depth)
{
	const struct model_node *d = &o->model->nodes[dir];

	for (uint32_t i = d->count; i-- > 0;) {
		const uint32_t node = o->model->entries[d->first + i].node;

		if (S_ISDIR(o->model->nodes[node].mode) && !is_repeated(o->model, d, i))
			stack[depth++] = node;
	}
	return depth;
}

/* A list instead of recursion: a tree can be deeper than the stack. */
static int number_all(struct order *o, struct model *model, struct err *err)
{
	autofree uint32_t *stack = calloc((size_t)model->node_count + 1, sizeof *stack);
	uint32_t depth = 0;

	if (!stack)
		return err_nomem(err);
	o->links[o->root] = 1;
	take_number(o, EXT2_ROOT_INO, &model->nodes[o->root], o->root);
	stack[depth++] = o->root;
	while (depth > 0) {
		const uint32_t dir = stack[--depth];
		const struct model_node *d = &model->nodes[dir];

		for (uint32_t i = 0; i < d->count; i++)
			if (!is_repeated(model, d, i) &&
			    number_entry(o, model->nodes, dir, &model->entries[d->first + i], err) <
				    0)
				return -1;
		depth = push_directories(o, dir, stack, depth);
	}
	return 0;
}

int order_init(struct order *o, struct model *model, uint32_t root, struct err *err)
{
	const size_t nodes = (size_t)model->node_count + 1;

	*o = (struct order){
		.model = model,
		.root = root,
		.nodes = calloc(nodes, sizeof *o->nodes),
		.links = calloc(nodes, sizeof *o->links),
		.node_count = model->node_count,
		.last_ino = FIRST_INO - 1,
		.make_lost_found = true,
	};
	if (!o->nodes || !o->links) {
		order_free(o);
		return err_nomem(err);
	}
	model_sort(model);
	if (number_all(o, model, err) < 0) {
		order_free(o);
		return -1;
	}
	return 0;
}

void order_free(struct order *o)
{
	free(o->nodes);
	free(o->links);
	*o = (struct order){ 0 };
}

bool order_has(const struct order *o, uint32_t node)
{
	return node < o->node_count && o->links[node] > 0;
}

/* --- directories ---------------------------------------------------------------- */

static void append(struct entry_list *list, const char *name, uint32_t ino, uint32_t mode)
{
	list->at[list->len++] = (struct dir_entry){
		.name = name,
		.len = (uint8_t)strlen(name),
		.ino = ino,
		.mode = mode,
	};
	list->directories += S_ISDIR(mode);
}

int entry_list_fill(struct entry_list *list, const struct order *o, uint32_t dir, struct err *err)
{
	const struct model_node *d = &o->model->nodes[dir];
	bool missing = dir == o->root && o->make_lost_found;

	list->len = list->directories = 0;
	if (!array_room(list->at, list->cap, (size_t)d->count + 1))
		return err_nomem(err);
	for (uint32_t i = 0; i < d->count; i++) {
		const struct model_entry *entry = &o->model->entries[d->first + i];
		const struct model_node *n = &o->model->nodes[entry->node];
		const char *name = entry_name(o->model, entry);

		if (is_repeated(o->model, d, i))
			continue;
		if (missing && strcmp(name, LOST_FOUND) > 0) {
			append(list, LOST_FOUND, EXT4_INO_LOST_FOUND, S_IFDIR);
			missing = false;
		}
		append(list, name, n->ino, n->mode);
	}
	if (missing)
		append(list, LOST_FOUND, EXT4_INO_LOST_FOUND, S_IFDIR);
	return 0;
}

void entry_list_free(struct entry_list *list)
{
	free(list->at);
	*list = (struct entry_list){ 0 };
}
