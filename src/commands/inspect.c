// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "options.h"
#include "quiesce/quiesce.h"
#include "quiesce/record.h"
#include "quiesce/recover.h"
#include "report/inspection.h"
#include "virt/agent.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/virt.h"

#include <stdio.h>
#include <string.h>

/* One run of inspect, and what the inspection borrows. */
struct look {
	const struct options *opt;
	struct virt *virt;
	struct domain *domain;
	struct domain_status status;
	struct hardware hardware;
	struct agent_facts agent;
	struct inspection found;
	char left[200], would[700], refusal[300];
	char *others;
	bool is_held;	/* by a run that works on it: its agent is not to be disturbed */
	struct err why; /* of a refusal */
};

/* --- looking ------------------------------------------------------------------------- */

static int look_at_domain(struct look *l, struct err *err)
{
	struct inspection *f = &l->found;

	if (domain_status(l->domain, &l->status, err) < 0 ||
	    domain_hardware(l->domain, &l->hardware, err) < 0)
		return -1;
	f->name = domain_name(l->domain);
	f->uuid = domain_uuid(l->domain);
	f->uri = virt_uri(l->virt);
	f->state = l->status.text;
	f->is_active = l->status.state != DOMAIN_OFF && l->status.state != DOMAIN_AWAY;
	f->architecture = l->hardware.architecture;
	f->machine = l->hardware.machine;
	f->firmware = l->hardware.firmware;
	f->agent.has_channel = l->hardware.has_agent_channel;
	f->agent.is_connected = l->hardware.agent_is_connected;
	return 0;
}

static int look_at_disks(struct look *l, struct err *err)
{
	const struct virt_disk *chosen = hardware_root_disk(&l->hardware, l->opt->disk, &l->why);
	size_t count = l->hardware.disk_count;

	if (!chosen)
		l->found.refusal = l->why.text;
	l->found.disks = calloc(count + 1, sizeof *l->found.disks);
	if (!l->found.disks)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		const struct virt_disk *d = &l->hardware.disks[i];
		struct domain_disk_size size = { 0 };
		struct err ignored;

		l->found.disks[i] = (struct inspected_disk){
			.target = d->target,
			.bus = d->bus,
			.device = d->device,
			.kind = d->kind,
			.source = d->source,
			.format = d->format,
			.is_sized = domain_disk_size(l->domain, d, &size, &ignored) == 0,
			.size = size.capacity,
			.allocation = size.allocation,
			.why_not = virt_disk_why_not(d),
			.is_chosen = d == chosen,
		};
	}
	l->found.disk_count = count;
	return 0;
}

static int take_filesystems(struct look *l, struct err *err)
{
	size_t count = l->agent.filesystem_count;

	l->found.agent.filesystems = calloc(count + 1, sizeof *l->found.agent.filesystems);
	if (!l->found.agent.filesystems)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		l->found.agent.filesystems[i] = (struct inspected_filesystem){
			.mountpoint = l->agent.filesystems[i].mountpoint,
			.type = l->agent.filesystems[i].type,
		};
	l->found.agent.filesystem_count = count;
	return 0;
}

static int ask_agent(struct look *l, struct err *err)
{
	struct inspection *f = &l->found;

	if (l->status.state != DOMAIN_RUNNING || !f->agent.has_channel || l->is_held)
		return 0;
	if (agent_probe(l->domain, &l->agent, err) < 0)
		return -1;
	f->agent.was_asked = true;
	f->agent.answers = l->agent.answers;
	f->agent.can_freeze = l->agent.can_freeze;
	f->agent.can_trim = l->agent.can_trim;
	f->agent.is_frozen = l->agent.is_frozen;
	f->agent.version = *l->agent.version ? l->agent.version : NULL;
	f->agent.why_not = *l->agent.why_not ? l->agent.why_not : NULL;
	return take_filesystems(l, err);
}

static int look_for_leftovers(struct look *l, struct err *err)
{
	struct record_note note = { 0 };
	int there = record_look(domain_uuid(l->domain), &note, &l->is_held, err);

	if (there > 0) {
		snprintf(l->left, sizeof l->left, "%s%s%s%s",
			 l->is_held ? "in the hands of a run that works on it"
				    : "left by a dead run",
			 note.frozen ? ", frozen" : "", note.socket ? ", a backup job" : "",
			 note.overlay ? ", an overlay" : "");
		l->found.left = l->left;
	}
	record_note_free(&note);
	return there < 0 ? -1 : 0;
}

/* --- what create would do -------------------------------------------------------------- */

static bool would_quiesce(const struct look *l)
{
	return l->found.agent.can_freeze && !l->found.agent.is_frozen &&
	       !(l->opt->quiesce && str_equal(l->opt->quiesce, quiesce_wish_names[QUIESCE_OFF]));
}

static const char *why_no_quiesce(const struct look *l)
{
	if (l->found.agent.why_not)
		return l->found.agent.why_not;
	if (l->found.agent.is_frozen)
		return "it is frozen already, by somebody else";
	if (!l->found.agent.has_channel)
		return "it has no channel to a guest agent";
	return l->status.state == DOMAIN_RUNNING ? "that is turned off" : "it is paused";
}

static bool is_required(const struct look *l)
{
	return l->opt->quiesce && str_equal(l->opt->quiesce, quiesce_wish_names[QUIESCE_REQUIRE]);
}

static const struct virt_disk *chosen_disk(const struct look *l)
{
	for (size_t i = 0; i < l->found.disk_count; i++)
		if (l->found.disks[i].is_chosen)
			return &l->hardware.disks[i];
	return NULL;
}

