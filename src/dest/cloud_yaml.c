// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_yaml.h"

#include "base/array.h"
#include "base/err.h"
#include "base/str.h"

#include <string.h>
#include <yaml.h>

/* A map or list that is not complete yet. */
struct level {
	struct cloud_node *node;
	struct cloud_node *key;	   /* of a map, whose value comes next */
	struct cloud_node *merged; /* a list of what << brings; NULL: nothing */
	bool is_merge;		   /* that key is << */
};

struct anchor {
	char *name;
	const struct cloud_node *node;
};

struct reader {
	struct cloud_tree *tree;
	struct cloud_node here; /* where the event stands */
	struct level levels[CLOUD_DEPTH_MAX];
	size_t depth;
	struct anchor *anchors;
	size_t anchor_count, anchor_cap;
	const struct cloud_node *root;
};

static int refuse(const struct reader *r, struct err *err, const char *why)
{
	return err_set(err, ERR_REFUSED, "%s: %s", cloud_node_place(&r->here).text, why);
}

/* --- anchors ---------------------------------------------------------------------- */

static int anchor_set(struct reader *r, const yaml_char_t *name, const struct cloud_node *node,
		      struct err *err)
{
	char *copy;

	if (!name)
		return 0;
	copy = strdup((const char *)name);
	if (!copy || !array_room(r->anchors, r->anchor_cap, r->anchor_count + 1)) {
		free(copy);
		return err_nomem(err);
	}
	r->anchors[r->anchor_count++] = (struct anchor){ copy, node };
	return 0;
}

static bool is_open(const struct reader *r, const struct cloud_node *node)
{
	for (size_t i = 0; i < r->depth; i++)
		if (r->levels[i].node == node)
			return true;
	return false;
}

static const struct cloud_node *anchored(const struct reader *r, const yaml_char_t *name,
					 struct err *err)
{
	for (size_t i = r->anchor_count; i-- > 0;) {
		if (!str_equal(r->anchors[i].name, (const char *)name))
			continue;
		if (!is_open(r, r->anchors[i].node))
			return r->anchors[i].node;
		refuse(r, err, "an alias to what it stands in");
		return NULL;
	}
	refuse(r, err, "an alias without an anchor before it");
	return NULL;
}

/* --- values into maps and lists --------------------------------------------------- */

static int merge_map(struct reader *r, struct level *top, const struct cloud_node *map,
		     struct err *err)
{
	if (map->kind != CLOUD_MAP)
		return refuse(r, err, "<< takes a map or a list of maps");
	return cloud_node_add(r->tree, top->merged, NULL, map, err);
}

static int merge_later(struct reader *r, struct level *top, const struct cloud_node *value,
		       struct err *err)
{
	if (!top->merged)
		top->merged = cloud_node_new(r->tree, CLOUD_LIST, NULL, &r->here, err);
	if (!top->merged)
		return -1;
	if (value->kind != CLOUD_LIST)
		return merge_map(r, top, value, err);
	for (size_t i = 0; i < value->count; i++)
		if (merge_map(r, top, value->pairs[i].value, err) < 0)
			return -1;
	return 0;
}

/* What is not there yet: the map's own keys go first, then the first of the list. */
static int merge_now(struct reader *r, struct level *top, struct err *err)
{
	for (size_t i = 0; top->merged && i < top->merged->count; i++) {
		const struct cloud_node *from = top->merged->pairs[i].value;

		for (size_t k = 0; k < from->count; k++) {
			const struct cloud_pair *pair = &from->pairs[k];

			if (!cloud_node_member(top->node, pair->key->text) &&
			    cloud_node_add(r->tree, top->node, pair->key, pair->value, err) < 0)
				return -1;
		}
	}
	return 0;
}

static int put_value(struct reader *r, const struct cloud_node *value, struct err *err)
{
	struct level *top = r->depth ? &r->levels[r->depth - 1] : NULL;
	struct cloud_node *key;

	if (!top) {
		r->root = value;
		return 0;
	}
	if (top->node->kind == CLOUD_LIST)
		return cloud_node_add(r->tree, top->node, NULL, value, err);
	key = steal(&top->key);
	if (top->is_merge) {
		top->is_merge = false;
		return merge_later(r, top, value, err);
	}
	if (!key)
		return refuse(r, err, "a key that is not a plain text");
	return cloud_node_add(r->tree, top->node, key, value, err);
}

static bool wants_key(const struct reader *r)
{
	const struct level *top = r->depth ? &r->levels[r->depth - 1] : NULL;

	return top && top->node->kind == CLOUD_MAP && !top->key && !top->is_merge;
}

/* --- events ----------------------------------------------------------------------- */

/* Those that say nothing which would change a string. */
static bool is_known_tag(const yaml_char_t *tag)
{
	static const char *const known[] = {
		"!",	       YAML_STR_TAG,  YAML_INT_TAG, YAML_FLOAT_TAG,
		YAML_BOOL_TAG, YAML_NULL_TAG, YAML_MAP_TAG, YAML_SEQ_TAG,
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!tag || str_equal((const char *)tag, known[i]))
			return true;
	return false;
}

/* yaml.org/type/null.html; everything else stays a string: nobody's password is 83
 * because it was written 0123.
 */
static enum cloud_kind scalar_kind(const yaml_event_t *event)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
	const char *text = (const char *)event->data.scalar.value;
	bool is_plain = event->data.scalar.plain_implicit &&
			event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	for (size_t i = 0; i < sizeof nulls / sizeof *nulls && is_plain; i++)
		if (str_equal(text, nulls[i]))
			return CLOUD_NULL;
	return CLOUD_TEXT;
}

static bool is_merge_key(const yaml_event_t *event)
{
	return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       str_equal((const char *)event->data.scalar.value, "<<");
}

