// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include "base/array.h"
#include "base/size.h"
#include "base/str.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum {
	ASTERISKS = 4,
	TEXT_MIN = ASTERISKS, /* or a text could get longer by masking */
	BASE64_MIN = 8,
	FORMS_MAX = 13,
};

/* A secret, and how it may be written; forms[0] is the secret itself. */
struct entry {
	char *forms[FORMS_MAX];
	size_t count;
};

/* Guards entries.  Nothing is called under it that logs or sets an err. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t len, cap;

static void wipe(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

/* --- forms ------------------------------------------------------------------------ */

static void add_form(struct entry *e, char *form, size_t least)
{
	bool known = !form || strlen(form) < least || e->count == FORMS_MAX;

	for (size_t i = 0; i < e->count && !known; i++)
		known = str_equal(e->forms[i], form);
	if (known)
		wipe(form);
	else
		e->forms[e->count++] = form;
}

/* RFC 8259, section 7: what must be escaped; a slash may be. */
static size_t json_byte(char *out, unsigned char c, bool slashes)
{
	static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
	const char *at = c ? strchr(plain, c) : NULL;

	if (at)
		return (size_t)sprintf(out, "\\%c", escaped[at - plain]);
	if (c < 0x20)
		return (size_t)sprintf(out, "\\u%04x", c);
	return (size_t)sprintf(out, slashes && c == '/' ? "\\%c" : "%c", c);
}

static char *in_json(const char *text, bool slashes)
{
	char *out = malloc(strlen(text) * 6 + 1), *at = out;

	for (; out && *text; text++)
		at += json_byte(at, (unsigned char)*text, slashes);
	if (out)
		*at = '\0';
	return out;
}

/* The code point of a well-formed UTF-8 sequence of n bytes, 2 to 4. */
static uint32_t point_of(const unsigned char *u, size_t n)
{
	uint32_t point = u[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		point = point << 6 | (u[i] & 0x3f);
	return point;
}

/* In UTF-16: two escapes beyond the first plane. */
static size_t json_escape(char *out, uint32_t point)
{
	if (point < 0x10000)
		return (size_t)sprintf(out, "\\u%04x", point);
	point -= 0x10000;
	return (size_t)sprintf(out, "\\u%04x\\u%04x", 0xd800 | point >> 10,
			       0xdc00 | (point & 0x3ff));
}

/* As many programs write it: nothing but ASCII. */
static char *in_ascii_json(const char *text)
{
	char *out = malloc(strlen(text) * 6 + 1), *at = out;

	while (out && *text) {
		size_t n = str_utf8_len(text);

		at += n > 1 ? json_escape(at, point_of((const unsigned char *)text, n))
			    : json_byte(at, (unsigned char)*text, false);
		text += n ? n : 1;
	}
	if (out)
		*at = '\0';
	return out;
}

/* RFC 3986, section 2: all but the unreserved characters. */
static char *in_url(const char *text, const char *format)
{
	char *out = malloc(strlen(text) * 3 + 1), *at = out;

	for (; out && *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			*at++ = *text;
		else
			at += sprintf(at, format, (unsigned char)*text);
	}
	if (out)
		*at = '\0';
	return out;
}

/* Somewhere inside something that is encoded ("user:password"): with shift bytes (mod 3)
 * in front, and without the digits that depend on what stands before and behind.
 */
static char *in_base64(const char *text, size_t shift)
{
	size_t n = strlen(text), skip = (shift * 8 + 5) / 6, end = (shift + n) * 8 / 6;
	size_t all = (shift + n + 2) / 3 * 4;
	autofree char *padded = calloc(1, shift + n + 1);
	autofree char *out = malloc(all + 1);

	if (!padded || !out)
		return NULL;
	memcpy(padded + shift, text, n);
	EVP_EncodeBlock((unsigned char *)out, (unsigned char *)padded, (int)(shift + n));
	explicit_bzero(padded, shift + n);
	memmove(out, out + skip, end - skip);
	explicit_bzero(out + end - skip, all - (end - skip));
	return steal(&out);
}

/* RFC 4648, section 5 */
static char *for_urls(const char *base64)
{
	char *out = base64 ? strdup(base64) : NULL;

	for (char *at = out; at && *at; at++)
		*at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
	return out;
}

static void add_forms(struct entry *e, const char *secret)
{
	add_form(e, in_json(secret, false), TEXT_MIN);
	add_form(e, in_json(secret, true), TEXT_MIN);
	add_form(e, in_ascii_json(secret), TEXT_MIN);
	add_form(e, in_url(secret, "%%%02X"), TEXT_MIN);
	add_form(e, in_url(secret, "%%%02x"), TEXT_MIN);
	for (size_t shift = 0; shift < 3; shift++) {
		char *digits = in_base64(secret, shift);

		add_form(e, for_urls(digits), BASE64_MIN);
		add_form(e, digits, BASE64_MIN);
	}
}

/* --- secrets ---------------------------------------------------------------------- */

/* prctl(2): also keeps others of our user from /proc/PID and ptrace. */
static void close_the_process(void)
{
	struct rlimit core;

	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &core);
	}
}

