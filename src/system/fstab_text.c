// SPDX-License-Identifier: Apache-2.0
#include "system/fstab_inner.h"

#include "system/device.h"
#include "system/names.h"

#include <string.h>

enum { WHY_MAX = 2000 };

static const char *const fat_types[] = { "vfat", "auto", "msdos", NULL };

bool fstab_split(struct slice line, struct fstab_fields *out)
{
	struct slice rest = slice_chomp(line), word;
	size_t n = 0;

	*out = (struct fstab_fields){ 0 };
	while (n < FSTAB_FIELDS && slice_word(&rest, &word))
		out->at[n++] = word;
	return n >= 2 && out->device.at[0] != '#';
}

bool fstab_decode(struct slice field, char *dst, size_t cap)
{
	size_t len = 0;

	while (field.len > 0) {
		bool is_escape = field.len >= 4 && field.at[0] == '\\';
		int byte = is_escape ? str_octal_byte(field.at + 1) : -1;

		if (len + 1 >= cap || field.at[0] == '\0')
			return false;
		dst[len++] = byte > 0 ? (char)byte : field.at[0];
		field = slice_from(field, byte > 0 ? 4 : 1);
	}
	dst[len] = '\0';
	return true;
}

bool fstab_decode_point(struct slice field, char *dst, size_t cap)
{
	char *to = dst;

	if (!fstab_decode(field, dst, cap))
		return false;
	for (const char *from = dst; *from; from++)
		if (*from != '/' || (from[1] != '/' && (from[1] || to == dst)))
			*to++ = *from;
	*to = '\0';
	return true;
}

bool fstab_parse(struct slice line, struct fstab_entry_text *out)
{
	bool done = fstab_split(line, &out->raw) &&
		    fstab_decode(out->raw.device, out->device, sizeof out->device) &&
		    fstab_decode_point(out->raw.point, out->point, sizeof out->point) &&
		    fstab_decode(out->raw.type, out->type, sizeof out->type);

	out->line = line;
	if (done && !out->raw.type.len)
		strcpy(out->type, "auto");
	return done;
}

/* A list as long as the account can bear. */
static void note(struct text *why, const char *what, const char *did)
{
	if (why->len > WHY_MAX) {
		if (!str_ends(why->at, "..."))
			text_puts(why, "; ...");
		return;
	}
	text_format(why, "%s%.200s: %s", why->len ? "; " : "", what, did);
}

static void comment_out(const struct fstab_entry_text *entry, const char *what, const char *reason,
			struct text *out, struct text *why)
{
	text_format(out, "# ccsnap: %s: ", reason);
	text_add(out, entry->line);
	note(why, what, reason);
}

static bool type_fits(const char *type, const char *const *fitting)
{
	struct slice rest = slice_of(type), item;

	while (slice_item(&rest, ',', &item))
		for (const char *const *t = fitting; *t; t++)
			if (slice_is(item, *t))
				return true;
	return false;
}

/* One of the image's own filesystems. */
struct own {
	const struct volume_names *volume;
	const char *type;
	const char *const *fitting;
};

static const char *const ext4_types[] = { "ext4", "auto", NULL };

static bool find_own(const struct fstab_entry_text *entry, const struct fstab_facts *facts,
		     struct own *out)
{
	const struct names *names = facts->names;
	bool at_boot = str_equal(entry->point, "/boot");

	*out = (struct own){ &names->root, "ext4", ext4_types };
	if (str_equal(entry->point, "/"))
		return true;
	out->volume = &names->boot;
	if (at_boot && !names->esp_is_boot)
		return names->boot.present;
	*out = (struct own){ &names->esp, "vfat", fat_types };
	return names->esp.present && (at_boot || ((str_equal(entry->point, "/boot/efi") ||
						   str_equal(entry->point, "/efi")) &&
						  !names->esp_is_boot));
}

/* What the options become; *changed tells whether that is anything else. */
static void filter_options(const struct fstab_entry_text *entry, const struct own *own,
			   struct text *out, bool *changed)
{
	static const char *const family[] = { "ext2", "ext3", "ext4", "auto", NULL };
	bool is_ext4 = own->fitting == ext4_types;
	bool kin = type_fits(entry->type, family) && !mntopts_has_subvolume(entry->raw.options);
	bool as_is = !is_ext4 && type_fits(entry->type, own->fitting);

	*changed = !as_is && mntopts_filter(entry->raw.options,
					    is_ext4 && kin ? MNTOPTS_SAME : MNTOPTS_OTHER, out);
	if (*changed && out->len == 0)
		text_puts(out, "defaults");
}

/* Copy the line, with new text for some fields (NULL: as it is). */
static void put_fields(const struct fstab_entry_text *entry, const char *const fields[FSTAB_FIELDS],
		       struct text *out)
{
	const char *at = entry->line.at;

