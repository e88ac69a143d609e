// SPDX-License-Identifier: Apache-2.0
#include "source/graph.h"

#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "base/str.h"
#include "source/reader.h"
#include "source/references.h"
#include "source/tables.h"
#include "source/vmdk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LAYERS_MAX = 64 };

/* The next layer, as the one above names it. */
struct link {
	char *path, *format;
};

static void link_free(struct link *link)
{
	free(link->path);
	free(link->format);
	*link = (struct link){ 0 };
}

/* An entry for one more file; held_close takes it as it is. */
static struct held *new_file(struct graph *graph, struct err *err)
{
	struct held *files = reallocarray(graph->files, graph->file_count + 1, sizeof *files);

	if (!files) {
		err_nomem(err);
		return NULL;
	}
	graph->files = files;
	files[graph->file_count] = (struct held){ .fd = -1 };
	return &files[graph->file_count];
}

/* Open path as one more file of the graph.  The same file again is accepted
 * only from shared_from on: flat extents of one vmdk may share a file.
 */
static int add_file(struct graph *graph, const char *path, size_t shared_from,
		    enum source_intent intent, size_t *index, struct err *err)
{
	struct held *file = new_file(graph, err);

	if (!file || held_open(file, path, intent, err) < 0)
		return -1;
	for (size_t i = 0; i < graph->file_count; i++) {
		if (!is_same_file(&file->st, &graph->files[i].st))
			continue;
		held_close(file);
		*index = i;
		if (i >= shared_from)
			return 0;
		return err_set(err, ERR_REFUSED, "%s: used twice, the image leads back to itself",
			       path);
	}
	*index = graph->file_count++;
	return 0;
}

/* What QEMU would take for something else than a file's path. */
static int has_protocol(const char *name)
{
	return name[strcspn(name, ":/")] == ':';
}

/* The path of what a reference in the file at path names. */
static char *resolve(const char *path, const struct reference *ref, struct err *err)
{
	const char *slash = strrchr(path, '/');
	int dir_len = slash && ref->name[0] != '/' ? (int)(slash - path + 1) : 0;
	char *resolved;

	if (ref->name[0] == '\0') {
		err_set(err, ERR_REFUSED,
			"%s: its %s is not named by a path; convert it to a single file with the "
			"tool that made it",
			path, reference_kind_name(ref->kind));
		return NULL;
	}
	if (has_protocol(ref->name)) {
		err_set(err, ERR_REFUSED, "%s: its %s is no plain path: %s", path,
			reference_kind_name(ref->kind), ref->name);
		return NULL;
	}
	resolved = str_format("%.*s%s", dir_len, path, ref->name);
	if (!resolved)
		err_nomem(err);
	return resolved;
}

static int check_allowed(const struct references *refs, const struct source_config *cfg,
			 const char *path, struct err *err)
{
	const struct reference *ref = refs->at;

	if (refs->len == 0 || cfg->allow_backing)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "%s: names another file as its %s: %s; if you trust it, --allow-backing of "
		       "create or convert takes that in",
		       path, reference_kind_name(ref->kind),
		       ref->name[0] ? ref->name : "(by number)");
}

static int take_link(const struct reference *ref, const char *path, struct link *link,
		     struct err *err)
{
	link->path = resolve(path, ref, err);
	if (!link->path)
		return -1;
	if (!ref->format)
		return err_set(err, ERR_REFUSED,
			       "%s: its %s %s has no recorded format; record it with qemu-img "
			       "rebase -u -F FORMAT -b FILE",
			       path, reference_kind_name(ref->kind), ref->name);
	link->format = strdup(ref->format);
	return link->format ? 0 : err_nomem(err);
}

/* Is all of it there, and is it as long as the descriptor says?  What QEMU
 * will make of it is added to size.
 */
static int check_extent(const struct reference *ref, const struct held *file, uint64_t *size,
			struct err *err)
{
	struct layout layout = { .size = ref->sectors * 512 };
	struct reader in;

	if (reader_open(&in, &file->fd, err) < 0)
		return -1;
	if (vmdk_is_flat(ref)) {
		if (in.size / 512 < ref->offset || in.size / 512 - ref->offset < ref->sectors)
			return err_set(err, ERR_REFUSED,
				       "cut short: shorter than the descriptor says");
	} else {
		if (vmdk_read_extent(&in, &layout, err) < 0 ||
		    tables_check(&in, &layout, in.size, err) < 0)
			return -1;
		/* some round it up to whole grains in one place only */
		if (layout.size / 512 != ref->sectors &&
		    layout.size != round_up(ref->sectors * 512, layout.unit))
			return err_set(err, ERR_REFUSED,
				       "of %llu sectors, where the descriptor says %llu",
				       (unsigned long long)layout.size / 512,
				       (unsigned long long)ref->sectors);
	}
	*size += layout.size;
	return *size > INT64_MAX ? err_set(err, ERR_REFUSED, "impossibly large") : 0;
}

