// SPDX-License-Identifier: Apache-2.0
#include "source/source.h"

#include "base/err.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/size.h"
#include "base/str.h"
#include "source/formats.h"

#include <assert.h>
#include <string.h>

/* Several requests of it are under way at once. */
#define EXPORT_READ_SIZE (2 * MIB)

enum { SMALL_SECTOR = 512, LARGE_SECTOR = 4096 };

const struct source_format source_formats[] = {
	{ "raw", disk_open }, { "qcow2", qemu_open }, { "vmdk", qemu_open },
	{ "vdi", qemu_open }, { "vhdx", qemu_open },  { NULL, NULL },
};

const struct source_format *source_format_find(const char *name)
{
	const struct source_format *format = source_formats;

	while (format->name && !str_equal(format->name, name))
		format++;
	return format->name ? format : NULL;
}

/* What stands where a partition table may begin. */
struct label {
	int gpt_small, gpt_large; /* GPT for sectors of 512, of 4096 bytes */
	int mbr;
};

static int read_label(struct source *src, struct label *out, struct err *err)
{
	static const uint8_t no_partitions[4 * 16];
	uint8_t head[2 * LARGE_SECTOR];

	*out = (struct label){ 0 };
	if (src->size < sizeof head)
		return 0;
	if (source_read_at(src, head, sizeof head, 0, err) < 0)
		return -1;
	out->gpt_small = !memcmp(head + SMALL_SECTOR, "EFI PART", 8);
	out->gpt_large = !memcmp(head + LARGE_SECTOR, "EFI PART", 8);
	out->mbr = head[510] == 0x55 && head[511] == 0xaa &&
		   memcmp(head + 446, no_partitions, sizeof no_partitions) != 0;
	return 0;
}

/* A file does not say what sectors its disk had, but the place of its
 * partition table does.
 */
static int settle_sector_size(struct source *src, struct err *err)
{
	struct label label;

	if (read_label(src, &label, err) < 0)
		return -1;
	if (src->sector_size == 0)
		src->sector_size =
			label.gpt_large && !label.gpt_small ? LARGE_SECTOR : SMALL_SECTOR;
	if (src->sector_size == LARGE_SECTOR && !label.gpt_small && (label.gpt_large || label.mbr))
		log_warn("%s: its partition table is made for sectors of %d bytes; the image is "
			 "usable only where it is attached with logical sectors of that size",
			 src->name, LARGE_SECTOR);
	return 0;
}

/* On the heap: it is the thread's if that cannot be called back. */
struct opening {
	struct source_config cfg;
	const struct source_format *format;
	struct source *source;
};

static int open_work(void *ctx, struct err *err)
{
	struct opening *o = ctx;
	autosource struct source *src = o->format->open(&o->cfg, err);

	if (!src || settle_sector_size(src, err) < 0)
		return -1;
	o->source = steal(&src);
	return 0;
}

/* Returns with the thread lost, ended, or left to the source. */
static struct source *open_patiently(struct opening *o, struct patience *opener, struct err *err)
{
	struct source *src;

	if (patience_run(opener, open_work, o, o->cfg.stall_seconds, NULL, o->cfg.path, err) < 0) {
		if (!patience_is_lost(opener))
			free(o);
		patience_end(opener);
		return NULL;
	}
	src = o->source;
	src->opener = opener;
	free(o);
	return src;
}

struct source *source_open(const struct source_config *cfg, struct err *err)
{
	const struct source_format *format = source_format_find(cfg->format);
	struct patience *opener;
	struct opening *o;

	if (!format) {
		err_set(err, ERR_USAGE, "unknown source format %s", cfg->format);
		return NULL;
	}
	opener = patience_begin(err);
	if (!opener)
		return NULL;
	o = malloc(sizeof *o);
	if (!o) {
		patience_end(opener);
		err_nomem(err);
		return NULL;
	}
	*o = (struct opening){ .cfg = *cfg, .format = format };
	return open_patiently(o, opener, err);
}

/* No patience is needed: each wait of its ends by itself. */
struct source *source_open_export(const struct source_export *cfg, struct err *err)
{
	autosource struct source *src = export_open(cfg, err);

	if (!src || settle_sector_size(src, err) < 0)
		return NULL;
	src->read_size = EXPORT_READ_SIZE;
	return steal(&src);
}

static void assert_inside(const struct source *src, uint64_t offset, uint64_t length)
{
	assert(offset <= src->size && length <= src->size - offset);
	(void)src, (void)offset, (void)length;
}

static int with_name(const struct source *src, int rc, struct err *err)
{
	return rc < 0 ? err_context(err, "%s", src->name) : rc;
}

int source_extents(struct source *src, uint64_t offset, uint64_t length, struct extent_list *out,
		   struct err *err)
{
	assert_inside(src, offset, length);
	return with_name(src, src->ops->extents(src, offset, length, out, err), err);
}

int source_read_at(struct source *src, void *buf, size_t len, uint64_t offset, struct err *err)
{
	assert_inside(src, offset, len);
	return with_name(src, src->ops->read_at(src, buf, len, offset, err), err);
}

void source_abort(struct source *src)
{
	if (src->ops->abort)
		src->ops->abort(src);
}

int source_check(struct source *src, struct err *err)
{
	return src->ops->check ? with_name(src, src->ops->check(src, err), err) : 0;
}

int source_settle(struct source *src, struct extent_list *again, struct err *err)
{
	return src->ops->settle ? with_name(src, src->ops->settle(src, again, err), err) : 0;
}

void source_close(struct source *src)
{
	struct patience *opener = src ? src->opener : NULL;

	if (!src || src->stuck)
		return;
	src->ops->close(src);
	patience_end(opener);
}
