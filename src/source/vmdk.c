// SPDX-License-Identifier: Apache-2.0
#include "source/vmdk.h"

#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "source/reader.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	SECTOR = 512,
	NAME_MAX_BYTES = 511,	    /* as much as QEMU takes */
	TEXT_MAX = 1024 * 1024 - 1, /* of a descriptor; likewise */
	EXTENTS_MAX = 512,	    /* each costs two open files */
	PARENT_MAX = 1024,
	COW_GRAINS_PER_TABLE = 4096,
};

#define NO_PARENT	 0xffffffffU
#define GD_AT_END	 UINT64_MAX
#define CAPACITY_MAX	 (UINT64_C(1) << 54) /* in sectors */
#define LETTERS		 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define FLAG_ZERO_GRAINS (1U << 2)
#define FLAG_MARKERS	 (1U << 17)
#define FOOTER_SECTORS	 2 /* from its header to the file's end */

static int only_an_extent(struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "only one extent of a vmdk; name the descriptor file of the whole disk");
}

/* The footer of a stream-optimised file repeats the header, except for the
 * place of the grain directory.
 */
static int read_footer(const struct reader *in, const uint8_t *header, uint64_t *directory,
		       struct err *err)
{
	uint8_t footer[SECTOR];

	if (in->size % SECTOR || in->size < 4 * SECTOR)
		return reader_damaged("it was cut short", err);
	if (reader_get(in, footer, sizeof footer, in->size - FOOTER_SECTORS * SECTOR, err) < 0)
		return -1;
	if (memcmp(footer, header, 48))
		return reader_damaged("its footer is not that of its header; it may be cut short",
				      err);
	*directory = get_le64(footer + 56);
	return *directory == GD_AT_END ? reader_damaged("its footer has no grain directory", err)
				       : 0;
}

static int check_sizes(uint64_t capacity, uint64_t grain, uint32_t grains_per_table,
		       struct err *err)
{
	/* QEMU takes a capacity of 0 to mean: follow the descriptor inside */
	if (capacity == 0 || capacity > CAPACITY_MAX)
		return reader_damaged("its capacity is impossible", err);
	if (grain == 0 || grain > 128 * KIB || grains_per_table == 0 || grains_per_table > 512)
		return reader_damaged("the size of its grains or tables is impossible", err);
	return 0;
}

/* A file that begins with "KDMV". */
static int read_sparse(const struct reader *in, const uint8_t *header, struct layout *out,
		       struct err *err)
{
	uint64_t capacity = get_le64(header + 12), grain = get_le64(header + 20);
	uint32_t per_table = get_le32(header + 44), flags = get_le32(header + 8);
	uint64_t directory = get_le64(header + 56);

	if (get_le32(header + 4) < 1 || get_le32(header + 4) > 3)
		return err_set(err, ERR_REFUSED, "of vmdk version %u; 1 to 3 are supported",
			       get_le32(header + 4));
	if (check_sizes(capacity, grain, per_table, err) < 0)
		return -1;
	if (directory == GD_AT_END && read_footer(in, header, &directory, err) < 0)
		return -1;
	if (directory > in->size / SECTOR)
		return reader_damaged("its grain directory lies outside; it may be cut short", err);
	*out = (struct layout){
		.kind = LAYOUT_VMDK,
		.size = capacity * SECTOR,
		.unit = grain * SECTOR,
		.table = directory * SECTOR,
		.entries = UINT64_MAX, /* as many as the capacity asks for */
		.per_table = per_table,
		.zero_grains = (flags & FLAG_ZERO_GRAINS) != 0,
		.markers = (flags & FLAG_MARKERS) != 0,
	};
	return 0;
}

