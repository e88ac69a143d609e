// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/log.h"
#include "base/str.h"
#include "dest/glance_upload.h"
#include "dest/image_service.h"
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

static bool is_namesake(const struct glance *g, const struct service_image *image)
{
	/* databases compare in ways of their own: without case, say */
	return image->name && str_equal(image->name, g->cfg.image_name) &&
	       (!image->owner || str_equal(image->owner, session_project_id(g->session)));
}

int glance_namesakes(struct glance *g, struct service_images *out, struct err *err)
{
	const struct service_filter filter = {
		.name = g->cfg.image_name,
		.owner = session_project_id(g->session),
	};
	size_t kept = 0;

	if (service_list(g->session, &filter, out, err) < 0)
		return -1;
	for (size_t i = 0; i < out->len; i++) {
		if (is_namesake(g, &out->at[i]))
			out->at[kept++] = out->at[i];
		else
			service_image_free(&out->at[i]);
	}
	out->len = kept;
	return 0;
}

/* --- what killed runs left --- */

/* 0: there is no such image any more, or it is none to be deleted. */
static int delete_leftover(struct glance *g, const struct upload_note *note, struct err *err)
{
	struct service_image image = { 0 };
	int found = service_get(g->session, note->image_id, &image, err);
	bool is_protected = image.is_protected;

	service_image_free(&image);
	if (found <= 0)
		return found;
	if (is_protected) {
		/* the last step of an upload: it was complete */
		log_note("image %s (%s), of a run that was killed, is protected and stays",
			 note->image_id, note->name);
		return 0;
	}
	if (service_delete(g->session, note->image_id, SERVICE_NORMALLY, err) < 0)
		return -1;
	log_note("deleted image %s (%s), which a killed run had left", note->image_id, note->name);
	return 0;
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

static int glance_reserve(struct dest *dest, int *fd, struct err *err)
{
	struct glance *g = (struct glance *)dest;

	if (workfile_reserve(g->work, &g->fd, err) < 0)
		return -1;
	*fd = g->fd;
	return 0;
}

static void glance_adopt(struct dest *dest, int fd)
{
	struct glance *g = (struct glance *)dest;

	g->fd = fd;
	g->is_adopted = true;
}

/* Somebody else is sending it. */
static bool is_under_way(const struct service_image *image)
{
	return str_equal(image->status, "saving") || str_equal(image->status, "uploading") ||
	       str_equal(image->status, "importing");
}

static void remove_replaced(struct glance *g, const struct service_image *image)
{
	struct err err;

	if (is_under_way(image))
		log_note("image %s of that name is %s, and stays", image->id, image->status);
	else if (service_delete(g->session, image->id, SERVICE_NORMALLY, &err) < 0)
		log_warn("image %s was replaced, but stays: %s", image->id, err.text);
}

/* What is older than ours; what came since then is another run's. */
static void remove_older(struct glance *g)
{
	struct service_images list = { 0 };
	const char *ours = g->base.receipt.image_id;
	struct err err;
	size_t older = 0;

	if (glance_namesakes(g, &list, &err) < 0)
		log_warn("older images of that name stay: %s", err.text);
	while (older < list.len && !str_equal(list.at[older].id, ours))
		older++;
	for (size_t i = 0; older < list.len && i < older; i++)
		remove_replaced(g, &list.at[i]);
	service_images_free(&list);
}

static int upload(struct glance *g, struct image_info *info, struct err *err)
{
	const struct glance_upload job = {
		.session = g->session,
		.notes = g->notes,
		.dest = &g->base,
		.cfg = &g->cfg,
		.info = info,
		.fd = g->fd,
	};
	struct digests digests;

	if (glance_upload(&job, &digests, err) < 0)
		return -1;
	info->digests = digests;
	if (g->cfg.overwrite)
		remove_older(g);
	return 0;
}

static int set_id_and_file(const struct glance *g, struct image_info *info, struct err *err)
{
	free(info->id);
	free(info->file);
	info->id = strdup(g->base.receipt.image_id);
	info->file = glance_file_url(g, g->base.receipt.image_id);
	return info->id && info->file ? 0 : err_nomem(err);
}

static int send(struct glance *g, struct image_info *info, struct err *err)
{
	if (service_check_names(g->cfg.image_name, info->properties, g->cfg.tags, err) < 0 ||
	    glance_connect(g, err) < 0 || open_notes(g, err) < 0 || upload(g, info, err) < 0)
		return -1;
	return set_id_and_file(g, info, err);
}

/* The file that is to stay comes first: what then fails can be done again from it. */
static int glance_publish(struct dest *dest, struct image_info *info, struct err *err)
{
	struct glance *g = (struct glance *)dest;

	if (!g->is_adopted && workfile_keep(g->work, err) < 0)
		return -1;
	dest->receipt.is_kept = !g->is_adopted && dest->path;
	if (send(g, info, err) == 0)
		return 0;
	if (err->kind == ERR_REFUSED) /* something was done by now */
		err->kind = ERR_FAILED;
	return dest->receipt.is_kept
		       ? err_hint(err, "the image is in %s: send it with ccsnap upload %s --to=%s",
				  dest->path, dest->path, g->where)
		       : -1;
}

/* --- opening and closing --- */

static void glance_close(struct dest *dest)
{
	struct glance *g = (struct glance *)dest;

	workfile_free(g->work);
	uploads_close(g->notes);
	session_close(g->session);
	for (size_t i = 0; i < sizeof g->texts / sizeof *g->texts; i++)
		free(g->texts[i]);
	str_list_free(g->tags);
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

static int keep_tags(struct glance *g, struct err *err)
{
	size_t count = 0;

	while (g->cfg.tags && g->cfg.tags[count])
		count++;
	g->tags = calloc(count + 1, sizeof *g->tags);
	for (size_t i = 0; g->tags && i < count; i++) {
		g->tags[i] = strdup(g->cfg.tags[i]);
		if (!g->tags[i])
			return err_nomem(err);
	}
	g->cfg.tags = g->tags;
	return g->tags ? 0 : err_nomem(err);
}

static int keep_config(struct glance *g, const struct dest_config *cfg, struct err *err)
{
	const char **texts[] = { &g->cfg.image_name, &g->cfg.format, &g->cfg.visibility,
				 &g->cfg.upload_method };

	g->cfg = *cfg;
	if (!g->cfg.upload_method)
		g->cfg.upload_method = "auto";
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (!*texts[i])
			continue;
		g->texts[i] = strdup(*texts[i]);
		if (!g->texts[i])
			return err_nomem(err);
		*texts[i] = g->texts[i];
	}
	return keep_tags(g, err);
}

static int set_names(struct glance *g, const char *cloud, struct err *err)
{
	g->where = str_format("glance%s%s", cloud ? ":" : "", cloud ? cloud : "");
	if (!g->where)
		return err_nomem(err);
	g->base.name = g->cfg.image_name ? str_format("%s image %s", g->where, g->cfg.image_name)
					 : strdup(g->where);
	return g->base.name ? 0 : err_nomem(err);
}

static int open_work(struct glance *g, const struct dest_config *cfg, struct err *err)
{
	const char *path;

	if (!cfg->image_name)
		return 0;
	g->work = workfile_new(cfg, err);
	if (!g->work)
		return -1;
	path = workfile_path(g->work);
	g->base.path = path ? strdup(path) : NULL;
	return path && !g->base.path ? err_nomem(err) : 0;
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
	g->fd = -1;
	if (choose_cloud(rest, cfg->cloud, &cloud, err) < 0 || keep_config(g, cfg, err) < 0 ||
	    set_names(g, cloud, err) < 0 || open_work(g, cfg, err) < 0 ||
	    open_session(g, cloud, err) < 0)
		return NULL;
	return steal(&dest);
}
