// SPDX-License-Identifier: Apache-2.0
#include "virt/chain.h"

#include "base/err.h"
#include "base/str.h"
#include "virt/disk_source.h"
#include "virt/xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const xmlNode *find_disk(const xmlNode *root, const char *target)
{
	const xmlNode *disk = xml_child(xml_child(root, "devices"), "disk");

	while (disk && !xml_says(xml_child(disk, "target"), "dev", target))
		disk = xml_next(disk);
	return disk;
}

static void layer_free(struct chain_layer *layer)
{
	free(layer->kind);
	free(layer->source);
	free(layer->format);
}

/* The format of a disk stands in its <driver>, of a layer below in <format>. */
static int read_format(const xmlNode *node, char **out, struct err *err)
{
	const char *element = xml_is(node, "disk") ? "driver" : "format";

	return xml_copy(xml_child(node, element), "type", out, err);
}

static int read_layer(const xmlNode *node, struct chain_layer *layer, struct err *err)
{
	autodisksource struct disk_source source = { 0 };

	if (disk_source_read(node, &source, err) < 0 || read_format(node, &layer->format, err) < 0)
		return -1;
	layer->kind = steal(&source.kind);
	layer->source = steal(&source.text);
	layer->index = xml_number(xml_child(node, "source"), "index");
	return 0;
}

static int add_layer(struct chain *chain, const xmlNode *node, struct err *err)
{
	struct chain_layer layer = { 0 },
			   *grown = reallocarray(chain->layers, chain->count + 1, sizeof layer);

	if (!grown)
		return err_nomem(err);
	chain->layers = grown;
	if (read_layer(node, &layer, err) < 0) {
		layer_free(&layer);
		return -1;
	}
	chain->layers[chain->count++] = layer;
	return 0;
}

/* Nested elements; libxml2 refuses more than 256 in one another. */
static int read_layers(const xmlNode *disk, struct chain *chain, struct err *err)
{
	const xmlNode *node = disk;

	while (node && xml_child(node, "source")) {
		if (add_layer(chain, node, err) < 0)
			return -1;
		node = xml_child(node, "backingStore");
	}
	return 0;
}

static int read_mirror(const xmlNode *mirror, struct chain *chain, struct err *err)
{
	autodisksource struct disk_source source = { 0 };

	if (!mirror)
		return 0;
	if (xml_copy(mirror, "job", &chain->mirror, err) < 0 ||
	    disk_source_read(mirror, &source, err) < 0)
		return -1;
	if (!chain->mirror)
		chain->mirror = strdup("copy");
	chain->copied_to = steal(&source.text);
	chain->is_ready = xml_says(mirror, "ready", "yes");
	return chain->mirror ? 0 : err_nomem(err);
}

int chain_read(const char *domain_xml, const char *target, struct chain *out, struct err *err)
{
	autoxml xmlDoc *doc = xml_read(domain_xml, "domain", err);
	const xmlNode *disk = doc ? find_disk(xmlDocGetRootElement(doc), target) : NULL;

	*out = (struct chain){ 0 };
	if (!doc)
		return -1;
	if (!disk)
		return err_set(err, ERR_FAILED, "there is no disk %s any more", target);
	if (read_layers(disk, out, err) < 0 ||
	    read_mirror(xml_child(disk, "mirror"), out, err) < 0) {
		chain_free(out);
		return -1;
	}
	return 0;
}

size_t chain_find(const struct chain *chain, const char *path)
{
	for (size_t i = 0; i < chain->count; i++) {
		const struct chain_layer *layer = &chain->layers[i];

		if (str_equal(layer->kind, "file") && layer->source &&
		    str_equal(layer->source, path))
			return i;
	}
	return SIZE_MAX;
}

void chain_free(struct chain *chain)
{
	for (size_t i = 0; i < chain->count; i++)
		layer_free(&chain->layers[i]);
	free(chain->layers);
	free(chain->mirror);
	free(chain->copied_to);
	*chain = (struct chain){ 0 };
}
