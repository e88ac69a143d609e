/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OVERLAY_H
#define CCSNAP_OVERLAY_H

/* An external disk-only snapshot of one disk: the guest goes on writing to a new overlay
 * file, and what is below it keeps still until it is merged back.  For domains that can
 * have no backup job.
 */
struct chain;
struct domain;
struct err;

/* What overlay_begin says to libvirt (malloc), by the domain's XML of now: an overlay (qcow2, at
 * path, which does not exist yet) for that disk.
 */
char *overlay_xml(struct domain *d, const char *target, const char *path, struct err *err);

/* Make the overlay and let the disk use it; no metadata of a snapshot is kept, no other disk takes
 * part, all or nothing.  Freezing is the caller's business.  Where there is no room for it to grow,
 * libvirt stops the guest (DOMAIN_BROKEN) until it is resumed; so look at that.
 */
int overlay_begin(struct domain *d, const char *target, const char *xml, struct err *err);

/* Merge the overlay into what is below it and put the disk back on that, however far an
 * earlier try came.  0 only when the domain's XML no longer has path in the disk's chain: only
 * then may the file be removed.  No signal ends it early.
 *
 * Merging takes a QEMU.  A domain that is off gets one for that in which the guest never runs,
 * unless its memory is saved in a file.
 */
int overlay_end(struct domain *d, const char *target, const char *path, struct err *err);

/* Which XML: of now, or the one that it would start with the next time. */
enum overlay_view { OVERLAY_NOW, OVERLAY_NEXT };

/* The disk's layers there; chain_free them.  Neither this nor what is below is cut short by a
 * signal.
 */
int overlay_chain(struct domain *d, const char *target, enum overlay_view view, struct chain *out,
		  struct err *err);

/* Is path in the chain of that disk, by the XML of now and by the one that the domain would
 * start with?  1, 0, -1.
 */
int overlay_is_used(struct domain *d, const char *target, const char *path, struct err *err);

/* The commands, as for a shell, that do by hand what overlay_end does (malloc; NULL without
 * memory): for messages, in which overlay_end does not name them.
 */
char *overlay_by_hand(struct domain *d, const char *target, const char *path);

#endif
