// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/array.h"
#include "base/str.h"
#include "dest/session.h"
#include "dest/url.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

char *glance_file_url(const struct glance *g, const char *id)
{
	autofree char *path = str_format("/v2/images/%s/file", id);

	return path ? url_join(session_endpoint(g->session), path) : NULL;
}

/* A digest as ours are written, if it is one. */
static void set_digest(char *digest, size_t digits, const char *hex)
{
	if (!hex || strlen(hex) != digits || strspn(hex, "0123456789abcdefABCDEF") != digits)
		return;
	for (size_t i = 0; i <= digits; i++)
		digest[i] = (char)tolower((unsigned char)hex[i]);
}

static void set_digests(struct image_info *info)
{
	struct digests *d = &info->digests;

	set_digest(d->sha256, sizeof d->sha256 - 1, image_property(info, PROPERTY_SHA256));
	if (info->hash_algo && strcasecmp(info->hash_algo, "sha512") == 0)
		set_digest(d->sha512, sizeof d->sha512 - 1, info->hash_value);
}

/* What a cloud makes of an instance that was started from an image of ours inherits all
 * properties of that, and is not ours.
 */
static bool is_snapshot_of_instance(const struct image_info *info)
{
	const char *type = image_property(info, "image_type");

	return image_property(info, "base_image_ref") || (type && str_equal(type, "snapshot"));
}

static void drop_inherited(struct image_info *info)
{
	size_t kept = 0;

	for (char **p = info->properties; p && *p; p++) {
		if (str_starts(*p, PROPERTY_PREFIX))
			free(*p);
		else
			info->properties[kept++] = *p;
	}
	if (info->properties)
		info->properties[kept] = NULL;
}

/* What belongs to image moves to info. */
static int to_info(const struct glance *g, struct service_image *image, struct image_info *info,
		   struct err *err)
{
	*info = (struct image_info){
		.id = steal(&image->id),
		.name = image->name ? steal(&image->name) : strdup(""),
		.format = image->disk_format ? steal(&image->disk_format) : strdup(""),
		.created_at = image->created_at ? steal(&image->created_at) : strdup(""),
		.size = image->size,
		.virtual_size = image->virtual_size,
		.properties = steal(&image->properties),
		.status = steal(&image->status),
		.tags = steal(&image->tags),
		.is_protected = image->is_protected,
		.hash_algo = steal(&image->hash_algo),
		.hash_value = steal(&image->hash_value),
	};
	info->file = glance_file_url(g, info->id);
	if (is_snapshot_of_instance(info))
		drop_inherited(info);
	set_digests(info);
	return info->name && info->format && info->created_at && info->file ? 0 : err_nomem(err);
}

static int add_image(const struct glance *g, struct service_image *image,
		     const struct image_filter *filter, struct image_list *out, struct err *err)
{
	struct image_info info;
	int rc = to_info(g, image, &info, err);

	if (rc == 0 && image_matches(&info, filter))
		rc = image_list_add(out, &info, err);
	image_info_free(&info);
	return rc;
}

/* By its id also one that another project shares with us. */
static int get_image(const struct glance *g, const char *id, struct service_images *out,
		     struct err *err)
{
	struct service_image image = { 0 };
	int found = service_get(g->session, id, &image, err);

	if (found == 1 && !array_room(out->at, out->cap, 1))
		found = err_nomem(err);
	if (found == 1)
		out->at[out->len++] = image;
	else
		service_image_free(&image);
	return found < 0 ? -1 : 0;
}

/* What the service can sort out itself need not travel; image_matches has the last
 * word.
 */
static int list_images(const struct glance *g, const struct image_filter *filter,
		       struct service_images *out, struct err *err)
{
	autofree char *series =
		filter->series ? str_format("%s=%s", PROPERTY_SERIES, filter->series) : NULL;
	char *const properties[] = { series, NULL };
	const struct service_filter wanted = {
		.name = filter->name,
		.tag = filter->tag,
		.owner = session_project_id(g->session),
		.properties = properties,
	};

	if (filter->series && !series)
		return err_nomem(err);
	return filter->id ? get_image(g, filter->id, out, err)
			  : service_list(g->session, &wanted, out, err);
}

int glance_list(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		struct err *err)
{
	struct glance *g = (struct glance *)dest;
	struct service_images images = { 0 };
	int rc = glance_connect(g, err);

	memset(out, 0, sizeof *out);
	if (rc == 0)
		rc = list_images(g, filter, &images, err);
	for (size_t i = 0; rc == 0 && i < images.len; i++)
		rc = add_image(g, &images.at[i], filter, out, err);
	service_images_free(&images);
	if (rc < 0)
		image_list_free(out);
	return rc;
}

int glance_remove(struct dest *dest, const struct image_info *info, struct err *err)
{
	struct glance *g = (struct glance *)dest;

	if (glance_connect(g, err) < 0)
		return -1;
	return service_delete(g->session, info->id, SERVICE_NORMALLY, err);
}
