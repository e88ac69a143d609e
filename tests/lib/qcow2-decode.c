// SPDX-License-Identifier: Apache-2.0

/* qcow2-decode IMAGE [OUT.raw]
 *
 * A second opinion on our images: a decoder written from the qcow2
 * specification (docs/interop/qcow2.txt of QEMU) that shares no code with the
 * writer and forgives nothing.  It accepts stand-alone version 3 images without
 * snapshots, encryption, data file, bitmaps or extended L2 entries, and checks
 * that
 *
 * - every reserved bit and every byte of padding is zero,
 * - each host cluster's refcount is exactly the number of references to it, the
 *   file ends with the last cluster in use, and nothing but packed clusters
 *   shares a host cluster,
 * - the COPIED bits are exact,
 * - each packed cluster is one complete stream that yields exactly one cluster,
 *   ends in the last sector that its descriptor claims, and overlaps no other,
 * - guest bytes past the end of the disk are zero,
 * - the file's length is a multiple of 512.
 *
 * Writes the guest disk, sparse, to OUT.raw.  Exits 0 with a line of figures,
 * or 1 with the first fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define MAGIC		0x514649fbu
#define COPIED		(UINT64_C(1) << 63)
#define COMPRESSED	(UINT64_C(1) << 62)
#define READS_AS_ZERO	UINT64_C(1)
#define OFFSET_MASK	UINT64_C(0x00fffffffffffe00)
#define COMPRESSION_BIT (UINT64_C(1) << 3)
#define FEATURE_TABLE	0x6803f857u

/* What a host cluster is used for: only PACKED may be shared. */
enum use { FREE, METADATA, PLAIN, PACKED };

struct range {
	uint64_t offset, length;
};

static struct {
	int fd, out;
	uint64_t length; /* of the file */
	unsigned cluster_bits;
	uint64_t cluster;
	uint64_t size; /* of the guest disk */
	uint32_t l1_size, refcount_table_clusters;
	uint64_t l1_offset, refcount_table_offset;
	bool zstd;

	uint64_t host_clusters;
	uint8_t *use;
	uint32_t *references;

	struct range *packed;
	size_t packed_count, packed_cap;
	uint64_t plain_count, zero_count, free_count;
	uint8_t *buf, *unpacked;
} img;

