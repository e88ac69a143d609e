// SPDX-License-Identifier: Apache-2.0
#include "system/kernels.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/bls.h"
#include "system/bootfiles.h"
#include "system/edit.h"
#include "system/edit_inner.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What follows the prefix tells a kernel's initrd and, as a rule, its version. */
static const struct place {
	const char *pattern, *prefix;
} boot_places[] = {
	{ "boot/vmlinuz-*", "boot/vmlinuz" }, { "boot/vmlinux-*", "boot/vmlinux" },
	{ "boot/Image-*", "boot/Image" },     { "boot/kernel-*", "boot/kernel" },
	{ "boot/vmlinuz", "boot/vmlinuz" },   { "boot/vmlinux", "boot/vmlinux" },
	{ "boot/Image", "boot/Image" },
};

/* The directory is named after the version, and an initrd may lie beside the kernel. */
static const char kernel_install[] = "boot/*/*/linux"; /* kernel-install(8) */
static const char packages[] = "usr/lib/modules/*/vmlinuz";

enum { KERNELS_MAX = 1000 }; /* nobody has more, and each is compared with all */

/* What stands in front of and behind "-6.1.0-13-amd64". */
static const struct {
	const char *before, *after;
} initrd_names[] = {
	{ "boot/initrd.img", "" }, { "boot/initramfs", ".img" }, { "boot/initrd", "" },
	{ "boot/initrd", ".img" }, { "boot/initramfs", "" },
};

static const char *const no_kernels[] = { ".hmac",     ".sig",	    ".signed",
					  ".dpkg-tmp", ".dpkg-new", ".dpkg-bak" };

static void kernel_free(struct kernel *k)
{
	free(k->path);
	free(k->version);
	free(k->initrd);
}

void kernels_free(struct kernels *k)
{
	for (size_t i = 0; i < k->len; i++)
		kernel_free(&k->at[i]);
	free(k->at);
	*k = (struct kernels){ 0 };
}

static bool has_file(const struct edit *e, const char *path, uint32_t *node)
{
	*node = edit_find_file(e->model, path);
	return *node != MODEL_NONE && e->model->nodes[*node].size > 0;
}

static bool is_candidate(const char *path)
{
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	for (size_t i = 0; i < sizeof no_kernels / sizeof *no_kernels; i++)
		if (str_ends(path, no_kernels[i]))
			return false;
	return true;
}

/* Another name of a kernel that is there already ("boot/vmlinuz")? */
static bool is_known(const struct kernels *k, uint32_t node)
{
	for (size_t i = 0; i < k->len; i++)
		if (k->at[i].node == node)
			return true;
	return false;
}

/* *out NULL: there is no such file.  Takes path. */
static int try_initrd(const struct edit *e, char *path, char **out, struct err *err)
{
	uint32_t node;

	*out = NULL;
	if (!path)
		return err_nomem(err);
	if (has_file(e, path, &node))
		*out = path;
	else
		free(path);
	return 0;
}

static int find_boot_initrd(const struct edit *e, const char *suffix, char **out, struct err *err)
{
	*out = NULL;
	for (size_t i = 0; i < sizeof initrd_names / sizeof *initrd_names && !*out; i++) {
		char *path =
			str_format("%s%s%s", initrd_names[i].before, suffix, initrd_names[i].after);

		if (try_initrd(e, path, out, err) < 0)
			return -1;
	}
	return 0;
}

static int find_initrd_beside(const struct edit *e, const char *kernel, char **out, struct err *err)
{
	static const char *const names[] = { "initrd", "initrd.img", "initramfs.img" };
	int dir = (int)(strrchr(kernel, '/') - kernel);

	*out = NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names && !*out; i++)
		if (try_initrd(e, str_format("%.*s/%s", dir, kernel, names[i]), out, err) < 0)
			return -1;
	return 0;
}

/* What is no kernel, or known, is none of our business: *out is NULL then. */
static int kernels_add(const struct edit *e, struct kernels *k, const char *path,
		       const char *version, struct kernel **out, struct err *err)
{
	uint32_t node;

	*out = NULL;
	if (!is_candidate(path) || !has_file(e, path, &node) || is_known(k, node) ||
	    k->len == KERNELS_MAX)
		return 0;
	if (!array_room(k->at, k->cap, k->len + 1))
		return err_nomem(err);
	*out = &k->at[k->len++];
	**out = (struct kernel){ .path = strdup(path), .node = node };
	if (isdigit((unsigned char)*version))
		(*out)->version = strdup(version);
	if (!(*out)->path || (isdigit((unsigned char)*version) && !(*out)->version))
		return err_nomem(err);
	return 0;
}

