// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_metadata.h"

#include "base/err.h"
#include "base/secret.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/http.h"
#include "dest/url.h"

#include <jansson.h>
#include <string.h>

/* Link-local, and answered by the hypervisor or the next switch: what is not there
 * at once is not there.
 */
#define BASE_URL	"http://169.254.169.254"
#define CONNECT_SECONDS 2
#define TOTAL_SECONDS	10
#define ANSWER_MAX	(64 * KIB)

struct answer {
	char text[ANSWER_MAX];
	size_t len;
};

static int keep(void *ctx, const void *buf, size_t len, struct err *err)
{
	struct answer *answer = ctx;

	if (len > sizeof answer->text - answer->len)
		return err_set(err, ERR_REFUSED,
			       "the metadata service answers with more than %zu bytes",
			       sizeof answer->text);
	memcpy(answer->text + answer->len, buf, len);
	answer->len += len;
	return 0;
}

static int start_again(void *ctx, const struct http_response *head, struct err *err)
{
	struct answer *answer = ctx;

	(void)head;
	(void)err;
	answer->len = 0;
	return 0;
}

enum found {
	FOUND_BROKEN = -1,
	FOUND_NOTHING,
	FOUND_IT,
	FOUND_NOBODY, /* nor would there be an answer to another request */
};

struct source {
	struct http *http;
	const char *base;
	const struct http_request *like;
};

static enum found get(const struct source *s, const char *url, struct answer *answer,
		      struct err *err)
{
	const struct http_download download = { start_again, keep, answer };
	const struct http_request request = {
		.method = "GET",
		.url = url,
		.download = &download,
		.tries = s->like->tries,
		.even_if_interrupted = s->like->even_if_interrupted,
	};
	autoresponse struct http_response response = { .status = 0 };

	if (http_send(s->http, &request, &response, err) < 0)
		return response.is_certain_unsent && err->kind == ERR_FAILED ? FOUND_NOBODY
									     : FOUND_BROKEN;
	if (response.status / 100 == 2)
		return FOUND_IT;
	http_error(&response, "the metadata service", err);
	return response.status / 100 == 4 ? FOUND_NOTHING : FOUND_BROKEN;
}

/* --- what it says ----------------------------------------------------------------- */

/* It ends up in headers and messages. */
static bool is_clean(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static int take_text(const json_t *from, const char *key, const char *url, char **out,
		     struct err *err)
{
	const json_t *value = json_object_get(from, key);
	const char *text = json_string_value(value);

	if (!value || json_is_null(value) || (text && !*text))
		return 0;
	if (!text || !is_clean(text))
		return err_set(err, ERR_REFUSED, "%s: \"%s\" is no text that could be used", url,
			       key);
	*out = strdup(text);
	return *out ? 0 : err_nomem(err);
}

/* jansson does not wipe its copy. */
static int take_token(const json_t *from, const char *url, char **out, struct err *err)
{
	autofree char *text = NULL;
	const char *copy = json_string_value(json_object_get(from, "service_token"));

	if (take_text(from, "service_token", url, &text, err) < 0)
		return -1;
	if (!text)
		return err_set(err, ERR_REFUSED,
			       "%s gives no service_token to log in with: set OS_* in the "
			       "environment or name a cloud of clouds.yaml (--os-cloud)",
			       url);
	*out = secret_new(text);
	explicit_bzero(text, strlen(text));
	explicit_bzero((char *)copy, strlen(copy));
	return *out ? 0 : err_nomem(err);
}

static int take_all(const json_t *from, const char *url, struct cloud_metadata *out,
		    struct err *err)
{
	out->url = strdup(url);
	if (!out->url)
		return err_nomem(err);
	if (take_text(from, "region", url, &out->region, err) < 0 ||
	    take_text(from, "project_id", url, &out->project_id, err) < 0 ||
	    take_text(from, "auth_url_v3", url, &out->auth_url, err) < 0 ||
	    take_token(from, url, &out->token, err) < 0)
		return -1;
	if (!out->auth_url)
		return err_set(err, ERR_REFUSED, "%s gives no auth_url_v3", url);
	return 0;
}

static enum found not_ours(const char *url, struct err *err)
{
	err_set(err, ERR_REFUSED, "%s tells of no Chameleon site", url);
	return FOUND_NOTHING;
}

/* Without the member, and without a site, it is the vendor data of some other cloud. */
static enum found understand(const json_t *root, const char *member, const char *url,
			     struct cloud_metadata *out, struct err *err)
{
	const json_t *from = member ? json_object_get(root, member) : root;

	if (!json_is_object(root)) {
		err_set(err, ERR_REFUSED, "%s is no JSON object", url);
		return FOUND_BROKEN;
	}
	if (json_object_size(from) == 0 || (!member && !json_object_get(from, "site")))
		return not_ours(url, err);
	return take_all(from, url, out, err) < 0 ? FOUND_BROKEN : FOUND_IT;
}

static enum found look(const struct source *s, const char *path, const char *member,
		       struct cloud_metadata *out, struct err *err)
{
	autofree char *url = url_join(s->base, path), *shown = url ? url_for_messages(url) : NULL;
	struct answer *answer = shown ? calloc(1, sizeof *answer) : NULL;
	json_t *root = NULL;
	enum found found;

	if (!answer)
		return (enum found)err_nomem(err);
	found = get(s, url, answer, err);
	if (found == FOUND_IT) {
		root = json_loadb(answer->text, answer->len, 0, NULL);
		found = understand(root, member, shown, out, err);
	}
	json_decref(root);
	explicit_bzero(answer, sizeof *answer);
	free(answer);
	return found;
}

/* The second file only where the first says nothing: whoever does not answer once will
 * not do it twice.
 */
static enum found look_at_both(const struct source *s, struct cloud_metadata *out, struct err *err)
{
	enum found found;

	found = look(s, "openstack/latest/vendor_data2.json", "chameleon", out, err);
	if (found == FOUND_NOTHING)
		found = look(s, "openstack/latest/vendor_data.json", NULL, out, err);
	return found;
}

int cloud_metadata_read(struct cloud_metadata *out, const struct http_request *like,
			struct err *err)
{
	static const struct http_config config = { .connect_seconds = CONNECT_SECONDS,
						   .stall_seconds = TOTAL_SECONDS,
						   .total_seconds = TOTAL_SECONDS,
						   .has_own_limits = true,
						   .no_proxy = true };
	const char *base = getenv(CLOUD_METADATA_VARIABLE);
	autohttp struct http *http = NULL;
	struct err why;
	enum found found;

	*out = (struct cloud_metadata){ .url = NULL };
	base = base && *base ? base : BASE_URL;
	if (url_check(base, CLOUD_METADATA_VARIABLE, ERR_USAGE, err) < 0 ||
	    !(http = http_open(&config, err)))
		return -1;
	found = look_at_both(&(struct source){ http, base, like }, out, &why);
	if (found != FOUND_IT) {
		cloud_metadata_free(out);
		*err = why;
	}
	return found == FOUND_NOBODY ? 0 : (int)found;
}

void cloud_metadata_free(struct cloud_metadata *metadata)
{
	free(metadata->url);
	free(metadata->region);
	free(metadata->project_id);
	free(metadata->auth_url);
	secret_free(metadata->token);
	*metadata = (struct cloud_metadata){ .url = NULL };
}
