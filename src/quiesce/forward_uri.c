// SPDX-License-Identifier: Apache-2.0
#include "quiesce/forward_uri.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* len bytes of text with %XX decoded (malloc); NULL without memory or for what is not well-formed
 * or holds a control character.
 */
static char *decode(const char *text, size_t len)
{
	autofree char *out = calloc(1, len + 1);
	char *to = out;

	for (size_t i = 0; out && i < len; i++) {
		int byte = (unsigned char)text[i];

		if (byte == '%') {
			byte = i + 2 < len ? str_hex_byte(text + i + 1) : -1;
			i += 2;
		}
		if (byte < ' ' || byte == 0x7f)
			return NULL;
		*to++ = (char)byte;
	}
	return steal(&out);
}

static const char *find_char(const char *start, const char *end, char c)
{
	while (start < end && *start != c)
		start++;
	return start < end ? start : NULL;
}

/* [USER@]HOST[:PORT]; an IPv6 address in brackets. */
static int read_authority(const char *text, size_t len, struct ssh_target *out)
{
	const char *end = text + len, *at = memrchr(text, '@', len);
	const char *host = at ? at + 1 : text, *host_end;
	const char *colon;

	if (at && !(out->user = decode(text, (size_t)(at - text))))
		return -1;
	if (host < end && *host == '[') {
		host++;
		host_end = find_char(host, end, ']');
		colon = host_end ? host_end + 1 : NULL;
	} else {
		host_end = colon = find_char(host, end, ':') ?: end;
	}
	if (!host_end || (colon < end && *colon != ':'))
		return -1;
	if (end - colon > 1 && !(out->port = strndup(colon + 1, (size_t)(end - colon) - 1)))
		return -1;
	/* libvirt's default, too */
	out->host = host < host_end ? decode(host, (size_t)(host_end - host)) : strdup("localhost");
	return out->host ? 0 : -1;
}

static int set_parameter(const char *name, size_t name_len, const char *value, size_t len,
			 struct ssh_target *out)
{
	static const struct {
		const char *name;
		size_t at;
	} known[] = {
		{ "command", offsetof(struct ssh_target, command) },
		{ "keyfile", offsetof(struct ssh_target, keyfile) },
	};
	autofree char *text = decode(value, len);

	if (!text)
		return -1;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		char **field = (char **)((uintptr_t)out + known[i].at);

		if (name_len != strlen(known[i].name) || memcmp(name, known[i].name, name_len) != 0)
			continue;
		free(*field);
		*field = steal(&text);
		return 0;
	}
	if (name_len == strlen("no_verify") && memcmp(name, "no_verify", name_len) == 0)
		out->skips_host_key_check = atoi(text) != 0;
	return 0;
}

/* NAME=VALUE, between & or ; */
static int read_query(const char *query, struct ssh_target *out)
{
	while (*query) {
		size_t len = strcspn(query, "&;#");
		const char *equals = memchr(query, '=', len);

		if (equals && set_parameter(query, (size_t)(equals - query), equals + 1,
					    len - (size_t)(equals + 1 - query), out) < 0)
			return -1;
		query += len;
		if (*query == '#')
			break;
		query += *query != '\0';
	}
	return 0;
}

static bool is_option(const char *text)
{
	return text && (*text == '-' || *text == '\0');
}

/* ssh would take a name that starts with - for an option, and options can run programs. */
static bool is_harmless(const struct ssh_target *t)
{
	if (is_option(t->host) || is_option(t->user) || is_option(t->command) ||
	    is_option(t->keyfile))
		return false;
	return !t->port || (strspn(t->port, "0123456789") == strlen(t->port) &&
			    strlen(t->port) <= strlen("65535"));
}

int ssh_target_parse(const char *uri, struct ssh_target *out, struct err *err)
{
	const char *scheme_end = strstr(uri, "://");
	const char *authority = scheme_end ? scheme_end + 3 : uri;
	const char *path = authority + strcspn(authority, "/?#");
	const char *query = path + strcspn(path, "?#");

	*out = (struct ssh_target){ 0 };
	if (scheme_end && read_authority(authority, (size_t)(path - authority), out) == 0 &&
	    (*query != '?' || read_query(query + 1, out) == 0) && is_harmless(out))
		return 0;
	ssh_target_free(out);
	return err_set(err, ERR_REFUSED, "cannot tell from %s to whom ssh is to speak", uri);
}

void ssh_target_free(struct ssh_target *target)
{
	free(target->host);
	free(target->user);
	free(target->port);
	free(target->command);
	free(target->keyfile);
	*target = (struct ssh_target){ 0 };
}
