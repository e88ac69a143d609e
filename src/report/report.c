// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "config.h"
#include "report/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

const char *const report_phase_names[PHASE_COUNT] = {
	[PHASE_PLAN] = "plan",	     [PHASE_CHECK] = "check",	  [PHASE_HOLD] = "hold",
	[PHASE_CAPTURE] = "capture", [PHASE_RELEASE] = "release", [PHASE_HASH] = "hash",
	[PHASE_PUBLISH] = "publish",
};

static const char *const status_names[] = {
	[REPORT_OK] = "ok",	      [REPORT_WARNINGS] = "warnings",
	[REPORT_FAILED] = "failed",   [REPORT_REFUSED] = "refused",
	[REPORT_BUSY] = "busy",	      [REPORT_INTERRUPTED] = "interrupted",
	[REPORT_DRY_RUN] = "dry_run",
};

void report_init(struct report *r)
{
	*r = (struct report){ .started_at = clock_now() };
	r->creation_seconds = r->upload_seconds = r->boot_seconds = -1;
	for (size_t i = 0; i < PHASE_COUNT; i++)
		r->phase_seconds[i] = -1;
	r->image.level = -1;
}

void report_free(struct report *r)
{
	for (size_t i = 0; i < r->warning_count; i++)
		free(r->warnings[i]);
	free(r->warnings);
	r->warnings = NULL;
	r->warning_count = 0;
}

static int keep_warning(struct report *r, const char *warning)
{
	char **grown;

	if (r->warning_count == REPORT_WARNINGS_MAX)
		return -1;
	grown = reallocarray(r->warnings, r->warning_count + 1, sizeof *grown);
	if (!grown)
		return -1;
	r->warnings = grown;
	grown[r->warning_count] = strdup(warning);
	if (!grown[r->warning_count])
		return -1;
	r->warning_count++;
	return 0;
}

int report_phase_done(struct report *r, enum report_phase phase, uint64_t start, int done)
{
	r->phase_seconds[phase] = MAX(r->phase_seconds[phase], 0) + clock_seconds_since(start);
	if (done < 0)
		r->error_phase = report_phase_names[phase];
	return done;
}

void report_warn(void *report, const char *warning)
{
	struct report *r = report;

	if (keep_warning(r, warning) < 0)
		r->warnings_omitted++;
}

/* --- sections --- */

static json_t *phases(const struct report *r)
{
	json_t *array = json_array();
	int bad = 0;

	for (size_t i = 0; i < PHASE_COUNT; i++) {
		json_t *phase;

		if (!(r->phase_seconds[i] >= 0))
			continue;
		phase = json_object();
		bad |= value_put(phase, "name", value_text(report_phase_names[i]));
		bad |= value_put(phase, "seconds", value_seconds(r->phase_seconds[i]));
		bad |= value_append(array, phase);
	}
	return value_finish(array, bad);
}

static json_t *domain(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->source.domain.name)
		return json_null();
	o = json_object();
	bad |= value_put(o, "name", value_text(r->source.domain.name));
	bad |= value_put(o, "uuid", value_text(r->source.domain.uuid));
	bad |= value_put(o, "uri", value_text(r->source.domain.uri));
	bad |= value_put(o, "state", value_text(r->source.domain.state));
	bad |= value_put(o, "disk", value_text(r->source.domain.disk));
	return value_finish(o, bad);
}

static json_t *source(const struct report *r)
{
	bool opened = r->source.logical_sector_size != 0;
	json_t *o;
	int bad = 0;

	if (!r->source.kind)
		return json_null();
	o = json_object();
	bad |= value_put(o, "kind", value_text(r->source.kind));
	bad |= value_put(o, "path", value_text(r->source.path));
	bad |= value_put(o, "format", value_text(r->source.format));
	bad |= value_put(o, "size_bytes", value_integer_or_null(r->source.size_bytes, opened));
	bad |= value_put(o, "padding_bytes",
			 value_integer_or_null(r->source.padding_bytes, opened));
	bad |= value_put(o, "logical_sector_size",
			 value_integer_or_null(r->source.logical_sector_size, opened));
	bad |= value_put(o, "consistency", value_text(r->source.consistency));
	bad |= value_put(o, "domain", domain(r));
	return value_finish(o, bad);
}

