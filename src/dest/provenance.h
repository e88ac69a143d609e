/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PROVENANCE_H
#define CCSNAP_PROVENANCE_H

#include <stddef.h>

/* What an image of the Chameleon testbed knows of its own descent: the object in
 * /opt/chameleon/provenance.json, each member KEY a property provenance-KEY of the new
 * image, but for those that begin with chameleon-supported: what is made from a supported
 * image is none itself.
 */
struct err;

#define PROVENANCE_MAX	       (64 << 10)
#define PROVENANCE_MEMBERS_MAX 64
#define PROVENANCE_KEY_MAX     255 /* bytes, with the prefix */
#define PROVENANCE_VALUE_MAX   4096

/* "KEY=VALUE" strings, ends with NULL (malloc).  Numbers and truth values become text as
 * JSON has it, nested ones compact JSON; null and empty texts are left out without a word, what
 * exceeds the limits above or has no proper key with a warning.  ERR_FAILED, with the
 * line, for what is no object.
 */
char **provenance_properties(const char *json, size_t len, struct err *err);

#endif
