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
};

#define NO_PARENT      0xffffffffU
#define GD_AT_END      UINT64_MAX
#define CAPACITY_MAX   (UINT64_C(1) << 54) /* in sectors */
#define LETTERS	       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define FOOTER_SECTORS 2 /* from its header to the file's end */

static int damaged(const char *what, struct err *err)
{
	return err_set(err, ERR_REFUSED, "damaged: %s", what);
}

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
		return damaged("it was cut short", err);
	if (reader_get(in, footer, sizeof footer, in->size - FOOTER_SECTORS * SECTOR, err) < 0)
		return -1;
	if (memcmp(footer, header, 48))
		return damaged("its footer is not that of its header; it may be cut short", err);
	*directory = get_le64(footer + 56);
	return *directory == GD_AT_END ? damaged("its footer has no grain directory", err) : 0;
}

static int read_header(const struct reader *in, uint8_t header[SECTOR], struct vmdk_sparse *out,
		       struct err *err)
{
	if (reader_get(in, header, SECTOR, 0, err) < 0)
		return -1;
	if (memcmp(header, "KDMV", 4))
		return damaged("a sparse extent does not begin like one", err);
	if (get_le32(header + 4) < 1 || get_le32(header + 4) > 3)
		return err_set(err, ERR_REFUSED, "of vmdk version %u; 1 to 3 are supported",
			       get_le32(header + 4));
	*out = (struct vmdk_sparse){
		.capacity = get_le64(header + 12),
		.grain = get_le64(header + 20),
		.grains_per_table = get_le32(header + 44),
		.directory = get_le64(header + 56),
	};
	if (out->capacity == 0 || out->capacity > CAPACITY_MAX)
		return damaged("its capacity is impossible", err);
	if (out->grain == 0 || out->grain > 128 * KIB || out->grains_per_table == 0 ||
	    out->grains_per_table > 512)
		return damaged("the size of its grains or tables is impossible", err);
	return 0;
}

int vmdk_read_sparse(const struct reader *in, struct vmdk_sparse *out, struct err *err)
{
	uint8_t header[SECTOR];

	if (read_header(in, header, out, err) < 0)
		return -1;
	return out->directory == GD_AT_END ? read_footer(in, header, &out->directory, err) : 0;
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
		return damaged("an extent has an impossible name", err);
	*end++ = '\0';
	*name = rest + 1;
	rest = next_word(&end);
	if (*rest && (parse_number(rest, offset) < 0 || *offset > CAPACITY_MAX))
		return damaged("an extent has an impossible offset", err);
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
		return damaged("an extent has an impossible size", err);
	if (*type == '\0' || strlen(type) >= sizeof ref->type)
		return damaged("an extent has no proper type", err);
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
			return damaged("its createType is unknown", err);
		copy_word(out->type, sizeof out->type, value);
	} else if (!strcasecmp(key, "CID")) {
		out->cid = (uint32_t)strtoul(value, NULL, 16);
	} else if (!strcasecmp(key, "parentCID")) {
		out->parent_cid = (uint32_t)strtoul(value, NULL, 16);
	} else if (!strcasecmp(key, "parentFileNameHint")) {
		if (strlen(value) >= sizeof out->parent)
			return damaged("the name of its parent is too long", err);
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
	struct vmdk_sparse sparse;
	autofree char *text = NULL;
	uint8_t header[SECTOR];
	uint64_t place;

	if (read_header(in, header, &sparse, err) < 0 || vmdk_read_sparse(in, &sparse, err) < 0)
		return -1;
	place = get_le64(header + 28);
	if (place == 0)
		return only_an_extent(err);
	if (place != 1) /* QEMU looks nowhere else */
		return damaged("its descriptor is not at the second sector", err);
	if (in->size < 2 * SECTOR)
		return damaged("it was cut short", err);
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

static int is_zero(const char *bytes, size_t len)
{
	while (len > 0 && bytes[len - 1] == '\0')
		len--;
	return len == 0;
}

int vmdk_parse(const struct reader *in, struct references *out, struct err *err)
{
	static const char title[] = "# Disk DescriptorFile";
	autofree char *text = NULL;

	if (in->size < 4)
		return err_set(err, ERR_REFUSED,
			       "not a vmdk image; say what it is with --source-format=FORMAT");
	text = read_text(in, 0, err);
	if (!text)
		return -1;
	if (str_starts(text, "KDMV"))
		return parse_sparse(in, out, err);
	if (str_starts(text, "COWD"))
		return only_an_extent(err);
	if (strncasecmp(text, title, strlen(title)))
		return err_set(err, ERR_REFUSED,
			       "not a vmdk image; say what it is with --source-format=FORMAT");
	/* Once QEMU has written to the disk there are zeros behind the text. */
	if (in->size > TEXT_MAX || !is_zero(text + strlen(text), in->size - strlen(text)))
		return damaged("its descriptor is too long or no text", err);
	return parse_text(text, out, err);
}

static int is_one_of(const char *word, const char *const *words)
{
	while (*words && strcasecmp(word, *words))
		words++;
	return *words != NULL;
}

static int write_extent(FILE *out, const struct reference *ref, int fd, struct err *err)
{
	static const char *const flat[] = { "FLAT", "VMFS", NULL };
	static const char *const sparse[] = { "SPARSE", "VMFSSPARSE", "SESPARSE", NULL };

	if (!strcasecmp(ref->access, "NOACCESS") || *ref->name == '\0' || ref->sectors == 0 ||
	    (!is_one_of(ref->type, flat) && !is_one_of(ref->type, sparse)))
		return err_set(err, ERR_REFUSED,
			       "has an extent of type %s %s that cannot be read; convert it with "
			       "the tool that made it",
			       ref->access, ref->type);
	if (!strcasecmp(ref->type, "VMFS") && ref->offset != 0)
		return damaged("an extent of type VMFS has an offset", err);
	fprintf(out, "RW %" PRIu64 " %s \"/proc/self/fd/%d\"", ref->sectors, ref->type, fd);
	if (!strcasecmp(ref->type, "FLAT"))
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
