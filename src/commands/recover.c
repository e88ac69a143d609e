// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/uuid.h"
#include "instance.h"
#include "options.h"
#include "quiesce/record.h"
#include "quiesce/recover.h"
#include "virt/virt.h"

#include <stdio.h>

/* One run of recover. */
struct recovery {
	const struct options *opt;
	const char *name;  /* of the domain at hand, for messages */
	struct virt *only; /* with --connect: what was done there; borrowed */
	unsigned found, failed;
};

static void tell(void *ctx, const char *done)
{
	struct recovery *run = ctx;
	char name[512];

	if (!run->opt->quiet)
		printf("%s: %s\n", log_printable(name, sizeof name, run->name), done);
}

/* At the URI where it was begun: elsewhere the same UUID is another domain. */
static int recover_domain(struct recovery *run, const char *uuid, struct err *err)
{
	autorecord struct record *r = record_open(uuid, (unsigned)run->opt->lock_wait, err);

	if (!r)
		return -1;
	if (record_is_clear(r))
		return 0;
	if (run->only && !recover_is_at(record_note(r), run->only))
		return err_set(err, ERR_REFUSED,
			       "what is to be undone was done at %s, not at %s; run ccsnap recover "
			       "without --connect",
			       record_note(r)->uri, virt_uri(run->only));
	run->found++;
	return recover_uuid(run->only, uuid, r, tell, run, err);
}

static int recover_noted(struct recovery *run, const char *uuid, const struct record_note *note,
			 struct err *err)
{
	if (run->only && !recover_is_at(note, run->only))
		return 0;
	run->name = note->name ? note->name : uuid;
	return recover_domain(run, uuid, err);
}

/* One that fails keeps no other back. */
static int recover_recorded(void *ctx, const char *uuid, struct err *err)
{
	struct recovery *run = ctx;
	struct record_note note = { 0 };
	struct err why = { 0 };
	bool is_held;
	int there = record_look(uuid, &note, &is_held, &why);

	(void)err;
	if (there > 0)
		there = recover_noted(run, uuid, &note, &why);
	if (there < 0) {
		log_error("domain %s: %s", note.name ? note.name : uuid, why.text);
		run->failed++;
	}
	record_note_free(&note);
	return 0;
}

static int recover_all(struct recovery *run, struct err *err)
{
	if (record_each(recover_recorded, run, err) < 0)
		return -1;
	if (run->failed)
		return err_set(err, ERR_FAILED, "%u of the domains could not be recovered",
			       run->failed);
	return 0;
}

static int recover_named(struct recovery *run, struct err *err)
{
	struct uuid_text uuid;

	run->name = run->opt->domain;
	if (instance_uuid(run->opt->connect, run->name, &uuid, err) < 0)
		return -1;
	return recover_domain(run, uuid.text, err);
}

static int recover(struct recovery *run, struct err *err)
{
	autovirt struct virt *only = NULL;
	int rc;

	if (run->opt->connect) {
		only = virt_open(run->opt->connect, VIRT_MANAGE, err);
		if (!only)
			return -1;
	}
	run->only = only;
	rc = run->opt->domain ? recover_named(run, err) : recover_all(run, err);
	run->only = NULL;
	return rc;
}

int command_recover(const struct options *opt, struct err *err)
{
	struct recovery run = { .opt = opt };
	int done = recover(&run, err);

	if (done == 0 && run.found == 0 && !opt->quiet)
		printf("nothing to undo\n");
	return done;
}
