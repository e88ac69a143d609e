// SPDX-License-Identifier: Apache-2.0
#include "system/fstab_text.h"

#include "base/str.h"
#include "system/device.h"
#include "system/mntopts.h"
#include "system/names.h"

#include <fnmatch.h>
#include <string.h>

enum { FIELD_MAX = 4096, WHY_MAX = 2000 };

static const char not_in_image[] = "its device is not in the image";

/* Mounted from no disk of this machine.  Patterns. */
static const char *const diskless_types[] = {
	"proc",	      "sysfs",	   "tmpfs",	  "devpts",	"devtmpfs",   "cgroup*",
	"efivarfs",   "hugetlbfs", "mqueue",	  "debugfs",	"tracefs",    "configfs",
	"securityfs", "fusectl",   "bpf",	  "pstore",	"ramfs",      "overlay",
	"aufs",	      "unionfs",   "binfmt_misc", "rpc_pipefs", "nfsd",	      "selinuxfs",
	"usbfs",      "usbdevfs",  "cpuset",	  "resctrl",	"functionfs", "openpromfs",
	"nfs",	      "nfs4",	   "cifs",	  "smb3",	"smbfs",      "ceph",
	"glusterfs",  "lustre",	   "9p",	  "virtiofs",	"sshfs",      "davfs",
	"afs",	      "coda",	   "ncpfs",	  "pvfs2",	"orangefs",   "beegfs*",
	"gpfs",	      "panfs",	   "wekafs",	  "autofs",	"curlftpfs",  "s3fs",
	"vboxsf",     "vmhgfs",	   NULL
};

static const char *const fat_types[] = { "vfat", "auto", "msdos", NULL };

static bool matches_any(const char *s, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (fnmatch(*patterns, s, 0) == 0)
			return true;
	return false;
}

bool fstab_split(struct slice line, struct fstab_fields *out)
{
	struct slice rest = slice_chomp(line), word;
	size_t n = 0;

	*out = (struct fstab_fields){ 0 };
	while (n < FSTAB_FIELDS && slice_word(&rest, &word))
		out->at[n++] = word;
	return n >= 3 && out->device.at[0] != '#';
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

/* An entry, decoded. */
struct entry {
	struct slice line;
	struct fstab_fields raw;
	char device[FIELD_MAX], point[FIELD_MAX], type[256];
};

static bool entry_parse(struct slice line, struct entry *out)
{
	out->line = line;
	return fstab_split(line, &out->raw) &&
	       fstab_decode(out->raw.device, out->device, sizeof out->device) &&
	       fstab_decode_point(out->raw.point, out->point, sizeof out->point) &&
	       fstab_decode(out->raw.type, out->type, sizeof out->type);
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

static void comment_out(const struct entry *entry, const char *what, const char *reason,
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

static bool find_own(const struct entry *entry, const struct fstab_facts *facts, struct own *out)
{
	const struct names *names = facts->names;
	bool at_boot = str_equal(entry->point, "/boot");

	*out = (struct own){ &names->root, "ext4", ext4_types };
	if (str_equal(entry->point, "/"))
		return true;
	out->volume = &names->boot;
	if (at_boot && !facts->esp_is_boot)
		return names->boot.present;
	*out = (struct own){ &names->esp, "vfat", fat_types };
	return names->esp.present && (at_boot || ((str_equal(entry->point, "/boot/efi") ||
						   str_equal(entry->point, "/efi")) &&
						  !facts->esp_is_boot));
}

/* What the options become; *changed tells whether that is anything else. */
static void filter_options(const struct entry *entry, const struct own *own, struct text *out,
			   bool *changed)
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
static void put_fields(const struct entry *entry, const char *const fields[FSTAB_FIELDS],
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

static void fix_own(const struct entry *entry, const struct own *own, struct text *out,
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

static bool is_swap(const struct entry *entry)
{
	return str_equal(entry->type, "swap");
}

static bool is_bind(const struct entry *entry)
{
	return mntopts_has(entry->raw.options, "bind") || mntopts_has(entry->raw.options, "rbind");
}

/* Does it need a disk or file that only the source has?  Then why it cannot be in
 * the image, else NULL.
 */
static const char *what_is_missing(const struct entry *entry, const struct fstab_facts *facts)
{
	struct device device = device_parse(entry->device);
	bool is_file = device.kind == DEVICE_ELSEWHERE && entry->device[0] == '/' &&
		       entry->device[1] != '/' && !str_starts(entry->device, "/dev/");

	if (is_bind(entry) || matches_any(entry->type, diskless_types))
		return NULL;
	if (is_file && str_starts(entry->type, "fuse"))
		return NULL; /* mergerfs and the like: directories */
	if (is_file && !facts->exists(facts->ctx, entry->device))
		return is_swap(entry) ? "swap file was left out" : "its file is not in the image";
	if (device.kind == DEVICE_ELSEWHERE && !str_equal(entry->type, "zfs"))
		return NULL;
	if (facts->is_mapped_file(facts->ctx, entry->device))
		return NULL;
	if (entry->point[0] == '/' && facts->has_content(facts->ctx, entry->point))
		return "is part of the root filesystem in this image";
	return not_in_image;
}

static bool may_fail(const struct entry *entry)
{
	return mntopts_has(entry->raw.options, "noauto") ||
	       mntopts_has(entry->raw.options, "nofail");
}

void fstab_rewrite(struct slice text, const struct fstab_facts *facts, struct text *out,
		   struct text *why)
{
	struct slice line;

	while (slice_line(&text, &line)) {
		struct entry entry;
		struct own own;
		const char *reason;

		if (!entry_parse(line, &entry)) {
			text_add(out, line);
		} else if (!is_swap(&entry) && find_own(&entry, facts, &own)) {
			fix_own(&entry, &own, out, why);
		} else {
			reason = may_fail(&entry) ? NULL : what_is_missing(&entry, facts);
			if (reason)
				comment_out(&entry, is_swap(&entry) ? entry.device : entry.point,
					    reason, out, why);
			else
				text_add(out, line);
		}
	}
}

/* Fields: name, device, key, options; the first two are a must. */
static bool crypttab_parse(struct slice line, struct entry *out)
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

static bool is_container(const struct entry *entry)
{
	return device_parse(entry->device).kind != DEVICE_ELSEWHERE;
}

void crypttab_rewrite(struct slice text, const struct fstab_facts *facts, struct text *out,
		      struct text *why)
{
	struct slice line;

	while (slice_line(&text, &line)) {
		struct entry entry;
		bool parsed = crypttab_parse(line, &entry), lost;

		lost = parsed && !may_fail(&entry) &&
		       (is_container(&entry) ||
			(entry.device[0] == '/' && !str_starts(entry.device, "/dev/") &&
			 !facts->exists(facts->ctx, entry.device)));
		if (lost)
			comment_out(&entry, entry.point, not_in_image, out, why);
		else
			text_add(out, line);
	}
}

bool crypttab_find(struct slice text, const char *name, char *device, size_t cap)
{
	struct slice line;

	while (slice_line(&text, &line)) {
		struct entry entry;

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
		struct entry entry;
		bool has_key = true;

		if (!crypttab_parse(line, &entry))
			continue;
		for (size_t i = 0; i < sizeof throw_away / sizeof *throw_away; i++)
			has_key = has_key && !slice_is(entry.raw.at[2], throw_away[i]);
		if (has_key && !may_fail(&entry) && is_container(&entry))
			return true;
	}
	return false;
}