static int take_scalar(struct reader *r, const yaml_event_t *event, struct err *err)
{
	const char *text = (const char *)event->data.scalar.value;
	struct cloud_node *node;

	if (strlen(text) != event->data.scalar.length)
		return refuse(r, err, "a NUL in a text");
	if (!is_known_tag(event->data.scalar.tag))
		return refuse(r, err, "a tag that has no meaning here");
	node = cloud_node_new(r->tree, scalar_kind(event), text, &r->here, err);
	if (!node || anchor_set(r, event->data.scalar.anchor, node, err) < 0)
		return -1;
	if (!wants_key(r))
		return put_value(r, node, err);
	r->levels[r->depth - 1].key = node;
	r->levels[r->depth - 1].is_merge = is_merge_key(event);
	return 0;
}

static int take_alias(struct reader *r, const yaml_event_t *event, struct err *err)
{
	const struct cloud_node *node = anchored(r, event->data.alias.anchor, err);

	if (!node)
		return -1;
	if (!wants_key(r))
		return put_value(r, node, err);
	if (!node->text)
		return refuse(r, err, "a key that is not a plain text");
	r->levels[r->depth - 1].key = cloud_node_new(r->tree, CLOUD_TEXT, node->text, node, err);
	return r->levels[r->depth - 1].key ? 0 : -1;
}

static int begin(struct reader *r, enum cloud_kind kind, const yaml_char_t *anchor,
		 const yaml_char_t *tag, struct err *err)
{
	struct cloud_node *node;

	if (wants_key(r))
		return refuse(r, err, "a key that is not a plain text");
	if (!is_known_tag(tag))
		return refuse(r, err, "a tag that has no meaning here");
	if (r->depth == CLOUD_DEPTH_MAX)
		return refuse(r, err, "nested too deeply");
	node = cloud_node_new(r->tree, kind, NULL, &r->here, err);
	if (!node || anchor_set(r, anchor, node, err) < 0)
		return -1;
	r->levels[r->depth++] = (struct level){ .node = node };
	return 0;
}

static int end(struct reader *r, struct err *err)
{
	struct level *top = &r->levels[--r->depth];

	if (merge_now(r, top, err) < 0)
		return -1;
	return put_value(r, top->node, err);
}

static int take(struct reader *r, const yaml_event_t *event, struct err *err)
{
	r->here.line = event->start_mark.line + 1;
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return take_scalar(r, event, err);
	case YAML_ALIAS_EVENT:
		return take_alias(r, event, err);
	case YAML_MAPPING_START_EVENT:
		return begin(r, CLOUD_MAP, event->data.mapping_start.anchor,
			     event->data.mapping_start.tag, err);
	case YAML_SEQUENCE_START_EVENT:
		return begin(r, CLOUD_LIST, event->data.sequence_start.anchor,
			     event->data.sequence_start.tag, err);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return end(r, err);
	case YAML_DOCUMENT_START_EVENT:
		return r->root ? refuse(r, err, "a second document") : 0;
	default:
		return 0;
	}
}

static int syntax_error(const struct reader *r, const yaml_parser_t *parser, struct err *err)
{
	struct cloud_node at = { .file = r->here.file, .line = parser->problem_mark.line + 1 };

	if (parser->error == YAML_MEMORY_ERROR)
		return err_nomem(err);
	if (parser->error == YAML_READER_ERROR)
		return err_set(err, ERR_REFUSED, "%s: %s at byte %zu", r->here.file,
			       parser->problem, parser->problem_offset);
	return err_set(err, ERR_REFUSED, "%s: %s%s%s", cloud_node_place(&at).text,
		       parser->context ? parser->context : "", parser->context ? ": " : "",
		       parser->problem ? parser->problem : "not YAML");
}

static void event_wipe(yaml_event_t *event)
{
	if (event->type == YAML_SCALAR_EVENT)
		explicit_bzero(event->data.scalar.value, event->data.scalar.length);
	yaml_event_delete(event);
}

static int read_events(struct reader *r, yaml_parser_t *parser, struct err *err)
{
	yaml_event_type_t type = YAML_NO_EVENT;

	while (type != YAML_STREAM_END_EVENT) {
		yaml_event_t event;
		int taken;

		if (!yaml_parser_parse(parser, &event))
			return syntax_error(r, parser, err);
		type = event.type;
		taken = take(r, &event, err);
		event_wipe(&event);
		if (taken < 0)
			return -1;
	}
	return 0;
}

/* Its buffers hold what was in the file last. */
static void parser_wipe(yaml_parser_t *parser)
{
	if (parser->raw_buffer.start)
		explicit_bzero(parser->raw_buffer.start,
			       (size_t)(parser->raw_buffer.end - parser->raw_buffer.start));
	if (parser->buffer.start)
		explicit_bzero(parser->buffer.start,
			       (size_t)(parser->buffer.end - parser->buffer.start));
	yaml_parser_delete(parser);
}

static void reader_free(struct reader *r)
{
	for (size_t i = 0; i < r->anchor_count; i++)
		free(r->anchors[i].name);
	free(r->anchors);
}

const struct cloud_node *cloud_yaml_read(struct cloud_tree *tree, const char *file,
					 const char *text, size_t len, struct err *err)
{
	struct reader r = { .tree = tree, .here.file = file };
	yaml_parser_t parser;
	int failed;

	if (!yaml_parser_initialize(&parser)) {
		err_nomem(err);
		return NULL;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	failed = read_events(&r, &parser, err);
	parser_wipe(&parser);
	reader_free(&r);
	if (failed)
		return NULL;
	return r.root ? r.root : cloud_node_new(tree, CLOUD_NULL, "", &r.here, err);
}
