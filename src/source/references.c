// SPDX-License-Identifier: Apache-2.0
#include "source/references.h"

#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "source/reader.h"
#include "source/vhdx.h"
#include "source/vmdk.h"

#include <stdlib.h>
#include <string.h>

const char *reference_kind_name(enum reference_kind kind)
{
	static const char *const names[] = {
		[REFERENCE_BACKING] = "backing file",
		[REFERENCE_DATA_FILE] = "data file",
		[REFERENCE_EXTENT] = "extent",
		[REFERENCE_PARENT] = "parent",
	};

	return names[kind];
}

void references_free(struct references *refs)
{
	for (size_t i = 0; i < refs->len; i++) {
		free(refs->at[i].name);
		free(refs->at[i].format);
	}
	free(refs->at);
	*refs = (struct references){ 0 };
}

struct reference *references_add(struct references *refs, enum reference_kind kind,
				 const char *name, const char *format, struct err *err)
{
	struct reference *at = reallocarray(refs->at, refs->len + 1, sizeof *at), *ref;

	if (!at) {
		err_nomem(err);
		return NULL;
	}
	refs->at = at;
	ref = &at[refs->len];
	*ref = (struct reference){ .kind = kind, .name = strdup(name) };
	ref->format = format ? strdup(format) : NULL;
	if (!ref->name || (format && !ref->format)) {
		free(ref->name);
		free(ref->format);
		err_nomem(err);
		return NULL;
	}
	refs->len++;
	return ref;
}

int references_wrong_format(const char *format, struct err *err)
{
	return err_set(
		err, ERR_REFUSED,
		"not a %s image; say what it is with --source-format=FORMAT (upload, verify: "
		"--format)",
		format);
}

/* qcow2: docs/interop/qcow2.txt in QEMU's sources. */
enum {
	QCOW2_V2_HEADER = 72,
	QCOW2_V3_HEADER = 104,
	QCOW2_NAME_MAX = 1023,
	QCOW2_FORMAT_MAX = 15,
};

#define QCOW2_INCOMPATIBLE_CORRUPT   (UINT64_C(1) << 1)
#define QCOW2_INCOMPATIBLE_DATA_FILE (UINT64_C(1) << 2)
#define QCOW2_INCOMPATIBLE_EXTENDED  (UINT64_C(1) << 4)
#define QCOW2_INCOMPATIBLE_KNOWN     UINT64_C(0x1f)
#define QCOW2_L1_BYTES_MAX	     (32 * MIB)

#define QCOW2_EXTENSION_END	       0
#define QCOW2_EXTENSION_BACKING_FORMAT 0xe2792acaU
#define QCOW2_EXTENSION_DATA_FILE      0x44415441U

/* The first cluster, as far as it is in the file: all names stand there. */
struct qcow2_head {
	uint8_t *bytes;
	size_t size;
	size_t extensions; /* offset of the first one */
	uint64_t name_offset;
	uint32_t name_length;
	uint64_t incompatible;
	struct layout layout;
	char *name, *format, *data_file;
};

static void qcow2_head_free(struct qcow2_head *head)
{
	free(head->bytes);
	free(head->name);
	free(head->format);
	free(head->data_file);
}

static int qcow2_check_features(const struct qcow2_head *head, uint32_t crypt, struct err *err)
{
	uint64_t unknown = head->incompatible & ~QCOW2_INCOMPATIBLE_KNOWN;

	if (unknown)
		return err_set(err, ERR_REFUSED, "uses unknown qcow2 features (mask 0x%llx)",
			       (unsigned long long)unknown);
	if (head->incompatible & QCOW2_INCOMPATIBLE_CORRUPT)
		return err_set(err, ERR_REFUSED,
			       "marked as corrupt; repair a copy with qemu-img check -r all");
	if (crypt != 0)
		return err_set(err, ERR_REFUSED,
			       "encrypted; convert it to a plain image with qemu-img first");
	return 0;
}

static int qcow2_read_v3(struct qcow2_head *head, const uint8_t *fixed, struct err *err)
{
	uint32_t length = get_be32(fixed + 100);

	if (length < QCOW2_V3_HEADER || length > head->size)
		return reader_damaged("its qcow2 header has an impossible length", err);
	if (get_be32(fixed + 96) > 6)
		return reader_damaged("its refcount order is impossible", err);
	head->extensions = length;
	head->incompatible = get_be64(fixed + 72);
	return 0;
}

