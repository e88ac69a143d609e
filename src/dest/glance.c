// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/log.h"
#include "base/str.h"
#include "dest/kinds.h"
#include "dest/session.h"
#include "dest/uploads.h"
#include "dest/workfile.h"

#include <stdio.h>
#include <string.h>

/* --- the service --- */

static int connect_now(struct glance *g, struct err *err)
{
	if (session_start(g->session, err) < 0)
		return -1;
	if (session_project_id(g->session))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "%s: images belong to a project, and none is given; set OS_PROJECT_NAME "
		       "or project_name",
		       session_origin(g->session));
}

int glance_connect(struct glance *g, struct err *err)
{
	if (g->connection == GLANCE_UNTRIED)
		g->connection = connect_now(g, &g->why) < 0 ? GLANCE_UNREACHABLE : GLANCE_CONNECTED;
	if (g->connection == GLANCE_CONNECTED)
		return 0;
	*err = g->why;
	return -1;
}

int glance_namesakes(struct glance *g, enum service_when when, struct service_images *out,
		     struct err *err)
{
	const struct service_filter filter = {
		.name = g->cfg.image_name,
		.owner = session_project_id(g->session),
		.when = when,
	};

	return service_list(g->session, &filter, out, err);
}

/* --- what killed runs left --- */

/* 0: there is no such image, 1: there may still come to be one, -1. */
static int delete_leftover(struct glance *g, const struct upload_note *note, struct err *err)
{
	const struct glance_leftover leftover = { .session = g->session,
						  .id = note->image_id,
						  .when = SERVICE_NORMALLY };
	int deleted = glance_delete_leftover(&leftover, err);

	if (deleted < 0)
		return -1;
	if (deleted)
		log_note("deleted image %s (%s), which a killed run had left", note->image_id,
			 note->name);
	return !deleted && note->is_young ? 1 : 0;
}

static int forget(void *ctx, const struct upload_note *note)
{
	struct err err;
	int rc = delete_leftover(ctx, note, &err);

	if (rc < 0)
		log_warn("image %s (%s), left by a killed run, could not be deleted: %s",
			 note->image_id, note->name, err.text);
	return rc;
}

static int open_notes(struct glance *g, struct err *err)
{
	if (!g->notes)
		g->notes = uploads_open(err);
	return g->notes ? 0 : -1;
}

static void glance_tidy(struct dest *dest)
{
	struct glance *g = (struct glance *)dest;
	struct err err;

	if (g->work)
		workfile_tidy(g->work);
	if (open_notes(g, &err) < 0 || glance_connect(g, &err) < 0 ||
	    uploads_sweep(g->notes, session_endpoint(g->session), session_project_id(g->session),
			  forget, g, &err) < 0)
		log_debug("not tidied up: %s", err.text);
}

/* --- publishing --- */

static int lock_name(struct glance *g, struct err *err)
{
	free(g->name_key);
	g->name_key = str_format("%s\n%s\n%s", session_endpoint(g->session),
				 session_project_id(g->session), g->cfg.image_name);
	if (!g->name_key)
		return err_nomem(err);
	if (uploads_lock_name(g->notes, g->name_key, g->cfg.lock_wait_seconds, &g->name_fd, err) ==
	    0)
		return 0;
	return err->kind == ERR_BUSY ? err_context(err, "%s", g->base.name) : -1;
}

/* Against other runs on this host; one that was faster may have made an image of that name
 * since the check.
 */
static int take_name(struct glance *g, struct err *err)
{
	if (glance_connect(g, err) < 0 || open_notes(g, err) < 0 || lock_name(g, err) < 0)
		return -1;
	return glance_check_name(g, err);
}

static void give_up_name(struct glance *g)
{
	if (g->name_fd >= 0)
		uploads_unlock_name(g->notes, g->name_key, &g->name_fd);
}

static int glance_reserve(struct dest *dest, int *fd, struct err *err)
{
	struct glance *g = (struct glance *)dest;

	return take_name(g, err) < 0 ? -1 : workfile_reserve(g->work, fd, err);
}

static void glance_adopt(struct dest *dest, int fd)
{
	workfile_adopt(((struct glance *)dest)->work, fd);
}

/* Somebody else is sending it. */
static bool is_under_way(const struct service_image *image)
{
	return str_equal(image->status, "saving") || str_equal(image->status, "uploading") ||
	       str_equal(image->status, "importing");
}

/* To the end, after a signal too: the new image is complete. */
static void remove_replaced(struct glance *g, const struct service_image *image)
{
	struct err err;

	if (is_under_way(image))
		log_note("image %s of that name is %s, and stays", image->id, image->status);
	else if (service_delete(g->session, image->id, SERVICE_KEEP_ON, &err) < 0)
		log_warn("image %s was replaced, but %s: %s", image->id,
			 err.kind == ERR_REFUSED ? "stays" : "may stay", err.text);
}

