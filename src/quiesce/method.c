// SPDX-License-Identifier: Apache-2.0
#include "quiesce/method.h"

#include "base/err.h"
#include "quiesce/quiesce_inner.h"
#include "quiesce/scratch.h"
#include "quiesce/undo.h"
#include "virt/domain.h"
#include "virt/hardware.h"

int method_refuse_others(const struct quiesce *q, struct err *err)
{
	const struct virt_disk *disk = q->cfg.disk;
	const char *name = domain_name(q->cfg.domain);
	autofree char *what = NULL;

	if (disk->mirror)
		return err_set(err, ERR_REFUSED,
			       "a job (%s) works on the disk %s of the domain %s; wait until it "
			       "has ended",
			       disk->mirror, disk->target, name);
	if (undo_find_others(q->cfg.domain, NULL, NULL, &what, err) < 0)
		return -1;
	if (!what)
		return 0;
	return err_set(err, ERR_REFUSED, "the domain %s: %s", name, what);
}

int method_open_scratch(struct quiesce *q, struct err *err)
{
	const struct scratch_config cfg = {
		.hardware = q->cfg.hardware,
		.domain = q->cfg.domain,
		.dir = q->cfg.scratch_dir,
		.bytes = q->cfg.scratch_bytes,
	};

	q->scratch = scratch_open(&cfg, err);
	return q->scratch ? 0 : -1;
}

int method_note(const struct quiesce *q, const struct record_note *own, struct err *err)
{
	struct record_note note = quiesce_note(q);

	note.target = q->cfg.disk->target;
	note.scratch_dir = record_lend(scratch_dir(q->scratch));
	note.scratch = own->scratch;
	note.socket = own->socket;
	note.overlay = own->overlay;
	return record_write(q->cfg.record, &note, err);
}
