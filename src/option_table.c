// SPDX-License-Identifier: Apache-2.0
#include "option_table.h"

#include "base/size.h"
#include "base/str.h"
#include "compress/codec.h"
#include "dest/dest.h"
#include "image/image.h"
#include "options.h"
#include "quiesce/quiesce.h"
#include "source/source.h"
#include "system/identity.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	CREATE = 1 << 0,
	VERIFY = 1 << 1,
	CONVERT = 1 << 2,
	LIST = 1 << 3,
	UPLOAD = 1 << 4,
	FETCH = 1 << 5,
	PRUNE = 1 << 6,
	INSPECT = 1 << 7,
	RECOVER = 1 << 8,
	MAKE = CREATE | CONVERT,   /* what makes an image */
	PUBLISH = CREATE | UPLOAD, /* what puts one into a store */
	STORE = PUBLISH | LIST | FETCH | PRUNE,
	READ = MAKE | VERIFY,		 /* what reads a disk */
	VM = CREATE | INSPECT | RECOVER, /* what has to do with domains */
	ALL = READ | STORE | VM,
};

const struct command commands[] = {
	{ "create", "[NAME]",
	  "capture a system, a directory tree or a disk into an image (the default)", 0, 1,
	  CREATE },
	{ "inspect", "", "look at a running instance, and say what create would do", 0, 0,
	  INSPECT },
	{ "verify", "IMAGE|ID", "prove that an image is sound and equals its manifest or a disk", 1,
	  1, VERIFY },
	{ "convert", "IN OUT", "pack an existing image anew into another file", 2, 2, CONVERT },
	{ "upload", "IMAGE [NAME]", "put an image that exists into a store or image service", 1, 2,
	  UPLOAD },
	{ "fetch", "ID|NAME", "bring an image back from a store, to a file or onto a disk", 1, 1,
	  FETCH },
	{ "list", "", "show the images in a store", 0, 0, LIST },
	{ "prune", "", "remove old images of a series from a store", 0, 0, PRUNE },
	{ "recover", "", "undo what a killed run has left with a running instance", 0, 0, RECOVER },
	{ 0 },
};

const size_t command_count = sizeof commands / sizeof *commands - 1;

static const char *source_format_name(size_t i)
{
	return source_formats[i].name;
}

static const char *image_format_name(size_t i)
{
	return image_formats[i].name;
}

/* Codecs first; behind them "none", which is no codec. */
static const char *compression_name(size_t i)
{
	size_t n = 0;

	while (n < i && codecs[n])
		n++;
	if (codecs[n])
		return codecs[n]->name;
	return n == i ? "none" : NULL;
}

static const char *sector_size_name(size_t i)
{
	static const char *const names[] = { "512", "4096", NULL };

	return names[i];
}

static const char *quiesce_name(size_t i)
{
	return quiesce_wish_names[i];
}

static const char *progress_name(size_t i)
{
	static const char *const names[] = { "auto", "bar", "json", "none", NULL };

	return names[i];
}

static const char *shell_name(size_t i)
{
	static const char *const names[] = { "bash", NULL };

	return names[i];
}

static bool is_power_of_two(const char *value)
{
	uint64_t n;

	return size_parse(value, &n) == 0 && n != 0 && (n & (n - 1)) == 0;
}

/* Fit for JSON, HTTP headers and terminals alike. */
static bool is_text(const char *value)
{
	size_t n;

	for (const char *at = value; *at; at += n) {
		n = str_utf8_len(at);
		if (n == 0 || str_is_control(at))
			return false;
	}
	return *value != '\0';
}

static bool is_property(const char *value)
{
	return *value != '=' && strchr(value, '=') && is_text(value);
}

static bool is_destination(const char *value)
{
	const char *rest;

	return dest_kind_find(value, &rest) && (!rest || *rest);
}

/* One that images can be looked for in. */
static bool is_store(const char *value)
{
	const char *rest;

	return is_destination(value) && dest_kind_find(value, &rest)->has_list;
}

static bool is_any_kind(const struct dest_kind *kind)
{
	return kind->scheme;
}

