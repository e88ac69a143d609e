/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TMPNAME_H
#define CCSNAP_TMPNAME_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Names of files that are not published yet: .STEM.TOKEN and a tail that tells
 * what it is.  The token is random; a file and its note share it.
 */
struct err;

#define TMP_TAIL  ".ccsnap-tmp"
#define NOTE_TAIL ".ccsnap-note"

enum { TOKEN_LEN = 8, STEM_MAX = NAME_MAX - 2 - TOKEN_LEN - (sizeof NOTE_TAIL - 1) };

/* The key as it is, or, when that is too long, its beginning and a digest of
 * all of it: two keys that meet there only exclude each other.
 */
void tmpname_stem(char stem[STEM_MAX + 1], const char *key);

/* A new pair of names. */
int tmpname_make(const char *stem, char tmp[NAME_MAX + 1], char note[NAME_MAX + 1],
		 struct err *err);

bool tmpname_has_tail(const char *name, const char *tail);
bool tmpname_has_stem(const char *name, const char *tail, const char *stem);

/* The same token with another tail. */
void tmpname_partner(char partner[NAME_MAX + 1], const char *name, const char *tail,
		     const char *other);

#endif
