// SPDX-License-Identifier: Apache-2.0
#include "commands/outcome.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "image/image.h"
#include "instance.h"
#include "options.h"
#include "plan.h"
#include "report/report.h"
#include "snapshot.h"
#include "tree/tree.h"
#include "walk/exclude.h"

#include <stdio.h>

/* So many of a kind are shown; the report has them all. */
#define SHOWN_MAX 10

static void print_json(const struct options *opt, const struct report *r)
{
	bool lines = opt->progress && str_equal(opt->progress, "json");
	struct err ignored;
	autofree char *json =
		report_to_json(r, lines ? REPORT_ONE_LINE : REPORT_INDENTED, &ignored);

	if (json)
		fputs(json, stdout);
}

/* Who can read it, where that is not everybody. */
static void print_readers(const char *label, const struct report *r)
{
	if (str_equal(r->image.compression, "zstd"))
		printf("%sQEMU 5.1 and later; for older readers: --compression=zlib\n", label);
}

/* --- what a tree's run has to tell --------------------------------------------- */

static const struct {
	enum account_kind kind;
	const char *heading; /* with the number behind */
} told[] = {
	{ ACCOUNT_CHANGED, "changed while read, again and again" },
	{ ACCOUNT_GREW, "only grew while captured" },
	{ ACCOUNT_VANISHED, "vanished before being read" },
	{ ACCOUNT_UNREADABLE, "cannot be read" },
	{ ACCOUNT_ATTRIBUTE, "attributes that cannot be kept" },
	{ ACCOUNT_SKIPPED_MOUNT, "mounts that are no part of the image" },
	{ ACCOUNT_FOLDED_MOUNT, "mounts that become part of the root filesystem" },
	{ ACCOUNT_RESET, "reset in the image" },
	{ ACCOUNT_KEPT, "kept although a reset would take it" },
	{ ACCOUNT_EDITED, "edited in the image" },
};

static void print_kind(const struct account *account, enum account_kind kind, const char *heading)
{
	char path[4096], detail[1024];
	unsigned shown = 0;

	if (account->count[kind] == 0)
		return;
	printf("%s: %llu\n", heading, (unsigned long long)account->count[kind]);
	for (size_t i = 0; i < account->len && shown < SHOWN_MAX; i++) {
		const struct account_entry *entry = &account->at[i];

		if (entry->kind != kind)
			continue;
		printf("  %s: %s\n", log_printable(path, sizeof path, entry->path),
		       log_printable(detail, sizeof detail, entry->detail));
		shown++;
	}
	if (account->count[kind] > shown)
		printf("  ... and %llu more: see --report\n",
		       (unsigned long long)(account->count[kind] - shown));
}

static void print_account(const struct account *account)
{
	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		print_kind(account, told[i].kind, told[i].heading);
}

static void print_excludes(const struct tree_facts *facts)
{
	char shown[4096];

	for (size_t i = 0; i < facts->exclude_count; i++) {
		const struct exclude_use *use = &facts->excludes[i];

		printf("exclude      %s%s: %s in %llu paths\n",
		       log_printable(shown, sizeof shown, use->text),
		       use->is_default ? " (default, its content)" : "",
		       size_format(use->bytes).text, (unsigned long long)use->hits);
	}
}

static void print_tree(const struct tree_facts *facts)
{
	char shown[512];

	printf("tree         %llu files, %llu directories, %llu links, %llu others, %s of data\n",
	       (unsigned long long)facts->files, (unsigned long long)facts->directories,
	       (unsigned long long)facts->symlinks,
	       (unsigned long long)(facts->devices + facts->fifos + facts->sockets),
	       size_format(facts->data_bytes).text);
	printf("filesystem   ext4, UUID %s (%s)", facts->root_uuid, facts->uuid_origin);
	if (*facts->root_label)
		printf(", label %s", log_printable(shown, sizeof shown, facts->root_label));
	printf(", %s free\n", size_format(facts->free_bytes).text);
	if (facts->boots_bios || facts->boots_uefi)
		printf("boots        %s%s%s, kernel %s\n", facts->boots_bios ? "BIOS" : "",
		       facts->boots_bios && facts->boots_uefi ? " and " : "",
		       facts->boots_uefi ? "UEFI" : "",
		       log_printable(shown, sizeof shown, facts->kernel));
	else
		printf("boots        no: a data disk\n");
	print_excludes(facts);
}

/* --- the two ends ---------------------------------------------------------------- */

static void print_domain(const struct report *r)
{
	char name[512], disk[64], path[4096];

	printf("source       domain %s (%s), disk %s: %s (%s, %s)\n",
	       log_printable(name, sizeof name, r->source.domain.name), r->source.domain.state,
	       log_printable(disk, sizeof disk, r->source.domain.disk),
	       log_printable(path, sizeof path, r->source.path), r->source.format,
	       size_format(r->source.size_bytes).text);
}

static void print_wish(const struct report *r, const struct instance_facts *facts)
{
	if (facts && facts->is_active)
		printf("quiesce      %s; the guest agent %s\n", r->quiesce.requested,
		       facts->has_agent ? "is connected" : "is not there");
}

static void print_source(const struct plan *plan, const struct report *r,
			 const struct tree_facts *facts)
{
	char shown[4096];
	uint64_t size = r->source.size_bytes + r->source.padding_bytes;

	if (r->source.domain.name) {
		print_domain(r);
		return;
	}
	log_printable(shown, sizeof shown, plan->source.path);
	if (facts)
		printf("source       %s (a directory tree, as a disk of %s)\n", shown,
		       size_format(size).text);
	else
		printf("source       %s (%s, %s)\n", shown, plan->source.format,
		       size_format(size).text);
	if (facts)
		print_tree(facts);
}