static bool is_store_kind(const struct dest_kind *kind)
{
	return kind->has_list;
}

static void describe_kinds(bool (*fits)(const struct dest_kind *kind), char *text, size_t cap)
{
	size_t len = 0;

	for (const struct dest_kind *kind = dest_kinds; kind->scheme && len < cap; kind++)
		if (fits(kind))
			len += (size_t)snprintf(text + len, cap - len, "%s%s", len ? ", " : "",
						kind->form);
}

static void describe_destinations(char *text, size_t cap)
{
	describe_kinds(is_any_kind, text, cap);
}

static void describe_stores(char *text, size_t cap)
{
	describe_kinds(is_store_kind, text, cap);
}

static const char *upload_method_name(size_t i)
{
	static const char *const names[] = { "auto", "direct", "import", NULL };

	return names[i];
}

static const char *visibility_name(size_t i)
{
	static const char *const names[] = { "private", "shared", "community", "public", NULL };

	return names[i];
}

#define A_TEXT "in UTF-8 without control characters"

static bool is_not_empty(const char *value)
{
	return *value != '\0';
}

static bool is_absolute(const char *value)
{
	return *value == '/';
}

/* May a file be called so? */
static bool is_file_name(const char *name)
{
	return *name && strlen(name) <= NAME_MAX && !str_equal(name, ".") && !str_equal(name, "..");
}

/* Of a file that is to be written; whether it can be is seen later. */
static bool is_file_path(const char *value)
{
	const char *slash = strrchr(value, '/');

	return is_file_name(slash ? slash + 1 : value) && !str_equal(value, "-");
}

/* The longest that a store puts behind an image's name.  The store checks names
 * itself; here it is only said sooner, and in terms of the command line.
 */
enum { IMAGE_NAME_MAX = NAME_MAX - (sizeof DEST_MANIFEST_SUFFIX - 1) };

static_assert(NAME_MAX == 255 && IMAGE_NAME_MAX == 241, "the texts below tell these numbers");

#define A_NEW_FILE                                                                                 \
	"the path of a file (- is none: nothing is written to standard output) whose name is not " \
	". or .. and at most 255 bytes long"
#define AN_IMAGES_NAME "a name without /, not . or .., at most 241 bytes long"

static bool is_image_name(const char *value)
{
	return is_file_name(value) && strlen(value) <= IMAGE_NAME_MAX && !strchr(value, '/');
}

static void describe_levels(char *text, size_t cap)
{
	size_t len = 0;

	for (size_t i = 0; codecs[i] && len < cap; i++)
		len += (size_t)snprintf(text + len, cap - len, "%s%s %d to %d, default %d",
					i ? "; " : "", codecs[i]->name, codecs[i]->level_min,
					codecs[i]->level_max, codecs[i]->level_default);
}

static void describe_operations(char *text, size_t cap)
{
	size_t len = (size_t)snprintf(text, cap, "identity, none");

	for (const struct identity_operation *op = identity_operations; op->name && len < cap; op++)
		len += (size_t)snprintf(text + len, cap - len, ", %s", op->name);
}

#define FIELD(name) offsetof(struct options, name)

#define SOURCE_GROUP  "What to read"
#define TREE_GROUP    "A directory tree"
#define DOMAIN_GROUP  "A running instance"
#define IMAGE_GROUP   "The image"
#define WHERE_GROUP   "Where it goes"
#define SERVICE_GROUP "An image service or server"
#define RUN_GROUP     "This run"
#define OTHER_GROUP   "Other"