static int extent_fd(const void *ctx, size_t extent)
{
	const size_t *index = ctx;

	return GRAPH_FIRST_FD + (int)index[extent];
}

/* A file of our own that nobody can change, not even we. */
static int add_descriptor(struct graph *graph, const char *text, const char *path, size_t *index,
			  struct err *err)
{
	struct held *file = new_file(graph, err);

	if (!file)
		return -1;
	file->name = strdup(path);
	file->fd = memfd_create("vmdk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	*index = graph->file_count++;
	if (!file->name)
		return err_nomem(err);
	if (file->fd < 0 || io_pwrite(file->fd, text, strlen(text), 0) < 0 ||
	    fcntl(file->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) < 0 ||
	    fstat(file->fd, &file->st) < 0)
		return err_errno(err, ERR_FAILED, "%s: cannot copy its descriptor", path);
	file->synced = 1;
	return 0;
}

static int add_extents(struct graph *graph, struct layer *layer, const struct references *refs,
		       const char *path, enum source_intent intent, uint64_t *size, struct err *err)
{
	autofree size_t *index = calloc(refs->len, sizeof *index);
	autofree char *text = NULL;
	size_t first = graph->file_count;

	if (!index)
		return err_nomem(err);
	for (size_t i = 0; i < refs->len; i++) {
		const struct reference *ref = &refs->at[i];
		autofree char *extent = NULL;

		if (ref->kind != REFERENCE_EXTENT)
			continue;
		extent = resolve(path, ref, err);
		if (!extent)
			return -1;
		if (add_file(graph, extent, first, intent, &index[i], err) < 0)
			return err_context(err, "%s: its extent", path);
		if (check_extent(ref, &graph->files[index[i]], size, err) < 0)
			return err_context(err, "%s: its extent: %s", path, extent);
	}
	text = vmdk_descriptor(refs, err, extent_fd, index);
	if (!text)
		return err_context(err, "%s", path);
	return add_descriptor(graph, text, path, &layer->descriptor, err);
}

static int add_referenced(struct graph *graph, struct layer *layer, struct references *refs,
			  const char *path, const struct source_config *cfg, struct link *next,
			  struct err *err)
{
	size_t extents = 0;

	for (size_t i = 0; i < refs->len; i++) {
		const struct reference *ref = &refs->at[i];
		autofree char *data = NULL;

		if (ref->kind == REFERENCE_EXTENT) {
			extents++;
		} else if (ref->kind == REFERENCE_DATA_FILE) {
			data = resolve(path, ref, err);
			if (!data)
				return -1;
			if (add_file(graph, data, NO_FILE, cfg->intent, &layer->data_file, err) < 0)
				return err_context(err, "%s: its data file", path);
		} else if (take_link(ref, path, next, err) < 0) {
			return -1;
		}
	}
	return extents ? add_extents(graph, layer, refs, path, cfg->intent, &refs->layout.size, err)
		       : 0;
}

static struct layer *new_layer(struct graph *graph, const struct link *link, struct err *err)
{
	struct layer *layers, *layer;

	if (graph->layer_count == LAYERS_MAX) {
		err_set(err, ERR_REFUSED, "%s: more than %d files, each based on the next",
			link->path, LAYERS_MAX);
		return NULL;
	}
	layers = reallocarray(graph->layers, graph->layer_count + 1, sizeof *layers);
	if (!layers) {
		err_nomem(err);
		return NULL;
	}
	graph->layers = layers;
	layer = &layers[graph->layer_count];
	*layer = (struct layer){ .data_file = NO_FILE, .descriptor = NO_FILE };
	layer->format = strdup(link->format);
	if (!layer->format) {
		err_nomem(err);
		return NULL;
	}
	graph->layer_count++;
	return layer;
}

/* Open one layer with all that belongs to it; next is left empty at the end of
 * the chain.
 */
static int add_layer(struct graph *graph, const struct link *link, const struct source_config *cfg,
		     struct link *next, struct err *err)
{
	struct layer *layer = new_layer(graph, link, err);
	autoreferences struct references refs = { 0 };
	struct reader in;
	uint64_t data_size;
	int fd;

