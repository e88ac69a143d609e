/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_GRUBCFG_INNER_H
#define CCSNAP_SYSTEM_GRUBCFG_INNER_H

#include "system/grubcfg.h"

/* The part of grubcfg.c that sees to it that GRUB's root is a volume of the image. */

/* A command from its name on, without keywords before it.  NAME=VALUE is "set". */
bool grubcfg_name(struct slice command, struct slice *named, struct slice *name,
		  struct slice *args);

/* "search", "search.fs_uuid", "search.fs_label": what is not in the image is
 * searched by the UUID of what took its place.
 */
void grubcfg_rewrite_search(struct slice command, struct slice args, struct grubcfg *cfg,
			    struct text *out);

/* Append "search ...; " when one of the command's paths is on a partition with a number,
 * for that partition's volume.
 */
void grubcfg_search_for_numbered(struct slice name, struct slice args, struct grubcfg *cfg,
				 struct text *out);

/* "root=(hd0,msdos1)", "root='hd0,gpt2'": append "; search ..." when nothing that
 * follows finds the volume.
 */
bool grubcfg_sets_numbered_root(struct slice name, struct slice args);
void grubcfg_search_after_root(struct grubcfg *cfg, struct text *out);

#endif