const struct option_def option_table[] = {
	{ "source", 's', OPTION_TEXT, "PATH", FIELD(source), CREATE, SOURCE_GROUP,
	  .help = "what to capture: a directory tree, a disk in a file, or a block device; the "
		  "running system (/) when not given; it is never written",
	  .accepted = "the path of a directory, file or block device" },
	{ "against", 0, OPTION_TEXT, "DISK", FIELD(against), VERIFY, SOURCE_GROUP,
	  .help = "compare the image's content with this disk",
	  .accepted = "the path of a file or block device" },
	{ "manifest", 0, OPTION_TEXT, "FILE", FIELD(manifest), VERIFY, SOURCE_GROUP,
	  .help = "compare with this manifest instead of the one beside the image",
	  .accepted = "the path of a manifest" },
	{ "manifest", 0, OPTION_TEXT, "FILE", FIELD(manifest), UPLOAD, SOURCE_GROUP,
	  .help = "take name, properties and digests from this manifest instead of the one beside "
		  "IMAGE",
	  .accepted = "the path of a manifest", .line_only = true },
	{ "format", 0, OPTION_CHOICE, "FORMAT", FIELD(format), VERIFY, SOURCE_GROUP,
	  .help = "format of IMAGE; what its manifest or name says when not given",
	  .choice = source_format_name, .line_only = true },
	{ "source-format", 0, OPTION_CHOICE, "FORMAT", FIELD(source_format), CREATE, SOURCE_GROUP,
	  .of = OF_DISK,
	  .help = "format of the disk, raw when not given; never guessed from its content",
	  .choice = source_format_name },
	{ "source-format", 0, OPTION_CHOICE, "FORMAT", FIELD(source_format), VERIFY, SOURCE_GROUP,
	  .help = "format of the disk given with --against, raw when not given",
	  .choice = source_format_name, .line_only = true },
	{ "source-format", 0, OPTION_CHOICE, "FORMAT", FIELD(source_format), CONVERT, SOURCE_GROUP,
	  .help = "format of IN; what its name ends in when not given",
	  .choice = source_format_name, .line_only = true },
	{ "allow-backing", 0, OPTION_FLAG, NULL, FIELD(allow_backing), CREATE, SOURCE_GROUP,
	  .of = OF_DISK | OF_DOMAIN,
	  .help = "let the disk name other files (backing files, extents, data files) that are read, too" },
	{ "allow-backing", 0, OPTION_FLAG, NULL, FIELD(allow_backing), VERIFY, SOURCE_GROUP,
	  .help = "let the disk given with --against name other files that are read, too",
	  .line_only = true },
	{ "allow-backing", 0, OPTION_FLAG, NULL, FIELD(allow_backing), CONVERT, SOURCE_GROUP,
	  .help = "let IN name other files (backing files, extents, data files) that are read, too",
	  .line_only = true },
	{ "sector-size", 0, OPTION_NUMBER, "BYTES", FIELD(sector_size), CREATE, SOURCE_GROUP,
	  .help = "refuse a disk with another logical sector size; make a tree's disk with this one",
	  .choice = sector_size_name },
	{ "stall-timeout", 0, OPTION_NUMBER, "SECONDS", FIELD(stall_timeout), READ, SOURCE_GROUP,
	  .help = "fail when nothing could be read for so long; default 300, 0 waits for ever",
	  .max = 86400, .initial = 300 },

	{ "exclude", 'e', OPTION_LIST, "PATH", FIELD(excludes), CREATE, TREE_GROUP, .of = OF_TREE,
	  .help = "leave out exactly this path and what is below it; may be repeated",
	  .accepted = "a path" },
	{ "exclude-glob", 0, OPTION_LIST, "PATTERN", FIELD(exclude_globs), CREATE, TREE_GROUP,
	  .of = OF_TREE, .help = "leave out what matches; may be repeated, the last match counts",
	  .accepted = "a pattern" },
	{ "exclude-from", 0, OPTION_LIST, "FILE", FIELD(exclude_files), CREATE, TREE_GROUP,
	  .of = OF_TREE, .help = "patterns from a file, one a line; may be repeated",
	  .accepted = "the path of a file" },
	{ "include-mount", 0, OPTION_LIST, "PATH", FIELD(include_mounts), CREATE, TREE_GROUP,
	  .of = OF_TREE, .help = "take in what is mounted there, too; may be repeated",
	  .accepted = "a path" },
	{ "one-file-system", 0, OPTION_FLAG, NULL, FIELD(one_file_system), CREATE, TREE_GROUP,
	  .of = OF_TREE, .help = "take in no mount but /boot and the EFI system partition" },
	{ "keep-going", 0, OPTION_FLAG, NULL, FIELD(keep_going), CREATE, TREE_GROUP, .of = OF_TREE,
	  .help = "leave out what cannot be read, list it, and exit with 3" },
	{ "reset", 0, OPTION_TEXT, "LIST", FIELD(reset), CREATE, TREE_GROUP, .of = OF_TREE,
	  .help = "what the image forgets of who it was: identity (when / is captured), none "
		  "(otherwise), or names of operations separated by commas",
	  .check = identity_list_is_valid, .describe = describe_operations },
	{ "disk-size", 0, OPTION_SIZE, "SIZE", FIELD(disk_size), CREATE, TREE_GROUP, .of = OF_TREE,
	  .help = "size of the disk; what the tree and the free space take, in whole GiB, when "
		  "not given",
	  .min = MIB, .max = UINT64_MAX,
	  .accepted = "a whole number of bytes, or with K, M, G, T or P behind it" },
	{ "free-space", 0, OPTION_SIZE, "SIZE", FIELD(free_space), CREATE, TREE_GROUP,
	  .of = OF_TREE,
	  .help = "so much is free in the image at the least, 1500M when not given; it takes no "
		  "room in the file",
	  .max = 1024 * TIB, .initial = UINT64_MAX,
	  .accepted = "a whole number of bytes, or with K, M, G, T or P behind it" },
	{ "no-boot", 0, OPTION_FLAG, NULL, FIELD(no_boot), CREATE, TREE_GROUP, .of = OF_TREE,
	  .help = "make a data disk that need not boot" },

	{ "domain", 0, OPTION_TEXT, "VM", FIELD(domain), CREATE | INSPECT | RECOVER, DOMAIN_GROUP,
	  .help = "the libvirt domain: its name, UUID or number", .check = is_not_empty,
	  .accepted = "the name, UUID or number of a domain" },
	{ "connect", 0, OPTION_TEXT, "URI", FIELD(connect), VM | PRUNE, DOMAIN_GROUP,
	  .of = OF_DOMAIN,
	  .help = "where its libvirtd is; qemu:///system for root and qemu:///session for others "
		  "when not given",
	  .check = is_not_empty, .accepted = "a URI of libvirt" },
	{ "disk", 0, OPTION_TEXT, "TARGET", FIELD(disk), CREATE | INSPECT, DOMAIN_GROUP,
	  .of = OF_DOMAIN,
	  .help = "which of its disks (vda, ...); the one that it boots from when not given",
	  .check = is_not_empty, .accepted = "the target or the path of a disk" },
	{ "quiesce", 0, OPTION_CHOICE, "HOW", FIELD(quiesce), CREATE | INSPECT, DOMAIN_GROUP,
	  .of = OF_DOMAIN,
	  .help = "whether the guest's filesystems are frozen for the instant of the capture: if "
		  "possible (auto), or else nothing is done (require), or not at all (off)",
	  .choice = quiesce_name },
	{ "freeze-timeout", 0, OPTION_NUMBER, "SECONDS", FIELD(freeze_timeout), CREATE,
	  DOMAIN_GROUP, .of = OF_DOMAIN, .help = "thaw after so long, whatever happens; default 10",
	  .min = 1, .max = 600, .initial = 10 },
	{ "trim", 0, OPTION_FLAG, NULL, FIELD(trim), CREATE, DOMAIN_GROUP, .of = OF_DOMAIN,
	  .help = "let the guest discard its free space first, so that it need not be read" },
	{ "scratch-dir", 0, OPTION_TEXT, "DIR", FIELD(scratch_dir), CREATE, DOMAIN_GROUP,
	  .of = OF_DOMAIN,
	  .help = "where QEMU keeps what the guest overwrites meanwhile, and its socket; "
		  "/var/lib/ccsnap/scratch for root when not given",
	  .check = is_absolute, .accepted = "an absolute path of a directory" },

	{ "format", 0, OPTION_CHOICE, "FORMAT", FIELD(format), UPLOAD, IMAGE_GROUP,
	  .help = "format of IMAGE; what its manifest or name says when not given",
	  .choice = source_format_name, .line_only = true },
	{ "format", 0, OPTION_CHOICE, "FORMAT", FIELD(format), CREATE, IMAGE_GROUP,
	  .help = "format of the image, qcow2 when not given", .choice = image_format_name },
	{ "format", 0, OPTION_CHOICE, "FORMAT", FIELD(format), CONVERT, IMAGE_GROUP,
	  .help = "format of OUT; when not given, what its name ends in or else qcow2",
	  .choice = image_format_name },
	{ "compression", 0, OPTION_CHOICE, "METHOD", FIELD(compression), MAKE, IMAGE_GROUP,
	  .help = "how clusters are packed, zstd when not given; zlib is for readers older than QEMU 5.1",
	  .choice = compression_name },
	{ "level", 0, OPTION_INTEGER, "N", FIELD(level), MAKE, IMAGE_GROUP,
	  .help = "level of the compression: higher is smaller and slower",
	  .describe = describe_levels },
	{ "cluster-size", 0, OPTION_SIZE, "SIZE", FIELD(cluster_size), MAKE, IMAGE_GROUP,
	  .help = "cluster size of qcow2, 64K when not given: a power of two from 4K to 2M",
	  .min = 4 * KIB, .max = 2 * MIB, .check = is_power_of_two,
	  .accepted = "a power of two from 4K to 2M" },
	{ "max-virtual-size", 0, OPTION_SIZE, "SIZE", FIELD(max_virtual_size), MAKE, IMAGE_GROUP,
	  .help = "refuse a disk that is larger than this", .min = 1, .max = UINT64_MAX,
	  .accepted = "a whole number of bytes above 0, or with K, M, G, T or P behind it" },
	{ "threads", 0, OPTION_NUMBER, "N", FIELD(threads), MAKE, IMAGE_GROUP,
	  .help = "how many threads read and pack, 1 to 256; one for each CPU when not given",
	  .min = 1, .max = 256 },
	{ "threads", 0, OPTION_NUMBER, "N", FIELD(threads), VERIFY, IMAGE_GROUP,
	  .help = "how many threads read, 1 to 256; one for each CPU when not given", .min = 1,
	  .max = 256 },

	{ "to", 0, OPTION_TEXT, "DEST", FIELD(to), PUBLISH, WHERE_GROUP,
	  .help = "the store, service or server; the standard folder when not given",
	  .check = is_destination, .describe = describe_destinations },
	{ "to", 0, OPTION_TEXT, "DEST", FIELD(to), LIST | FETCH | PRUNE, WHERE_GROUP,
	  .help = "the store or service; the standard folder when not given", .check = is_store,
	  .describe = describe_stores },
	{ "to", 0, OPTION_TEXT, "DEST", FIELD(to), VERIFY, WHERE_GROUP,
	  .help = "IMAGE is an id or name in this store or service", .check = is_store,
	  .describe = describe_stores, .line_only = true },
	{ "output", 0, OPTION_TEXT, "FILE", FIELD(output), CREATE, WHERE_GROUP,
	  .help = "write the image to this file instead of a store; with a remote --to: keep it "
		  "there, too",
	  .check = is_file_path, .accepted = A_NEW_FILE },
	{ "output", 0, OPTION_TEXT, "FILE", FIELD(output), FETCH, WHERE_GROUP,
	  .help = "the file to write; NAME with the suffix of its format when not given",
	  .check = is_file_path, .accepted = A_NEW_FILE, .line_only = true },
	{ "to-disk", 0, OPTION_TEXT, "DEVICE", FIELD(to_disk), FETCH, WHERE_GROUP,
	  .help = "unpack the image onto this disk, and replace all that it holds",
	  .accepted = "the path of a block device or file", .line_only = true },
	{ "overwrite", 0, OPTION_FLAG, NULL, FIELD(overwrite), MAKE | UPLOAD | FETCH, WHERE_GROUP,
	  .help = "replace an image or file of that name" },
	{ "property", 0, OPTION_LIST, "KEY=VALUE", FIELD(properties), PUBLISH, WHERE_GROUP,
	  .help = "give the image this property; may be repeated", .check = is_property,
	  .accepted = "KEY=VALUE with a KEY, " A_TEXT },
	{ "lock-wait", 0, OPTION_NUMBER, "SECONDS", FIELD(lock_wait), MAKE | UPLOAD | RECOVER,
	  WHERE_GROUP,
	  .help = "wait so long for another run that works on the same name or instance; at most "
		  "604800 (a week)",
	  .max = 604800 },
	{ "series", 0, OPTION_TEXT, "SERIES", FIELD(series), PUBLISH, WHERE_GROUP,
	  .help = "the series that the image belongs to", .check = is_text,
	  .accepted = "the name of a series, " A_TEXT },
	{ "series", 0, OPTION_TEXT, "SERIES", FIELD(series), PRUNE, WHERE_GROUP,
	  .help = "only images of this series", .check = is_text,
	  .accepted = "the name of a series, " A_TEXT },
	{ "series", 0, OPTION_TEXT, "SERIES", FIELD(series), LIST, WHERE_GROUP,
	  .help = "only images of this series", .check = is_text,
	  .accepted = "the name of a series, " A_TEXT, .line_only = true },
	{ "name", 0, OPTION_TEXT, "NAME", FIELD(name), LIST, WHERE_GROUP,
	  .help = "only images of this name", .accepted = "a name", .line_only = true },
	{ "tag", 0, OPTION_LIST, "TAG", FIELD(tags), PUBLISH, WHERE_GROUP, .of = OF_SERVICE,
	  .help = "give the image this tag; may be repeated", .check = is_text,
	  .accepted = "a tag, " A_TEXT },
	{ "tag", 0, OPTION_LIST, "TAG", FIELD(tags), LIST, WHERE_GROUP,
	  .help = "only images with this tag; may be repeated", .check = is_text,
	  .accepted = "a tag, " A_TEXT, .line_only = true },
	{ "keep-last", 0, OPTION_NUMBER, "N", FIELD(keep_last), PRUNE, WHERE_GROUP,
	  .help = "how many of the newest images of the series stay", .min = 1, .max = 1000000 },
	{ "source", 's', OPTION_TEXT, "PATH", FIELD(source), PRUNE, WHERE_GROUP,
	  .help = "only images that were captured from this path on this machine; / when not "
		  "given",
	  .accepted = "the path of a directory, file or block device", .line_only = true },
	{ "domain", 0, OPTION_TEXT, "VM", FIELD(domain), PRUNE, WHERE_GROUP,
	  .help = "only images of this libvirt domain: its name, UUID or number",
	  .check = is_not_empty, .accepted = "the name, UUID or number of a domain",
	  .line_only = true },
	{ "all-sources", 0, OPTION_FLAG, NULL, FIELD(all_sources), PRUNE, WHERE_GROUP,
	  .help = "images of the series from other machines and paths, too" },

	{ "os-cloud", 0, OPTION_TEXT, "CLOUD", FIELD(os_cloud), STORE | VERIFY, SERVICE_GROUP,
	  .of = OF_SERVICE,
	  .help = "the cloud in clouds.yaml; what OS_* in the environment say when not given",
	  .check = is_not_empty, .accepted = "the name of a cloud" },
	{ "work-dir", 0, OPTION_TEXT, "DIR", FIELD(work_dir), CREATE | FETCH | VERIFY,
	  SERVICE_GROUP,
	  .help = "where an image is kept on its way to or from a service; TMPDIR or /var/tmp "
		  "when not given",
	  .check = is_not_empty, .accepted = "the path of a directory" },
	{ "visibility", 0, OPTION_CHOICE, "WHO", FIELD(visibility), PUBLISH, SERVICE_GROUP,
	  .of = OF_SERVICE, .help = "who can see the image; the service's default when not given",
	  .choice = visibility_name },
	{ "protected", 0, OPTION_FLAG, NULL, FIELD(make_protected), PUBLISH, SERVICE_GROUP,
	  .of = OF_SERVICE, .help = "let the service refuse to delete the image" },
	{ "limit-rate", 0, OPTION_SIZE, "BYTES", FIELD(limit_rate), CREATE, SERVICE_GROUP,
	  .of = OF_SERVICE | OF_DOMAIN,
	  .help = "read a running instance, and send, at most so many bytes a second", .min = 1,
	  .max = UINT64_MAX,
	  .accepted = "a whole number of bytes above 0, or with K, M, G, T or P behind it" },
	{ "limit-rate", 0, OPTION_SIZE, "BYTES", FIELD(limit_rate),
	  UPLOAD | LIST | FETCH | PRUNE | VERIFY, SERVICE_GROUP, .of = OF_SERVICE,
	  .help = "send and receive at most so many bytes a second", .min = 1, .max = UINT64_MAX,
	  .accepted = "a whole number of bytes above 0, or with K, M, G, T or P behind it" },
	{ "keep-failed", 0, OPTION_FLAG, NULL, FIELD(keep_failed), PUBLISH, SERVICE_GROUP,
	  .of = OF_SERVICE, .help = "leave at the service what a failed upload has made there" },
	{ "upload-method", 0, OPTION_CHOICE, "HOW", FIELD(upload_method), PUBLISH, SERVICE_GROUP,
	  .of = OF_SERVICE,
	  .help = "send the image directly or stage it for an import; auto imports where the "
		  "service refuses the direct way",
	  .choice = upload_method_name },
	{ "connect-timeout", 0, OPTION_NUMBER, "SECONDS", FIELD(connect_timeout), STORE | VERIFY,
	  SERVICE_GROUP, .help = "give up a connection that is not made in this time; default 30",
	  .min = 1, .max = 3600, .initial = 30 },
	{ "upload-stall-timeout", 0, OPTION_NUMBER, "SECONDS", FIELD(upload_stall_timeout),
	  STORE | VERIFY, SERVICE_GROUP,
	  .help = "give up a transfer or a wait without any progress for so long; default 300",
	  .min = 1, .max = 86400, .initial = 300 },
	{ "upload-timeout", 0, OPTION_NUMBER, "SECONDS", FIELD(upload_timeout), STORE | VERIFY,
	  SERVICE_GROUP,
	  .help = "give up a transfer that takes longer in all; 0, the default: never",
	  .max = 31536000 },

	{ "dry-run", 'd', OPTION_FLAG, NULL, FIELD(dry_run), MAKE, RUN_GROUP,
	  .help = "say what would happen, how big it would get and whether it fits; touch nothing" },
	{ "dry-run", 'd', OPTION_FLAG, NULL, FIELD(dry_run), UPLOAD, RUN_GROUP,
	  .help = "look whether the image would be taken; send nothing" },
	{ "dry-run", 'd', OPTION_FLAG, NULL, FIELD(dry_run), PRUNE, RUN_GROUP,
	  .help = "say which images would be removed; remove none" },
	{ "ignore-warnings", 'f', OPTION_FLAG, NULL, FIELD(ignore_warnings), CREATE, RUN_GROUP,
	  .help = "go on where a warning would end the run: more data than "
		  "CC_SNAPSHOT_MAX_TARBALL_SIZE (MB, 8000) allows, an exclude that hits nothing" },
	{ "yes", 'y', OPTION_FLAG, NULL, FIELD(yes), CREATE | FETCH, RUN_GROUP,
	  .help = "answer yes instead of asking" },
	{ "no-update", 'u', OPTION_FLAG, NULL, FIELD(no_update), CREATE, RUN_GROUP,
	  .help = "look for no newer version; this release never does" },
	{ "report", 0, OPTION_TEXT, "FILE", FIELD(report), MAKE | UPLOAD, RUN_GROUP,
	  .help = "write the JSON report to this file, however the run ends", .check = is_file_path,
	  .accepted = A_NEW_FILE },
	{ "progress", 0, OPTION_CHOICE, "STYLE", FIELD(progress), READ | UPLOAD | FETCH, RUN_GROUP,
	  .help = "how to show how far it is; auto is a bar when stderr is a terminal",
	  .choice = progress_name },
	{ "json", 0, OPTION_FLAG, NULL, FIELD(json), MAKE | STORE | INSPECT, RUN_GROUP,
	  .help = "print the result as JSON" },
	{ "config", 0, OPTION_TEXT, "FILE", FIELD(config), ALL, RUN_GROUP,
	  .help = "read this configuration file instead of the usual two",
	  .accepted = "the path of a file", .line_only = true },
	{ "verbose", 'v', OPTION_COUNT, NULL, FIELD(verbose), ALL, RUN_GROUP,
	  .help = "say more; may be repeated", .max = 9,
	  .accepted = "yes, no, or how often, 0 to 9" },
	{ "quiet", 'q', OPTION_FLAG, NULL, FIELD(quiet), ALL, RUN_GROUP,
	  .help = "say nothing but errors" },

	{ "help", 'h', OPTION_FLAG, NULL, FIELD(help), ALL, OTHER_GROUP, .help = "print this",
	  .line_only = true, .prints = true },
	{ "version", 0, OPTION_FLAG, NULL, FIELD(version), ALL, OTHER_GROUP,
	  .help = "print the version", .line_only = true, .prints = true },
	{ "completion", 0, OPTION_CHOICE, "SHELL", FIELD(completion), ALL, OTHER_GROUP,
	  .help = "print a completion script for this shell", .choice = shell_name,
	  .line_only = true, .prints = true },
	{ 0 },
};

