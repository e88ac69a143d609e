// SPDX-License-Identifier: Apache-2.0
#include "dest/image_service.h"

#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/endpoint.h"
#include "dest/image_inner.h"
#include "dest/image_json.h"
#include "dest/session.h"
#include "dest/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* In all, for small requests that may be repeated. */
#define SERVICE_TRIES 5

void service_image_free(struct service_image *image)
{
	free(image->id);
	free(image->name);
	free(image->status);
	free(image->disk_format);
	free(image->owner);
	free(image->created_at);
	free(image->checksum);
	free(image->hash_algo);
	free(image->hash_value);
	str_list_free(image->tags);
	str_list_free(image->properties);
	*image = (struct service_image){ 0 };
}

/* --- how it is asked --- */

/* "/v2/images/ID" and tail (malloc); NULL with err. */
static char *service_path(const char *id, const char *tail, struct err *err)
{
	autofree char *segment = url_escape(id);
	char *path = segment ? str_format("/v2/images/%s%s", segment, tail) : NULL;

	if (!path)
		err_nomem(err);
	return path;
}

static void keep_on(struct http_request *request)
{
	request->even_if_interrupted = true;
	request->total_seconds = 20;
	request->tries = 3;
}

int service_ask(struct session *s, const char *path, enum service_when when,
		struct http_response *out, struct err *err)
{
	static const struct http_header headers[] = { { "Accept", "application/json" },
						      { NULL, NULL } };
	struct http_request request = {
		.method = "GET", .url = path, .headers = headers, .tries = SERVICE_TRIES
	};

	if (when == SERVICE_KEEP_ON)
		keep_on(&request);
	return session_send(s, &request, out, err);
}

/* Something that may be done once only.  When the answer is lost, or says that it is done
 * already (409), it is found out before it is asked for again.
 */
struct deed {
	const struct http_request *request;
	unsigned done;		 /* the status that says so */
	const char *what, *hint; /* for messages; hint may be NULL */

	/* 1: it is, 0: no, -1: it never will be */
	int (*is_done)(struct session *s, const void *ctx, struct err *err);
	const void *ctx;

	enum service_heard heard; /* out, of all tries */
};

/* rc: what session_send returned. */
static bool may_be_done(int rc, const struct http_response *r)
{
	if (rc < 0)
		return r->may_retry && !r->is_certain_unsent;
	return r->status == 409 || http_may_get_better(r);
}

/* A gateway that gives up does not stop what is behind it. */
static enum service_heard heard_of(int rc, const struct http_response *r)
{
	if (r->status == 401 || (rc < 0 && r->is_certain_unsent))
		return SERVICE_UNHEARD;
	return rc < 0 || r->status == 502 || r->status == 504 ? SERVICE_UNANSWERED
							      : SERVICE_ANSWERED;
}

static bool may_try_again(int rc, const struct http_response *r)
{
	return rc < 0 ? r->may_retry : http_may_get_better(r);
}

/* 1: it is done, 0: try again, -1. */
static int try_once(struct session *s, struct deed *deed, struct http_backoff *backoff,
		    struct err *err)
{
	struct http_request request = *deed->request;
	autoresponse struct http_response r = { 0 };
	int rc = session_send(s, &request, &r, err), done = 0;

	deed->heard = MAX(deed->heard, heard_of(rc, &r));
	if (rc == 0 && r.status == deed->done)
		return 1;
	if (may_be_done(rc, &r))
		done = deed->is_done(s, deed->ctx, err);
	if (done != 0)
		return done;
	if (rc == 0)
		endpoint_error(&r, deed->what, deed->hint, err);
	return may_try_again(rc, &r) ? http_wait(backoff, &r, err) : -1;
}

static int service_do_once(struct session *s, struct deed *deed, struct err *err)
{
	struct http_backoff backoff = { .tries = SERVICE_TRIES - 1 };
	int rc;

	do
		rc = try_once(s, deed, &backoff, err);
	while (rc == 0);
	return rc < 0 ? -1 : 0;
}

/* --- create --- */

/* Nobody else would take an id that we drew; but what is there must not be overwritten. */
static bool is_as_wanted(const struct service_image *there, const struct service_image *wanted)
{
	return str_equal(there->status, "queued") &&
	       str_equal(there->name ? there->name : "", wanted->name ? wanted->name : "") &&
	       properties_hold(there->properties, wanted->properties);
}

