/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_BACKUP_H
#define CCSNAP_BACKUP_H

#include "virt/errand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libvirt's pull-mode backup job (https://libvirt.org/formatbackup.html): from the moment
 * when it begins, QEMU shows one disk as it was then, through an NBD server on a unix
 * socket, and keeps what the guest overwrites meanwhile in a scratch file.  When there is no room
 * for that to grow, QEMU stops the guest (DOMAIN_BROKEN), the job stays, and after it is ended
 * the guest still has to be resumed: end it before that.
 */
struct domain;
struct err;

struct backup_request {
	const char *target; /* the disk: "vda"; no other takes part */
	const char *export_name;
	const char *socket;  /* absolute paths, as QEMU sees them, of what is to be made */
	const char *scratch; /* qcow2, made by libvirt */
};

/* What backup_begin says to libvirt (malloc), by the domain's XML of now. */
char *backup_xml(struct domain *d, const struct backup_request *request, struct err *err);

/* 0 when it has begun; 1 with err telling why when this domain can have no such job (another
 * way may work); -1.  target: that of the request.
 */
int backup_begin(struct domain *d, const char *target, const char *xml, struct err *err);

/* The job that runs now, whoever has begun it. */
struct backup_job {
	bool is_backup; /* a backup job; else another kind: kind says which */
	char kind[40];	/* "backup", "migration", "snapshot", ... */
	char *target;	/* of its first disk, NULL: none told */
	char *socket, *scratch;
};

/* 1 with *out (backup_job_free), 0 when there is none, -1.  A look before anything has begun may be
 * cut short; one on the way to undo a job is done in full.
 */
int backup_find(struct domain *d, enum errand_wait wait, struct backup_job *out, struct err *err);
void backup_job_free(struct backup_job *job);

/* End the job that runs.  0, also when none does; waits until it is gone. */
int backup_abort(struct domain *d, struct err *err);

/* How far it is. */
struct backup_progress {
	/* So much of the disk has been written over; the scratch file takes no more than about
	 * that, and less where there were zeros.
	 */
	uint64_t scratch_bytes;
};
int backup_progress(struct domain *d, struct backup_progress *out, struct err *err);

/* Why the last job ended by itself, in libvirt's words; "" when it tells nothing, and when the
 * job was told to end.
 */
void backup_why_ended(struct domain *d, char *text, size_t cap);

#endif
