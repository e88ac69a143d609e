/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_REGION_H
#define CCSNAP_CLOUD_REGION_H

#include "dest/cloud_tree.h"

/* settings with the values of one of its regions on top, and its name as "region_name".
 * regions: a list of names or of maps with "name" and "values"; the name of a single
 * one; NULL: none are known, and any may be wanted.  wanted NULL: the first.
 */
struct cloud_node *cloud_region_apply(struct cloud_tree *tree, struct cloud_node *settings,
				      const struct cloud_node *regions, const char *wanted,
				      const char *cloud, struct err *err);

#endif