const struct argument_def argument_table[] = {
	{ "NAME", CREATE, 0, is_image_name, AN_IMAGES_NAME },
	{ "IMAGE|ID", VERIFY, 0, NULL, "the path of an image, or its id or name with --to" },
	{ "IMAGE", UPLOAD, 0, NULL, "the path of an image" },
	{ "NAME", UPLOAD, 1, is_image_name, AN_IMAGES_NAME },
	{ "ID|NAME", FETCH, 0, NULL, "the id or name of an image" },
	{ "IN", CONVERT, 0, NULL, "the path of an image" },
	{ "OUT", CONVERT, 1, is_file_path, A_NEW_FILE },
	{ 0 },
};

const struct argument_def *argument_find(const struct command *command, const char *name)
{
	for (const struct argument_def *def = argument_table; def->name; def++)
		if ((def->command & command->bit) && str_equal(def->name, name))
			return def;
	return NULL;
}

const size_t option_count = sizeof option_table / sizeof *option_table - 1;

const struct option_def *option_find(const char *name, size_t len, unsigned among)
{
	for (const struct option_def *def = option_table; def->name; def++)
		if ((def->commands & among) && strlen(def->name) == len &&
		    memcmp(def->name, name, len) == 0)
			return def;
	return NULL;
}

const struct option_def *option_find_letter(char letter, unsigned among)
{
	for (const struct option_def *def = option_table; def->name; def++)
		if ((def->commands & among) && def->letter && def->letter == letter)
			return def;
	return NULL;
}