/* A file that begins with "COWD": what ESX makes. */
static int read_cow(const uint8_t *header, struct layout *out, struct err *err)
{
	uint64_t capacity = get_le32(header + 12), grain = get_le32(header + 16);

	if (check_sizes(capacity, grain, 1, err) < 0)
		return -1;
	*out = (struct layout){
		.kind = LAYOUT_VMDK,
		.size = capacity * SECTOR,
		.unit = grain * SECTOR,
		.table = (uint64_t)get_le32(header + 20) * SECTOR,
		.entries = get_le32(header + 24),
		.per_table = COW_GRAINS_PER_TABLE,
	};
	return 0;
}

int vmdk_read_extent(const struct reader *in, struct layout *out, struct err *err)
{
	uint8_t header[SECTOR];

	if (reader_get(in, header, sizeof header, 0, err) < 0)
		return -1;
	if (!memcmp(header, "KDMV", 4))
		return read_sparse(in, header, out, err);
	if (!memcmp(header, "COWD", 4))
		return read_cow(header, out, err);
	if (!memcmp(header, "\xbe\xba\xfe\xca\0\0\0\0", 8))
		return err_set(err, ERR_REFUSED,
			       "a space-efficient sparse (seSparse) extent, which cannot be "
			       "checked; convert the disk with qemu-img convert first");
	return reader_damaged("a sparse extent does not begin like one", err);
}

/* Take the next word off the line; "" at its end. */
static char *next_word(char **line)
{
	char *word;

	*line += strspn(*line, " \t");
	word = *line;
	*line += strcspn(*line, " \t");
	if (**line)
		*(*line)++ = '\0';
	return word;
}

static int parse_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return !isdigit((unsigned char)*text) || *end || errno ? -1 : 0;
}

static int is_access(const char *word)
{
	return !strcasecmp(word, "RW") || !strcasecmp(word, "RDONLY") ||
	       !strcasecmp(word, "NOACCESS");
}

static void copy_word(char *dst, size_t cap, const char *word)
{
	snprintf(dst, cap, "%s", word);
}

/* The rest of an extent line behind its type: a name in quotes, and where in
 * that file the extent begins; neither for an extent of zeros.
 */
static int parse_place(char *rest, char **name, uint64_t *offset, struct err *err)
{
	char *end;

	*offset = 0;
	rest += strspn(rest, " \t");
	if (*rest == '\0') {
		*name = rest;
		return 0;
	}
	end = *rest == '"' ? strchr(rest + 1, '"') : NULL;
	if (!end || end == rest + 1 || end - rest > NAME_MAX_BYTES)
		return reader_damaged("an extent has an impossible name", err);
	*end++ = '\0';
	*name = rest + 1;
	rest = next_word(&end);
	if (*rest && (parse_number(rest, offset) < 0 || *offset > CAPACITY_MAX))
		return reader_damaged("an extent has an impossible offset", err);
	return 0;
}

static int parse_extent(const char *access, char *rest, struct references *out, struct err *err)
{
	const char *sectors_text = next_word(&rest), *type = next_word(&rest);
	struct reference *ref;
	uint64_t sectors, offset;
	char *name = NULL;

	if (out->len >= EXTENTS_MAX)
		return err_set(err, ERR_REFUSED,
			       "more than %d extents; convert it with qemu-img convert first",
			       EXTENTS_MAX);
	if (parse_number(sectors_text, &sectors) < 0 || sectors > CAPACITY_MAX)
		return reader_damaged("an extent has an impossible size", err);
	if (*type == '\0' || strlen(type) >= sizeof ref->type)
		return reader_damaged("an extent has no proper type", err);
	if (parse_place(rest, &name, &offset, err) < 0)
		return -1;
	ref = references_add(out, REFERENCE_EXTENT, name, NULL, err);
	if (!ref)
		return -1;
	copy_word(ref->access, sizeof ref->access, access);
	copy_word(ref->type, sizeof ref->type, type);
	ref->sectors = sectors;
	ref->offset = offset;
	return 0;
}

/* What a descriptor says besides its extents. */
struct settings {
	char type[32], parent[PARENT_MAX];
	uint32_t cid, parent_cid;
};

