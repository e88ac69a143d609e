// SPDX-License-Identifier: Apache-2.0

/* What the record says of the freeze; the rest stays as the methods wrote it (method.c). */
#include "quiesce/quiesce_inner.h"

#include "virt/domain.h"
#include "virt/virt.h"

struct record_note quiesce_note(const struct quiesce *q)
{
	struct record_note note = *record_note(q->cfg.record);

	note.uri = record_lend(virt_uri(domain_connection(q->cfg.domain)));
	note.name = record_lend(domain_name(q->cfg.domain));
	note.run_id = q->contact.run_id;
	return note;
}

/* Who thaws needs the patience, too. */
int quiesce_note_frozen(const struct quiesce *q, struct err *err)
{
	struct record_note note = quiesce_note(q);

	note.frozen = note.patience = true;
	return record_write(q->cfg.record, &note, err);
}

int quiesce_note_thawed(const struct quiesce *q, struct err *err)
{
	struct record_note note = quiesce_note(q);

	note.frozen = false;
	return record_write(q->cfg.record, &note, err);
}

int quiesce_note_gone(const struct quiesce *q, struct err *err)
{
	struct record_note note = quiesce_note(q);

	note.frozen = note.patience = false;
	return record_write(q->cfg.record, &note, err);
}

int quiesce_note_patience(const struct quiesce *q, struct err *err)
{
	struct record_note note = quiesce_note(q);

	note.patience = true;
	return record_write(q->cfg.record, &note, err);
}

int quiesce_forget_patience(const struct quiesce *q, struct err *err)
{
	struct record_note note = quiesce_note(q);

	note.patience = false;
	return record_write(q->cfg.record, &note, err);
}