static json_t *quiesce(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->quiesce.requested)
		return json_null();
	o = json_object();
	bad |= value_put(o, "requested", value_text(r->quiesce.requested));
	bad |= value_put(o, "method", value_text(r->quiesce.method));
	bad |= value_put(o, "quiesced", json_boolean(r->quiesce.quiesced));
	bad |= value_put(o, "filesystems", value_integer(r->quiesce.filesystems));
	bad |= value_put(o, "frozen_ms", value_seconds(r->quiesce.frozen_ms));
	bad |= value_put(o, "thawed_by", value_text(r->quiesce.thawed_by));
	bad |= value_put(o, "trimmed", json_boolean(r->quiesce.trimmed));
	bad |= value_put(o, "reason", value_text(r->quiesce.reason));
	bad |= value_put(o, "scratch_bytes", value_integer(r->quiesce.scratch_bytes));
	return value_finish(o, bad);
}

/* All entries of the kinds that share a list, in the order in which they came. */
static json_t *account_list(const struct account *account, const char *word)
{
	json_t *array = json_array();
	int bad = 0;

	for (size_t i = 0; i < account->len; i++) {
		const struct account_entry *entry = &account->at[i];
		const char *how = account_how(entry->kind);
		json_t *o;

		if (!str_equal(account_word(entry->kind), word))
			continue;
		o = json_object();
		bad |= value_put(o, "path", value_text(entry->path));
		if (how)
			bad |= value_put(o, "how", value_text(how));
		bad |= value_put(o, "why", value_text(entry->detail));
		bad |= value_append(array, o);
	}
	return value_finish(array, bad);
}

static int put_account(json_t *o, const struct account *account)
{
	uint64_t omitted = account->out_of_memory;
	int bad = 0;

	for (size_t kind = 0; kind < ACCOUNT_KINDS; kind++) {
		const char *word = account_word((enum account_kind)kind);

		if (!json_object_get(o, word))
			bad |= value_put(o, word, account_list(account, word));
		omitted += account->count[kind] - MIN(account->count[kind], ACCOUNT_MAX);
	}
	return bad | value_put(o, "omitted", value_integer(omitted));
}

static json_t *boots(const struct report *r)
{
	json_t *array = json_array();
	int bad = 0;

	if (r->tree.boots_bios)
		bad |= value_append(array, value_text("bios"));
	if (r->tree.boots_uefi)
		bad |= value_append(array, value_text("uefi"));
	return value_finish(array, bad);
}

static json_t *tree(const struct report *r)
{
	bool planned = r->tree.planned;
	json_t *o;
	int bad = 0;

	if (!r->tree.account)
		return json_null();
	o = json_object();
	bad |= value_put(o, "files", value_integer_or_null(r->tree.files, planned));
	bad |= value_put(o, "directories", value_integer_or_null(r->tree.directories, planned));
	bad |= value_put(o, "symlinks", value_integer_or_null(r->tree.symlinks, planned));
	bad |= value_put(o, "devices", value_integer_or_null(r->tree.devices, planned));
	bad |= value_put(o, "fifos", value_integer_or_null(r->tree.fifos, planned));
	bad |= value_put(o, "sockets", value_integer_or_null(r->tree.sockets, planned));
	bad |= value_put(o, "hard_links", value_integer_or_null(r->tree.hard_links, planned));
	bad |= value_put(o, "data_bytes", value_integer_or_null(r->tree.data_bytes, planned));
	bad |= value_put(o, "free_bytes", value_integer_or_null(r->tree.free_bytes, planned));
	bad |= value_put(o, "filesystem", value_text(planned ? "ext4" : NULL));
	bad |= value_put(o, "uuid", value_text(r->tree.uuid));
	bad |= value_put(o, "uuid_origin", value_text(r->tree.uuid_origin));
	bad |= value_put(o, "label", value_text(r->tree.label));
	bad |= value_put(o, "kernel", value_text(r->tree.kernel));
	bad |= value_put(o, "boots", planned ? boots(r) : json_null());
	bad |= put_account(o, r->tree.account);
	return value_finish(o, bad);
}

