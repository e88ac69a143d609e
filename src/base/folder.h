/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FOLDER_H
#define CCSNAP_FOLDER_H

#include <sys/types.h>

struct err;

/* Make a folder where it is missing, and what is missing above it; what is made
 * gets mode.  ERR_REFUSED.
 */
int folder_make(const char *path, mode_t mode, struct err *err);

#endif