	if (!layer || add_file(graph, link->path, NO_FILE, cfg->intent, &layer->file, err) < 0)
		return -1;
	fd = graph->files[layer->file].fd;
	data_size = graph->files[layer->file].size;
	if (reader_open(&in, &fd, err) < 0 || references_parse(&in, layer->format, &refs, err) < 0)
		return err_context(err, "%s", link->path);
	if (check_allowed(&refs, cfg, link->path, err) < 0)
		return -1;
	if (add_referenced(graph, layer, &refs, link->path, cfg, next, err) < 0)
		return -1;
	if (layer->data_file != NO_FILE)
		data_size = graph->files[layer->data_file].size;
	if (tables_check(&in, &refs.layout, data_size, err) < 0)
		return err_context(err, "%s", link->path);
	if (graph->layer_count == 1) {
		graph->sector_size = refs.sector_size;
		graph->size = refs.layout.size;
	}
	return 0;
}

int graph_open(struct graph *graph, const struct source_config *cfg, struct err *err)
{
	CLEANUP(link_free) struct link link = { strdup(cfg->path), strdup(cfg->format) };

	*graph = (struct graph){ 0 };
	if (!link.path || !link.format)
		return err_nomem(err);
	while (link.path) {
		CLEANUP(link_free) struct link next = { 0 };

		if (add_layer(graph, &link, cfg, &next, err) < 0) {
			if (graph->layer_count > 1)
				err_context(err, "%s: what it is based on", cfg->path);
			graph_close(graph);
			return -1;
		}
		link_free(&link);
		link.path = steal(&next.path);
		link.format = steal(&next.format);
	}
	return 0;
}

static void write_file(FILE *out, const struct graph *graph, size_t index, const char *share)
{
	const struct held *file = &graph->files[index];

	fprintf(out,
		"{\"driver\":\"%s\",\"filename\":\"/proc/self/fd/%d\",\"read-only\":true,"
		"\"force-share\":%s}",
		S_ISBLK(file->st.st_mode) ? "host_device" : "file", GRAPH_FIRST_FD + (int)index,
		share);
}

/* Formats come from our own list by now, so nothing needs to be escaped. */
static void write_layers(FILE *out, const struct graph *graph, const char *share)
{
	for (size_t i = 0; i < graph->layer_count; i++) {
		const struct layer *layer = &graph->layers[i];

		fprintf(out, "{\"driver\":\"%s\",\"read-only\":true,\"force-share\":%s,\"file\":",
			layer->format, share);
		write_file(out, graph,
			   layer->descriptor != NO_FILE ? layer->descriptor : layer->file, share);
		if (layer->data_file != NO_FILE) {
			fprintf(out, ",\"data-file\":");
			write_file(out, graph, layer->data_file, share);
		}
		if (!str_equal(layer->format, "raw"))
			fprintf(out, ",\"backing\":%s", i + 1 < graph->layer_count ? "" : "null");
	}
	for (size_t i = 0; i < graph->layer_count; i++)
		fprintf(out, "}");
}

char *graph_json(const struct graph *graph, enum source_intent intent, struct err *err)
{
	autofree char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out) {
		err_nomem(err);
		return NULL;
	}
	fprintf(out, "json:");
	write_layers(out, graph, intent == SOURCE_LOOK ? "true" : "false");
	if (fclose(out) != 0) {
		err_nomem(err);
		return NULL;
	}
	return steal(&text);
}

int graph_is_synced(const struct graph *graph)
{
	size_t synced = 0;

	for (size_t i = 0; i < graph->file_count; i++)
		synced += graph->files[i].synced;
	return synced == graph->file_count;
}

int graph_check(const struct graph *graph, struct err *err)
{
	for (size_t i = 0; i < graph->file_count; i++)
		if (held_check(&graph->files[i], err) < 0)
			return i == 0 ? -1 : err_context(err, "%s", graph->files[i].name);
	return 0;
}

int graph_has(const struct graph *graph, const struct stat *st)
{
	size_t i = 0;

	while (i < graph->file_count && !is_same_file(st, &graph->files[i].st))
		i++;
	return i < graph->file_count;
}

void graph_close(struct graph *graph)
{
	for (size_t i = 0; i < graph->file_count; i++)
		held_close(&graph->files[i]);
	for (size_t i = 0; i < graph->layer_count; i++)
		free(graph->layers[i].format);
	free(graph->files);
	free(graph->layers);
	*graph = (struct graph){ 0 };
}
