// SPDX-License-Identifier: Apache-2.0
#include "source/references.h"

#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "base/str.h"
#include "source/reader.h"
#include "source/vmdk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static ssize_t read_file(const void *ctx, void *buf, size_t len, uint64_t offset)
{
	const int *fd = ctx;

	return io_pread(*fd, buf, len, offset, NULL);
}

int reader_open(struct reader *in, const int *fd, struct err *err)
{
	off_t size = lseek(*fd, 0, SEEK_END);

	if (size < 0)
		return err_errno(err, ERR_FAILED, "cannot tell its size");
	*in = (struct reader){ .ctx = fd, .size = (uint64_t)size, .read_at = read_file };
	return 0;
}

int reader_get(const struct reader *in, void *buf, size_t len, uint64_t offset, struct err *err)
{
	ssize_t n;

	if (offset > in->size || len > in->size - offset)
		return err_set(err, ERR_REFUSED,
			       "damaged or cut short: its headers lead to offset %llu, its size "
			       "is %llu",
			       (unsigned long long)offset, (unsigned long long)in->size);
	n = in->read_at(in->ctx, buf, len, offset);
	if (n < 0)
		return err_errno(err, ERR_FAILED, "cannot read at offset %llu",
				 (unsigned long long)offset);
	if ((size_t)n < len)
		return err_set(err, ERR_FAILED, "ended at offset %llu while it was read",
			       (unsigned long long)(offset + (uint64_t)n));
	return 0;
}

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

static int wrong_format(const char *format, struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "not a %s image; say what it is with --source-format=FORMAT", format);
}

static int damaged(const char *what, struct err *err)
{
	return err_set(err, ERR_REFUSED, "damaged: %s", what);
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
		return damaged("its qcow2 header has an impossible length", err);
	if (get_be32(fixed + 96) > 6)
		return damaged("its refcount order is impossible", err);
	head->extensions = length;
	head->incompatible = get_be64(fixed + 72);
	return 0;
}

static int qcow2_read_head(const struct reader *in, struct qcow2_head *head, struct err *err)
{
	uint8_t fixed[QCOW2_V3_HEADER] = { 0 };
	size_t there = (size_t)MIN(in->size, sizeof fixed);
	uint32_t version, cluster_bits;

	if (reader_get(in, fixed, there, 0, err) < 0)
		return -1;
	if (there < 8 || memcmp(fixed, "QFI\xfb", 4))
		return wrong_format("qcow2", err);
	version = get_be32(fixed + 4);
	cluster_bits = get_be32(fixed + 20);
	if (version != 2 && version != 3)
		return err_set(err, ERR_REFUSED, "of qcow version %u; only 2 and 3 are supported",
			       version);
	if (there < (version == 2 ? QCOW2_V2_HEADER : QCOW2_V3_HEADER))
		return damaged("it ends inside its header", err);
	if (cluster_bits < 9 || cluster_bits > 21)
		return damaged("its cluster size is impossible", err);
	if (get_be64(fixed + 24) > INT64_MAX)
		return damaged("its disk size is impossible", err);
	if (get_be32(fixed + 36) > QCOW2_L1_BYTES_MAX / 8)
		return damaged("its L1 table is too large", err);
	head->size = (size_t)MIN(in->size, UINT64_C(1) << cluster_bits);
	head->name_offset = get_be64(fixed + 8);
	head->name_length = get_be32(fixed + 16);
	head->extensions = QCOW2_V2_HEADER;
	if (version == 3 && qcow2_read_v3(head, fixed, err) < 0)
		return -1;
	if (qcow2_check_features(head, get_be32(fixed + 32), err) < 0)
		return -1;
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
		return damaged("it names the same thing twice", err);
	if (length == 0 || length > max || memchr(head->bytes + offset, '\0', length))
		return damaged("a name in its header is impossible", err);
	*name = strndup((const char *)head->bytes + offset, length);
	return *name ? 0 : err_nomem(err);
}

static int qcow2_read_backing_name(struct qcow2_head *head, struct err *err)
{
	if (head->name_offset == 0 || head->name_length == 0)
		return 0;
	if (head->name_offset > head->size || head->name_length > head->size - head->name_offset)
		return damaged("the name of its backing file leaves the header", err);
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
			return damaged("a header extension leaves the header", err);
		type = get_be32(head->bytes + at);
		length = get_be32(head->bytes + at + 4);
		at += 8;
		if (length > end - at)
			return damaged("a header extension leaves the header", err);
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
	external = head.incompatible & QCOW2_INCOMPATIBLE_DATA_FILE;
	if (head.data_file && !external)
		return damaged("it names a data file that it does not use", err);
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
		return wrong_format("vdi", err);
	if (reader_get(in, header, sizeof header, 0, err) < 0)
		return -1;
	if (get_le32(header + 64) != 0xbeda107fU)
		return wrong_format("vdi", err);
	if (get_le32(header + 68) != 0x00010001U)
		return err_set(err, ERR_REFUSED, "of vdi version %u.%u; only 1.1 is supported",
			       get_le32(header + 68) >> 16, get_le32(header + 68) & 0xffff);
	type = get_le32(header + 76);
	if (type < VDI_DYNAMIC || type > VDI_DIFFERENCE)
		return damaged("its image type is unknown", err);
	if (type != VDI_UNDO && type != VDI_DIFFERENCE && !memcmp(header + 424, no_uuid, 16) &&
	    !memcmp(header + 440, no_uuid, 16))
		return 0;
	return references_add(out, REFERENCE_PARENT, "", NULL, err) ? 0 : -1;
}