static char *unquote(char *value)
{
	size_t len;

	value += strspn(value, " \t\"");
	len = strlen(value);
	while (len > 0 && strchr(" \t\"", value[len - 1]))
		value[--len] = '\0';
	return value;
}

static int parse_setting(char *key, char *value, struct settings *out, struct err *err)
{
	key = unquote(key);
	value = unquote(value);
	if (!strcasecmp(key, "createType")) {
		if (strlen(value) >= sizeof out->type || strspn(value, LETTERS) != strlen(value))
			return reader_damaged("its createType is unknown", err);
		copy_word(out->type, sizeof out->type, value);
	} else if (!strcasecmp(key, "CID")) {
		out->cid = (uint32_t)strtoul(value, NULL, 16);
	} else if (!strcasecmp(key, "parentCID")) {
		out->parent_cid = (uint32_t)strtoul(value, NULL, 16);
	} else if (!strcasecmp(key, "parentFileNameHint")) {
		if (strlen(value) >= sizeof out->parent)
			return reader_damaged("the name of its parent is too long", err);
		copy_word(out->parent, sizeof out->parent, value);
	}
	return 0;
}

static int parse_line(char *line, struct settings *settings, struct references *out,
		      struct err *err)
{
	char *equals = strchr(line, '='), *rest = line, *word;

	line += strspn(line, " \t");
	if (*line == '\0' || *line == '#')
		return 0;
	if (equals && !memchr(line, '"', (size_t)(equals - line))) {
		*equals = '\0';
		return parse_setting(line, equals + 1, settings, err);
	}
	word = next_word(&rest);
	return is_access(word) ? parse_extent(word, rest, out, err) : 0;
}

/* Into the extents as references, and a parent behind them. */
static int parse_text(char *text, struct references *out, struct err *err)
{
	struct settings settings = { .parent_cid = NO_PARENT };
	char *rest = text, *line;

	while ((line = strsep(&rest, "\r\n")))
		if (parse_line(line, &settings, out, err) < 0)
			return -1;
	copy_word(out->type, sizeof out->type, settings.type);
	out->cid = settings.cid;
	out->parent_cid = settings.parent_cid;
	if ((settings.parent_cid != NO_PARENT || *settings.parent) &&
	    !references_add(out, REFERENCE_PARENT, settings.parent, "vmdk", err))
		return -1;
	return 0;
}

/* QEMU takes a descriptor to end at its first NUL, and so do we. */
static char *read_text(const struct reader *in, uint64_t offset, struct err *err)
{
	size_t len = (size_t)MIN(in->size - offset, TEXT_MAX);
	autofree char *text = malloc(len + 1);

	if (!text) {
		err_nomem(err);
		return NULL;
	}
	if (reader_get(in, text, len, offset, err) < 0)
		return NULL;
	text[len] = '\0';
	return steal(&text);
}

static int is_self(const struct references *refs)
{
	const struct reference *ref = refs->at;

	return (!strcasecmp(refs->type, "monolithicSparse") ||
		!strcasecmp(refs->type, "streamOptimized")) &&
	       refs->len > 0 && ref->kind == REFERENCE_EXTENT && !strcasecmp(ref->type, "SPARSE") &&
	       (refs->len == 1 || refs->at[1].kind != REFERENCE_EXTENT);
}

/* The only extent of such a file is the file itself under whatever name it had
 * when it was made; QEMU does not look at that line either.
 */
static void drop_self(struct references *refs)
{
	free(refs->at[0].name);
	free(refs->at[0].format);
	memmove(refs->at, refs->at + 1, --refs->len * sizeof *refs->at);
}

