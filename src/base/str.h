/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_STR_H
#define CCSNAP_STR_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* A new string (malloc), NULL when out of memory. */
char *str_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool str_equal(const char *a, const char *b);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* The byte that two hex digits, or three octal ones, at the beginning of s stand for;
 * -1 when there are none (octal: none up to \377).
 */
int str_hex_byte(const char *s);
int str_octal_byte(const char *s);

/* Length in bytes (1 to 4) of the well-formed UTF-8 sequence at s (RFC 3629:
 * no surrogates, nothing overlong), 0 when there is none.
 */
size_t str_utf8_len(const char *s);

/* Is the character at s a control character (C0, DEL, C1)? */
bool str_is_control(const char *s);

/* That, or one that ends a line or turns the direction of what follows: nothing that comes
 * from elsewhere may bring it to a terminal.
 */
bool str_is_steering(const char *s);

/* A new string (malloc) that is valid UTF-8: each byte of s that is not part
 * of a well-formed sequence stands as the four characters \xNN, and so does a
 * backslash in front of an x and two hexadecimal digits (as \x5c); all else as it is.  This is the
 * one rule for names in JSON.  NULL when out of memory.
 */
char *str_to_utf8(const char *s);

/* The strings and the list itself, which ends with NULL; NULL is fine. */
void str_list_free(char **list);

static inline void str_list_cleanup(char ***list)
{
	str_list_free(*list);
}
#define autostrings CLEANUP(str_list_cleanup)

#endif
