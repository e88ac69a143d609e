/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HASH_INNER_H
#define CCSNAP_HASH_INNER_H

#include "base/cleanup.h"
#include "base/hash.h"

/* Two lower-case digits a byte, and a NUL. */
void hash_hex(char *text, const unsigned char *bytes, size_t count);

/* A struct hash with a single digest, see hash_file_by_name: 1, 0 when the algorithm is
 * not known, -1.  It ends with hash_finish_by_name instead of hash_finish.
 */
int hash_start_by_name(const char *algorithm, struct hash **out, struct err *err);
int hash_finish_by_name(struct hash *hash, char *hex, struct err *err);

CLEANUP_TYPE(struct hash, hash, hash_stop)
#define autohash CLEANUP(hash_cleanup)

#endif