enum { NAME_MAX_LEN = 32 };

/* Edits (one character more, less or another) that turn a into b. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LEN + 1];
	size_t m = strlen(b);

	for (unsigned j = 0; j <= m; j++)
		row[j] = j;
	for (unsigned i = 1; *a; i++, a++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = MIN(row[j], row[j - 1]) + 1;

			best = MIN(best, diagonal + (*a != b[j - 1]));
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[m];
}

enum { SLIP_MAX = 3 }; /* so many edits are no longer a slip */

const char *command_suggest(const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < command_count && len > SLIP_MAX && len <= NAME_MAX_LEN; i++)
		if (edit_distance(word, commands[i].name) < SLIP_MAX)
			return commands[i].name;
	return NULL;
}

const char *option_suggest(const char *name, unsigned among)
{
	unsigned best = SLIP_MAX;
	const char *found = NULL;
	size_t len = strlen(name);

	if (len < 3 || len > NAME_MAX_LEN)
		return NULL;
	for (const struct option_def *def = option_table; def->name; def++) {
		unsigned distance;

		if (!(def->commands & among))
			continue;
		distance = str_starts(def->name, name) ? 1 : edit_distance(name, def->name);
		if (distance < best && distance < len) {
			best = distance;
			found = def->name;
		}
	}
	return found;
}