	for (size_t i = 0; i < FSTAB_FIELDS; i++) {
		const struct slice *field = &entry->raw.at[i];

		if (!fields[i] || !field->len)
			continue;
		text_add(out, slice_between(at, field->at));
		text_puts(out, fields[i]);
		at = field->at + field->len;
	}
	text_add(out, slice_between(at, entry->line.at + entry->line.len));
}

static void fix_own(const struct fstab_entry_text *entry, const struct own *own, struct text *out,
		    struct text *why)
{
	const struct device device = device_parse(entry->device);
	autotext struct text name = { 0 }, options = { 0 };
	const char *fields[FSTAB_FIELDS] = { NULL };
	bool changed;

	if (!device_is(&device, own->volume)) {
		text_format(&name, "UUID=%s", own->volume->uuid_text);
		fields[0] = name.at;
		note(why, entry->point, "its device is named by UUID now");
	}
	if (!type_fits(entry->type, own->fitting)) {
		fields[2] = own->type;
		note(why, entry->point,
		     own->fitting == ext4_types ? "is ext4 in the image" : "is FAT in the image");
	}
	filter_options(entry, own, &options, &changed);
	if (changed) {
		fields[3] = options.at;
		note(why, entry->point, "options that do not go with its filesystem left out");
	}
	out->failed |= name.failed || options.failed;
	put_fields(entry, fields, out);
}

void fstab_rewrite(struct slice text, const struct fstab_facts *facts, struct text *out,
		   struct text *why)
{
	struct fstab_table table;
	struct slice line;

	fstab_table_init(&table, text, facts);
	while (slice_line(&text, &line)) {
		struct fstab_entry_text entry;
		struct own own;
		const char *reason = NULL;

		if (!fstab_parse(line, &entry)) {
			text_add(out, line);
			continue;
		}
		if (!fstab_is_swap(&entry) && find_own(&entry, facts, &own)) {
			fix_own(&entry, &own, out, why);
			continue;
		}
		reason = fstab_why_not(&table, &entry);
		if (reason)
			comment_out(&entry, fstab_is_swap(&entry) ? entry.device : entry.point,
				    reason, out, why);
		else
			text_add(out, line);
	}
}

/* Fields: name, device, key, options; the first two are a must. */
static bool crypttab_parse(struct slice line, struct fstab_entry_text *out)
{
	struct slice rest = slice_chomp(line), *const at = out->raw.at;
	size_t n = 0;

	out->line = line;
	out->raw = (struct fstab_fields){ 0 };
	while (n < FSTAB_FIELDS && slice_word(&rest, &at[n]))
		n++;
	return n >= 2 && at[0].at[0] != '#' && slice_copy(at[0], out->point, sizeof out->point) &&
	       fstab_decode(at[1], out->device, sizeof out->device);
}

static bool is_container(const struct fstab_entry_text *entry)
{
	return device_parse(entry->device).kind != DEVICE_ELSEWHERE;
}

void crypttab_rewrite(struct slice text, const struct fstab_facts *facts, struct text *out,
		      struct text *why)
{
	struct slice line;

	while (slice_line(&text, &line)) {
		struct fstab_entry_text entry;
		bool parsed = crypttab_parse(line, &entry), lost;

		lost = parsed && !fstab_may_fail(&entry) &&
		       (is_container(&entry) ||
			(entry.device[0] == '/' && !str_starts(entry.device, "/dev/") &&
			 !facts->exists(facts->ctx, entry.device)));
		if (lost)
			comment_out(&entry, entry.point, FSTAB_NO_DEVICE, out, why);
		else
			text_add(out, line);
	}
}

bool crypttab_find(struct slice text, const char *name, char *device, size_t cap)
{
	struct slice line;

	while (slice_line(&text, &line)) {
		struct fstab_entry_text entry;

		if (crypttab_parse(line, &entry) && str_equal(entry.point, name))
			return slice_copy(slice_of(entry.device), device, cap);
	}
	return false;
}

bool crypttab_has_container(struct slice text)
{
	static const char *const throw_away[] = { "/dev/urandom", "/dev/random", "/dev/hwrng" };
	struct slice line;

	while (slice_line(&text, &line)) {
		struct fstab_entry_text entry;
		bool has_key = true;

		if (!crypttab_parse(line, &entry))
			continue;
		for (size_t i = 0; i < sizeof throw_away / sizeof *throw_away; i++)
			has_key = has_key && !slice_is(entry.raw.at[2], throw_away[i]);
		if (has_key && !fstab_may_fail(&entry) && is_container(&entry))
			return true;
	}
	return false;
}