static void print_plan(const struct plan *plan, const struct report *r, const struct snapshot *s)
{
	const struct tree_facts *facts = snapshot_tree(s);
	char shown[4096];

	print_source(plan, r, facts);
	print_wish(r, snapshot_instance(s));
	printf("image        %s\n", log_printable(shown, sizeof shown, snapshot_destination(s)));
	printf("format       %s, compression %s", plan->format->name, plan->compression);
	if (plan->codec)
		printf(" level %d", plan->level);
	printf(", clusters of %s, %u threads\n", size_format(plan->cluster_size).text,
	       plan->threads);
	print_readers("read by      ", r);
	printf("to read      %s (the rest is known to be zero)\n",
	       size_format(r->estimate.mapped_bytes).text);
	if (r->estimate.sampled_bytes)
		printf("size         about %s, from a sample of %s\n",
		       size_format(r->estimate.image_bytes).text,
		       size_format(r->estimate.sampled_bytes).text);
	else
		printf("size         at most %s\n", size_format(r->estimate.image_bytes).text);
	printf("free there   %s: %s\n",
	       r->estimate.free_bytes == UINT64_MAX ? (r->exit_code ? "unknown" : "no limit")
						    : size_format(r->estimate.free_bytes).text,
	       r->estimate.fits ? "enough"
	       : r->exit_code	? "not enough"
				: "perhaps not enough");
	if (facts)
		print_account(r->tree.account);
	if (facts && !plan->tree.keep_going && r->tree.account->count[ACCOUNT_UNREADABLE])
		printf("Without --keep-going the run would end where it cannot read.\n");
	printf("Nothing was written (dry run).\n");
}

static bool is_elsewhere(const struct report *r, const char *destination)
{
	return !r->image.path || !str_equal(r->image.path, destination);
}

/* Of the image, wherever it is now. */
static void print_arrival(const struct report *r, const char *destination)
{
	char shown[4096];

	printf("%s\n", log_printable(shown, sizeof shown, destination));
	if (!is_elsewhere(r, destination))
		return;
	if (r->upload.image_id)
		printf("  id %s\n", log_printable(shown, sizeof shown, r->upload.image_id));
	if (r->image.path)
		printf("  kept in %s\n", log_printable(shown, sizeof shown, r->image.path));
}

/* What a rename cannot have changed needs no word. */
static void print_times(const struct report *r, const char *destination)
{
	if (r->creation_seconds >= 0)
		printf("created in %.1f s, ", r->creation_seconds);
	printf("published in %.1f s", r->upload_seconds);
	if (!r->upload.verified_by)
		printf(", unverified");
	else if (is_elsewhere(r, destination))
		printf(", verified by %s", r->upload.verified_by);
	printf("\n");
}

/* How still it held. */
static void print_quiesce(const struct report *r)
{
	char shown[400];

	if (r->quiesce.quiesced)
		printf("  quiesced: %u filesystem%s frozen, guest held for %.0f ms\n",
		       r->quiesce.filesystems, r->quiesce.filesystems == 1 ? "" : "s",
		       r->quiesce.frozen_ms);
	else if (r->quiesce.method)
		printf("  crash-consistent%s%s\n", r->quiesce.reason ? ": " : "",
		       r->quiesce.reason ? log_printable(shown, sizeof shown, r->quiesce.reason)
					 : "");
}

static void print_result(const struct report *r, const char *destination)
{
	print_arrival(r, destination);
	printf("  %s %s", size_format(r->image.size_bytes).text, r->image.format);
	if (r->image.level >= 0)
		printf(" (%s level %d)", r->image.compression, r->image.level);
	printf(" of %s, %s of it data\n", size_format(r->capture.virtual_size_bytes).text,
	       size_format(r->capture.data_bytes).text);
	print_quiesce(r);
	printf("  ");
	print_times(r, destination);
	printf("  sha256 %s\n", r->image.digests.sha256);
	print_readers("  read by ", r);
}

/* What a run says depends on how it is to speak: all of it, JSON, or nothing. */
static bool is_told_otherwise(const struct options *opt, const struct report *r)
{
	if (opt->json)
		print_json(opt, r);
	return opt->json || opt->quiet || (opt->progress && str_equal(opt->progress, "json"));
}

/* A dry run says what was found out even when it does not fit. */
void outcome_print(const struct options *opt, const struct plan *plan, const struct report *r,
		   const struct snapshot *s)
{
	if (is_told_otherwise(opt, r))
		return;
	if (plan->dry_run && r->estimate.ran)
		print_plan(plan, r, s);
	else if (r->status == REPORT_OK || r->status == REPORT_WARNINGS) {
		print_result(r, snapshot_destination(s));
		if (r->tree.account)
			print_account(r->tree.account);
	}
}

void outcome_print_upload(const struct options *opt, const struct report *r,
			  const char *destination)
{
	char shown[4096];

	if (is_told_otherwise(opt, r))
		return;
	if (r->status == REPORT_DRY_RUN) {
		printf("source       %s (%s, %s)\n",
		       log_printable(shown, sizeof shown, r->source.path), r->image.format,
		       size_format(r->image.size_bytes).text);
		printf("image        %s\n", log_printable(shown, sizeof shown, destination));
		printf("Nothing was sent (dry run).\n");
	} else if (r->upload.arrived) {
		print_arrival(r, destination);
		printf("  %s %s, ", size_format(r->image.size_bytes).text, r->image.format);
		print_times(r, destination);
		printf("  sha256 %s\n", r->image.digests.sha256);
	}
}
