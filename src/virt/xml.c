// SPDX-License-Identifier: Apache-2.0
#include "virt/xml.h"

#include "base/err.h"
#include "base/size.h"

#include <errno.h>
#include <libxml/parser.h>
#include <limits.h>
#include <string.h>

enum { TEXT_MAX = 4 << 20 }; /* of one XML; libvirt's protocol has the same limit */

static void refuse_dtd(void *ctx, const xmlChar *name, const xmlChar *id, const xmlChar *uri)
{
	(void)name;
	(void)id;
	(void)uri;
	xmlStopParser(ctx);
}

static xmlDoc *parse(const char *text, size_t len)
{
	xmlParserCtxt *ctxt = xmlNewParserCtxt();
	xmlDoc *doc;

	if (!ctxt)
		return NULL;
	ctxt->sax->internalSubset = refuse_dtd;
	doc = xmlCtxtReadMemory(ctxt, text, (int)len, NULL, "UTF-8",
				XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	xmlFreeParserCtxt(ctxt);
	return doc;
}

xmlDoc *xml_read(const char *text, const char *root, struct err *err)
{
	autoxml xmlDoc *doc = NULL;
	size_t len = strnlen(text, TEXT_MAX + 1);

	if (len > TEXT_MAX) {
		err_set(err, ERR_FAILED, "the XML from libvirt has more than %d MiB",
			(int)(TEXT_MAX / MIB));
		return NULL;
	}
	doc = parse(text, len);
	if (!doc || !xml_is(xmlDocGetRootElement(doc), root)) {
		err_set(err, ERR_FAILED, "what libvirt sent is no XML of a <%s>", root);
		return NULL;
	}
	return steal(&doc);
}

bool xml_is(const xmlNode *node, const char *name)
{
	return node && node->type == XML_ELEMENT_NODE && !node->ns &&
	       strcmp((const char *)node->name, name) == 0;
}

static const xmlNode *first_named(const xmlNode *node, const char *name)
{
	while (node && !xml_is(node, name))
		node = node->next;
	return node;
}

const xmlNode *xml_child(const xmlNode *parent, const char *name)
{
	return parent ? first_named(parent->children, name) : NULL;
}

const xmlNode *xml_next(const xmlNode *node)
{
	return first_named(node->next, (const char *)node->name);
}

static xmlChar *value_of(const xmlNode *node, const char *attribute)
{
	return node ? xmlGetNoNsProp((xmlNode *)node, (const xmlChar *)attribute) : NULL;
}

bool xml_says(const xmlNode *node, const char *attribute, const char *value)
{
	xmlChar *found = value_of(node, attribute);
	bool says = found && strcmp((const char *)found, value) == 0;

	xmlFree(found);
	return says;
}

static unsigned number(const char *text)
{
	unsigned long n;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	n = strtoul(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
	return errno || *end || n > UINT_MAX ? 0 : (unsigned)n;
}

unsigned xml_number(const xmlNode *node, const char *attribute)
{
	xmlChar *found = value_of(node, attribute);
	unsigned n = found ? number((const char *)found) : 0;

	xmlFree(found);
	return n;
}

/* What libxml2 has allocated becomes a plain malloc'ed string. */
static int take(xmlChar *found, char **out, struct err *err)
{
	*out = found ? strdup((const char *)found) : NULL;
	xmlFree(found);
	return found && !*out ? err_nomem(err) : 0;
}

int xml_copy(const xmlNode *node, const char *attribute, char **out, struct err *err)
{
	return take(value_of(node, attribute), out, err);
}

int xml_copy_text(const xmlNode *node, char **out, struct err *err)
{
	return take(node ? xmlNodeGetContent(node) : NULL, out, err);
}
