/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OPTIONS_H
#define CCSNAP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The command line and the configuration files.  One table of options serves
 * parsing, --help, completion, the configuration keys and the test that
 * compares them with the manual page.
 */
struct err;
struct options;

struct command {
	const char *name;
	const char *args;	 /* "[NAME]", as in the usage line */
	const char *description; /* one line, for --help */
	int args_min, args_max;
	unsigned bit; /* in struct option_def's commands */
};

extern const struct command commands[]; /* ends with a NULL name; the first is the default */
extern const size_t command_count;

/* What kinds of source and destination an option may be about. */
enum option_of { OF_TREE = 1, OF_DISK = 2, OF_DOMAIN = 4, OF_SERVICE = 8 };

/* An option of the command line that is not about everything. */
struct option_limit {
	const char *name;
	unsigned of;
};

struct options {
	const struct command *command; /* NULL: only help and its like, for no command */
	const char *args[2];	       /* borrowed from argv */
	int arg_count;

	/* source */
	char *source, *source_format;
	bool allow_backing;
	uint64_t stall_timeout; /* seconds; 0: never */

	/* tree; lists end with NULL, NULL for none */
	char **excludes, **exclude_globs, **exclude_files, **include_mounts;
	bool one_file_system, keep_going, no_boot;
	uint64_t disk_size;  /* 0: unset */
	uint64_t free_space; /* UINT64_MAX: unset */
	char *reset;	     /* NULL: the source's default */
	bool ignore_warnings, yes, no_update;

	/* running instance */
	char *domain, *connect, *disk, *quiesce, *scratch_dir;
	uint64_t freeze_timeout; /* seconds */
	bool trim;

	/* Of the command line; what stands in a file is for the runs that it fits. */
	struct option_limit *limits;
	size_t limit_count;

	/* image */
	char *format, *compression;
	int level;				 /* OPTION_UNSET: the codec's default */
	uint64_t cluster_size, max_virtual_size; /* 0: unset */
	uint64_t sector_size;			 /* 0: any */
	uint64_t threads;			 /* 0: one for each CPU we may use */

	/* where to */
	char *to, *output;
	bool overwrite;
	char **properties;  /* KEY=VALUE, ends with NULL; NULL for none */
	uint64_t lock_wait; /* seconds */
	char *series;

	/* where to, when that is a service or server */
	char *os_cloud, *work_dir, *visibility, *upload_method;
	char **tags; /* of the image to be; of those to list */
	bool make_protected, keep_failed;
	uint64_t limit_rate; /* bytes a second; 0: none */
	uint64_t connect_timeout, upload_stall_timeout, upload_timeout; /* seconds */

	/* list, prune, fetch */
	char *name;	    /* list: only of this name */
	uint64_t keep_last; /* 0: unset */
	bool all_sources;
	char *to_disk;

	/* verify */
	char *against, *manifest;

	/* how */
	bool dry_run, json, quiet;
	uint64_t verbose;
	char *report, *progress, *config;

	/* what to print instead of working */
	bool help, version;
	char *completion; /* a shell's name */
};

#define OPTION_UNSET (-1000000)

/* Configuration files first, then the command line, which wins.  One line
 * tells what is wrong: the option (or file:line: key) and what it accepts;
 * always ERR_USAGE.
 */
int options_parse(struct options *opt, int argc, char **argv, struct err *err);
void options_free(struct options *opt);

/* ERR_USAGE when an option of the command line is about none of the kinds that source and
 * destination are of (enum option_of, or'ed); the source may be NULL.
 */
int options_check_kinds(const struct options *opt, unsigned of, const char *source,
			const char *destination, struct err *err);

/* For one command, or NULL for the overview. */
void options_print_help(const struct command *command);
void options_print_completion(const char *shell);

#endif
