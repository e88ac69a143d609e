// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *str_format(const char *fmt, ...)
{
	char *s;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

bool str_equal(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int str_hex_byte(const char *s)
{
	int high = hex_digit(s[0]), low = high < 0 ? -1 : hex_digit(s[1]);

	return low < 0 ? -1 : high * 16 + low;
}

int str_octal_byte(const char *s)
{
	int byte = 0;

	for (size_t i = 0; i < 3; i++) {
		if (s[i] < '0' || s[i] > '7')
			return -1;
		byte = byte * 8 + (s[i] - '0');
	}
	return byte <= UINT8_MAX ? byte : -1;
}

size_t str_utf8_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	uint32_t point, least;
	size_t n;

	if (u[0] < 0x80)
		return u[0] ? 1 : 0;
	if ((u[0] & 0xe0) == 0xc0)
		n = 2, point = u[0] & 0x1f, least = 0x80;
	else if ((u[0] & 0xf0) == 0xe0)
		n = 3, point = u[0] & 0x0f, least = 0x800;
	else if ((u[0] & 0xf8) == 0xf0)
		n = 4, point = u[0] & 0x07, least = 0x10000;
	else
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (u[i] & 0x3f);
	}
	if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	return n;
}

bool str_is_control(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	return u[0] < 0x20 || u[0] == 0x7f || (u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0);
}

/* U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
bool str_is_steering(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (str_is_control(s) || (u[0] == 0xd8 && u[1] == 0x9c))
		return true;
	if (u[0] != 0xe2)
		return false;
	return (u[1] == 0x80 && (u[2] == 0x8e || u[2] == 0x8f || (u[2] >= 0xa8 && u[2] <= 0xae))) ||
	       (u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9);
}

char *str_to_utf8(const char *s)
{
	char *out = malloc(strlen(s) * 4 + 1), *at = out;

	if (!out)
		return NULL;
	while (*s) {
		size_t n = str_utf8_len(s);

		/* what is written so otherwise must not look the same */
		if (s[0] == '\\' && s[1] == 'x' && isxdigit((unsigned char)s[2]) &&
		    isxdigit((unsigned char)s[3]))
			n = 0;
		if (n == 0) {
			at += sprintf(at, "\\x%02x", (unsigned char)*s++);
		} else {
			memcpy(at, s, n);
			at += n;
			s += n;
		}
	}
	*at = '\0';
	return out;
}

void str_list_free(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}
