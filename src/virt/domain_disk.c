// SPDX-License-Identifier: Apache-2.0
#include "virt/domain.h"

#include "base/log.h"
#include "base/str.h"
#include "virt/call.h"
#include "virt/hardware.h"
#include "virt/virt_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message about a disk: "domain NAME, disk TARGET". */
struct label {
	char text[200];
};

static struct label label_of(const struct domain *d, const struct virt_disk *disk)
{
	struct label l;
	char target[40];

	log_printable(target, sizeof target, disk->target);
	snprintf(l.text, sizeof l.text, "domain %.120s, disk %s", d->name, target);
	return l;
}

/* --- volumes ------------------------------------------------------------------------ */

static int find_volume(virDomainPtr dom, struct call *c)
{
	c->pool = virStoragePoolLookupByName(virDomainGetConnect(dom), c->pool_name);
	c->volume = c->pool ? virStorageVolLookupByName(c->pool, c->text) : NULL;
	return c->volume ? 0 : -1;
}

static int make_volume_size(virDomainPtr dom, struct call *c)
{
	return find_volume(dom, c) < 0 ? -1 : virStorageVolGetInfo(c->volume, &c->volume_info);
}

/* 1: it has none here. */
static int make_volume_path(virDomainPtr dom, struct call *c)
{
	const virStorageVolInfo *info = &c->volume_info;

	if (find_volume(dom, c) < 0)
		return -1;
	if (virStorageVolGetInfo(c->volume, &c->volume_info) == 0 &&
	    info->type != VIR_STORAGE_VOL_FILE && info->type != VIR_STORAGE_VOL_BLOCK)
		return 1;
	c->answer = virStorageVolGetPath(c->volume);
	return c->answer ? 0 : -1;
}

/* c says what and how. */
static int ask_pool(struct domain *d, const struct virt_disk *disk, struct call *c, struct err *err)
{
	int rc;

	if (!disk->pool || !disk->volume)
		return err_set(err, ERR_REFUSED, "%s: it names no volume", label_of(d, disk).text);
	c->target = disk->target;
	c->pool_name = disk->pool;
	c->text = disk->volume;
	rc = call_make(c, d, err);
	if (rc < 0 && c->code != VIR_ERR_OK)
		err->kind = ERR_REFUSED;
	return rc;
}

/* --- sizes -------------------------------------------------------------------------- */

/* What does not run has no QEMU that knows where the volume is. */
static int size_by_pool(struct domain *d, const struct virt_disk *disk,
			struct domain_disk_size *out, struct err *err)
{
	autocall struct call c = {
		.make = make_volume_size,
		.complaint = "cannot ask for the size of its volume",
	};

	if (ask_pool(d, disk, &c, err) < 0)
		return -1;
	out->capacity = c.volume_info.capacity;
	out->allocation = c.volume_info.allocation;
	return 0;
}

/* While it runs, libvirt's "allocation" of a file is how far QEMU has written since it began. */
static int make_size(virDomainPtr dom, struct call *c)
{
	if (virDomainGetBlockInfo(dom, c->target, &c->size, 0) < 0)
		return -1;
	if (virDomainIsActive(dom) == 1)
		c->size.allocation = c->size.physical;
	return 0;
}

static int size_by_domain(struct domain *d, const struct virt_disk *disk,
			  struct domain_disk_size *out, struct err *err)
{
	struct call c = {
		.make = make_size,
		.complaint = "cannot ask for its size",
		.target = disk->target,
	};

	if (call_make(&c, d, err) < 0)
		return -1;
	out->capacity = c.size.capacity;
	out->allocation = c.size.allocation;
	return 0;
}

int domain_disk_size(struct domain *d, const struct virt_disk *disk, struct domain_disk_size *out,
		     struct err *err)
{
	bool is_in_pool = str_equal(disk->kind, "volume") && !domain_is_active(d);

	if ((is_in_pool ? size_by_pool : size_by_domain)(d, disk, out, err) < 0)
		return -1;
	if (out->capacity > 0 && out->capacity <= INT64_MAX)
		return 0;
	return err_set(err, ERR_FAILED, "%s: libvirt tells no size of it", label_of(d, disk).text);
}

/* --- paths -------------------------------------------------------------------------- */

static char *path_itself(struct domain *d, const struct virt_disk *disk, enum errand_wait wait,
			 struct err *err)
{
	char *path;

	(void)wait;
	if (!disk->source) {
		err_set(err, ERR_REFUSED, "%s: the drive is empty", label_of(d, disk).text);
		return NULL;
	}
	path = strdup(disk->source);
	if (!path)
		err_nomem(err);
	return path;
}

static char *path_of_volume(struct domain *d, const struct virt_disk *disk, enum errand_wait wait,
			    struct err *err)
{
	autocall struct call c = {
		.make = make_volume_path,
		.complaint = "cannot find its volume",
		.wait = wait,
	};
	int rc = ask_pool(d, disk, &c, err);

	if (rc == 0)
		return steal(&c.answer);
	if (rc > 0)
		err_set(err, ERR_REFUSED,
			"%s: its volume %s is neither a file nor a block device here; start the "
			"domain, so that QEMU reads it",
			label_of(d, disk).text, disk->volume);
	return NULL;
}

static const struct {
	const char *kind;
	char *(*path)(struct domain *d, const struct virt_disk *disk, enum errand_wait wait,
		      struct err *err);
} kinds[] = {
	{ "file", path_itself },
	{ "block", path_itself },
	{ "volume", path_of_volume },
};

char *domain_find_path(struct domain *d, const struct virt_disk *disk, enum errand_wait wait,
		       struct err *err)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (str_equal(kinds[i].kind, disk->kind))
			return kinds[i].path(d, disk, wait, err);
	err_set(err, ERR_REFUSED,
		"%s: what it lies on (%.40s) has no path here; start the domain, so that QEMU "
		"reads it",
		label_of(d, disk).text, disk->kind);
	return NULL;
}

char *domain_disk_path(struct domain *d, const struct virt_disk *disk, struct err *err)
{
	return domain_find_path(d, disk, ERRAND_CUT_SHORT, err);
}