static int is_created(struct session *s, const void *ctx, struct err *err)
{
	const struct service_image *wanted = ctx;
	struct service_image there;
	int rc = service_get(s, wanted->id, &there, err);

	if (rc <= 0)
		return rc;
	rc = is_as_wanted(&there, wanted) ? 1 : -1;
	if (rc < 0)
		err_set(err, ERR_FAILED,
			"the image service has an image %s already that is not the one that was "
			"to be made",
			wanted->id);
	service_image_free(&there);
	return rc;
}

static const char *create_hint(const struct service_image *wanted)
{
	if (wanted->visibility && str_equal(wanted->visibility, "public"))
		return "publishing an image to all takes a role that you may not have";
	return NULL;
}

int service_create(struct session *s, const struct service_image *wanted, enum service_heard *heard,
		   struct err *err)
{
	static const struct http_header headers[] = { { "Content-Type", "application/json" },
						      { NULL, NULL } };
	struct http_request request = { .method = "POST", .url = "/v2/images", .headers = headers };
	struct deed deed = { .request = &request,
			     .done = 201,
			     .what = "making the image",
			     .hint = create_hint(wanted),
			     .is_done = is_created,
			     .ctx = wanted };
	autofree char *body = NULL;
	int rc = -1;

	if (service_check_names(wanted->name, wanted->properties, wanted->tags, err) == 0)
		body = image_to_json(wanted, err);
	request.text = body;
	if (body)
		rc = service_do_once(s, &deed, err);
	*heard = deed.heard;
	return rc;
}

/* --- one image --- */

static int read_image(const struct http_response *r, const char *id, struct service_image *out,
		      struct err *err)
{
	if (image_from_json(r->body, r->body_len, out, err) < 0)
		return -1;
	if (strcasecmp(out->id, id) == 0)
		return 1;
	service_image_free(out);
	return err_set(err, ERR_FAILED, "the image service answered with another image than %s",
		       id);
}

int service_look(struct session *s, const char *id, enum service_when when,
		 struct service_image *out, struct err *err)
{
	autoresponse struct http_response r = { 0 };
	autofree char *path = service_path(id, "", err);

	*out = (struct service_image){ 0 };
	if (!path || service_ask(s, path, when, &r, err) < 0)
		return -1;
	if (r.status == 404)
		return 0;
	if (r.status != 200)
		return endpoint_error(&r, "looking at the image", NULL, err);
	return read_image(&r, id, out, err);
}

int service_get(struct session *s, const char *id, struct service_image *out, struct err *err)
{
	return service_look(s, id, SERVICE_NORMALLY, out, err);
}

static int patch(struct session *s, const char *id, enum service_when when, const char *body,
		 const char *what, struct err *err)
{
	static const struct http_header headers[] = {
		{ "Content-Type", "application/openstack-images-v2.1-json-patch" }, { NULL, NULL }
	};
	autoresponse struct http_response r = { 0 };
	autofree char *path = service_path(id, "", err);
	struct http_request request = { .method = "PATCH",
					.url = path,
					.headers = headers,
					.text = body,
					.tries = SERVICE_TRIES };

	if (when == SERVICE_KEEP_ON)
		keep_on(&request);
	if (!path || session_send(s, &request, &r, err) < 0)
		return -1;
	return r.status == 200 ? 0 : endpoint_error(&r, what, NULL, err);
}

int service_set_properties(struct session *s, const char *id, char *const *properties,
			   struct err *err)
{
	autofree char *body = NULL;
	size_t count;

	if (service_check_names(NULL, properties, NULL, err) < 0)
		return -1;
	body = image_properties_patch(properties, &count, err);
	if (!body)
		return -1;
	return count ? patch(s, id, SERVICE_NORMALLY, body, "setting the image's properties", err)
		     : 0;
}

int service_protect(struct session *s, const char *id, struct err *err)
{
	return patch(s, id, SERVICE_NORMALLY,
		     "[{\"op\":\"replace\",\"path\":\"/protected\",\"value\":true}]",
		     "protecting the image", err);
}

int service_unprotect(struct session *s, const char *id, enum service_when when, struct err *err)
{
	return patch(s, id, when, "[{\"op\":\"replace\",\"path\":\"/protected\",\"value\":false}]",
		     "lifting the image's protection", err);
}

