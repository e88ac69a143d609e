/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_REPORT_H
#define CCSNAP_REPORT_H

#include "base/clock.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happened in one run, filled in as it goes along, then written as one
 * JSON object (docs/report-format.md).  Strings are borrowed unless said
 * otherwise and must outlive the report; they may hold any bytes.  What was
 * not reached stays NULL, 0 or negative and becomes null.
 */
struct account;
struct err;

enum report_status {
	REPORT_OK,
	REPORT_WARNINGS,
	REPORT_FAILED,
	REPORT_REFUSED,
	REPORT_BUSY,
	REPORT_INTERRUPTED,
	REPORT_DRY_RUN,
};

/* In the order of the story; phase_names[] has their words. */
enum report_phase {
	PHASE_PLAN,
	PHASE_CHECK,
	PHASE_HOLD,
	PHASE_CAPTURE,
	PHASE_RELEASE,
	PHASE_HASH,
	PHASE_PUBLISH,
	PHASE_COUNT,
};

extern const char *const report_phase_names[PHASE_COUNT];

#define REPORT_WARNINGS_MAX 1000

struct report_library {
	const char *name, *version;
};

/* A section is null in the report until its first member (or ran) is set. */
struct report {
	enum report_status status;
	int exit_code;
	const char *name;
	struct clock_text started_at, finished_at;

	/* Negative: that phase did not run. */
	double creation_seconds, upload_seconds, boot_seconds;
	double phase_seconds[PHASE_COUNT];

	struct {
		const char *kind;	   /* "disk", "tree", "domain", "image" */
		const char *path, *format; /* no format of a tree */
		uint64_t size_bytes;	   /* as found */
		uint64_t padding_bytes;
		unsigned logical_sector_size; /* 0: never opened, so no sizes */
		const char *consistency;      /* "offline", "file-by-file", "quiesced",
						 "crash-consistent" */

		/* Null unless it is a domain's disk. */
		struct {
			const char *name, *uuid, *uri, *state, *disk;
		} domain;
	} source;

	/* Null unless the source is a domain. */
	struct {
		const char *requested; /* NULL: no domain */
		const char *method;
		bool quiesced, trimmed;
		unsigned filesystems;
		double frozen_ms; /* negative: never frozen */
		const char *thawed_by;
		const char *reason; /* why it was not quiesced; NULL: it was, or not asked for */
		uint64_t scratch_bytes;
	} quiesce;

	/* Null unless the source is a tree. */
	struct {
		const struct account *account; /* NULL: none */
		bool planned;		       /* the rest is known */
		uint64_t files, directories, symlinks, devices, fifos, sockets, hard_links;
		uint64_t data_bytes, free_bytes;
		const char *uuid, *uuid_origin, *label, *kernel;
		bool boots_bios, boots_uefi;
	} tree;

	struct {
		bool ran;
		uint64_t virtual_size_bytes, bytes_read, data_bytes, zero_bytes, skipped_bytes;
		unsigned threads;
		double cpu_seconds;
	} capture;

	struct {
		const char *path; /* of the file that it is, if any and once it is there */
		bool is_whole;	  /* only then do sizes count */
		const char *format, *compression;
		int level; /* negative: none */
		uint64_t cluster_size;
		uint64_t size_bytes, allocated_bytes;
		struct digests digests; /* empty until known */
	} image;

	struct {
		const char *destination, *image_id;
		unsigned attempts;
		uint64_t sent_bytes;
		bool arrived, verified;
		const char *verified_by; /* NULL: nothing */
		const char *cleanup;	 /* "done", "failed", "kept"; NULL: there was none */
	} upload;

	struct {
		bool ran;
		uint64_t mapped_bytes, sampled_bytes, image_bytes;
		uint64_t free_bytes; /* UINT64_MAX: no limit is known */
		bool fits;
	} estimate;

	struct report_library libraries[6]; /* ends with a NULL name */

	/* Owned; see report_warn.  Beyond REPORT_WARNINGS_MAX only the number
	 * grows.
	 */
	char **warnings;
	size_t warning_count, warnings_omitted;

	const char *error_phase; /* NULL: no error */
	char error[1024];
};

void report_init(struct report *r);
void report_free(struct report *r);

/* A step of a phase that began at start (clock_ns) is over: counts its time, and notes
 * where it failed when done is -1.  Returns done.
 */
int report_phase_done(struct report *r, enum report_phase phase, uint64_t start, int done);

/* A log sink (base/log.h): copies the warning into the report. */
void report_warn(void *report, const char *warning);

/* One object, indented (malloc, newline behind it), or on one line. */
enum report_style { REPORT_INDENTED, REPORT_ONE_LINE };
char *report_to_json(const struct report *r, enum report_style style, struct err *err);

#endif
