/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_GRUBENV_H
#define CCSNAP_SYSTEM_GRUBENV_H

#include "system/cmdline.h"
#include "system/text.h"

#include <stdbool.h>

/* GRUB's environment block: lines NAME=VALUE, filled up with "#" to 1024 bytes,
 * which GRUB writes in place.  Pure.
 */

/* The value of a variable, in text. */
bool grubenv_get(struct slice text, const char *name, struct slice *value);

/* kernelopts as cmdline wants it; the length stays.  False, and nothing appended, when
 * it does not fit or text is no such block.
 */
bool grubenv_rewrite(struct slice text, struct cmdline *cmdline, struct text *out);

#endif