/* suffix: what its name has in common with its initrd's, "-6.1.0-13-amd64". */
static int add_with_suffix(const struct edit *e, struct kernels *k, const char *path,
			   const char *suffix, struct err *err)
{
	struct kernel *kernel;

	if (kernels_add(e, k, path, suffix + (*suffix == '-'), &kernel, err) < 0)
		return -1;
	return kernel ? find_boot_initrd(e, suffix, &kernel->initrd, err) : 0;
}

static int find_in_boot(const struct edit *e, struct kernels *out, struct err *err)
{
	for (size_t i = 0; i < sizeof boot_places / sizeof *boot_places; i++) {
		autoglob char **paths = edit_glob(e, boot_places[i].pattern, err);
		int done = paths ? 0 : -1;

		for (char **p = paths; done == 0 && *p; p++)
			done = add_with_suffix(e, out, *p, *p + strlen(boot_places[i].prefix), err);
		if (done < 0)
			return -1;
	}
	return 0;
}

static int add_versioned(const struct edit *e, struct kernels *out, char *path, struct err *err)
{
	char *end = strrchr(path, '/'), *version;
	size_t before = out->len;
	autofree char *suffix = NULL;
	struct kernel *kernel;

	*end = '\0';
	version = strrchr(path, '/') + 1;
	suffix = str_format("-%s", version);
	*end = '/';
	if (!suffix)
		return err_nomem(err);
	if (add_with_suffix(e, out, path, suffix, err) < 0)
		return -1;
	kernel = out->len > before ? &out->at[before] : NULL;
	if (!kernel || kernel->initrd)
		return 0;
	return find_initrd_beside(e, path, &kernel->initrd, err);
}

static int find_versioned(const struct edit *e, const char *pattern, struct kernels *out,
			  struct err *err)
{
	autoglob char **paths = edit_glob(e, pattern, err);
	int done = paths ? 0 : -1;

	for (char **p = paths; done == 0 && *p; p++)
		done = add_versioned(e, out, *p, err);
	return done;
}

struct esp_search {
	const struct edit *edit;
	struct kernels *out;
};

/* The value of key, a path on the ESP, as one in the tree; NULL when there is none. */
static int esp_path(const struct bootfile *file, const char *key, char **out, struct err *err)
{
	char value[4096];

	*out = NULL;
	if (!bls_value(file->text, key, value, sizeof value))
		return 0;
	*out = str_format("%.*s/%s", (int)strlen(file->esp), file->path,
			  value + strspn(value, "/"));
	return *out ? 0 : err_nomem(err);
}

static int add_from_entry(void *ctx, const struct bootfile *file, struct err *err)
{
	const struct esp_search *search = ctx;
	autofree char *path = NULL;
	char *initrd, version[256];
	struct kernel *kernel;

	if (file->kind != BOOTFILE_ENTRY || !file->esp || !file->text.at)
		return 0;
	bls_value(file->text, "version", version, sizeof version);
	if (esp_path(file, "linux", &path, err) < 0)
		return -1;
	if (!path)
		return 0;
	if (kernels_add(search->edit, search->out, path, version, &kernel, err) < 0)
		return -1;
	if (!kernel)
		return 0;
	if (esp_path(file, "initrd", &initrd, err) < 0)
		return -1;
	return initrd ? try_initrd(search->edit, initrd, &kernel->initrd, err) : 0;
}

/* systemd-boot's: nothing but its entries tells where they are. */
static int find_on_esp(const struct edit *e, struct kernels *out, struct err *err)
{
	struct esp_search search = { e, out };

	return bootfiles_walk(e, add_from_entry, &search, err);
}

/* Each place is looked at only when there are none in those before. */
static int find_anywhere(const struct edit *e, struct kernels *out, struct err *err)
{
	if (find_in_boot(e, out, err) < 0)
		return -1;
	if (!out->len && find_versioned(e, kernel_install, out, err) < 0)
		return -1;
	if (!out->len && find_on_esp(e, out, err) < 0)
		return -1;
	return out->len ? 0 : find_versioned(e, packages, out, err);
}

static bool is_for_rescue(const char *path)
{
	return strstr(path, "rescue") || strstr(path, "kdump") || str_ends(path, ".old") ||
	       str_ends(path, ".bak");
}

static int compare(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	int order = is_for_rescue(x->path) - is_for_rescue(y->path);

	if (!order)
		order = !x->version - !y->version;
	if (!order && x->version)
		order = strverscmp(y->version, x->version);
	return order ? order : strverscmp(y->path, x->path);
}

int kernels_find(const struct edit *e, struct kernels *out, struct err *err)
{
	*out = (struct kernels){ 0 };
	if (find_anywhere(e, out, err) < 0) {
		kernels_free(out);
		return -1;
	}
	if (out->len)
		qsort(out->at, out->len, sizeof *out->at, compare);
	return 0;
}
