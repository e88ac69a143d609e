// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "commands/commands.h"

/* In place of inspect.c and recover.c where ccsnap is built without libvirt. */

static int say_without(struct err *err)
{
	return err_set(err, ERR_REFUSED, "this ccsnap was built without libvirt");
}

int command_inspect(const struct options *opt, struct err *err)
{
	(void)opt;
	return say_without(err);
}

int command_recover(const struct options *opt, struct err *err)
{
	(void)opt;
	return say_without(err);
}
