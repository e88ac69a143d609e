// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/http_private.h"
#include "dest/url.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The server's words come from its proxies, too, and from whoever else answers. */
enum { WORDS_MAX = 300, JSON_MAX = 1 << 20 };

/* RFC 9110 15, RFC 6585, and what some of them were called before.  What a server
 * writes there instead says no more.
 */
static const struct reason {
	unsigned status;
	const char *text, *former;
} reasons[] = {
	{ 200, "OK", NULL },
	{ 201, "Created", NULL },
	{ 202, "Accepted", NULL },
	{ 204, "No Content", NULL },
	{ 206, "Partial Content", NULL },
	{ 300, "Multiple Choices", NULL },
	{ 301, "Moved Permanently", NULL },
	{ 302, "Found", NULL },
	{ 303, "See Other", NULL },
	{ 304, "Not Modified", NULL },
	{ 307, "Temporary Redirect", NULL },
	{ 308, "Permanent Redirect", NULL },
	{ 400, "Bad Request", NULL },
	{ 401, "Unauthorized", NULL },
	{ 402, "Payment Required", NULL },
	{ 403, "Forbidden", NULL },
	{ 404, "Not Found", NULL },
	{ 405, "Method Not Allowed", NULL },
	{ 406, "Not Acceptable", NULL },
	{ 407, "Proxy Authentication Required", NULL },
	{ 408, "Request Timeout", "Request Time-out" },
	{ 409, "Conflict", NULL },
	{ 410, "Gone", NULL },
	{ 411, "Length Required", NULL },
	{ 412, "Precondition Failed", NULL },
	{ 413, "Content Too Large", "Request Entity Too Large" },
	{ 414, "URI Too Long", "Request-URI Too Long" },
	{ 415, "Unsupported Media Type", NULL },
	{ 416, "Range Not Satisfiable", "Requested Range Not Satisfiable" },
	{ 417, "Expectation Failed", NULL },
	{ 422, "Unprocessable Content", "Unprocessable Entity" },
	{ 429, "Too Many Requests", NULL },
	{ 431, "Request Header Fields Too Large", NULL },
	{ 500, "Internal Server Error", NULL },
	{ 501, "Not Implemented", NULL },
	{ 502, "Bad Gateway", NULL },
	{ 503, "Service Unavailable", NULL },
	{ 504, "Gateway Timeout", "Gateway Time-out" },
	{ 507, "Insufficient Storage", NULL },
};

static const struct reason *reason_of(unsigned status)
{
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].status == status)
			return &reasons[i];
	return NULL;
}

struct http_status_text http_status_text(unsigned status)
{
	const struct reason *reason = reason_of(status);
	struct http_status_text s;

	if (reason)
		snprintf(s.text, sizeof s.text, "%u %s", status, reason->text);
	else
		snprintf(s.text, sizeof s.text, "%u", status);
	return s;
}

/* --- JSON: {"message": "..."}, {"error": {"message": "..."}}, {"forbidden": {...}} --- */

static const char *message_in(json_t *object)
{
	static const char *const keys[] = { "message", "error", "detail" };
	const char *text = NULL;

	for (size_t i = 0; i < sizeof keys / sizeof *keys && !text; i++)
		text = json_string_value(json_object_get(object, keys[i]));
	return text;
}

static char *words_of_json(const char *body)
{
	json_t *root = strlen(body) <= JSON_MAX ? json_loads(body, 0, NULL) : NULL;
	const char *text = message_in(root), *key;
	json_t *value;
	char *words;

	if (!text)
		json_object_foreach(root, key, value) if (!text) text = message_in(value);
	words = text ? strdup(text) : NULL;
	json_decref(root);
	return words;
}

/* --- HTML, which is text in between tags --- */

/* What follows the element that begins at s, for those that are not for the reader. */
static const char *after_hidden(const char *s)
{
	static const char *const hidden[] = { "head", "style", "script" };

	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
		size_t len = strlen(hidden[i]);
		char end[16];

		if (strncasecmp(s + 1, hidden[i], len) != 0 || isalnum((unsigned char)s[1 + len]))
			continue;
		snprintf(end, sizeof end, "</%s", hidden[i]);
		s = strcasestr(s, end);
		return s ? s + strlen(end) : "";
	}
	return s + 1;
}

