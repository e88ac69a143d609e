// SPDX-License-Identifier: Apache-2.0
#include "option_secret.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* A shorter query without a "=" is an ordinary word, which messages may have, too. */
enum { SIGNATURE_MIN = 16 };

/* Where they are in where: at least all that any reading of it takes for them. */
struct places {
	size_t user, user_len;	 /* also the password */
	size_t query, query_len; /* without the question mark */
};

/* A password may hold what it should not: the last @ counts. */
static struct places places_of(const char *where)
{
	const char *scheme = strstr(where, "://"), *host = scheme ? scheme + 3 : NULL;
	const char *at = host ? strrchr(host, '@') : NULL, *mark = host ? strchr(host, '?') : NULL;
	struct places p = { 0 };

	if (at) {
		p.user = (size_t)(host - where);
		p.user_len = (size_t)(at - host);
	}
	if (mark) {
		p.query = (size_t)(mark + 1 - where);
		p.query_len = strlen(mark + 1);
	}
	return p;
}

void option_hide_secrets(char *where)
{
	const struct places p = places_of(where);

	if (p.user_len > 0)
		memset(where + p.user, '*', p.user_len);
	if (p.query_len > 0)
		memset(where + p.query, '*', p.query_len);
}

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
}
#define autowipe CLEANUP(wipe)

/* RFC 3986, section 2.1 */
static void decode(char *text)
{
	char *to = text;

	while (*text) {
		int byte = *text == '%' ? str_hex_byte(text + 1) : -1;

		*to++ = byte > 0 ? (char)byte : *text;
		text += byte > 0 ? 3 : 1;
	}
	*to = '\0';
}

/* As it is written and as it is meant, for the rest of the process's life. */
static int keep(const char *from, size_t len, struct err *err)
{
	autowipe char *text = strndup(from, len);

	if (!text || !secret_new(text))
		return err_nomem(err);
	decode(text);
	return secret_new(text) ? 0 : err_nomem(err);
}

int option_keep_secrets(const char *where, struct err *err)
{
	const struct places p = places_of(where);
	const char *user = where + p.user, *query = where + p.query;
	const char *colon = memchr(user, ':', p.user_len);
	const char *password = colon ? colon + 1 : user;
	size_t len = p.user_len - (size_t)(password - user);

	if (len > 0 && keep(password, len, err) < 0)
		return -1;
	if (p.query_len > 0 && (strchr(query, '=') || p.query_len >= SIGNATURE_MIN))
		return keep(query, p.query_len, err);
	return 0;
}
