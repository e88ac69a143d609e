/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CALL_H
#define CCSNAP_CALL_H

#include "base/cleanup.h"
#include "virt/errand.h"
#include "virt/virt_inner.h"

#include <stdbool.h>
#include <stdlib.h>

/* A call of libvirt about a domain, for which libvirtd may wait for its QEMU or its guest agent,
 * and for ever when those hang.
 */
struct call {
	/* What is to be done, in another thread.  Returns what libvirt returned. */
	int (*make)(virDomainPtr dom, struct call *c);
	const char *complaint; /* "cannot end its backup job" */
	enum errand_wait wait;
	unsigned seconds; /* 0: ERRAND_SECONDS */

	/* With which; copied.  The target, where there is one, is in the message, too. */
	const char *target, *text;
	unsigned flags;

	/* What it brings back; call_free it. */
	char *answer;
	struct {
		virTypedParameterPtr list;
		int count, type;
	} params;
	virDomainBlockJobInfo job;
	virDomainBlockInfo size;

	/* When it failed: libvirt's error; VIR_ERR_OK when it was left behind, or not begun. */
	bool is_left_behind;
	int code;
	char words[VIRT_WORDS_CAP];
};

/* Returns what libvirt returned; -1 with err filled, "domain NAME, disk TARGET: COMPLAINT: ...". */
int call_make(struct call *c, struct domain *d, struct err *err);

static inline void call_free(struct call *c)
{
	free(steal(&c->answer));
	virTypedParamsFree(steal(&c->params.list), c->params.count);
}
#define autocall CLEANUP(call_free)

#endif
