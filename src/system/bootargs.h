/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_BOOTARGS_H
#define CCSNAP_SYSTEM_BOOTARGS_H

#include "system/cmdline.h"
#include "system/text.h"

/* Where kernel arguments for the next kernel are kept.  Pure. */

/* etc/default/grub: GRUB_CMDLINE_LINUX... and GRUB_FORCE_PARTUUID. */
void default_grub_rewrite(struct slice text, struct cmdline *cmdline, struct text *out);

#endif