static bool remember(char *secret)
{
	struct entry e = { .forms = { secret }, .count = 1 };
	bool fits;

	if (strlen(secret) >= TEXT_MIN)
		add_forms(&e, secret);
	pthread_mutex_lock(&lock);
	fits = array_room(entries, cap, len + 1);
	if (fits)
		entries[len++] = e;
	pthread_mutex_unlock(&lock);
	for (size_t i = 1; i < e.count && !fits; i++)
		wipe(e.forms[i]);
	return fits;
}

char *secret_new(const char *text)
{
	char *secret = text ? strdup(text) : NULL;

	if (!secret)
		return NULL;
	close_the_process();
	if (!remember(secret)) {
		wipe(secret);
		return NULL;
	}
	return secret;
}

char *secret_take_env(const char *name)
{
	char *value = getenv(name), *secret;

	if (!value || !*value)
		return NULL;
	secret = secret_new(value);
	if (secret) {
		explicit_bzero(value, strlen(value));
		unsetenv(name);
	}
	return secret;
}

void secret_free(char *secret)
{
	struct entry gone = { .count = 0 };

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < len && secret && gone.count == 0; i++) {
		if (entries[i].forms[0] == secret) {
			gone = entries[i];
			entries[i] = entries[--len];
		}
	}
	pthread_mutex_unlock(&lock);
	for (size_t i = 1; i < gone.count; i++)
		wipe(gone.forms[i]);
	wipe(secret);
}

/* --- masking ---------------------------------------------------------------------- */

/* Length of the longest secret that text begins with. */
static size_t longest_at(const char *text)
{
	size_t longest = 0;

	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < entries[i].count; k++) {
			const char *form = entries[i].forms[k];

			if (*form == *text && str_starts(text, form))
				longest = MAX(longest, strlen(form));
		}
	}
	return longest >= TEXT_MIN ? longest : 0;
}

/* What overlaps is covered as a whole.  A byte is overwritten only when all that
 * begins at it has been looked for.
 */
static void mask(char *text)
{
	size_t to = 0, covered = 0, stars = 0;

	for (size_t at = 0; text[at]; at++) {
		size_t n = longest_at(text + at);

		covered = n ? MAX(covered, at + n) : covered;
		if (at >= covered) {
			stars = 0;
			text[to++] = text[at];
		} else if (stars++ < ASTERISKS) {
			text[to++] = '*';
		}
	}
	text[to] = '\0';
}

void secret_mask(char *text)
{
	pthread_mutex_lock(&lock);
	if (len > 0)
		mask(text);
	pthread_mutex_unlock(&lock);
}

static bool is_any_known(void)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = len > 0;
	pthread_mutex_unlock(&lock);
	return any;
}

void secret_format(char *dst, size_t size, const char *fmt, va_list ap)
{
	char *whole;
	int n;

	if (!is_any_known()) {
		vsnprintf(dst, size, fmt, ap);
		return;
	}
	n = vasprintf(&whole, fmt, ap);
	if (n < 0) {
		snprintf(dst, size, "out of memory");
		return;
	}
	secret_mask(whole);
	snprintf(dst, size, "%s", whole);
	explicit_bzero(whole, (size_t)n);
	free(whole);
}