/* A 403 is what a protected image gets; one that is not ours is a 404. */
int service_delete(struct session *s, const char *id, enum service_when when, struct err *err)
{
	autoresponse struct http_response r = { 0 };
	autofree char *path = service_path(id, "", err);
	struct http_request request = { .method = "DELETE", .url = path, .tries = SERVICE_TRIES };

	if (when == SERVICE_KEEP_ON)
		keep_on(&request);
	if (!path || session_send(s, &request, &r, err) < 0)
		return -1;
	if (r.status == 204 || r.status == 200 || r.status == 404)
		return 0;
	return endpoint_error(&r, "deleting the image", NULL, err);
}

/* --- its data --- */

int service_put(struct session *s, const char *id, enum service_way way,
		const struct http_upload *data, struct http_response *out, struct err *err)
{
	char size[24];
	const struct http_header headers[] = { { "Content-Type", "application/octet-stream" },
					       { "X-OpenStack-Image-Size", size },
					       { NULL, NULL } };
	autofree char *path = service_path(id, way == SERVICE_DIRECT ? "/file" : "/stage", err);
	struct http_request request = {
		.method = "PUT", .url = path, .headers = headers, .upload = data
	};

	*out = (struct http_response){ .is_certain_unsent = true };
	snprintf(size, sizeof size, "%" PRIu64, data->size);
	return path ? session_send_once(s, &request, out, err) : -1;
}

int service_download(struct session *s, const char *id, uint64_t offset,
		     const struct http_download *to, struct http_response *out, struct err *err)
{
	char range[40];
	const struct http_header headers[] = { { "Range", offset ? range : NULL }, { NULL, NULL } };
	autofree char *path = service_path(id, "/file", err);
	struct http_request request = {
		.method = "GET", .url = path, .headers = headers, .download = to
	};

	*out = (struct http_response){ .is_certain_unsent = true };
	snprintf(range, sizeof range, "bytes=%" PRIu64 "-", offset);
	return path ? session_send(s, &request, out, err) : -1;
}

/* --- import --- */

static int is_imported(struct session *s, const void *ctx, struct err *err)
{
	struct service_image there;
	int rc = service_get(s, ctx, &there, err);

	if (rc == 0)
		return err_set(err, ERR_FAILED, "the image is gone from the image service");
	if (rc < 0)
		return -1;
	rc = str_equal(there.status, "importing") || str_equal(there.status, "active");
	service_image_free(&there);
	return rc;
}

int service_import(struct session *s, const char *id, struct err *err)
{
	static const struct http_header headers[] = { { "Content-Type", "application/json" },
						      { NULL, NULL } };
	autofree char *path = service_path(id, "/import", err);
	struct http_request request = { .method = "POST",
					.url = path,
					.headers = headers,
					.text = "{\"method\":{\"name\":\"glance-direct\"}}" };
	struct deed deed = { .request = &request,
			     .done = 202,
			     .what = "importing the image",
			     .is_done = is_imported,
			     .ctx = id };

	return path ? service_do_once(s, &deed, err) : -1;
}

char *service_import_failure(struct session *s, const char *id)
{
	autoresponse struct http_response r = { 0 };
	struct err ignored;
	autofree char *path = service_path(id, "/tasks", &ignored);

	if (!path || service_ask(s, path, SERVICE_NORMALLY, &r, &ignored) < 0 || r.status != 200)
		return NULL;
	return answer_task_failure(r.body, r.body_len);
}

/* Services from before there was an import know no such path. */
int service_can_import(struct session *s, struct err *err)
{
	autoresponse struct http_response r = { 0 };

	if (service_ask(s, "/v2/info/import", SERVICE_NORMALLY, &r, err) < 0)
		return -1;
	if (r.status == 404)
		return 0;
	if (r.status != 200)
		return endpoint_error(&r, "asking for ways to import", NULL, err);
	return answer_can_import(r.body, r.body_len);
}

/* --- the service --- */

uint64_t service_room(struct session *s)
{
	autoresponse struct http_response r = { 0 };
	struct err ignored;

	if (service_ask(s, "/v2/info/usage", SERVICE_NORMALLY, &r, &ignored) < 0 || r.status != 200)
		return UINT64_MAX;
	return answer_room(r.body, r.body_len);
}

int service_takes_format(struct session *s, const char *format, struct err *err)
{
	autoresponse struct http_response r = { 0 };

	if (service_ask(s, "/v2/schemas/image", SERVICE_NORMALLY, &r, err) < 0)
		return -1;
	if (r.status != 200)
		return endpoint_error(&r, "asking the image service for its formats", NULL, err);
	return answer_takes_format(r.body, r.body_len, format, err);
}
