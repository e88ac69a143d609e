/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GLANCE_PROOF_H
#define CCSNAP_GLANCE_PROOF_H

#include "base/hash.h"

#include <stdint.h>

/* Are the bytes here and those at the image service the same?  By what the service
 * tells of them: the size, and the digest that it computed itself while it took them
 * (os_hash_algo and os_hash_value, else checksum, which is MD5).  Digits may be in
 * either case; an algorithm that we do not know is none.
 */
struct err;
struct service_image;

struct proof_of {
	int fd; /* for an algorithm that digests has not */
	const char *name;
	uint64_t size;
	const char *format; /* "qcow2", "raw"; NULL: whichever */
	const struct digests *digests;
};

enum proof_result { PROOF_ERROR = -1, PROOF_DIFFERS, PROOF_SILENT, PROOF_SAME };

/* PROOF_DIFFERS: err tells both values.  PROOF_SILENT: as far as the service tells
 * anything they are, but it tells no digest.  PROOF_ERROR also when the service has
 * converted the image, so that nothing can be compared.  *by: the digest's name, NULL
 * unless PROOF_SAME; it is static.
 */
enum proof_result proof_compare(const struct service_image *there, const struct proof_of *here,
				const char **by, struct err *err);

#endif
