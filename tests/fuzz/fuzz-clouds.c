// SPDX-License-Identifier: Apache-2.0

/* Any bytes as a clouds.yaml: refused, or read, merged with itself and looked at. */
#include "base/err.h"
#include "dest/cloud_region.h"
#include "dest/cloud_yaml.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct cloud_tree *tree, const struct cloud_node *root, const char *region)
{
	struct cloud_node *both;
	struct err err;

	free(cloud_node_names(root));
	both = cloud_node_merged(tree, root, root, CLOUD_MERGE_EVERYWHERE, &err);
	if (both)
		both = cloud_node_merged(tree, both, root, CLOUD_MERGE_AUTH, &err);
	if (both)
		cloud_region_apply(tree, both, cloud_node_setting(root, "regions"), region, "c",
				   &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autocloudtree struct cloud_tree tree = { .nodes = NULL };
	const struct cloud_node *root;
	struct err err;

	root = cloud_yaml_read(&tree, "clouds.yaml", (const char *)data, size, &err);
	if (root)
		use(&tree, root, size & 1 ? "a" : NULL);
	return 0;
}