static json_t *capture(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->capture.ran)
		return json_null();
	o = json_object();
	bad |= value_put(o, "virtual_size_bytes", value_integer(r->capture.virtual_size_bytes));
	bad |= value_put(o, "bytes_read", value_integer(r->capture.bytes_read));
	bad |= value_put(o, "data_bytes", value_integer(r->capture.data_bytes));
	bad |= value_put(o, "zero_bytes", value_integer(r->capture.zero_bytes));
	bad |= value_put(o, "skipped_bytes", value_integer(r->capture.skipped_bytes));
	bad |= value_put(o, "threads", value_integer(r->capture.threads));
	bad |= value_put(o, "cpu_seconds", value_seconds(r->capture.cpu_seconds));
	return value_finish(o, bad);
}

static json_t *digest(const char *hex)
{
	return value_text(*hex ? hex : NULL);
}

static json_t *image(const struct report *r)
{
	bool whole = r->image.is_whole;
	json_t *o;
	int bad = 0;

	if (!r->image.format)
		return json_null();
	o = json_object();
	bad |= value_put(o, "path", value_text(r->image.path));
	bad |= value_put(o, "format", value_text(r->image.format));
	bad |= value_put(o, "compression", value_text(r->image.compression));
	bad |= value_put(o, "level",
			 value_integer_or_null((uint64_t)r->image.level, r->image.level >= 0));
	bad |= value_put(o, "cluster_size",
			 value_integer_or_null(r->image.cluster_size, r->image.cluster_size != 0));
	bad |= value_put(o, "size_bytes", value_integer_or_null(r->image.size_bytes, whole));
	bad |= value_put(o, "allocated_bytes",
			 value_integer_or_null(r->image.allocated_bytes, whole));
	bad |= value_put(o, "sha256", digest(r->image.digests.sha256));
	bad |= value_put(o, "sha512", digest(r->image.digests.sha512));
	return value_finish(o, bad);
}

static json_t *upload(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->upload.destination)
		return json_null();
	o = json_object();
	bad |= value_put(o, "destination", value_text(r->upload.destination));
	bad |= value_put(o, "image_id", value_text(r->upload.image_id));
	bad |= value_put(o, "attempts", value_integer(r->upload.attempts));
	bad |= value_put(o, "sent_bytes", value_integer(r->upload.sent_bytes));
	bad |= value_put(o, "verified", json_boolean(r->upload.verified));
	bad |= value_put(o, "verified_by", value_text(r->upload.verified_by));
	bad |= value_put(o, "cleanup", value_text(r->upload.cleanup));
	return value_finish(o, bad);
}

static json_t *estimate(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->estimate.ran)
		return json_null();
	o = json_object();
	bad |= value_put(o, "mapped_bytes", value_integer(r->estimate.mapped_bytes));
	bad |= value_put(o, "sampled_bytes", value_integer(r->estimate.sampled_bytes));
	bad |= value_put(
		o, "image_bytes",
		value_integer_or_null(r->estimate.image_bytes, r->estimate.sampled_bytes > 0));
	bad |= value_put(o, "free_bytes",
			 value_integer_or_null(r->estimate.free_bytes,
					       r->estimate.free_bytes != UINT64_MAX));
	bad |= value_put(o, "fits", json_boolean(r->estimate.fits));
	return value_finish(o, bad);
}

