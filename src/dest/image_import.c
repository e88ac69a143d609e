// SPDX-License-Identifier: Apache-2.0
#include "dest/image_service.h"

#include "base/err.h"
#include "base/str.h"
#include "dest/endpoint.h"
#include "dest/image_inner.h"
#include "dest/image_json.h"
#include "dest/session.h"

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

	if (!path || service_ask(s, path, &r, &ignored) < 0 || r.status != 200)
		return NULL;
	return answer_task_failure(r.body, r.body_len);
}

/* Services from before there was an import know no such path. */
int service_can_import(struct session *s, struct err *err)
{
	autoresponse struct http_response r = { 0 };

	if (service_ask(s, "/v2/info/import", &r, err) < 0)
		return -1;
	if (r.status == 404)
		return 0;
	if (r.status != 200)
		return endpoint_error(&r, "asking for ways to import", NULL, err);
	return answer_can_import(r.body, r.body_len);
}