static const char *after_tag(const char *s)
{
	const char *end;

	s = after_hidden(s);
	end = strchr(s, '>');
	return end ? end + 1 : s + strlen(s);
}

/* The character that an entity stands for, and what follows; '&' when it is none. */
static char entity(const char **s)
{
	static const struct {
		const char *name;
		char c;
	} known[] = { { "&amp;", '&' },	  { "&lt;", '<' },    { "&gt;", '>' },
		      { "&quot;", '"' },  { "&#34;", '"' },   { "&#39;", '\'' },
		      { "&#x27;", '\'' }, { "&apos;", '\'' }, { "&nbsp;", ' ' } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (str_starts(*s, known[i].name)) {
			*s += strlen(known[i].name);
			return known[i].c;
		}
	return *(*s)++;
}

static char *words_of_html(const char *s)
{
	char *text = malloc(strlen(s) + 1), *at = text;

	while (text && *s) {
		if (*s == '<') {
			s = after_tag(s);
			*at++ = ' ';
		} else {
			*at++ = *s == '&' ? entity(&s) : *s++;
		}
	}
	if (text)
		*at = '\0';
	return text;
}

/* --- any words, made one short line --- */

static void collapse_blanks(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		if (!isspace((unsigned char)*from))
			*to++ = *from;
		else if (to > text && to[-1] != ' ')
			*to++ = ' ';
	if (to > text && to[-1] == ' ')
		to--;
	*to = '\0';
}

/* What follows prefix and what separates it; text when it does not begin so. */
static const char *after(const char *text, const char *prefix)
{
	if (!prefix || !str_starts(text, prefix))
		return text;
	text += strlen(prefix);
	return text + strspn(text, " .:");
}

/* Many begin with "403 Forbidden", which we have said already. */
static const char *without_status(const char *text, unsigned status)
{
	const struct reason *reason = reason_of(status);
	char number[16];

	snprintf(number, sizeof number, "%u ", status);
	text = after(text, number);
	return reason ? after(after(text, reason->text), reason->former) : text;
}

static void shorten(char *text)
{
	size_t at = 0, n;

	if (strlen(text) <= WORDS_MAX)
		return;
	while ((n = str_utf8_len(text + at)) > 0 && at + n <= WORDS_MAX - 3)
		at += n;
	strcpy(text + at, "...");
}

static char *words_of_text(const char *text)
{
	if (*text == '{')
		return words_of_json(text);
	return *text == '<' ? words_of_html(text) : NULL;
}

/* The body's text, as it is when it is nothing better; NULL when there is none.  Secrets
 * in it are covered before anything is cut or changed, and once more when it is plain.
 */
static char *words_in(const struct http_response *r)
{
	autofree char *text = r->body ? strdup(r->body) : NULL;
	autofree char *words = NULL;

	if (!text)
		return NULL;
	secret_mask(text);
	words = words_of_text(text + strspn(text, " \t\r\n"));
	if (!words)
		return steal(&text);
	secret_mask(words);
	return steal(&words);
}

/* For what only points elsewhere, that is all there is to say. */
static char *words_of_redirect(const struct http_response *r)
{
	const char *location = http_header_of(r, "Location");
	autofree char *url = NULL, *shown = NULL;

	if (r->status / 100 != 3 || !location || !r->url)
		return NULL;
	url = url_resolve(r->url, location);
	shown = url ? url_for_messages(url) : NULL;
	return shown ? str_format("it points to %s", shown) : NULL;
}

static char *server_words(const struct http_response *r)
{
	autofree char *words = words_of_redirect(r);
	char shown[4 * WORDS_MAX];

	if (!words)
		words = words_in(r);
	if (!words)
		return NULL;
	collapse_blanks(words);
	log_printable(shown, sizeof shown, without_status(words, r->status));
	shorten(shown);
	return *shown ? strdup(shown) : NULL;
}

int http_error(const struct http_response *r, const char *what, struct err *err)
{
	enum err_kind kind = r->status / 100 == 4 ? ERR_REFUSED : ERR_FAILED;
	autofree char *words = server_words(r);

	return err_set(err, kind, "%s: %s%s%s", what, http_status_text(r->status).text,
		       words ? ": " : "", words ? words : "");
}
