/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_RECORD_TEXT_H
#define CCSNAP_RECORD_TEXT_H

#include <stdbool.h>

/* A note as the text of an INI file.
 *
 * A value may hold any byte but NUL: each that is no letter, digit or one of -._~/:@+,= stands
 * as %XX.  One that is too long for a line of inih goes on in further lines with the same
 * key.  The last line, "check", is made from all above it; what follows it has no meaning.
 */
struct err;
struct record_note;

/* malloc; NULL without memory. */
char *record_text_make(const struct record_note *note);

/* ERR_FAILED with a reason when it is no such text, whole and unchanged; *out is empty
 * then.  Blanks alone are a note of nothing.
 */
int record_text_read(const char *text, struct record_note *out, struct err *err);

/* Is there anything to undo? */
bool record_note_is_clear(const struct record_note *note);

int record_note_copy(struct record_note *dst, const struct record_note *src, struct err *err);

#endif
