// SPDX-License-Identifier: Apache-2.0

/* Which disk is captured, and which cannot be. */
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "virt/disk_source.h"
#include "virt/hardware.h"

#include <stdio.h>
#include <string.h>

/* --- what cannot be captured --- */

static bool is_device(const struct virt_disk *disk, const char *device)
{
	return str_equal(disk->device, device);
}

static bool is_cdrom(const struct virt_disk *disk)
{
	return is_device(disk, "cdrom");
}

static bool is_floppy(const struct virt_disk *disk)
{
	return is_device(disk, "floppy");
}

static bool is_lun(const struct virt_disk *disk)
{
	return is_device(disk, "lun");
}

static bool is_no_disk(const struct virt_disk *disk)
{
	return !is_device(disk, "disk");
}

static bool is_empty(const struct virt_disk *disk)
{
	return !disk->source;
}

static bool is_shareable(const struct virt_disk *disk)
{
	return disk->is_shareable;
}

/* While it runs, it has a layer of libvirt's that is thrown away in the end. */
static bool is_transient_now(const struct virt_disk *disk)
{
	return disk->is_transient && disk->has_backing;
}

static bool is_encrypted(const struct virt_disk *disk)
{
	return disk->is_encrypted;
}

static bool is_part(const struct virt_disk *disk)
{
	return disk->is_part;
}

struct obstacle {
	bool (*is)(const struct virt_disk *disk);
	const char *why;
};

/* A backup job sees only what its own QEMU writes: if others write to the disk as well, half of
 * an old and half of a new one would be read.
 */
static const struct obstacle always[] = {
	{ is_cdrom, "it is a CD-ROM drive" },
	{ is_floppy, "it is a floppy drive" },
	{ is_lun, "it is a LUN that is passed through: its requests go past QEMU" },
	{ is_no_disk, "its kind of device is not known" },
	{ is_shareable, "it is shareable: others may write to it while it is read" },
	{ is_transient_now, "it is transient, and libvirt runs no jobs on such disks: shut the "
			    "domain down" },
};

static const struct obstacle when_off[] = {
	{ is_encrypted, "it is encrypted, and only a QEMU with its secret can read it: start the "
			"domain" },
	{ is_part, "it is a part (slice) of its file: start the domain" },
};

static const char *first_obstacle(const struct obstacle *list, size_t count,
				  const struct virt_disk *disk)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].is(disk))
			return list[i].why;
	return NULL;
}

#define OBSTACLE(list, disk) first_obstacle(list, sizeof(list) / sizeof *(list), disk)

const char *virt_disk_why_not(const struct virt_disk *disk)
{
	const char *why = OBSTACLE(always, disk);

	if (!why)
		why = disk_source_why_not(disk->kind);
	return why ? why : is_empty(disk) ? "it is empty" : NULL;
}

const char *virt_disk_why_not_off(const struct virt_disk *disk)
{
	const char *why = virt_disk_why_not(disk);

	return why ? why : OBSTACLE(when_off, disk);
}

/* --- which one --- */

/* vda, vdb, ..., vdz, vdaa: a longer name comes later. */
static bool is_before(const struct virt_disk *a, const struct virt_disk *b)
{
	size_t m = strlen(a->target), n = strlen(b->target);

	return m != n ? m < n : strcmp(a->target, b->target) < 0;
}

static bool is_same_bus(const struct virt_disk *a, const struct virt_disk *b)
{
	return a->bus && b->bus ? str_equal(a->bus, b->bus) : a->bus == b->bus;
}

/* Could its firmware boot from it?  What it is else is another question. */
static bool may_hold_system(const struct virt_disk *disk)
{
	return !is_cdrom(disk) && !is_floppy(disk);
}

static bool boots_earlier(const struct virt_disk *a, const struct virt_disk *b)
{
	return a->boot_order > 0 && (!b || a->boot_order < b->boot_order);
}

static const struct virt_disk *by_boot_order(const struct hardware *hw)
{
	const struct virt_disk *first = NULL;

	for (size_t i = 0; i < hw->disk_count; i++)
		if (may_hold_system(&hw->disks[i]) && boots_earlier(&hw->disks[i], first))
			first = &hw->disks[i];
	return first;
}

/* libvirt gives the firmware the first disk of its list, which it keeps sorted by name
 * within each bus, with the buses in the order in which the user named them.
 */
