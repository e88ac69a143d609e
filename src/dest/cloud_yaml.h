/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_YAML_H
#define CCSNAP_CLOUD_YAML_H

#include "dest/cloud_tree.h"

/* A YAML 1.1 file (JSON is one, too) as nodes.  Anchors, aliases and merge keys (<<) work; an
 * alias costs nothing, and what contains itself is refused.  file is borrowed and must
 * outlive the tree.  NULL: ERR_REFUSED with file and line.  An empty file is a CLOUD_NULL.
 */
const struct cloud_node *cloud_yaml_read(struct cloud_tree *tree, const char *file,
					 const char *text, size_t len, struct err *err);

#endif
