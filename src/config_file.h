/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CONFIG_FILE_H
#define CCSNAP_CONFIG_FILE_H

/* Configuration files: KEY = VALUE lines, alone or in a section [ccsnap].
 * What inih would cut, join or drop is refused here, so that a value either
 * arrives as it stands or is an error.
 */
struct err;

/* Gets one setting; where is "FILE:LINE". */
typedef int config_setter(void *ctx, const char *where, const char *key, const char *value,
			  struct err *err);

/* Every setting in the file, in order.  All errors are ERR_USAGE and name the
 * file; one that is not there has sys_errno ENOENT or ENOTDIR.
 */
int config_read(const char *path, config_setter *set, void *ctx, struct err *err);

/* Where the system's and the user's file are (malloc).  config_user_path
 * leaves NULL in *path when there is no home to look in.
 */
const char *config_system_path(void);
int config_user_path(char **path, struct err *err);

#endif
