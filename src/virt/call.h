/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CALL_H
#define CCSNAP_CALL_H

#include "base/cleanup.h"
#include "virt/errand.h"
#include "virt/virt_inner.h"

#include <stdbool.h>
#include <stdlib.h>

/* A call of libvirt about a domain, for which libvirtd may wait for its QEMU, its guest agent or
 * its storage, and for ever when those hang.
 */
struct call {
	/* What is to be done, in another thread.  Returns what libvirt returned. */
	int (*make)(virDomainPtr dom, struct call *c);
	const char *complaint; /* "cannot end its backup job" */
	enum errand_wait wait;
	unsigned seconds; /* 0: ERRAND_SECONDS */

	/* With which; copied.  The target, where there is one, is in the message, too. */
	const char *target, *text, *pool_name;
	unsigned flags;

	/* What it brings back; call_free it. */
	char *answer;
	struct {
		virTypedParameterPtr list;
		int count, type;
	} params;
	virDomainBlockJobInfo job;
	virDomainBlockInfo size;
	virStoragePoolPtr pool; /* to free it earlier would make libvirt forget the error */
	virStorageVolPtr volume;
	virStorageVolInfo volume_info;
	struct {
		int state, reason;
	} status;

	/* When it failed: libvirt's error; VIR_ERR_OK when it was left behind, or not begun. */
	bool is_left_behind;
	int code;
	char words[VIRT_WORDS_CAP];
};

/* Returns what libvirt returned; -1 with err filled, "domain NAME, disk TARGET: COMPLAINT: ...". */
int call_make(struct call *c, const struct domain *d, struct err *err);

/* To be made: the job that runs or, by the flags, the one that has ended, into params. */
int call_look_for_job(virDomainPtr dom, struct call *c);

static inline void call_free(struct call *c)
{
	free(steal(&c->answer));
	virTypedParamsFree(steal(&c->params.list), c->params.count);
	if (c->volume)
		virStorageVolFree(steal(&c->volume));
	if (c->pool)
		virStoragePoolFree(steal(&c->pool));
}
#define autocall CLEANUP(call_free)

#endif
