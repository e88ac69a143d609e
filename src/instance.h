/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_INSTANCE_H
#define CCSNAP_INSTANCE_H

#include "base/cleanup.h"
#include "quiesce/quiesce.h"
#include "source/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A libvirt domain whose disk is to be captured: found and looked at by instance_open, made to
 * hold still by instance_hold, which yields a source, let go by instance_release.  One that
 * does not run is read like any other disk that nobody else may write to meanwhile.
 *
 * Built without libvirt, instance_open says so and nothing else is ever called.
 */
struct err;
struct instance;

struct instance_config {
	const char *uri;  /* NULL: the default of virt/virt.h */
	const char *name; /* or UUID, or number */
	const char *disk; /* target or path; NULL: the one that it boots from */
	enum quiesce_wish wish;
	unsigned freeze_seconds;
	bool wants_trim;
	const char *scratch_dir; /* NULL: the default of quiesce/scratch.h */
	unsigned lock_wait_seconds;
	enum source_intent intent; /* looking touches nothing, and asks no agent */
	unsigned connections;	   /* how many threads will read */
	unsigned stall_seconds;
	bool allow_backing;
	uint64_t bytes_per_second; /* 0: no limit */
};

struct instance_facts {
	const char *uri, *name, *uuid;
	const char *state; /* in words */
	bool is_active;
	bool is_like_after_power_cut; /* off, but it crashed, or its memory is saved in a file */
	const char *disk;	      /* the target */
	const char *bus, *path, *format;
	const char *firmware, *architecture; /* "uefi", "x86_64"; NULL: not said */
	uint64_t size, allocation;	     /* bytes */
	unsigned sector_size;
	bool has_agent; /* as far as libvirt knows without asking it */
};

/* Finds it, clears what a dead run of ours left with it, and looks whether all that the capture
 * will need is there (unless it only looks).  ERR_REFUSED with the reason for what stands
 * in the way, ERR_BUSY when another run works on it.
 */
struct instance *instance_open(const struct instance_config *cfg, struct err *err);

const struct instance_facts *instance_facts(const struct instance *i);

/* The instant.  The source is the instance's, and good until instance_release. */
struct source *instance_hold(struct instance *i, struct err *err);

/* No more will be read: the source is gone.  To be called before anything is asked of an
 * instance whose reading has failed: QEMU may wait for a reader that does not take its answers.
 */
void instance_end_reading(struct instance *i);

/* When reading ended, well or not: was it that one instant?  -1 with what became of it. */
int instance_check(struct instance *i, struct err *err);

/* After hold, whatever became of it.  -1: the domain is not as it was; err says what to do. */
int instance_release(struct instance *i, struct err *err);

/* NULL when there was nothing to hold still. */
const struct quiesce_outcome *instance_outcome(const struct instance *i);
uint64_t instance_scratch_used(const struct instance *i);

void instance_close(struct instance *i); /* NULL is fine */

CLEANUP_TYPE(struct instance, instance, instance_close)
#define autoinstance CLEANUP(instance_cleanup)

/* The UUID of the domain of that name, UUID or number, in *out; one that is a UUID need not
 * be there any more.
 */
struct uuid_text;
int instance_uuid(const char *uri, const char *name, struct uuid_text *out, struct err *err);

#endif
