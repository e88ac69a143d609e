/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_AGENT_H
#define CCSNAP_AGENT_H

#include <stdbool.h>
#include <stddef.h>

/* The QEMU guest agent of a domain, through libvirt.  It runs inside the guest, so it may be
 * absent, slow, dead or lying: every call has an end (agent_set_patience), and every number of
 * its is checked.  agent_probe and agent_is_frozen ask for what libvirt has no call of its own for
 * (virDomainQemuAgentCommand): its log says of such a domain that it is tainted,
 * "custom-ga-command".
 */
struct domain;
struct err;

/* How long libvirt waits for an answer of this domain's agent, in whole seconds from 1.  That
 * is a state of the domain in libvirtd: agent_reset_patience puts back libvirt's own
 * default, which is to wait for ever.
 */
int agent_set_patience(struct domain *d, unsigned seconds, struct err *err);
int agent_reset_patience(struct domain *d, struct err *err);

/* The same was set by somebody else, or will be: calls wait as long. */
void agent_expect_patience(struct domain *d, unsigned seconds);

struct agent_filesystem {
	char *mountpoint, *type; /* as the guest has them */
};

/* What it can do for us. */
struct agent_facts {
	bool answers;
	bool can_freeze; /* has and allows guest-fsfreeze-freeze, -thaw and -status */
	bool can_trim;
	bool is_frozen; /* already, by somebody */
	char version[32];
	char why_not[200]; /* when it does not answer or cannot freeze: in words; else "" */
	struct agent_filesystem *filesystems; /* those on disks, where it tells them */
	size_t filesystem_count;
};

/* Asks it; that it is absent is no error (answers, why_not).  -1 when the domain or the
 * daemon is gone.  Each of its few questions has five seconds, or the patience if that is less.
 * agent_facts_free it.
 */
int agent_probe(struct domain *d, struct agent_facts *out, struct err *err);
void agent_facts_free(struct agent_facts *facts);

/* Freeze every filesystem; *count: how many it says.  After -1 they may be frozen all the
 * same: thaw until agent_is_frozen says no.
 */
int agent_freeze(struct domain *d, unsigned *count, struct err *err);
int agent_thaw(struct domain *d, unsigned *count, struct err *err);

/* 1 or 0; -1 when it cannot be told. */
int agent_is_frozen(struct domain *d, struct err *err);

/* Discard what is free in every filesystem that can (guest-fstrim). */
int agent_trim(struct domain *d, struct err *err);

#endif