/* What is older than ours; what came since then is another run's. */
static void remove_older(struct glance *g)
{
	struct service_images list = { 0 };
	const char *ours = g->base.receipt.image_id;
	struct err err;
	size_t older = 0;

	if (glance_namesakes(g, SERVICE_KEEP_ON, &list, &err) < 0) {
		log_warn("older images of that name stay: %s", err.text);
		return;
	}
	while (older < list.len && !str_equal(list.at[older].id, ours))
		older++;
	if (older == list.len)
		log_warn("older images of that name stay: the image service does not list the "
			 "new one (%s), so that nothing tells which are older",
			 ours);
	for (size_t i = 0; older < list.len && i < older; i++)
		remove_replaced(g, &list.at[i]);
	service_images_free(&list);
}

static int send(struct glance *g, struct image_info *info, struct err *err)
{
	if (service_check_names(g->cfg.image_name, info->properties, g->cfg.tags, err) < 0 ||
	    glance_upload(g, info, err) < 0)
		return -1;
	if (g->cfg.overwrite)
		remove_older(g);
	return 0;
}

static int publish(struct glance *g, struct image_info *info, struct err *err)
{
	struct dest *dest = &g->base;

	if (workfile_keep(g->work, dest, err) < 0)
		return -1;
	if (send(g, info, err) == 0)
		return 0;
	if (err->kind == ERR_REFUSED) /* something was done by now */
		err->kind = ERR_FAILED;
	return workfile_hint(dest, g->cfg.image_name, g->where, err);
}

static int glance_publish(struct dest *dest, struct image_info *info, struct err *err)
{
	struct glance *g = (struct glance *)dest;
	int rc;

	if (workfile_is_adopted(g->work) && take_name(g, err) < 0)
		return -1;
	rc = publish(g, info, err);
	give_up_name(g);
	return rc;
}

/* --- opening and closing --- */

static void glance_close(struct dest *dest)
{
	struct glance *g = (struct glance *)dest;

	give_up_name(g);
	free(g->name_key);
	workfile_free(g->work);
	uploads_close(g->notes);
	session_close(g->session);
	free(g->where);
	free(dest->receipt.image_id);
	free(dest->path);
	free(dest->name);
	free(g);
}

static const struct dest_ops glance_ops = {
	.name = "glance",
	.tidy = glance_tidy,
	.check = glance_check,
	.reserve = glance_reserve,
	.adopt = glance_adopt,
	.publish = glance_publish,
	.list = glance_list,
	.remove = glance_remove,
	.fetch = glance_fetch,
	.close = glance_close,
};

static int set_names(struct glance *g, const char *cloud, struct err *err)
{
	g->where = str_format("glance%s%s", cloud ? ":" : "", cloud ? cloud : "");
	if (!g->where)
		return err_nomem(err);
	g->base.name = g->cfg.image_name ? str_format("%s image %s", g->where, g->cfg.image_name)
					 : strdup(g->where);
	return g->base.name ? 0 : err_nomem(err);
}

static int open_session(struct glance *g, const char *cloud, struct err *err)
{
	const struct session_config cfg = {
		.cloud = cloud,
		.connect_seconds = g->cfg.connect_seconds,
		.stall_seconds = g->cfg.stall_seconds,
		.total_seconds = g->cfg.total_seconds,
		.limit_rate = g->cfg.limit_rate,
	};

	g->session = session_open(&cfg, err);
	return g->session ? 0 : -1;
}

/* Of --to=glance:CLOUD and --os-cloud, which must not contradict each other. */
static int choose_cloud(const char *rest, const char *option, const char **cloud, struct err *err)
{
	*cloud = rest && *rest ? rest : option;
	if (*cloud && option && !str_equal(*cloud, option))
		return err_set(err, ERR_USAGE,
			       "--to=glance:%s and --os-cloud=%s name two clouds; give one", *cloud,
			       option);
	return 0;
}

struct dest *glance_open(const struct dest_config *cfg, const char *rest, struct err *err)
{
	struct glance *g = calloc(1, sizeof *g);
	autodest struct dest *dest = g ? &g->base : NULL;
	const char *cloud;

	if (!g) {
		err_nomem(err);
		return NULL;
	}
	dest->ops = &glance_ops;
	g->name_fd = -1;
	g->cfg = *cfg;
	if (!cfg->upload_method)
		g->cfg.upload_method = "auto";
	if (choose_cloud(rest, cfg->cloud, &cloud, err) < 0 || set_names(g, cloud, err) < 0 ||
	    workfile_open(dest, cfg, &g->work, err) < 0 || open_session(g, cloud, err) < 0)
		return NULL;
	return steal(&dest);
}
