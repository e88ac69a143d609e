/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OWN_FOLDER_H
#define CCSNAP_OWN_FOLDER_H

/* Where our own things of one kind are kept, made or not (malloc): /var/lib/ccsnap/NAME for
 * root, else ccsnap/NAME in the directory of the XDG rules that variable names, or in that
 * one in the home directory.  NULL without a home.
 */
char *own_folder(const char *variable, const char *in_home, const char *name);

#endif
