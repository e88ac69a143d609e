// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/session.h"
#include "dest/uploads.h"
#include "dest/workfile.h"

#define CAPTURE_RATE	(50 * UINT64_C(1000000)) /* bytes a second, on the careful side */
#define TOKEN_LEAST_SEC 60

/* --- here --- */

static int check_here(struct glance *g, uint64_t need, struct err *err)
{
	if (workfile_check(g->work, &g->base, need, err) < 0 || uploads_check(err) < 0)
		return -1;
	return service_check_names(g->cfg.image_name, g->base.properties, g->cfg.tags, err);
}

/* --- the service --- */

static bool is_gone(const struct service_image *image)
{
	return str_equal(image->status, "killed") || str_equal(image->status, "deleted") ||
	       str_equal(image->status, "pending_delete");
}

static int check_namesake(const struct glance *g, const struct service_image *image,
			  struct err *err)
{
	if (!g->cfg.overwrite && !is_gone(image))
		return err_set(err, ERR_REFUSED,
			       "%s exists (%s, %s); use --overwrite to replace it", g->base.name,
			       image->id, image->status);
	if (g->cfg.overwrite && image->is_protected)
		return err_set(err, ERR_REFUSED,
			       "%s exists and is protected (%s); it is never replaced",
			       g->base.name, image->id);
	return 0;
}

int glance_check_name(struct glance *g, struct err *err)
{
	struct service_images list = { 0 };
	int rc = glance_namesakes(g, SERVICE_NORMALLY, &list, err);

	for (size_t i = 0; rc == 0 && i < list.len; i++)
		rc = check_namesake(g, &list.at[i], err);
	service_images_free(&list);
	return rc;
}

static int check_method(struct glance *g, struct err *err)
{
	int can =
		str_equal(g->cfg.upload_method, "import") ? service_can_import(g->session, err) : 1;

	if (can == 0)
		return err_set(err, ERR_REFUSED,
			       "%s: the image service imports nothing that is sent to it "
			       "(glance-direct); use --upload-method=direct",
			       g->where);
	return can < 0 ? -1 : 0;
}

/* The answers to all that does not depend on the size. */
static int ask_service(struct glance *g, struct err *err)
{
	if (g->is_asked)
		return 0;
	if (glance_connect(g, err) < 0 ||
	    (g->cfg.format && service_takes_format(g->session, g->cfg.format, err) != 1) ||
	    check_method(g, err) < 0 || glance_check_name(g, err) < 0)
		return -1;
	g->room = service_room(g->session);
	g->is_asked = true;
	return 0;
}

static int check_room(struct glance *g, uint64_t need, struct err *err)
{
	struct dest *dest = &g->base;

	dest->free_bytes = MIN(dest->free_bytes, g->room);
	if (g->room >= need)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "not enough room for the project at %s: %s needed, its quota leaves %s",
		       g->where, size_format(need).text, size_format(g->room).text);
}

/* --- the token --- */

static uint64_t seconds_to_end(const struct glance *g, uint64_t need)
{
	uint64_t capture = workfile_is_adopted(g->work) ? 0 : div_up(need, CAPTURE_RATE);

	return capture + glance_seconds_to_send(&g->cfg, need);
}

static int check_token(struct glance *g, uint64_t need, struct err *err)
{
	uint64_t left = session_seconds_left(g->session), estimate = seconds_to_end(g, need);

	if (session_can_renew(g->session))
		return 0;
	if (left < TOKEN_LEAST_SEC)
		return err_set(err, ERR_REFUSED,
			       "%s: the token expires in %llu seconds and cannot be renewed; get "
			       "a new one, or use an application credential",
			       session_origin(g->session), (unsigned long long)left);
	if (left < estimate && !g->has_warned) {
		log_warn("%s: the token expires in %llu minutes and cannot be renewed, and this "
			 "may take about %llu",
			 session_origin(g->session), (unsigned long long)(left / 60),
			 (unsigned long long)div_up(estimate, 60));
		g->has_warned = true;
	}
	return 0;
}

int glance_check(struct dest *dest, uint64_t need, struct err *err)
{
	struct glance *g = (struct glance *)dest;

	if (check_here(g, need, err) < 0 || ask_service(g, err) < 0 || check_room(g, need, err) < 0)
		return -1;
	return check_token(g, need, err);
}
