// SPDX-License-Identifier: Apache-2.0
#include "quiesce/freeze.h"

#include "base/clock.h"
#include "base/err.h"
#include "virt/agent.h"
#include "virt/domain.h"
#include "virt/virt.h"

#include <stddef.h>

enum { PAUSE_MS = 50, PAUSE_MAX_MS = 1000 };

/* What the status says counts: that a thaw was answered proves little, nor does it prove
 * anything that one was not.  *count becomes NULL when it was told.
 */
static int try_once(struct domain *d, unsigned **count, struct err *err)
{
	struct err why = { 0 };
	unsigned thawed = 0;
	int rc = agent_thaw(d, &thawed, err), frozen;

	if (rc == 0 && *count)
		*steal(count) = thawed;
	frozen = agent_is_frozen(d, &why);
	if (frozen == 0)
		return 0;
	if (frozen < 0 && rc == 0)
		*err = why;
	if (frozen > 0 && rc == 0)
		err_set(err, ERR_FAILED,
			"domain %s: its guest agent was told to thaw, and says that it is still "
			"frozen",
			domain_name(d));
	return -1;
}

int freeze_end(struct domain *d, unsigned seconds, unsigned *count, struct err *err)
{
	uint64_t start = clock_ns();
	unsigned pause_ms = PAUSE_MS;
	struct err why = { 0 };

	while (try_once(d, &count, &why) < 0) {
		if (!domain_is_active(d))
			return 0;
		if (!virt_is_alive(domain_connection(d)) || clock_seconds_since(start) >= seconds) {
			*err = why;
			return -1;
		}
		clock_sleep_longer_ms(&pause_ms, PAUSE_MAX_MS);
	}
	return 0;
}