/* VHDX: [MS-VHDX].  Two copies of a table of regions, one region holds the
 * table of metadata items, one item the flags.
 */
enum {
	VHDX_ENTRY = 32, /* bytes, in both tables */
	VHDX_ENTRIES_MAX = 2047,
	VHDX_TABLE = 64 * 1024,
	VHDX_HAS_PARENT = 2,
};

static const uint8_t vhdx_metadata_region[16] = { 0x06, 0xa2, 0x7c, 0x8b, 0x90, 0x47, 0x9a, 0x4b,
						  0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e };
static const uint8_t vhdx_file_parameters[16] = { 0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d,
						  0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b };
static const uint8_t vhdx_sector_size[16] = { 0x1d, 0xbf, 0x41, 0x81, 0x6f, 0xa9, 0x09, 0x47,
					      0xba, 0x47, 0xf2, 0x33, 0xa8, 0xfa, 0xab, 0x5f };

/* The entry of that id in a table that was read whole, or NULL. */
static const uint8_t *vhdx_find(const uint8_t *table, size_t header, size_t count,
				const uint8_t id[16])
{
	for (size_t i = 0; i < count; i++)
		if (!memcmp(table + header + i * VHDX_ENTRY, id, 16))
			return table + header + i * VHDX_ENTRY;
	return NULL;
}

static int vhdx_find_metadata(const struct reader *in, uint8_t *table, uint64_t *offset,
			      struct err *err)
{
	static const uint64_t places[] = { 192 * KIB, 256 * KIB };
	const uint8_t *entry;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (reader_get(in, table, VHDX_TABLE, places[i], err) < 0)
			return -1;
		if (memcmp(table, "regi", 4) || get_le32(table + 8) > VHDX_ENTRIES_MAX)
			continue;
		entry = vhdx_find(table, 16, get_le32(table + 8), vhdx_metadata_region);
		if (!entry)
			continue;
		*offset = get_le64(entry + 16);
		return 0;
	}
	return damaged("no usable region table", err);
}

/* The first words of an item, which QEMU needs as well. */
static int vhdx_read_item(const struct reader *in, const uint8_t *table, uint64_t region,
			  const uint8_t id[16], uint8_t *buf, size_t len, struct err *err)
{
	const uint8_t *entry = vhdx_find(table, 32, get_le16(table + 10), id);

	if (!entry || get_le32(entry + 20) < len)
		return damaged("its metadata is incomplete", err);
	return reader_get(in, buf, len, region + get_le32(entry + 16), err);
}

static int vhdx_parse(const struct reader *in, struct references *out, struct err *err)
{
	autofree uint8_t *table = malloc(VHDX_TABLE);
	uint8_t parameters[8], sector[4];
	uint64_t region = 0;

	if (!table)
		return err_nomem(err);
	if (in->size < 8)
		return wrong_format("vhdx", err);
	if (reader_get(in, table, 8, 0, err) < 0)
		return -1;
	if (memcmp(table, "vhdxfile", 8))
		return wrong_format("vhdx", err);
	if (vhdx_find_metadata(in, table, &region, err) < 0 ||
	    reader_get(in, table, VHDX_TABLE, region, err) < 0)
		return -1;
	if (memcmp(table, "metadata", 8) || get_le16(table + 10) > VHDX_ENTRIES_MAX)
		return damaged("no usable metadata table", err);
	if (vhdx_read_item(in, table, region, vhdx_file_parameters, parameters, 8, err) < 0 ||
	    vhdx_read_item(in, table, region, vhdx_sector_size, sector, 4, err) < 0)
		return -1;
	out->sector_size = get_le32(sector);
	if (out->sector_size != 512 && out->sector_size != 4096)
		return damaged("its sector size is impossible", err);
	if ((get_le32(parameters + 4) & VHDX_HAS_PARENT) &&
	    !references_add(out, REFERENCE_PARENT, "", NULL, err))
		return -1;
	return 0;
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

int references_read(int fd, const char *format, struct references *out, struct err *err)
{
	struct reader in;

	return reader_open(&in, &fd, err) < 0 ? -1 : references_parse(&in, format, out, err);
}