static void __attribute__((format(printf, 1, 2), noreturn)) fault(const char *fmt, ...)
{
	va_list ap;

	fputs("qcow2-decode: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void *allocate(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	if (!p)
		fault("out of memory");
	return p;
}

static uint64_t be(const uint8_t *p, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes--)
		n = n << 8 | *p++;
	return n;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	return len == 0 || (*p == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static void read_at(void *buf, size_t len, uint64_t offset, const char *what)
{
	if (offset > img.length || len > img.length - offset)
		fault("%s at %#" PRIx64 " reaches past the end of the file", what, offset);
	while (len > 0) {
		ssize_t n = pread(img.fd, buf, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fault("cannot read %s at %#" PRIx64 ": %s", what, offset,
			      n ? strerror(errno) : "end of file");
		buf = (uint8_t *)buf + n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
}

/* --- who uses which host cluster --- */

static void refer(uint64_t offset, uint64_t length, enum use use, const char *what)
{
	if (length == 0)
		return;
	if (offset > img.length || length > img.length - offset)
		fault("%s at %#" PRIx64 " reaches past the end of the file", what, offset);
	for (uint64_t i = offset / img.cluster; i <= (offset + length - 1) / img.cluster; i++) {
		if (img.use[i] != FREE && !(use == PACKED && img.use[i] == PACKED))
			fault("%s at %#" PRIx64 " shares host cluster %" PRIu64
			      " with something else",
			      what, offset, i);
		img.use[i] = (uint8_t)use;
		img.references[i]++;
	}
}

static void refer_table(uint64_t offset, uint64_t clusters, const char *what)
{
	uint64_t bytes = clusters * img.cluster;

	if (offset % img.cluster)
		fault("%s at %#" PRIx64 " is not cluster-aligned", what, offset);
	/* the file may end within the table's last cluster */
	if (offset < img.length && bytes > img.length - offset &&
	    bytes - (img.length - offset) < img.cluster)
		bytes = img.length - offset;
	refer(offset, bytes, METADATA, what);
}

/* --- header --- */

static void check_extensions(const uint8_t *first, uint64_t at)
{
	uint64_t type, length;

	for (;;) {
		if (at + 8 > img.cluster)
			fault("the header extensions have no end");
		type = be(first + at, 4);
		length = be(first + at + 4, 4);
		at += 8;
		if (type == 0)
			break;
		if (type != FEATURE_TABLE)
			fault("header extension %#" PRIx64 " is not allowed", type);
		if (length > img.cluster - at)
			fault("header extension %#" PRIx64 " is too long", type);
		at += (length + 7) / 8 * 8;
	}
	if (length != 0)
		fault("the end of the header extensions has a length");
	if (at < img.cluster && !all_zero(first + at, (size_t)(img.cluster - at)))
		fault("there is something behind the header");
}

static void check_header_fields(const uint8_t *h)
{
	if (be(h, 4) != MAGIC)
		fault("this is not qcow2");
	if (be(h + 4, 4) != 3)
		fault("version %" PRIu64 " is not 3", be(h + 4, 4));
	if (be(h + 8, 8) || be(h + 16, 4))
		fault("there is a backing file");
	if (img.cluster_bits < 9 || img.cluster_bits > 21)
		fault("cluster_bits is %u", img.cluster_bits);
	if (img.size % 512)
		fault("the disk's size %" PRIu64 " is not a multiple of 512", img.size);
	if (be(h + 32, 4))
		fault("the image is encrypted");
	if (be(h + 60, 4) || be(h + 64, 8))
		fault("there are snapshots");
	if (be(h + 72, 8) & ~COMPRESSION_BIT)
		fault("incompatible features %#" PRIx64, be(h + 72, 8));
	if (be(h + 80, 8) || be(h + 88, 8))
		fault("compatible or autoclear features are set");
	if (be(h + 96, 4) != 4)
		fault("refcount_order is %" PRIu64 " and not 4", be(h + 96, 4));
}

static void check_compression(const uint8_t *h, uint64_t header_length)
{
	unsigned type = header_length > 104 ? h[104] : 0;
	bool bit = be(h + 72, 8) & COMPRESSION_BIT;

	if (type > 1)
		fault("compression type %u", type);
	if (bit != (type != 0))
		fault("compression type %u and its feature bit disagree", type);
	img.zstd = type == 1;
}

static uint64_t l1_entries_needed(void)
{
	uint64_t covered = img.cluster * (img.cluster / 8); /* by one L2 table */

	return img.size / covered + (img.size % covered != 0);
}

static void read_header(void)
{
	uint8_t h[112], *first;
	uint64_t header_length;

	read_at(h, sizeof h, 0, "the header");
	img.cluster_bits = (unsigned)be(h + 20, 4);
	img.size = be(h + 24, 8);
	check_header_fields(h);
	img.cluster = UINT64_C(1) << img.cluster_bits;
	img.l1_size = (uint32_t)be(h + 36, 4);
	img.l1_offset = be(h + 40, 8);
	img.refcount_table_offset = be(h + 48, 8);
	img.refcount_table_clusters = (uint32_t)be(h + 56, 4);
	header_length = be(h + 100, 4);
	if (header_length != 104 && header_length != 112)
		fault("the header's length is %" PRIu64, header_length);
	check_compression(h, header_length);
	if (header_length == 112 && !all_zero(h + 105, 7))
		fault("the header's padding is not zero");
	first = allocate(1, (size_t)img.cluster);
	read_at(first, (size_t)(img.length < img.cluster ? img.length : img.cluster), 0,
		"the header");
	check_extensions(first, header_length);
	free(first);
	if (img.l1_size != l1_entries_needed())
		fault("L1 has %u entries, the disk takes %" PRIu64, img.l1_size,
		      l1_entries_needed());
	if ((uint64_t)img.l1_size * 8 > (32u << 20))
		fault("L1 is longer than 32 MiB");
	if (img.refcount_table_clusters == 0 ||
	    img.refcount_table_clusters * img.cluster > (8u << 20))
		fault("the refcount table has %u clusters", img.refcount_table_clusters);
}

/* --- guest clusters --- */

static void write_out(uint64_t guest, const uint8_t *data)
{
	uint64_t len = img.cluster;

	if (len > img.size - guest) {
		len = img.size - guest;
		if (!all_zero(data + len, (size_t)(img.cluster - len)))
			fault("the cluster at guest %#" PRIx64 " goes on past the disk's end",
			      guest);
	}
	if (img.out < 0 || all_zero(data, (size_t)len))
		return;
	while (len > 0) {
		ssize_t n = pwrite(img.out, data, (size_t)len, (off_t)guest);

		if (n <= 0)
			fault("cannot write the output: %s", strerror(errno));
		data += n;
		guest += (uint64_t)n;
		len -= (uint64_t)n;
	}
}

static void plain_cluster(uint64_t entry, uint64_t guest)
{
	uint64_t offset = entry & OFFSET_MASK;

	if (entry & ~(OFFSET_MASK | COPIED | READS_AS_ZERO))
		fault("L2 entry %#" PRIx64 " of guest %#" PRIx64 " has reserved bits", entry,
		      guest);
	if (offset == 0) {
		if (entry & COPIED)
			fault("L2 entry of guest %#" PRIx64 " is COPIED but has no cluster", guest);
		img.zero_count += entry & READS_AS_ZERO;
		return;
	}
	if (entry & READS_AS_ZERO)
		fault("guest %#" PRIx64 " reads as zero but holds a cluster", guest);
	if (!(entry & COPIED))
		fault("guest %#" PRIx64 " is the only user of its cluster but not COPIED", guest);
	if (offset % img.cluster)
		fault("the cluster of guest %#" PRIx64 " is not aligned", guest);
	refer(offset, img.cluster, PLAIN, "a plain cluster");
	read_at(img.buf, (size_t)img.cluster, offset, "a plain cluster");
	img.plain_count++;
	write_out(guest, img.buf);
}

/* Both return how many bytes the stream took, 0 when it is not as it must be. */
static uint64_t unpack_deflate(const uint8_t *src, size_t len)
{
	z_stream z = { .next_in = (Bytef *)src,
		       .avail_in = (uInt)len,
		       .next_out = img.unpacked,
		       .avail_out = (uInt)img.cluster };
	int rc;

	if (inflateInit2(&z, -12) != Z_OK)
		fault("cannot start zlib");
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	return rc == Z_STREAM_END && z.avail_out == 0 ? z.total_in : 0;
}

static uint64_t unpack_zstd(const uint8_t *src, size_t len)
{
	size_t frame = ZSTD_findFrameCompressedSize(src, len);

	if (ZSTD_isError(frame))
		return 0;
	if (ZSTD_decompress(img.unpacked, (size_t)img.cluster, src, frame) != img.cluster)
		return 0;
	return frame;
}

static void note_packed(uint64_t offset, uint64_t length)
{
	if (img.packed_count == img.packed_cap) {
		img.packed_cap = img.packed_cap ? 2 * img.packed_cap : 1024;
		img.packed = reallocarray(img.packed, img.packed_cap, sizeof *img.packed);
		if (!img.packed)
			fault("out of memory");
	}
	img.packed[img.packed_count++] = (struct range){ offset, length };
}

static void packed_cluster(uint64_t entry, uint64_t guest)
{
	unsigned x = 62 - (img.cluster_bits - 8);
	uint64_t offset = entry & ((UINT64_C(1) << x) - 1);
	uint64_t sectors = (entry >> x & ((UINT64_C(1) << (62 - x)) - 1)) + 1;
	uint64_t end = offset / 512 * 512 + sectors * 512, used;

	if (entry & COPIED)
		fault("the packed cluster of guest %#" PRIx64 " is COPIED", guest);
	if (offset >> 56)
		fault("the offset of guest %#" PRIx64 " has more than 56 bits", guest);
	if (end - offset > 2 * img.cluster)
		fault("guest %#" PRIx64 " claims %" PRIu64 " packed bytes", guest, end - offset);
	refer(offset, end - offset, PACKED, "a packed cluster");
	read_at(img.buf, (size_t)(end - offset), offset, "a packed cluster");
	used = (img.zstd ? unpack_zstd : unpack_deflate)(img.buf, (size_t)(end - offset));
	if (used == 0)
		fault("the packed cluster of guest %#" PRIx64 " at %#" PRIx64 " does not unpack",
		      guest, offset);
	if (offset + used <= end - 512)
		fault("guest %#" PRIx64 " claims more sectors than its %" PRIu64 " bytes take",
		      guest, used);
	note_packed(offset, used);
	write_out(guest, img.unpacked);
}

static void read_l2(uint64_t offset, uint64_t guest)
{
	uint64_t count = img.cluster / 8;
	uint8_t *table = allocate(1, (size_t)img.cluster);

	refer(offset, img.cluster, METADATA, "an L2 table");
	read_at(table, (size_t)img.cluster, offset, "an L2 table");
	for (uint64_t i = 0; i < count; i++, guest += img.cluster) {
		uint64_t entry = be(table + i * 8, 8);

		if (entry && guest >= img.size)
			fault("L2 entry past the disk's end, at guest %#" PRIx64, guest);
		if (entry & COMPRESSED)
			packed_cluster(entry, guest);
		else if (entry)
			plain_cluster(entry, guest);
	}
	free(table);
}

static void read_l1(void)
{
	uint64_t bytes = (uint64_t)img.l1_size * 8;
	uint64_t clusters = (bytes + img.cluster - 1) / img.cluster;
	uint64_t covered = img.cluster * (img.cluster / 8);
	uint8_t *table = allocate(1, (size_t)bytes);

	refer_table(img.l1_offset, clusters, "the L1 table");
	read_at(table, (size_t)bytes, img.l1_offset, "the L1 table");
	for (uint32_t i = 0; i < img.l1_size; i++) {
		uint64_t entry = be(table + (size_t)i * 8, 8), offset = entry & OFFSET_MASK;

		if (entry == 0)
			continue;
		if (entry & ~(OFFSET_MASK | COPIED) || offset == 0 || offset % img.cluster)
			fault("L1 entry %u is %#" PRIx64, i, entry);
		if (!(entry & COPIED))
			fault("L1 entry %u is not COPIED", i);
		read_l2(offset, i * covered);
	}
	free(table);
}

static int by_offset(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void check_overlap(void)
{
	if (img.packed_count == 0)
		return;
	qsort(img.packed, img.packed_count, sizeof *img.packed, by_offset);
	for (size_t i = 1; i < img.packed_count; i++)
		if (img.packed[i - 1].offset + img.packed[i - 1].length > img.packed[i].offset)
			fault("packed data at %#" PRIx64 " overlaps the one before",
			      img.packed[i].offset);
}

/* --- refcounts --- */

static void check_refcount_block(const uint8_t *block, uint64_t first)
{
	for (uint64_t i = 0; i < img.cluster / 2; i++) {
		uint64_t host = first + i, stated = be(block + i * 2, 2);
		uint64_t counted = host < img.host_clusters ? img.references[host] : 0;

		if (stated > counted)
			fault("host cluster %" PRIu64 " leaks: refcount %" PRIu64
			      ", references %" PRIu64,
			      host, stated, counted);
		if (stated < counted)
			fault("host cluster %" PRIu64 " has refcount %" PRIu64 " but %" PRIu64
			      " references",
			      host, stated, counted);
	}
}

/* Blocks are in use themselves, so all are counted before any is checked. */
static void check_refcounts(void)
{
	uint64_t entries = img.refcount_table_clusters * img.cluster / 8;
	uint64_t per_block = img.cluster / 2;
	uint8_t *table = allocate(1, (size_t)entries * 8);
	uint64_t table_bytes = entries * 8;

	refer_table(img.refcount_table_offset, img.refcount_table_clusters, "the refcount table");
	if (table_bytes > img.length - img.refcount_table_offset)
		table_bytes = img.length - img.refcount_table_offset;
	read_at(table, (size_t)table_bytes, img.refcount_table_offset, "the refcount table");
	for (uint64_t i = 0; i < entries; i++) {
		uint64_t offset = be(table + i * 8, 8);

		if (offset % img.cluster)
			fault("refcount table entry %" PRIu64 " is %#" PRIx64, i, offset);
		if (offset)
			refer_table(offset, 1, "a refcount block");
	}
	for (uint64_t i = 0; i < entries; i++) {
		uint64_t offset = be(table + i * 8, 8), length = img.cluster;

		if (!offset && i * per_block >= img.host_clusters)
			continue;
		memset(img.buf, 0, (size_t)img.cluster);
		if (offset && length > img.length - offset)
			length = img.length - offset;
		if (offset)
			read_at(img.buf, (size_t)length, offset, "a refcount block");
		check_refcount_block(img.buf, i * per_block);
	}
	if (img.host_clusters > entries * per_block)
		fault("the refcount table ends before the file does");
	free(table);
}

static void check_end(void)
{
	if (img.references[img.host_clusters - 1] == 0)
		fault("the file's last cluster is not in use");
	for (uint64_t i = 0; i < img.host_clusters; i++)
		img.free_count += img.references[i] == 0;
}

static void open_files(const char *image, const char *out)
{
	struct stat st;

	img.out = -1;
	img.fd = open(image, O_RDONLY | O_CLOEXEC);
	if (img.fd < 0 || fstat(img.fd, &st) < 0)
		fault("cannot open %s: %s", image, strerror(errno));
	img.length = (uint64_t)st.st_size;
	if (img.length % 512)
		fault("the file's length %" PRIu64 " is not a multiple of 512", img.length);
	read_header();
	img.host_clusters = (img.length + img.cluster - 1) / img.cluster;
	img.use = allocate(img.host_clusters, sizeof *img.use);
	img.references = allocate(img.host_clusters, sizeof *img.references);
	img.buf = allocate(2, (size_t)img.cluster);
	img.unpacked = allocate(1, (size_t)img.cluster);
	if (!out)
		return;
	img.out = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (img.out < 0 || ftruncate(img.out, (off_t)img.size) < 0)
		fault("cannot create %s: %s", out, strerror(errno));
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3)
		fault("usage: qcow2-decode IMAGE [OUT.raw]");
	open_files(argv[1], argc > 2 ? argv[2] : NULL);
	refer(0, img.length < img.cluster ? img.length : img.cluster, METADATA, "the header");
	read_l1();
	check_overlap();
	check_refcounts();
	check_end();
	if (img.out >= 0 && close(img.out) < 0)
		fault("cannot write %s: %s", argv[2], strerror(errno));
	printf("size=%" PRIu64 " cluster=%" PRIu64 " compression=%s packed=%zu plain=%" PRIu64
	       " zero=%" PRIu64 " free=%" PRIu64 "\n",
	       img.size, img.cluster, img.zstd ? "zstd" : "zlib", img.packed_count, img.plain_count,
	       img.zero_count, img.free_count);
	close(img.fd);
	free(img.use);
	free(img.references);
	free(img.packed);
	free(img.buf);
	free(img.unpacked);
	return 0;
}
