// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/size.h"
#include "source/reader.h"
#include "source/references.h"
#include "source/tables.h"
#include "source/vmdk.h"

#include <stdlib.h>
#include <string.h>

/* Every byte of a disk image is hostile.  The first byte of the input chooses
 * the format, the rest is the file.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
	const uint8_t *bytes;
	size_t size;
};

static ssize_t read_memory(const void *ctx, void *buf, size_t len, uint64_t offset)
{
	const struct memory *memory = ctx;
	size_t n = offset < memory->size ? MIN(len, memory->size - (size_t)offset) : 0;

	memcpy(buf, memory->bytes + (n ? offset : 0), n);
	return (ssize_t)n;
}

static int any_fd(const void *ctx, size_t extent)
{
	(void)ctx;
	return (int)extent;
}

static void try_format(const struct reader *in, const char *format)
{
	autoreferences struct references refs = { 0 };
	struct err err = { 0 };

	if (references_parse(in, format, &refs, &err) == 0) {
		free(vmdk_descriptor(&refs, &err, any_fd, NULL));
		tables_check(in, &refs.layout, in->size, &err);
	} else if (err.kind != ERR_REFUSED || refs.len != 0) {
		abort(); /* memory cannot give read errors */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = { "qcow2", "vmdk", "vdi", "vhdx", "raw", "other" };
	const struct memory memory = { data + 1, size ? size - 1 : 0 };
	const struct reader in = { &memory, memory.size, read_memory };
	struct layout layout;
	struct err err;

	if (size == 0)
		return 0;
	try_format(&in, formats[data[0] % 6]);
	if (data[0] % 6 == 1 && vmdk_read_extent(&in, &layout, &err) == 0)
		tables_check(&in, &layout, in.size, &err);
	return 0;
}
