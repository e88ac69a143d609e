// SPDX-License-Identifier: Apache-2.0
#include "commands/local_image.h"

#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "dest/manifest.h"
#include "plan.h"
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

char *local_image_manifest_path(const char *image)
{
	const char *slash = strrchr(image, '/'), *dot = strrchr(slash ? slash : image, '.');
	int stem = dot ? (int)(dot - image) : (int)strlen(image);

	return str_format("%.*s%s", stem, image, DEST_MANIFEST_SUFFIX);
}

/* Where none is named, none need be there. */
static bool is_missing(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static int load_manifest(struct local_image *image, const char *path, struct err *err)
{
	size_t len;
	autofree char *text = io_read_file(AT_FDCWD, path, MANIFEST_MAX, &len, err);

	if (!text || manifest_from_json(text, len, path, &image->info, err) < 0)
		return -1;
	image->has_manifest = true;
	return 0;
}

static int set_format(struct local_image *image, const char *path, const char *asked,
		      struct err *err)
{
	image->format = asked		      ? asked
			: image->has_manifest ? image->info.format
					      : plan_format_of_name(path);
	if (image->format && source_format_find(image->format))
		return 0;
	if (image->format)
		return err_set(err, ERR_FAILED,
			       "the manifest of %s names a format that is not known here: %s", path,
			       image->format);
	return err_set(err, ERR_USAGE, "the name %s does not tell its format; say it with --format",
		       path);
}

int local_image_load(struct local_image *out, const char *path, const char *manifest,
		     const char *format, struct err *err)
{
	autofree char *beside = manifest ? NULL : local_image_manifest_path(path);

	*out = (struct local_image){ 0 };
	if (!manifest && !beside)
		return err_nomem(err);
	if (manifest || !is_missing(beside)) {
		if (load_manifest(out, manifest ? manifest : beside, err) < 0)
			return -1;
	}
	return set_format(out, path, format, err);
}

void local_image_free(struct local_image *image)
{
	image_info_free(&image->info);
}
