// SPDX-License-Identifier: Apache-2.0
#include "quiesce/by_hand.h"

#include "base/err.h"
#include "virt/virt.h"

#include <stdlib.h>

int by_hand(char *command, struct err *err)
{
	if (command)
		err_hint(err, "by hand: %s", command);
	free(command);
	return -1;
}

int by_hand_thaw(struct domain *d, struct err *err)
{
	by_hand(virt_by_hand(d, "domfsthaw", NULL), err);
	return err_hint(err,
			"where that does not reach the agent, restart libvirtd (guests go on), "
			"or the agent in the guest, before");
}

int by_hand_reset_patience(struct domain *d, struct err *err)
{
	return by_hand(virt_by_hand(d, "guest-agent-timeout", "--timeout", "-2", NULL), err);
}