static int parse_sparse(const struct reader *in, struct references *out, struct err *err)
{
	autofree char *text = NULL;
	uint8_t header[SECTOR];
	uint64_t place;

	if (reader_get(in, header, sizeof header, 0, err) < 0 ||
	    read_sparse(in, header, &out->layout, err) < 0)
		return -1;
	place = get_le64(header + 28);
	if (place == 0)
		return only_an_extent(err);
	if (place != 1) /* QEMU looks nowhere else */
		return reader_damaged("its descriptor is not at the second sector", err);
	if (in->size < 2 * SECTOR)
		return reader_damaged("it was cut short", err);
	text = read_text(in, SECTOR, err);
	if (!text || parse_text(text, out, err) < 0)
		return -1;
	if (!is_self(out))
		return err_set(err, ERR_REFUSED,
			       "a vmdk file that lists other files; convert it with qemu-img "
			       "convert first");
	drop_self(out);
	return 0;
}

int vmdk_parse(const struct reader *in, struct references *out, struct err *err)
{
	static const char title[] = "# Disk DescriptorFile";
	autofree char *text = NULL;

	if (in->size < 4)
		return references_wrong_format("vmdk", err);
	text = read_text(in, 0, err);
	if (!text)
		return -1;
	if (str_starts(text, "KDMV"))
		return parse_sparse(in, out, err);
	if (str_starts(text, "COWD"))
		return only_an_extent(err);
	if (strncasecmp(text, title, strlen(title)))
		return references_wrong_format("vmdk", err);
	/* QEMU reads up to the first NUL.  Once it has written to the disk there are
	 * zeros behind the text, and the end of an older, longer one.
	 */
	if (in->size > TEXT_MAX)
		return reader_damaged("its descriptor is too long", err);
	return parse_text(text, out, err);
}

int vmdk_is_flat(const struct reference *ref)
{
	return !strcasecmp(ref->type, "FLAT") || !strcasecmp(ref->type, "VMFS");
}

/* The type as QEMU spells it, which it compares to the letter: what it does
 * not recognise is left out of the disk.  NULL for those that cannot be read.
 */
static const char *canonical_type(const char *type)
{
	static const char *const types[] = { "FLAT", "VMFS", "SPARSE", "VMFSSPARSE" };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcasecmp(type, types[i]))
			return types[i];
	return NULL;
}

static int write_extent(FILE *out, const struct reference *ref, int fd, struct err *err)
{
	const char *type = canonical_type(ref->type);

	if (!strcasecmp(ref->access, "NOACCESS") || *ref->name == '\0' || ref->sectors == 0 ||
	    !type)
		return err_set(err, ERR_REFUSED,
			       "has an extent of type %s %s that cannot be read; convert it with "
			       "the tool that made it",
			       ref->access, ref->type);
	if (!strcmp(type, "VMFS") && ref->offset != 0)
		return reader_damaged("an extent of type VMFS has an offset", err);
	fprintf(out, "RW %" PRIu64 " %s \"/proc/self/fd/%d\"", ref->sectors, type, fd);
	if (!strcmp(type, "FLAT"))
		fprintf(out, " %" PRIu64, ref->offset);
	fprintf(out, "\n");
	return 0;
}

char *vmdk_descriptor(const struct references *refs, struct err *err,
		      int (*fd_number)(const void *ctx, size_t extent), const void *ctx)
{
	autofree char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int rc = 0;

	if (!out) {
		err_nomem(err);
		return NULL;
	}
	fprintf(out,
		"# Disk DescriptorFile\nversion=1\nCID=%08x\nparentCID=%08x\n"
		"createType=\"%s\"\n# Extents\n", /* QEMU reads one behind an empty line twice */
		refs->cid, refs->parent_cid, refs->type);
	for (size_t i = 0; rc == 0 && i < refs->len; i++)
		if (refs->at[i].kind == REFERENCE_EXTENT)
			rc = write_extent(out, &refs->at[i], fd_number(ctx, i), err);
	if (fclose(out) != 0 && rc == 0)
		rc = err_nomem(err);
	return rc < 0 ? NULL : steal(&text);
}