static json_t *warnings(const struct report *r)
{
	json_t *array = json_array();
	int bad = 0;

	for (size_t i = 0; i < r->warning_count; i++)
		bad |= value_append(array, value_text(r->warnings[i]));
	return value_finish(array, bad);
}

static json_t *error(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->error_phase && !*r->error)
		return json_null();
	o = json_object();
	bad |= value_put(o, "phase", value_text(r->error_phase));
	bad |= value_put(o, "message", value_text(r->error));
	return value_finish(o, bad);
}

static json_t *ccsnap(const struct report *r)
{
	json_t *o = json_object(), *libraries = json_object();
	int bad = 0;

	for (const struct report_library *lib = r->libraries; lib->name; lib++)
		bad |= value_put(libraries, lib->name, value_text(lib->version));
	bad |= value_put(o, "version", value_text(PACKAGE_VERSION));
	bad |= value_put(o, "libraries", libraries);
	return value_finish(o, bad);
}

/* What the CPU calls itself, NULL when the kernel does not say: the bytes that
 * a codec makes may depend on it.
 */
static char *cpu_model(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *model = NULL;

	while (f && !model && fgets(line, sizeof line, f)) {
		const char *colon = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (colon && str_starts(line, "model name"))
			model = strdup(colon + 1 + strspn(colon + 1, " "));
	}
	if (f)
		fclose(f);
	return model;
}

static json_t *host(void)
{
	json_t *o = json_object();
	autofree char *cpu = cpu_model();
	struct utsname u;
	int bad = 0;

	if (uname(&u) < 0)
		memset(&u, 0, sizeof u);
	bad |= value_put(o, "hostname", value_text(u.nodename));
	bad |= value_put(o, "kernel", value_text(u.release));
	bad |= value_put(o, "machine", value_text(u.machine));
	bad |= value_put(o, "cpu", value_text(cpu));
	bad |= value_put(o, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	return value_finish(o, bad);
}

/* The members in the order in which a reader wants them. */
static json_t *whole_report(const struct report *r)
{
	json_t *o = json_object();
	int bad = 0;

	bad |= value_put(o, "schema", value_text("ccsnap.report/1"));
	bad |= value_put(o, "status", value_text(status_names[r->status]));
	bad |= value_put(o, "exit_code", json_integer(r->exit_code));
	bad |= value_put(o, "name", value_text(r->name));
	bad |= value_put(o, "started_at", value_text(r->started_at.text));
	bad |= value_put(o, "finished_at", value_text(r->finished_at.text));
	bad |= value_put(o, "creation_seconds", value_seconds(r->creation_seconds));
	bad |= value_put(o, "upload_seconds", value_seconds(r->upload_seconds));
	bad |= value_put(o, "boot_seconds", value_seconds(r->boot_seconds));
	bad |= value_put(o, "final_size_bytes",
			 value_integer_or_null(r->image.size_bytes, r->image.is_whole));
	bad |= value_put(o, "phases", phases(r));
	bad |= value_put(o, "source", source(r));
	bad |= value_put(o, "quiesce", quiesce(r));
	bad |= value_put(o, "capture", capture(r));
	bad |= value_put(o, "tree", tree(r));
	bad |= value_put(o, "image", image(r));
	bad |= value_put(o, "upload", upload(r));
	bad |= value_put(o, "boot", json_null());
	bad |= value_put(o, "estimate", estimate(r));
	bad |= value_put(o, "warnings", warnings(r));
	bad |= value_put(o, "warnings_omitted", value_integer(r->warnings_omitted));
	bad |= value_put(o, "error", error(r));
	bad |= value_put(o, "ccsnap", ccsnap(r));
	bad |= value_put(o, "host", host());
	return value_finish(o, bad);
}

char *report_to_json(const struct report *r, enum report_style style, struct err *err)
{
	size_t flags = style == REPORT_INDENTED ? JSON_INDENT(2) : JSON_COMPACT;

	return value_print(whole_report(r), flags, err);
}
