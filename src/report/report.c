// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

const char *const report_phase_names[PHASE_COUNT] = {
	[PHASE_PLAN] = "plan", [PHASE_CHECK] = "check",	    [PHASE_CAPTURE] = "capture",
	[PHASE_HASH] = "hash", [PHASE_PUBLISH] = "publish",
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

/* --- values: NULL is out of memory, which put() passes on --- */

static json_t *text(const char *s)
{
	autofree char *utf8 = NULL;

	if (!s)
		return json_null();
	utf8 = str_to_utf8(s);
	return utf8 ? json_string(utf8) : NULL;
}

/* Sizes are those of files, so they fit. */
static json_t *integer(uint64_t n)
{
	return json_integer((json_int_t)MIN(n, (uint64_t)INT64_MAX));
}

static json_t *integer_or_null(uint64_t n, bool known)
{
	return known ? integer(n) : json_null();
}

/* To the millisecond, so that none needs an exponent.  What did not run, and
 * what is no number, is null.
 */
static json_t *seconds(double s)
{
	if (!(s >= 0 && s < 1e12))
		return json_null();
	return json_real((double)(int64_t)(s * 1e3 + 0.5) / 1e3);
}

static int put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

static int append(json_t *array, json_t *value)
{
	return json_array_append_new(array, value);
}

/* Members were put into object; bad tells whether one of them failed. */
static json_t *finish(json_t *object, int bad)
{
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
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
		bad |= put(phase, "name", text(report_phase_names[i]));
		bad |= put(phase, "seconds", seconds(r->phase_seconds[i]));
		bad |= append(array, phase);
	}
	return finish(array, bad);
}

static json_t *source(const struct report *r)
{
	bool opened = r->source.logical_sector_size != 0;
	json_t *o;
	int bad = 0;

	if (!r->source.kind)
		return json_null();
	o = json_object();
	bad |= put(o, "kind", text(r->source.kind));
	bad |= put(o, "path", text(r->source.path));
	bad |= put(o, "format", text(r->source.format));
	bad |= put(o, "size_bytes", integer_or_null(r->source.size_bytes, opened));
	bad |= put(o, "padding_bytes", integer_or_null(r->source.padding_bytes, opened));
	bad |= put(o, "logical_sector_size",
		   integer_or_null(r->source.logical_sector_size, opened));
	bad |= put(o, "consistency", text(r->source.consistency));
	return finish(o, bad);
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
		bad |= put(o, "path", text(entry->path));
		if (how)
			bad |= put(o, "how", text(how));
		bad |= put(o, "why", text(entry->detail));
		bad |= append(array, o);
	}
	return finish(array, bad);
}

static int put_account(json_t *o, const struct account *account)
{
	uint64_t omitted = account->out_of_memory;
	int bad = 0;

	for (size_t kind = 0; kind < ACCOUNT_KINDS; kind++) {
		const char *word = account_word((enum account_kind)kind);

		if (!json_object_get(o, word))
			bad |= put(o, word, account_list(account, word));
		omitted += account->count[kind] - MIN(account->count[kind], ACCOUNT_MAX);
	}
	return bad | put(o, "omitted", integer(omitted));
}

static json_t *boots(const struct report *r)
{
	json_t *array = json_array();
	int bad = 0;

	if (r->tree.boots_bios)
		bad |= append(array, text("bios"));
	if (r->tree.boots_uefi)
		bad |= append(array, text("uefi"));
	return finish(array, bad);
}

static json_t *tree(const struct report *r)
{
	bool planned = r->tree.planned;
	json_t *o;
	int bad = 0;

	if (!r->tree.account)
		return json_null();
	o = json_object();
	bad |= put(o, "files", integer_or_null(r->tree.files, planned));
	bad |= put(o, "directories", integer_or_null(r->tree.directories, planned));
	bad |= put(o, "symlinks", integer_or_null(r->tree.symlinks, planned));
	bad |= put(o, "devices", integer_or_null(r->tree.devices, planned));
	bad |= put(o, "fifos", integer_or_null(r->tree.fifos, planned));
	bad |= put(o, "sockets", integer_or_null(r->tree.sockets, planned));
	bad |= put(o, "hard_links", integer_or_null(r->tree.hard_links, planned));
	bad |= put(o, "data_bytes", integer_or_null(r->tree.data_bytes, planned));
	bad |= put(o, "free_bytes", integer_or_null(r->tree.free_bytes, planned));
	bad |= put(o, "filesystem", text(planned ? "ext4" : NULL));
	bad |= put(o, "uuid", text(r->tree.uuid));
	bad |= put(o, "uuid_origin", text(r->tree.uuid_origin));
	bad |= put(o, "label", text(r->tree.label));
	bad |= put(o, "kernel", text(r->tree.kernel));
	bad |= put(o, "boots", planned ? boots(r) : json_null());
	bad |= put_account(o, r->tree.account);
	return finish(o, bad);
}

static json_t *capture(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->capture.ran)
		return json_null();
	o = json_object();
	bad |= put(o, "virtual_size_bytes", integer(r->capture.virtual_size_bytes));
	bad |= put(o, "bytes_read", integer(r->capture.bytes_read));
	bad |= put(o, "data_bytes", integer(r->capture.data_bytes));
	bad |= put(o, "zero_bytes", integer(r->capture.zero_bytes));
	bad |= put(o, "skipped_bytes", integer(r->capture.skipped_bytes));
	bad |= put(o, "threads", integer(r->capture.threads));
	bad |= put(o, "cpu_seconds", seconds(r->capture.cpu_seconds));
	return finish(o, bad);
}

static json_t *digest(const char *hex)
{
	return text(*hex ? hex : NULL);
}