static const struct virt_disk *by_name(const struct hardware *hw)
{
	const struct virt_disk *first = NULL;

	for (size_t i = 0; i < hw->disk_count; i++) {
		const struct virt_disk *disk = &hw->disks[i];

		if (may_hold_system(disk) &&
		    (!first || (is_same_bus(disk, first) && is_before(disk, first))))
			first = disk;
	}
	return first;
}

const struct virt_disk *hardware_find_disk(const struct hardware *hw, const char *target)
{
	for (size_t i = 0; i < hw->disk_count; i++)
		if (str_equal(hw->disks[i].target, target))
			return &hw->disks[i];
	return NULL;
}

static const struct virt_disk *by_source(const struct hardware *hw, const char *source)
{
	for (size_t i = 0; i < hw->disk_count; i++)
		if (hw->disks[i].source && str_equal(hw->disks[i].source, source))
			return &hw->disks[i];
	return NULL;
}

/* --- refusals --- */

struct listing {
	char text[600];
};

static size_t append(struct listing *l, size_t len, const char *text)
{
	int n = snprintf(l->text + len, sizeof l->text - len, "%s", text);

	return n < 0 || (size_t)n >= sizeof l->text - len ? sizeof l->text - 1 : len + (size_t)n;
}

/* "vda (/images/a.qcow2), hdc (cdrom, empty)", as far as there is room. */
static struct listing list_disks(const struct hardware *hw)
{
	struct listing l = { .text = "" };
	size_t len = 0;

	for (size_t i = 0; i < hw->disk_count; i++) {
		const struct virt_disk *disk = &hw->disks[i];
		char name[64], source[160];

		len = append(&l, len, i ? ", " : "");
		len = append(&l, len, log_printable(name, sizeof name, disk->target));
		len = append(&l, len, is_no_disk(disk) ? " (not a disk, " : " (");
		len = append(&l, len,
			     log_printable(source, sizeof source,
					   disk->source ? disk->source : "empty"));
		len = append(&l, len, ")");
	}
	return l;
}

static void refuse_unknown(const struct hardware *hw, const char *wanted, struct err *err)
{
	char shown[200];

	log_printable(shown, sizeof shown, wanted);
	if (hw->disk_count == 0)
		err_set(err, ERR_REFUSED, "no disk %s: the domain has none at all", shown);
	else
		err_set(err, ERR_REFUSED, "no disk %s; there are %s", shown, list_disks(hw).text);
}

static void refuse_none(const struct hardware *hw, struct err *err)
{
	if (hw->disk_count == 0)
		err_set(err, ERR_REFUSED, "the domain has no disk");
	else
		err_set(err, ERR_REFUSED,
			"the domain has no disk that could hold a system: only %s",
			list_disks(hw).text);
}

static const struct virt_disk *checked(const struct virt_disk *disk, struct err *err)
{
	const char *why = virt_disk_why_not(disk);
	char target[64], source[200];

	if (!why)
		return disk;
	log_printable(target, sizeof target, disk->target);
	log_printable(source, sizeof source, disk->source ? disk->source : "empty");
	err_set(err, ERR_REFUSED, "disk %s (%s) cannot be captured: %s", target, source, why);
	return NULL;
}

static const struct virt_disk *find_wanted(const struct hardware *hw, const char *wanted,
					   struct err *err)
{
	const struct virt_disk *disk = hardware_find_disk(hw, wanted);

	if (!disk)
		disk = by_source(hw, wanted);
	if (!disk) {
		refuse_unknown(hw, wanted, err);
		return NULL;
	}
	return checked(disk, err);
}

/* A disk behind a controller or bus that is passed through is none that QEMU could read. */
static int check_passed(const struct hardware *hw, const struct virt_disk *disk, struct err *err)
{
	if (hw->passed_boot_order == 0 ||
	    (disk && disk->boot_order > 0 && disk->boot_order < hw->passed_boot_order))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "the domain boots from a device of the host that is passed through to it, "
		       "which cannot be captured; if a disk is meant, name it with --disk: %s",
		       hw->disk_count ? list_disks(hw).text : "it has none");
}

static const struct virt_disk *find_root(const struct hardware *hw, struct err *err)
{
	const struct virt_disk *disk = by_boot_order(hw);

	if (check_passed(hw, disk, err) < 0)
		return NULL;
	if (!disk)
		disk = by_name(hw);
	if (!disk) {
		refuse_none(hw, err);
		return NULL;
	}
	return checked(disk, err);
}

const struct virt_disk *hardware_root_disk(const struct hardware *hw, const char *wanted,
					   struct err *err)
{
	return wanted ? find_wanted(hw, wanted, err) : find_root(hw, err);
}
