/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_XML_H
#define CCSNAP_XML_H

#include "base/cleanup.h"

#include <libxml/tree.h>

#include <stdbool.h>

/* Reading the XML that libvirt hands out.  Only elements without a namespace count: what
 * others put in (<metadata>, qemu:commandline) is never taken for libvirt's own.
 */
struct err;

/* The document, whose outermost element has that name; ERR_FAILED for all else.  Nothing outside
 * of the text is looked at, and a DTD is refused, so there are no entities that could grow.
 */
xmlDoc *xml_read(const char *text, const char *root, struct err *err);

/* The first such element below parent (NULL: none), the next one beside node; or NULL. */
const xmlNode *xml_child(const xmlNode *parent, const char *name);
const xmlNode *xml_next(const xmlNode *node);

bool xml_is(const xmlNode *node, const char *name);
bool xml_says(const xmlNode *node, const char *attribute, const char *value);

/* A whole number, decimal or 0x...; 0 when there is none that fits. */
unsigned xml_number(const xmlNode *node, const char *attribute);

/* The value of an attribute, or the text in the element (malloc); *out is NULL when there is
 * none.
 */
int xml_copy(const xmlNode *node, const char *attribute, char **out, struct err *err);
int xml_copy_text(const xmlNode *node, char **out, struct err *err);

CLEANUP_TYPE(xmlDoc, xml_doc, xmlFreeDoc)
#define autoxml CLEANUP(xml_doc_cleanup)

#endif