static struct layout qcow2_layout(const uint8_t *fixed, uint64_t incompatible)
{
	const int extended = (incompatible & QCOW2_INCOMPATIBLE_EXTENDED) != 0;
	const uint64_t cluster = UINT64_C(1) << get_be32(fixed + 20);

	return (struct layout){
		.kind = LAYOUT_QCOW2,
		.size = get_be64(fixed + 24),
		.unit = cluster,
		.table = get_be64(fixed + 40),
		.entries = get_be32(fixed + 36),
		.per_table = cluster / (extended ? 16 : 8),
		.extended = extended,
		.external = (incompatible & QCOW2_INCOMPATIBLE_DATA_FILE) != 0,
	};
}

static int qcow2_read_head(const struct reader *in, struct qcow2_head *head, struct err *err)
{
	uint8_t fixed[QCOW2_V3_HEADER] = { 0 };
	size_t there = (size_t)MIN(in->size, sizeof fixed);
	uint32_t version, cluster_bits;

	if (reader_get(in, fixed, there, 0, err) < 0)
		return -1;
	if (there < 8 || memcmp(fixed, "QFI\xfb", 4))
		return references_wrong_format("qcow2", err);
	version = get_be32(fixed + 4);
	cluster_bits = get_be32(fixed + 20);
	if (version != 2 && version != 3)
		return err_set(err, ERR_REFUSED, "of qcow version %u; only 2 and 3 are supported",
			       version);
	if (there < (version == 2 ? QCOW2_V2_HEADER : QCOW2_V3_HEADER))
		return reader_damaged("it ends inside its header", err);
	if (cluster_bits < 9 || cluster_bits > 21)
		return reader_damaged("its cluster size is impossible", err);
	if (get_be64(fixed + 24) > INT64_MAX)
		return reader_damaged("its disk size is impossible", err);
	if (get_be32(fixed + 36) > QCOW2_L1_BYTES_MAX / 8)
		return reader_damaged("its L1 table is too large", err);
	head->size = (size_t)MIN(in->size, UINT64_C(1) << cluster_bits);
	head->name_offset = get_be64(fixed + 8);
	head->name_length = get_be32(fixed + 16);
	head->extensions = QCOW2_V2_HEADER;
	if (version == 3 && qcow2_read_v3(head, fixed, err) < 0)
		return -1;
	if (qcow2_check_features(head, get_be32(fixed + 32), err) < 0)
		return -1;
	head->layout = qcow2_layout(fixed, head->incompatible);
	head->bytes = malloc(head->size);
	if (!head->bytes)
		return err_nomem(err);
	return reader_get(in, head->bytes, head->size, 0, err);
}

/* A name of the given length at offset, which is known to be inside. */
static int qcow2_take_name(const struct qcow2_head *head, size_t offset, size_t length, size_t max,
			   char **name, struct err *err)
{
	if (*name)
		return reader_damaged("it names the same thing twice", err);
	if (length == 0 || length > max || memchr(head->bytes + offset, '\0', length))
		return reader_damaged("a name in its header is impossible", err);
	*name = strndup((const char *)head->bytes + offset, length);
	return *name ? 0 : err_nomem(err);
}

static int qcow2_read_backing_name(struct qcow2_head *head, struct err *err)
{
	if (head->name_offset == 0 || head->name_length == 0)
		return 0;
	if (head->name_offset > head->size || head->name_length > head->size - head->name_offset)
		return reader_damaged("the name of its backing file leaves the header", err);
	return qcow2_take_name(head, (size_t)head->name_offset, head->name_length, QCOW2_NAME_MAX,
			       &head->name, err);
}