static json_t *image(const struct report *r)
{
	bool whole = r->image.is_whole;
	json_t *o;
	int bad = 0;

	if (!r->image.format)
		return json_null();
	o = json_object();
	bad |= put(o, "path", text(r->image.path));
	bad |= put(o, "format", text(r->image.format));
	bad |= put(o, "compression", text(r->image.compression));
	bad |= put(o, "level", integer_or_null((uint64_t)r->image.level, r->image.level >= 0));
	bad |= put(o, "cluster_size",
		   integer_or_null(r->image.cluster_size, r->image.cluster_size != 0));
	bad |= put(o, "size_bytes", integer_or_null(r->image.size_bytes, whole));
	bad |= put(o, "allocated_bytes", integer_or_null(r->image.allocated_bytes, whole));
	bad |= put(o, "sha256", digest(r->image.digests.sha256));
	bad |= put(o, "sha512", digest(r->image.digests.sha512));
	return finish(o, bad);
}

static json_t *upload(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->upload.destination)
		return json_null();
	o = json_object();
	bad |= put(o, "destination", text(r->upload.destination));
	bad |= put(o, "image_id", text(r->upload.image_id));
	bad |= put(o, "attempts", integer(r->upload.attempts));
	bad |= put(o, "sent_bytes", integer(r->upload.sent_bytes));
	bad |= put(o, "verified", json_boolean(r->upload.verified));
	bad |= put(o, "verified_by", text(r->upload.verified_by));
	bad |= put(o, "cleanup", text(r->upload.cleanup));
	return finish(o, bad);
}

static json_t *estimate(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->estimate.ran)
		return json_null();
	o = json_object();
	bad |= put(o, "mapped_bytes", integer(r->estimate.mapped_bytes));
	bad |= put(o, "sampled_bytes", integer(r->estimate.sampled_bytes));
	bad |= put(o, "image_bytes",
		   integer_or_null(r->estimate.image_bytes, r->estimate.sampled_bytes > 0));
	bad |= put(o, "free_bytes",
		   integer_or_null(r->estimate.free_bytes, r->estimate.free_bytes != UINT64_MAX));
	bad |= put(o, "fits", json_boolean(r->estimate.fits));
	return finish(o, bad);
}

static json_t *warnings(const struct report *r)
{
	json_t *array = json_array();
	int bad = 0;

	for (size_t i = 0; i < r->warning_count; i++)
		bad |= append(array, text(r->warnings[i]));
	return finish(array, bad);
}

static json_t *error(const struct report *r)
{
	json_t *o;
	int bad = 0;

	if (!r->error_phase && !*r->error)
		return json_null();
	o = json_object();
	bad |= put(o, "phase", text(r->error_phase));
	bad |= put(o, "message", text(r->error));
	return finish(o, bad);
}

static json_t *ccsnap(const struct report *r)
{
	json_t *o = json_object(), *libraries = json_object();
	int bad = 0;

	for (const struct report_library *lib = r->libraries; lib->name; lib++)
		bad |= put(libraries, lib->name, text(lib->version));
	bad |= put(o, "version", text(PACKAGE_VERSION));
	bad |= put(o, "libraries", libraries);
	return finish(o, bad);
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
	bad |= put(o, "hostname", text(u.nodename));
	bad |= put(o, "kernel", text(u.release));
	bad |= put(o, "machine", text(u.machine));
	bad |= put(o, "cpu", text(cpu));
	bad |= put(o, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	return finish(o, bad);
}

/* The members in the order in which a reader wants them. */
static json_t *whole_report(const struct report *r)
{
	json_t *o = json_object();
	int bad = 0;

	bad |= put(o, "schema", text("ccsnap.report/1"));
	bad |= put(o, "status", text(status_names[r->status]));
	bad |= put(o, "exit_code", json_integer(r->exit_code));
	bad |= put(o, "name", text(r->name));
	bad |= put(o, "started_at", text(r->started_at.text));
	bad |= put(o, "finished_at", text(r->finished_at.text));
	bad |= put(o, "creation_seconds", seconds(r->creation_seconds));
	bad |= put(o, "upload_seconds", seconds(r->upload_seconds));
	bad |= put(o, "boot_seconds", seconds(r->boot_seconds));
	bad |= put(o, "final_size_bytes", integer_or_null(r->image.size_bytes, r->image.is_whole));
	bad |= put(o, "phases", phases(r));
	bad |= put(o, "source", source(r));
	bad |= put(o, "quiesce", json_null());
	bad |= put(o, "capture", capture(r));
	bad |= put(o, "tree", tree(r));
	bad |= put(o, "image", image(r));
	bad |= put(o, "upload", upload(r));
	bad |= put(o, "boot", json_null());
	bad |= put(o, "estimate", estimate(r));
	bad |= put(o, "warnings", warnings(r));
	bad |= put(o, "warnings_omitted", integer(r->warnings_omitted));
	bad |= put(o, "error", error(r));
	bad |= put(o, "ccsnap", ccsnap(r));
	bad |= put(o, "host", host());
	return finish(o, bad);
}

char *report_to_json(const struct report *r, enum report_style style, struct err *err)
{
	size_t flags = style == REPORT_INDENTED ? JSON_INDENT(2) : JSON_COMPACT;
	json_t *o = whole_report(r);
	/* 15 digits: more than milliseconds need, and 0.1 stays 0.1 */
	autofree char *json = o ? json_dumps(o, flags | JSON_REAL_PRECISION(15)) : NULL;
	char *line = json ? str_format("%s\n", json) : NULL;

	json_decref(o);
	if (!line)
		err_nomem(err);
	return line;
}
