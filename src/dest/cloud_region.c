// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_region.h"

#include "base/err.h"
#include "base/str.h"

#include <string.h>

struct region {
	const struct cloud_node *name, *values; /* values NULL: none */
};

static bool has_other_keys(const struct cloud_node *map)
{
	for (size_t i = 0; i < map->count; i++)
		if (!str_equal(map->pairs[i].key->text, "name") &&
		    !str_equal(map->pairs[i].key->text, "values"))
			return true;
	return false;
}

static int region_read(const struct cloud_node *node, struct region *out, struct err *err)
{
	*out = (struct region){ .name = node };
	if (node->kind == CLOUD_MAP) {
		out->name = cloud_node_member(node, "name");
		out->values = cloud_node_setting(node, "values");
	}
	if (!out->name || out->name->kind != CLOUD_TEXT ||
	    (node->kind == CLOUD_MAP && has_other_keys(node)) ||
	    (out->values && out->values->kind != CLOUD_MAP))
		return err_set(err, ERR_REFUSED,
			       "%s: a region must be a name, or a map with name and values",
			       cloud_node_place(node).text);
	return 0;
}

static int no_such_region(struct cloud_tree *tree, const struct cloud_node *regions,
			  const char *wanted, const char *cloud, struct err *err)
{
	struct cloud_node *list = cloud_node_new(tree, CLOUD_LIST, NULL, regions, err);
	autofree char *names = NULL;
	struct region region;

	for (size_t i = 0; list && i < regions->count; i++)
		if (region_read(regions->pairs[i].value, &region, err) < 0 ||
		    cloud_node_add(tree, list, NULL, region.name, err) < 0)
			return -1;
	names = list ? cloud_node_names(list) : NULL;
	if (!names)
		return err_nomem(err);
	return err_set(err, ERR_USAGE, "cloud \"%s\" has no region \"%s\": %s has %s", cloud,
		       wanted, cloud_node_place(regions).text, names);
}

/* Only what is wanted is looked at: another region that is broken does no harm. */
static int region_find(struct cloud_tree *tree, const struct cloud_node *regions,
		       const char *wanted, const char *cloud, struct region *out, struct err *err)
{
	struct err broken;

	if (!wanted)
		return region_read(regions->pairs[0].value, out, err);
	for (size_t i = 0; i < regions->count; i++)
		if (region_read(regions->pairs[i].value, out, &broken) == 0 &&
		    str_equal(out->name->text, wanted))
			return 0;
	return no_such_region(tree, regions, wanted, cloud, err);
}

static struct cloud_node *with_name(struct cloud_tree *tree, struct cloud_node *settings,
				    const struct cloud_node *name, struct err *err)
{
	struct cloud_node *key = cloud_node_new(tree, CLOUD_TEXT, "region_name", name, err);

	if (!key || cloud_node_add(tree, settings, key, name, err) < 0)
		return NULL;
	return settings;
}

static const struct cloud_node *as_list(struct cloud_tree *tree, const struct cloud_node *regions,
					struct err *err)
{
	struct cloud_node *single;

	if (regions->kind == CLOUD_LIST)
		return regions;
	if (regions->kind == CLOUD_TEXT) {
		single = cloud_node_new(tree, CLOUD_LIST, NULL, regions, err);
		if (!single || cloud_node_add(tree, single, NULL, regions, err) < 0)
			return NULL;
		return single;
	}
	err_set(err, ERR_REFUSED, "%s: regions must be a list", cloud_node_place(regions).text);
	return NULL;
}

struct cloud_node *cloud_region_apply(struct cloud_tree *tree, struct cloud_node *settings,
				      const struct cloud_node *regions, const char *wanted,
				      const char *cloud, struct err *err)
{
	const struct cloud_node from_variable = { .file = "OS_REGION_NAME" };
	struct region region = { .name = NULL };

	if (regions && !(regions = as_list(tree, regions, err)))
		return NULL;
	if (regions && regions->count > 0) {
		if (region_find(tree, regions, wanted, cloud, &region, err) < 0)
			return NULL;
	} else if (wanted) {
		region.name = cloud_node_new(tree, CLOUD_TEXT, wanted, &from_variable, err);
	} else {
		return settings;
	}
	if (region.values)
		settings = cloud_node_merged(tree, settings, region.values, CLOUD_MERGE_AUTH, err);
	return settings && region.name ? with_name(tree, settings, region.name, err) : NULL;
}
