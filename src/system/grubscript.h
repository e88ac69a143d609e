/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_GRUBSCRIPT_H
#define CCSNAP_SYSTEM_GRUBSCRIPT_H

#include "system/text.h"

#include <stdbool.h>

/* GRUB's script language, as far as commands can be told apart.  Pure. */

/* Bytes that belong together at the beginning of s: a quoted string, a variable
 * in braces, an escaped byte, or one byte.
 */
size_t grubscript_unit(struct slice s);

/* Take the next command off *rest: up to an unquoted line end, ";", "{", "}" or a
 * comment; what is between it and the one before is taken with it.  False at the end.
 */
bool grubscript_command(struct slice *rest, struct slice *between, struct slice *command);

/* Take the first word off *rest (a command) that is its name, not "then". */
bool grubscript_name(struct slice *rest, struct slice *name);

/* Append s in quotes: one word, whatever bytes it has. */
void grubscript_quote(const char *s, struct text *out);

#endif