static int qcow2_read_extensions(struct qcow2_head *head, struct err *err)
{
	size_t end = head->name_offset ? (size_t)MIN(head->name_offset, head->size) : head->size;
	size_t at = head->extensions;

	while (at < end) {
		uint32_t type, length;
		int rc = 0;

		if (end - at < 8)
			return reader_damaged("a header extension leaves the header", err);
		type = get_be32(head->bytes + at);
		length = get_be32(head->bytes + at + 4);
		at += 8;
		if (length > end - at)
			return reader_damaged("a header extension leaves the header", err);
		if (type == QCOW2_EXTENSION_END)
			return 0;
		if (type == QCOW2_EXTENSION_BACKING_FORMAT && length > 0)
			rc = qcow2_take_name(head, at, length, QCOW2_FORMAT_MAX, &head->format,
					     err);
		else if (type == QCOW2_EXTENSION_DATA_FILE)
			rc = qcow2_take_name(head, at, length, QCOW2_NAME_MAX, &head->data_file,
					     err);
		if (rc < 0)
			return -1;
		at += (size_t)MIN(round_up(length, 8), end - at);
	}
	return 0;
}

static int qcow2_parse(const struct reader *in, struct references *out, struct err *err)
{
	CLEANUP(qcow2_head_free) struct qcow2_head head = { 0 };
	uint64_t external;

	if (qcow2_read_head(in, &head, err) < 0 || qcow2_read_backing_name(&head, err) < 0 ||
	    qcow2_read_extensions(&head, err) < 0)
		return -1;
	out->layout = head.layout;
	external = head.incompatible & QCOW2_INCOMPATIBLE_DATA_FILE;
	if (head.data_file && !external)
		return reader_damaged("it names a data file that it does not use", err);
	if (head.name && !references_add(out, REFERENCE_BACKING, head.name, head.format, err))
		return -1;
	if (external && !references_add(out, REFERENCE_DATA_FILE,
					head.data_file ? head.data_file : "", "raw", err))
		return -1;
	return 0;
}

/* VDI names its parent by number only. */
enum { VDI_HEADER = 512, VDI_DYNAMIC = 1, VDI_STATIC = 2, VDI_UNDO = 3, VDI_DIFFERENCE = 4 };

static int vdi_parse(const struct reader *in, struct references *out, struct err *err)
{
	static const uint8_t no_uuid[16];
	uint8_t header[VDI_HEADER];
	uint32_t type;

	if (in->size < sizeof header)
		return references_wrong_format("vdi", err);
	if (reader_get(in, header, sizeof header, 0, err) < 0)
		return -1;
	if (get_le32(header + 64) != 0xbeda107fU)
		return references_wrong_format("vdi", err);
	if (get_le32(header + 68) != 0x00010001U)
		return err_set(err, ERR_REFUSED, "of vdi version %u.%u; only 1.1 is supported",
			       get_le32(header + 68) >> 16, get_le32(header + 68) & 0xffff);
	out->layout = (struct layout){
		.kind = LAYOUT_VDI,
		.size = get_le64(header + 368),
		.unit = get_le32(header + 376),
		.table = get_le32(header + 340),
		.entries = get_le32(header + 384),
		.data = get_le32(header + 344),
	};
	if (out->layout.size > INT64_MAX || out->layout.unit == 0)
		return reader_damaged("its disk or block size is impossible", err);
	type = get_le32(header + 76);
	if (type < VDI_DYNAMIC || type > VDI_DIFFERENCE)
		return reader_damaged("its image type is unknown", err);
	if (type != VDI_UNDO && type != VDI_DIFFERENCE && !memcmp(header + 424, no_uuid, 16) &&
	    !memcmp(header + 440, no_uuid, 16))
		return 0;
	return references_add(out, REFERENCE_PARENT, "", NULL, err) ? 0 : -1;
}

static int raw_parse(const struct reader *in, struct references *out, struct err *err)
{
	(void)in;
	(void)out;
	(void)err;
	return 0;
}

static const struct {
	const char *name;
	int (*parse)(const struct reader *in, struct references *out, struct err *err);
} parsers[] = {
	{ "raw", raw_parse }, { "qcow2", qcow2_parse }, { "vmdk", vmdk_parse },
	{ "vdi", vdi_parse }, { "vhdx", vhdx_parse },
};

int references_parse(const struct reader *in, const char *format, struct references *out,
		     struct err *err)
{
	*out = (struct references){ 0 };
	for (size_t i = 0; i < sizeof parsers / sizeof *parsers; i++) {
		if (!str_equal(parsers[i].name, format))
			continue;
		if (parsers[i].parse(in, out, err) == 0)
			return 0;
		references_free(out);
		return -1;
	}
	return err_set(err, ERR_REFUSED, "of format %s, which cannot be read", format);
}
