/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_MACHINE_H
#define CCSNAP_SYSTEM_MACHINE_H

#include <stdbool.h>

/* The machine that a tree's programs are made for, by the ELF headers of those that
 * every system has.  Its name is that of uname -m and of Glance's architecture
 * ("x86_64", "ppc64le"); NULL when no program tells one that we know.
 */
struct edit;

/* is_wanted: the first program for such a machine counts; NULL: for any. */
const char *machine_of_tree(const struct edit *e, bool (*is_wanted)(const char *name));

#endif
