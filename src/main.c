// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "commands/commands.h"
#include "config.h"
#include "options.h"
#include "quiesce/guard.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(const struct options *opt, struct err *err);
} runners[] = {
	{ "create", command_create },	{ "convert", command_convert },
	{ "verify", command_verify },	{ "upload", command_upload },
	{ "fetch", command_fetch },	{ "list", command_list },
	{ "prune", command_prune },	{ "inspect", command_inspect },
	{ "recover", command_recover },
};

static int run(const struct options *opt, struct err *err)
{
	if (opt->help) {
		options_print_help(opt->command);
		return 0;
	}
	if (opt->version) {
		printf("ccsnap %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (opt->completion) {
		options_print_completion(opt->completion);
		return 0;
	}
	for (size_t i = 0; i < sizeof runners / sizeof *runners; i++)
		if (str_equal(runners[i].name, opt->command->name))
			return runners[i].run(opt, err);
	return err_set(err, ERR_USAGE, "%s: no such command", opt->command->name);
}

/* Nobody would get what was asked for; without it, the work itself is what was. */
static int check_stdout(const struct options *opt, bool is_closed, struct err *err)
{
	bool is_wanted = opt->json || opt->help || opt->version || opt->completion ||
			 str_equal(opt->command->name, "list");

	if (!is_closed || !is_wanted)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "standard output is closed, and what was asked for goes there");
}

static void set_log_level(const struct options *opt)
{
	if (opt->quiet)
		log_set_level(LOG_ERROR);
	else if (opt->verbose)
		log_set_level(LOG_DEBUG);
}

/* A result that did not reach its reader is no success; that a pipe's reader
 * has left is its own business.
 */
static int finish_stdout(struct err *err)
{
	struct stat st;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (fstat(STDOUT_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		return 0;
	return err_errno(err, ERR_FAILED, "cannot write to standard output");
}

int main(int argc, char **argv)
{
	struct options opt;
	struct err err = { 0 };
	bool is_closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
	int code;

#ifdef HAVE_LIBVIRT
	if (argc > 0 && str_equal(argv[0], GUARD_NAME))
		return guard_main(argc, argv);
#endif
	umask(077);
	if (io_open_standard_streams() < 0)
		return 1;
	interrupt_install();
	code = options_parse(&opt, argc, argv, &err);
	if (code == 0) {
		set_log_level(&opt);
		code = check_stdout(&opt, is_closed, &err);
		if (code == 0)
			code = run(&opt, &err);
	}
	options_free(&opt);
	if (code == 0)
		code = finish_stdout(&err);
	if (code < 0) {
		log_error("%s", err.text);
		return err_exit_code(&err);
	}
	return code;
}
