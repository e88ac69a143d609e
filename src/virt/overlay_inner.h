/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OVERLAY_INNER_H
#define CCSNAP_OVERLAY_INNER_H

/* What overlay*.c share. */
struct domain;
struct err;

/* Is path in the chain of the domain's definition?  While the domain runs, that is what the XML
 * says; else also what lies below the file that it names.  1, 0, -1.
 */
int overlay_is_defined(struct domain *d, const char *target, const char *path, struct err *err);

/* As overlay_end, but of a domain that is off nothing is merged: -1 when there is something to
 * merge.
 */
int overlay_merge(struct domain *d, const char *target, const char *path, struct err *err);

#endif
