/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_FILES_H
#define CCSNAP_CLOUD_FILES_H

#include "dest/cloud_tree.h"

/* clouds.yaml, secure.yaml and clouds-public.yaml, found and merged as openstacksdk's
 * openstack.config does it.  ccsnap has no vendor profiles of its own.
 */
struct cloud_files {
	const struct cloud_node *clouds; /* a map by name; NULL: there are none */
	char *paths;			 /* "FILE" or "FILE and FILE"; NULL: none was found */
	char *searched;			 /* the directories, for messages */
};

/* A file that cannot be read is passed over; one that is broken is not (ERR_REFUSED). */
int cloud_files_read(struct cloud_tree *tree, struct cloud_files *out, struct err *err);
void cloud_files_free(struct cloud_files *files);
#define autocloudfiles CLEANUP(cloud_files_free)

/* The name of the single cloud that there is, or NULL; borrowed. */
const char *cloud_files_single(const struct cloud_files *files);

/* All that is set for a cloud: its profile, its entry on top, the values of its region on
 * top of that, and "region_name".  region NULL: the first.  ERR_USAGE when there is no
 * cloud or region of that name.
 */
struct cloud_node *cloud_files_settings(struct cloud_tree *tree, const struct cloud_files *files,
					const char *name, const char *region, struct err *err);

#endif
