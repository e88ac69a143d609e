/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_VMDK_H
#define CCSNAP_VMDK_H

#include "source/references.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct reader;

/* The vmdk part of references_parse.  A sparse file whose embedded descriptor
 * lists only itself names nothing; a text descriptor names every extent.
 */
int vmdk_parse(const struct reader *in, struct references *out, struct err *err);

/* The header of an extent that is not flat.  As QEMU does, it goes by how the
 * file begins, whatever type it was declared to have.  Refused unless the file
 * stands for itself: a sparse file of capacity 0 is a descriptor in disguise.
 */
int vmdk_read_extent(const struct reader *in, struct layout *out, struct err *err);

/* An extent whose file holds the guest's bytes as they are. */
int vmdk_is_flat(const struct reference *ref);

/* A new text descriptor with the parsed one's type and extents, extent i (an
 * index into refs) in QEMU's descriptor fd_number(ctx, i) and nowhere else.
 * malloc; NULL when out of memory, or when the disk has an extent that QEMU
 * cannot read (ERR_REFUSED).
 */
char *vmdk_descriptor(const struct references *refs, struct err *err,
		      int (*fd_number)(const void *ctx, size_t extent), const void *ctx);

#endif
