// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/uuid.h"
#include "instance.h"

#include <assert.h>

/* In place of instance.c where ccsnap is built without libvirt. */

static int say_without(struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "this ccsnap was built without libvirt: it captures "
		       "directory trees and disks, but no running instances");
}

struct instance *instance_open(const struct instance_config *cfg, struct err *err)
{
	(void)cfg;
	say_without(err);
	return NULL;
}

int instance_uuid(const char *uri, const char *name, struct uuid_text *out, struct err *err)
{
	(void)uri, (void)name, (void)out;
	return say_without(err);
}

/* Of an instance that was never opened. */

const struct instance_facts *instance_facts(const struct instance *i)
{
	(void)i;
	assert(!"no instance");
	return NULL;
}

struct source *instance_hold(struct instance *i, struct err *err)
{
	(void)i;
	say_without(err);
	return NULL;
}

void instance_end_reading(struct instance *i)
{
	(void)i;
}

int instance_check(struct instance *i, struct err *err)
{
	(void)i;
	return say_without(err);
}

int instance_release(struct instance *i, struct err *err)
{
	(void)i;
	return say_without(err);
}

const struct quiesce_outcome *instance_outcome(const struct instance *i)
{
	(void)i;
	return NULL;
}

uint64_t instance_scratch_used(const struct instance *i)
{
	(void)i;
	return 0;
}

void instance_close(struct instance *i)
{
	(void)i;
}
