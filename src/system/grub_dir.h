/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_GRUB_DIR_H
#define CCSNAP_SYSTEM_GRUB_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Directories with GRUB's modules.  One in a tree is hostile: it counts only when
 * all that grub-mkimage might open there is a regular file of a sane size.
 */
struct edit;
struct err;
struct grub_modules;

/* The tree's directory for a platform, else the host's; out->fd -1 for none. */
int grub_dir_find(struct edit *e, const char *platform, struct grub_modules *out, struct err *err);

bool grub_dir_has_module(int dir, const char *module);

/* A file of exactly len bytes. */
int grub_dir_read(int dir, const char *name, uint8_t *bytes, size_t len, struct err *err);

#endif