static void foresee_offline(struct look *l)
{
	l->found.refusal = virt_disk_why_not_off(chosen_disk(l));
	if (!l->found.refusal && virt_place(l->virt) != VIRT_HERE)
		l->found.refusal = "it does not run, and its disk is on another host";
	snprintf(l->would, sizeof l->would,
		 "read the disk, and keep the domain from being started meanwhile");
}

static void foresee_active(struct look *l)
{
	const struct virt_disk *disk = chosen_disk(l);

	if (disk->mirror) {
		snprintf(l->refusal, sizeof l->refusal,
			 "a job (%s) works on the disk %s; wait until it has ended", disk->mirror,
			 disk->target);
		l->found.refusal = l->refusal;
	} else if (would_quiesce(l))
		snprintf(l->would, sizeof l->would,
			 "freeze the guest's filesystems for an instant, and read the disk as it "
			 "was then while the guest works on");
	else if (is_required(l))
		l->found.refusal = why_no_quiesce(l);
	else
		snprintf(l->would, sizeof l->would,
			 "read the disk as it is at one instant, without freezing the guest: %s",
			 why_no_quiesce(l));
}

static int foresee(struct look *l, struct err *err)
{
	struct inspection *f = &l->found;

	if (f->refusal)
		return 0;
	if (l->status.state == DOMAIN_BUSY || l->status.state == DOMAIN_BROKEN ||
	    l->status.state == DOMAIN_AWAY) {
		f->refusal = l->status.text;
		return 0;
	}
	if (!f->left && recover_others(l->domain, NULL, &l->others, err) < 0)
		return -1;
	if (l->others)
		f->refusal = l->others;
	else if (!f->is_active)
		foresee_offline(l);
	else
		foresee_active(l);
	f->would = f->refusal ? NULL : l->would;
	return 0;
}

/* --- telling ----------------------------------------------------------------------------- */

/* So much of a name is shown. */
enum { SHOWN = 512 };

static void print_disk(const struct inspected_disk *d)
{
	char source[4096], target[SHOWN], format[SHOWN], size[64] = "";

	if (d->is_sized)
		snprintf(size, sizeof size, ", %s, %s allocated", size_format(d->size).text,
			 size_format(d->allocation).text);
	printf("disk         %s%s: %s %s (%s%s)\n", log_printable(target, sizeof target, d->target),
	       d->is_chosen ? " (chosen)" : "", d->kind,
	       log_printable(source, sizeof source, d->source ? d->source : "-"),
	       log_printable(format, sizeof format, d->format), size);
	if (d->why_not)
		printf("             cannot be captured: %s\n",
		       log_printable(source, sizeof source, d->why_not));
}

static void print_agent(const struct inspection *f)
{
	char shown[SHOWN], type[SHOWN];

	if (!f->agent.was_asked)
		printf("agent        %s\n",
		       f->agent.has_channel ? "not asked" : "none: no channel");
	else if (!f->agent.can_freeze)
		printf("agent        %s\n",
		       log_printable(shown, sizeof shown,
				     f->agent.why_not ? f->agent.why_not : "cannot freeze"));
	else
		printf("agent        answers (%s), can freeze%s%s\n",
		       log_printable(shown, sizeof shown,
				     f->agent.version ? f->agent.version : "no version"),
		       f->agent.can_trim ? " and trim" : "",
		       f->agent.is_frozen ? "; frozen already, by somebody else" : "");
	for (size_t i = 0; i < f->agent.filesystem_count; i++)
		printf("filesystem   %s (%s)\n",
		       log_printable(shown, sizeof shown, f->agent.filesystems[i].mountpoint),
		       log_printable(type, sizeof type, f->agent.filesystems[i].type));
}

static void print_found(const struct inspection *f)
{
	char shown[4096], machine[SHOWN];

	printf("domain       %s (%s), UUID %s\n", log_printable(shown, sizeof shown, f->name),
	       f->state, f->uuid);
	printf("at           %s\n", log_printable(shown, sizeof shown, f->uri));
	printf("machine      %s %s, %s\n",
	       log_printable(shown, sizeof shown, f->architecture ? f->architecture : "-"),
	       log_printable(machine, sizeof machine, f->machine ? f->machine : "-"),
	       f->firmware ? f->firmware : "-");
	for (size_t i = 0; i < f->disk_count; i++)
		print_disk(&f->disks[i]);
	print_agent(f);
	if (f->left)
		printf("left         %s; see ccsnap recover\n", f->left);
	if (f->refusal)
		printf("create would refuse: %s\n", log_printable(shown, sizeof shown, f->refusal));
	else
		printf("create would %s\n", log_printable(shown, sizeof shown, f->would));
}

static int print(const struct look *l, struct err *err)
{
	autofree char *json = NULL;

	if (!l->opt->json) {
		print_found(&l->found);
		return 0;
	}
	json = inspection_to_json(&l->found, err);
	if (!json)
		return -1;
	fputs(json, stdout);
	return 0;
}

static int look(struct look *l, struct err *err)
{
	l->virt = virt_open(l->opt->connect, VIRT_MANAGE, err);
	l->domain = l->virt ? domain_find(l->virt, l->opt->domain, err) : NULL;
	if (!l->domain || look_at_domain(l, err) < 0 || look_at_disks(l, err) < 0 ||
	    look_for_leftovers(l, err) < 0 || ask_agent(l, err) < 0 || foresee(l, err) < 0)
		return -1;
	return print(l, err);
}

int command_inspect(const struct options *opt, struct err *err)
{
	struct look l = { .opt = opt };
	int done;

	if (!opt->domain)
		return err_set(err, ERR_USAGE, "say which domain with --domain");
	done = look(&l, err);
	free(l.found.disks);
	free(l.found.agent.filesystems);
	free(l.others);
	agent_facts_free(&l.agent);
	hardware_free(&l.hardware);
	domain_close(l.domain);
	virt_close(l.virt);
	return done;
}
