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

static void pool_cleanup(virStoragePoolPtr *pool)
{
	if (*pool)
		virStoragePoolFree(*pool);
}

static void volume_cleanup(virStorageVolPtr *volume)
{
	if (*volume)
		virStorageVolFree(*volume);
}

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

/* NULL with err filled. */
static virStorageVolPtr find_volume(struct domain *d, const struct virt_disk *disk, struct err *err)
{
	CLEANUP(pool_cleanup) virStoragePoolPtr pool = NULL;
	virStorageVolPtr volume = NULL;

	if (!disk->pool || !disk->volume) {
		err_set(err, ERR_REFUSED, "%s: it names no volume", label_of(d, disk).text);
		return NULL;
	}
	pool = virStoragePoolLookupByName(virt_connection(d->virt), disk->pool);
	if (pool)
		volume = virStorageVolLookupByName(pool, disk->volume);
	if (!volume)
		virt_fail(err, ERR_REFUSED, "%s: cannot find its volume %s", label_of(d, disk).text,
			  disk->volume);
	return volume;
}

/* --- sizes -------------------------------------------------------------------------- */

/* While it runs, libvirt's "allocation" of a file is how far QEMU has written since it began. */
static uint64_t allocation_of(struct domain *d, const virDomainBlockInfo *info)
{
	return virDomainIsActive(d->dom) == 1 ? info->physical : info->allocation;
}

/* What does not run has no QEMU that knows where the volume is. */
static int ask_pool(struct domain *d, const struct virt_disk *disk, struct domain_disk_size *out,
		    struct err *err)
{
	CLEANUP(volume_cleanup) virStorageVolPtr volume = find_volume(d, disk, err);
	virStorageVolInfo info;

	if (!volume)
		return -1;
	if (virStorageVolGetInfo(volume, &info) < 0)
		return virt_fail(err, ERR_FAILED, "%s: cannot ask for its size",
				 label_of(d, disk).text);
	out->capacity = info.capacity;
	out->allocation = info.allocation;
	return 0;
}

static int make_size(virDomainPtr dom, struct call *c)
{
	return virDomainGetBlockInfo(dom, c->target, &c->size, 0);
}

static int ask_domain(struct domain *d, const struct virt_disk *disk, struct domain_disk_size *out,
		      struct err *err)
{
	struct call c = {
		.make = make_size,
		.complaint = "cannot ask for its size",
		.target = disk->target,
	};

	if (call_make(&c, d, err) < 0)
		return -1;
	out->capacity = c.size.capacity;
	out->allocation = allocation_of(d, &c.size);
	return 0;
}

int domain_disk_size(struct domain *d, const struct virt_disk *disk, struct domain_disk_size *out,
		     struct err *err)
{
	bool is_in_pool = str_equal(disk->kind, "volume") && virDomainIsActive(d->dom) == 0;

	if ((is_in_pool ? ask_pool : ask_domain)(d, disk, out, err) < 0)
		return -1;
	if (out->capacity > 0 && out->capacity <= INT64_MAX)
		return 0;
	return err_set(err, ERR_FAILED, "%s: libvirt tells no size of it", label_of(d, disk).text);
}

/* --- paths -------------------------------------------------------------------------- */

static char *path_itself(struct domain *d, const struct virt_disk *disk, struct err *err)
{
	char *path;

	if (!disk->source) {
		err_set(err, ERR_REFUSED, "%s: the drive is empty", label_of(d, disk).text);
		return NULL;
	}
	path = strdup(disk->source);
	if (!path)
		err_nomem(err);
	return path;
}

static char *path_of_volume(struct domain *d, const struct virt_disk *disk, struct err *err)
{
	CLEANUP(volume_cleanup) virStorageVolPtr volume = find_volume(d, disk, err);
	virStorageVolInfo info;
	char *path;

	if (!volume)
		return NULL;
	if (virStorageVolGetInfo(volume, &info) == 0 && info.type != VIR_STORAGE_VOL_FILE &&
	    info.type != VIR_STORAGE_VOL_BLOCK) {
		err_set(err, ERR_REFUSED,
			"%s: its volume %s is neither a file nor a block device here; start the "
			"domain, so that QEMU reads it",
			label_of(d, disk).text, disk->volume);
		return NULL;
	}
	path = virStorageVolGetPath(volume);
	if (!path)
		virt_fail(err, ERR_REFUSED, "%s: its volume has no path", label_of(d, disk).text);
	return path;
}

static const struct {
	const char *kind;
	char *(*path)(struct domain *d, const struct virt_disk *disk, struct err *err);
} kinds[] = {
	{ "file", path_itself },
	{ "block", path_itself },
	{ "volume", path_of_volume },
};

char *domain_disk_path(struct domain *d, const struct virt_disk *disk, struct err *err)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (str_equal(kinds[i].kind, disk->kind))
			return kinds[i].path(d, disk, err);
	err_set(err, ERR_REFUSED,
		"%s: what it lies on (%.40s) has no path here; start the domain, so that QEMU "
		"reads it",
		label_of(d, disk).text, disk->kind);
	return NULL;
}
