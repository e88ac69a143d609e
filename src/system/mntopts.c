// SPDX-License-Identifier: Apache-2.0
#include "system/mntopts.h"

#include <string.h>

/* A name that ends with "=" or "-" stands for all that begin so. */

/* Subvolumes; features and devices that the image's ext4 does not have. */
static const char *const never[] = { "subvol=",	     "subvolid=",     "prjquota", "sb=",
				     "journal_dev=", "journal_path=", NULL };

/* The VFS's, util-linux', systemd's, and ext4's where others mean the same. */
static const char *const generic[] = { "defaults",     "rw",	      "ro",
				       "atime",	       "noatime",     "relatime",
				       "norelatime",   "strictatime", "nostrictatime",
				       "diratime",     "nodiratime",  "lazytime",
				       "nolazytime",   "suid",	      "nosuid",
				       "dev",	       "nodev",	      "exec",
				       "noexec",       "sync",	      "async",
				       "dirsync",      "auto",	      "noauto",
				       "nofail",       "user",	      "users",
				       "nouser",       "owner",	      "group",
				       "_netdev",      "iversion",    "noiversion",
				       "mand",	       "nomand",      "silent",
				       "loud",	       "symfollow",   "nosymfollow",
				       "x-",	       "X-",	      "comment=",
				       "context=",     "fscontext=",  "defcontext=",
				       "rootcontext=", "seclabel",    "errors=",
				       "discard",      "nodiscard",   "commit=",
				       "acl",	       "noacl",	      NULL };

/* Documentation/admin-guide/ext4.rst and ext4(5). */
static const char *const ext4[] = { "user_xattr",
				    "nouser_xattr",
				    "data=",
				    "data_err=",
				    "barrier",
				    "barrier=",
				    "nobarrier",
				    "journal_checksum",
				    "delalloc",
				    "nodelalloc",
				    "usrquota",
				    "grpquota",
				    "usrjquota=",
				    "grpjquota=",
				    "jqfmt=",
				    "quota",
				    "noquota",
				    "stripe=",
				    "resuid=",
				    "resgid=",
				    "grpid",
				    "nogrpid",
				    "bsdgroups",
				    "sysvgroups",
				    "minixdf",
				    "bsddf",
				    "debug",
				    "journal_ioprio=",
				    "auto_da_alloc",
				    "auto_da_alloc=",
				    "noauto_da_alloc",
				    "max_batch_time=",
				    "min_batch_time=",
				    "init_itable",
				    "init_itable=",
				    "noinit_itable",
				    "dioread_nolock",
				    "dioread_lock",
				    "max_dir_size_kb=",
				    "i_version",
				    "inode_readahead_blks=",
				    "journal_async_commit",
				    "nojournal_checksum",
				    "norecovery",
				    "noload",
				    "block_validity",
				    "noblock_validity",
				    "nombcache",
				    "nodiscard",
				    "mblk_io_submit",
				    "nomblk_io_submit",
				    NULL };

static bool is_listed(struct slice option, const char *const *list)
{
	for (; *list; list++) {
		char last = (*list)[strlen(*list) - 1];

		if (last == '=' || last == '-' ? slice_starts(option, *list)
					       : slice_is(option, *list))
			return true;
	}
	return false;
}

static bool is_kept(struct slice option, enum mntopts_from from)
{
	if (is_listed(option, never))
		return false;
	return from == MNTOPTS_SAME || is_listed(option, generic) ||
	       (from == MNTOPTS_ROOTFLAGS && is_listed(option, ext4));
}

bool mntopts_filter(struct slice options, enum mntopts_from from, struct text *out)
{
	struct slice option;
	bool first = true, dropped = false;

	while (slice_item(&options, ',', &option)) {
		if (!is_kept(option, from)) {
			dropped = true;
			continue;
		}
		if (!first)
			text_puts(out, ",");
		text_add(out, option);
		first = false;
	}
	return dropped;
}

bool mntopts_has(struct slice options, const char *name)
{
	struct slice option;

	while (slice_item(&options, ',', &option))
		if (slice_is(option, name))
			return true;
	return false;
}

bool mntopts_value(struct slice options, const char *name, struct slice *value)
{
	size_t len = strlen(name);
	struct slice option;

	while (slice_item(&options, ',', &option))
		if (slice_starts(option, name) && option.len > len && option.at[len] == '=') {
			*value = slice_from(option, len + 1);
			return true;
		}
	return false;
}

bool mntopts_subvolume(struct slice options, char *dst, size_t cap)
{
	struct slice value;

	dst[0] = '\0';
	if (!mntopts_value(options, "subvol", &value))
		return false;
	while (value.len && value.at[0] == '/')
		value = slice_from(value, 1);
	while (value.len && value.at[value.len - 1] == '/')
		value.len--;
	if (!value.len || !slice_copy(value, dst + 1, cap - 1)) {
		dst[0] = '\0';
		return false;
	}
	dst[0] = '/';
	return true;
}

bool mntopts_has_subvolume(struct slice options)
{
	struct slice option;

	while (slice_item(&options, ',', &option))
		if (slice_starts(option, "subvol=") || slice_starts(option, "subvolid="))
			return true;
	return false;
}
