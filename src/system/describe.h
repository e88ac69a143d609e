/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_DESCRIBE_H
#define CCSNAP_SYSTEM_DESCRIBE_H

#include "system/text.h"

/* What the system in a tree says of itself, for whoever looks for an image later.
 * Nothing depends on it: what is broken or cannot be read is left out with a warning,
 * what is not there without.  Texts are as they are found, any bytes but NUL.
 */
struct edit;

/* NULL: not known. */
struct description {
	char *os_id, *os_version; /* of os-release(5): "debian", "12" */
	const char *machine;	  /* see machine.h */
	char *provenance;	  /* what is in DESCRIBE_PROVENANCE, JSON perhaps */
	size_t provenance_len;
};

#define DESCRIBE_PROVENANCE "opt/chameleon/provenance.json"

/* Links are followed inside of the tree only, as in the image. */
void describe_tree(const struct edit *e, struct description *out);
void description_free(struct description *d);

/* The value of a key of os-release(5), the last one counts (malloc); NULL when there is
 * none, or it is empty, or longer than 255 bytes.  Pure.
 */
char *os_release_value(struct slice text, const char *key);

#endif
