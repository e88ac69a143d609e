// SPDX-License-Identifier: Apache-2.0
#include "walk/walk_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "walk/holes.h"

#include <fcntl.h>

struct again {
	struct account *account;
	const char *path;
};

static void note_lost(void *ctx, const char *which, const char *why)
{
	const struct again *again = ctx;

	account_add(again->account, ACCOUNT_ATTRIBUTE, again->path, "%s: %s", which, why);
}

/* What the model knows besides what stat says stays. */
static void renew(struct model_node *n, const struct statx *st)
{
	struct model_node fresh = entry_node(st);

	fresh.parent = n->parent;
	fresh.name = n->name;
	fresh.names = n->names;
	fresh.ino = n->ino;
	fresh.content = n->content;
	*n = fresh;
}

int walk_again(const struct walk_config *cfg, struct model *model, uint32_t node, int fd,
	       struct err *err)
{
	autofree char *path = model_path(model, node);
	struct again again = { cfg->account, path };
	struct attributes attributes = { .lost = note_lost, .ctx = &again };
	struct statx st;
	uint32_t xattrs, flags;
	int ret;

	if (!path)
		return err_nomem(err);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s again", path);
	if (!S_ISREG(st.stx_mode))
		return err_set(err, ERR_FAILED, "%s is no regular file any more", path);
	ret = attributes_read(&attributes, fd, model, &xattrs, &flags, err);
	attributes_free(&attributes);
	if (ret < 0)
		return -1;
	renew(&model->nodes[node], &st);
	model->nodes[node].xattrs = xattrs;
	model->nodes[node].flags = flags;
	return holes_find(model, node, fd, st.stx_blocks * 512, err);
}
