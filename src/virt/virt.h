/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_VIRT_H
#define CCSNAP_VIRT_H

#include "base/cleanup.h"

#include <stdbool.h>

/* A connection to a libvirtd.  Nothing of libvirt's own leaves src/virt/: what it says
 * becomes a struct err, once, in virt/error.c.
 *
 * No call here blocks for ever.  A daemon that hangs or goes away fails the call under way
 * within half a minute (keep-alive); one that answers, but waits for a QEMU or a storage that
 * hangs, is left behind in it (virt/call.h).  Nothing but the keep-alive ends what a daemon does
 * without either: virt_is_alive, virt_close, domain_find and domain_find_uuid.
 *
 * Usable from several threads.
 */
struct domain;
struct err;
struct virt;

/* Looking changes nothing: the connection is read-only, and has no word with the agent. */
enum virt_access { VIRT_LOOK, VIRT_MANAGE };

/* uri: NULL for the default, which is $LIBVIRT_DEFAULT_URI, else qemu:///system for root and
 * qemu:///session for others.  ERR_REFUSED with what to do when nothing answers there.
 */
struct virt *virt_open(const char *uri, enum virt_access access, struct err *err);

/* One more connection to where v leads, for undoing what was done there: no signal cuts it
 * short.
 */
struct virt *virt_reopen(const struct virt *v, struct err *err);

/* As libvirt has it in full. */
const char *virt_uri(const struct virt *v);

enum virt_access virt_access(const struct virt *v);

/* Where the hypervisor's files are, seen from here. */
enum virt_place {
	VIRT_HERE,	/* a local socket: its paths are ours */
	VIRT_OVER_SSH,	/* qemu+ssh: a socket there can be forwarded to here */
	VIRT_ELSEWHERE, /* TLS, TCP, libssh: its files and sockets are out of reach */
};
enum virt_place virt_place(const struct virt *v);

/* Does the daemon still answer on it?  When not, a new connection has to be opened. */
bool virt_is_alive(const struct virt *v);

/* "virsh -c URI COMMAND UUID WORD...": what a user types in place of us, as for a shell (malloc;
 * NULL without memory).  The command may have options of its own ("start --paused"); the words
 * are quoted, and NULL ends them.  By UUID, since virsh takes a name of digits for a number.
 */
char *virt_by_hand(struct domain *d, const char *command, ...) __attribute__((sentinel));

/* NULL is fine.  Calls that were left behind keep the connection itself open, until they end. */
void virt_close(struct virt *v);

CLEANUP_TYPE(struct virt, virt, virt_close)
#define autovirt CLEANUP(virt_cleanup)

#endif
