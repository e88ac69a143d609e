// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "base/err.h"
#include "base/size.h"
#include "dest/http_private.h"

#include <string.h>
#include <strings.h>

static void free_fields(struct http_response *r)
{
	for (size_t i = 0; i < r->field_count; i++) {
		free(r->fields[i].name);
		free(r->fields[i].value);
	}
	free(r->fields);
	r->fields = NULL;
	r->field_count = 0;
}

void http_response_free(struct http_response *r)
{
	free_fields(r);
	free(r->body);
	free(r->url);
	memset(r, 0, sizeof *r);
}

void http_response_restart(struct http_response *r)
{
	free_fields(r);
	r->status = 0;
	r->body_len = 0;
	r->received = 0;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static const char *end_without_blanks(const char *at, const char *end)
{
	while (end > at && strchr(" \t\r\n", end[-1]))
		end--;
	return end;
}

/* What is no header is passed over, as is the second line of a folded one. */
int http_response_add_field(struct http_response *r, const char *line, size_t len, struct err *err)
{
	const char *end = line + len, *colon = memchr(line, ':', len), *value;
	struct http_field *fields, *f;

	if (!colon || colon == line || strchr(" \t", *line))
		return 0;
	fields = reallocarray(r->fields, r->field_count + 1, sizeof *fields);
	if (!fields)
		return err_nomem(err);
	r->fields = fields;
	f = &fields[r->field_count];
	value = skip_blanks(colon + 1, end);
	f->name = strndup(line, (size_t)(colon - line));
	f->value = strndup(value, (size_t)(end_without_blanks(value, end) - value));
	r->field_count++;
	return f->name && f->value ? 0 : err_nomem(err);
}

int http_response_add_body(struct http_response *r, size_t *cap, const void *buf, size_t len,
			   struct err *err)
{
	if (len > HTTP_BODY_MAX - r->body_len)
		return err_set(err, ERR_FAILED, "the answer is larger than %s",
			       size_format(HTTP_BODY_MAX).text);
	if (!array_room(r->body, *cap, r->body_len + len + 1))
		return err_nomem(err);
	if (len)
		memcpy(r->body + r->body_len, buf, len);
	r->body_len += len;
	r->body[r->body_len] = '\0';
	return 0;
}

const char *http_header_of(const struct http_response *r, const char *name)
{
	for (size_t i = r->field_count; i-- > 0;)
		if (strcasecmp(r->fields[i].name, name) == 0)
			return r->fields[i].value;
	return NULL;
}

bool http_may_get_better(const struct http_response *r)
{
	static const unsigned some[] = { 408, 429, 500, 502, 503, 504 };

	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		if (r->status == some[i])
			return true;
	return false;
}
