/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HARDWARE_H
#define CCSNAP_HARDWARE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* What a domain's XML says (https://libvirt.org/formatdomain.html), as far as a capture needs
 * it.  The XML is the only place where a disk's format is looked up: never its content.
 */
struct err;

struct virt_disk {
	char *target; /* "vda"; unique in the domain */
	char *bus;    /* "virtio", "scsi", ...; NULL: not said */
	char *device; /* "disk", "cdrom", "floppy", "lun" */
	char *kind;   /* of the source: "file", "block", "volume", "network", "nvme", ... */
	char *source; /* for people, and the path where the kind has one; NULL: empty drive */
	char *pool, *volume; /* of kind volume */
	char *format;	     /* of the driver: "raw", "qcow2"; "raw" when the XML has none */
	char *mirror;	     /* the job that copies it elsewhere ("copy", ...); NULL: none */
	bool is_shareable, is_transient;
	bool has_backing;     /* the XML tells of a layer below */
	bool is_encrypted;    /* below QEMU: what the guest sees is plain */
	bool is_part;	      /* QEMU shows a part of the source only (<slices>) */
	unsigned boot_order;  /* from 1; 0: none */
	unsigned sector_size; /* logical, as it stands there; 0: not said, which is 512 */
};

struct hardware {
	char *architecture, *machine; /* "x86_64", "pc-q35-7.2" */
	char *firmware;		      /* "bios" or "uefi" */
	struct virt_disk *disks;      /* as the XML has them, which libvirt keeps in order */
	size_t disk_count;
	bool boots_host_kernel;	    /* from a file of the host: its disk may not boot by itself */
	unsigned passed_boot_order; /* the first of a host's device passed through; 0: none */

	bool has_agent_channel;	 /* org.qemu.guest_agent.0 */
	bool agent_is_connected; /* as libvirt sees it; only while it runs */

	/* The user and group under which its QEMU runs ("+64055:+107" or names), NULL: the
	 * same as the daemon's.
	 */
	char *qemu_label;
};

/* ERR_FAILED for what is no domain's XML; whatever it holds, time and memory are bounded. */
int hardware_parse(const char *xml, struct hardware *out, struct err *err);
void hardware_free(struct hardware *hw);

/* The one with that target; NULL: there is none. */
const struct virt_disk *hardware_find_disk(const struct hardware *hw, const char *target);

/* The disk to capture: the one whose target (or source path) is wanted, else the first by boot
 * order among disks; else the one that libvirt tells the firmware to boot: on the bus of the
 * first disk, the first by target name.  Borrowed.  ERR_REFUSED with the disks that there are
 * when none is meant, or with the reason when the meant one cannot be captured: it is never
 * passed over for another.
 */
const struct virt_disk *hardware_root_disk(const struct hardware *hw, const char *wanted,
					   struct err *err);

/* Why that one cannot be captured, in words; NULL when it can. */
const char *virt_disk_why_not(const struct virt_disk *disk);

/* The same while no QEMU runs, so that its file or device has to be read directly. */
const char *virt_disk_why_not_off(const struct virt_disk *disk);

#define autohardware CLEANUP(hardware_free)

#endif
