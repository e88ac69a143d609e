// SPDX-License-Identifier: Apache-2.0
#include "system/fstab_inner.h"

#include "system/device.h"
#include "system/names.h"

#include <fnmatch.h>
#include <string.h>

enum { ENTRIES_MAX = 200 };

static const char part_of_root[] = "is part of the root filesystem in this image";

/* Given to a guest by the machine that it runs on.  Patterns, as those below. */
static const char *const host_types[] = { "virtiofs", "9p",	      "vboxsf",
					  "vmhgfs",   "*vmhgfs-fuse", "prl_fs",
					  "*prl_fsd", "hostfs",	      NULL };

/* Mounted from no disk of this machine. */
static const char *const diskless_types[] = {
	"proc",	     "sysfs",	 "tmpfs",    "devpts",	 "devtmpfs",	"cgroup*",    "hugetlbfs",
	"mqueue",    "debugfs",	 "tracefs",  "configfs", "securityfs",	"fusectl",    "bpf",
	"pstore",    "ramfs",	 "aufs",     "unionfs",	 "binfmt_misc", "rpc_pipefs", "nfsd",
	"selinuxfs", "usbfs",	 "usbdevfs", "cpuset",	 "resctrl",	"functionfs", "openpromfs",
	"nfs",	     "nfs4",	 "cifs",     "smb3",	 "smbfs",	"ceph",	      "glusterfs",
	"lustre",    "9p",	 "sshfs",    "davfs",	 "afs",		"coda",	      "ncpfs",
	"pvfs2",     "orangefs", "beegfs*",  "gpfs",	 "panfs",	"wekafs",     "autofs",
	"curlftpfs", "s3fs",	 NULL
};

static bool matches_any(const char *s, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (fnmatch(*patterns, s, 0) == 0)
			return true;
	return false;
}

static bool is_bind(const struct fstab_entry_text *entry)
{
	return mntopts_has(entry->raw.options, "bind") || mntopts_has(entry->raw.options, "rbind");
}

void fstab_table_init(struct fstab_table *table, struct slice text, const struct fstab_facts *facts)
{
	struct slice line;
	struct fstab_entry_text entry;

	*table = (struct fstab_table){ .facts = facts, .text = text };
	while (slice_line(&text, &line) && !table->root[0])
		if (fstab_parse(line, &entry) && !fstab_is_swap(&entry) &&
		    str_equal(entry.point, "/"))
			strcpy(table->root, entry.device);
}

static bool is_below(const char *path, const char *above)
{
	size_t len = strlen(above);

	return str_starts(path, above) && (path[len] == '/' || path[len] == '\0');
}

/* Does another entry mount something there that comes from no disk? */
static bool comes_by_mount(const struct fstab_table *table, const char *path)
{
	struct slice text = table->text, line;
	struct fstab_entry_text entry;

	for (unsigned n = 0; n < ENTRIES_MAX && slice_line(&text, &line); n++)
		if (fstab_parse(line, &entry) && matches_any(entry.type, diskless_types) &&
		    entry.point[0] == '/' && entry.point[1] && is_below(path, entry.point))
			return true;
	return false;
}

/* Will there be anything at this path when the image runs? */
static bool will_be_there(const struct fstab_table *table, const char *path)
{
	static const char *const volatile_places[] = { "/run", "/var/run", "/dev", "/proc",
						       "/sys", "/tmp",	   NULL };

	for (const char *const *place = volatile_places; *place; place++)
		if (is_below(path, *place))
			return true;
	return table->facts->exists(table->facts->ctx, path) || comes_by_mount(table, path);
}

/* Of an overlay: are all directories that the options name there? */
static bool has_layers(const struct fstab_table *table, const struct fstab_entry_text *entry)
{
	static const char *const names[] = { "lowerdir", "upperdir", "workdir", NULL };

	for (const char *const *name = names; *name; name++) {
		struct slice list, item;
		char path[FSTAB_FIELD_MAX];

		if (!mntopts_value(entry->raw.options, *name, &list))
			continue;
		while (slice_item(&list, ':', &item))
			if (item.len && item.at[0] == '/' && !memchr(item.at, '\\', item.len) &&
			    slice_copy(item, path, sizeof path) && !will_be_there(table, path))
				return false;
	}
	return true;
}

/* What needs no disk may still need something else that only the source has. */
static const char *what_is_missing_without_disk(const struct fstab_table *table,
						const struct fstab_entry_text *entry)
{
	struct slice transport;
	bool by_network = str_equal(entry->type, "9p") &&
			  mntopts_value(entry->raw.options, "trans", &transport) &&
			  !slice_is(transport, "virtio");

	if (is_bind(entry))
		return entry->device[0] != '/' || will_be_there(table, entry->device)
			       ? NULL
			       : "its directory is not in the image";
	if (str_equal(entry->type, "efivarfs"))
		return "is there on machines with EFI only";
	if (str_equal(entry->type, "overlay") && !has_layers(table, entry))
		return "a directory that it is made of is not in the image";
	if ((matches_any(entry->type, host_types) || str_starts(entry->device, ".host:")) &&
	    !by_network)
		return "only the source's host serves it";
	return NULL;
}

static bool needs_no_disk(const struct fstab_entry_text *entry)
{
	return is_bind(entry) || matches_any(entry->type, diskless_types) ||
	       matches_any(entry->type, host_types) || str_equal(entry->type, "efivarfs") ||
	       str_equal(entry->type, "overlay");
}

/* Does it need a disk or file that only the source has?  Then why it cannot be in
 * the image, else NULL.
 */
static const char *what_is_missing(const struct fstab_table *table,
				   const struct fstab_entry_text *entry)
{
	const struct fstab_facts *facts = table->facts;
	struct device device = device_parse(entry->device);
	bool is_file = device.kind == DEVICE_ELSEWHERE && entry->device[0] == '/' &&
		       entry->device[1] != '/' && !str_starts(entry->device, "/dev/");

	if (needs_no_disk(entry) || str_starts(entry->device, ".host:"))
		return what_is_missing_without_disk(table, entry);
	if (is_file && str_starts(entry->type, "fuse"))
		return NULL; /* mergerfs and the like: directories */
	if (is_file && !will_be_there(table, entry->device))
		return fstab_is_swap(entry) ? "swap file was left out"
					    : "its file is not in the image";
	if (device.kind == DEVICE_ELSEWHERE && !str_equal(entry->type, "zfs"))
		return NULL;
	if (facts->is_mapped_file(facts->ctx, entry->device))
		return NULL;
	if (entry->point[0] == '/' && facts->has_content(facts->ctx, entry->point))
		return part_of_root;
	return FSTAB_NO_DEVICE;
}

/* A subvolume of what the root was, which the image has no more.  NULL: it is none. */
static const char *is_subvolume_of_root(const struct fstab_table *table,
					const struct fstab_entry_text *entry)
{
	const struct fstab_facts *facts = table->facts;
	struct device device = device_parse(entry->device);

	if (fstab_is_swap(entry) ||
	    !(mntopts_has_subvolume(entry->raw.options) || str_equal(entry->type, "btrfs")))
		return NULL;
	if (!device_is(&device, &facts->names->root) && !str_equal(entry->device, table->root))
		return NULL;
	return facts->has_content(facts->ctx, entry->point) ? part_of_root
							    : "its subvolume is not in the image";
}

const char *fstab_why_not(const struct fstab_table *table, const struct fstab_entry_text *entry)
{
	if (fstab_may_fail(entry))
		return is_subvolume_of_root(table, entry);
	return what_is_missing(table, entry);
}
