/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_DOMAIN_H
#define CCSNAP_DOMAIN_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

/* A domain (virtual machine) of a libvirtd: found, looked at.  Messages name it. */
struct domain;
struct err;
struct hardware;
struct virt;
struct virt_disk;

/* By name, else by UUID, else by the number that it runs under.  The connection has to
 * outlive it.  ERR_REFUSED when there is none.
 */
struct domain *domain_find(struct virt *v, const char *which, struct err *err);

/* By its UUID alone: another domain may have that for a name. */
struct domain *domain_find_uuid(struct virt *v, const char *uuid, struct err *err);

/* ERR_REFUSED where the connection may only look at it, whoever has decided that. */
int domain_may_be_managed(struct domain *d, struct err *err);

const char *domain_name(const struct domain *d);
const char *domain_uuid(const struct domain *d); /* in lower case with dashes */
struct virt *domain_connection(const struct domain *d);

/* What can be done with it now. */
enum domain_state {
	DOMAIN_RUNNING,
	DOMAIN_PAUSED, /* by a user or in standby: it neither works nor answers */
	DOMAIN_OFF,
	DOMAIN_AWAY, /* off here since it was migrated: it may run elsewhere, with the same disk */
	DOMAIN_BUSY, /* passing: starting up, shutting down, being saved or migrated */
	DOMAIN_BROKEN, /* crashed, or stopped by an error of its disks */
};

struct domain_status {
	enum domain_state state;
	char text[80]; /* in words: "running", "paused by a user", "being migrated" */

	/* Paused since there was no room, say, for what the guest wrote: once that is mended, or
	 * the job that needed the room is ended, domain_resume lets it go on.
	 */
	bool is_stopped_by_io_error;

	/* Its guest has ended, and its QEMU is about to. */
	bool is_shutting_down;

	/* Off, but it goes on where it was when its memory is restored: its disks are like after
	 * a power cut.
	 */
	bool has_saved_memory;

	/* Off since it crashed: likewise. */
	bool has_crashed;
};

int domain_status(struct domain *d, struct domain_status *out, struct err *err);

/* The same as far as its state alone tells: neither jobs nor saved memory are asked for, which
 * takes time, and no signal cuts it short.  For undoing things.
 */
int domain_look(struct domain *d, struct domain_status *out, struct err *err);

/* As domain_look tells; false also when nothing answers. */
bool domain_is_shutting_down(struct domain *d);

/* Did the disk, or any when target is NULL, have no room for what the guest wrote, so that it was
 * stopped?  1, 0, -1 when libvirt cannot tell.
 */
int domain_is_out_of_room(struct domain *d, const char *target, struct err *err);

/* Let one that is paused go on; one that runs does so already. */
int domain_resume(struct domain *d, struct err *err);

/* Does a QEMU live for it?  False only when libvirt says so, not when nothing answers. */
bool domain_is_active(struct domain *d);

/* The id under which it runs, as libvirt tells now; -1 when it does not run, and when nothing
 * answers.  Another id: another start.  The same one proves little once the daemon, too, was
 * started anew: it counts on from the largest that it finds running.
 */
int domain_run_id(const struct domain *d);

/* Its XML, of now while it runs, else as it would start; hardware_free it. */
int domain_hardware(struct domain *d, struct hardware *out, struct err *err);

/* Of a disk: what its user sees, and what of the host's storage it takes. */
struct domain_disk_size {
	uint64_t capacity, allocation;
};
int domain_disk_size(struct domain *d, const struct virt_disk *disk, struct domain_disk_size *out,
		     struct err *err);

/* The path of a file or block device that the disk lies on (malloc), through the storage pool
 * if it is a volume.  ERR_REFUSED with the reason for what has no path here.
 */
char *domain_disk_path(struct domain *d, const struct virt_disk *disk, struct err *err);

/* Keep the files and block devices that it needs from ever being replaced by one of ours
 * (io_protect), as far as they are here: all layers of all its disks, by the XML of now and by the
 * one that it would start with, and what its firmware and kernel are in.
 */
void domain_protect_files(struct domain *d);

void domain_close(struct domain *d); /* NULL is fine */

CLEANUP_TYPE(struct domain, domain, domain_close)
#define autodomain CLEANUP(domain_cleanup)

#endif
