/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_OPTIONS_KIT_H
#define CCSNAP_TEST_OPTIONS_KIT_H

/* Command lines and configuration files for the tests of options: include it
 * once a program, behind the other headers.
 */
#include "options.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/ccsnap-test-XXXXXX";
static char config[64]; /* dir/c.conf */

#define WORDS(...) ((char *[]){ "ccsnap", __VA_ARGS__, NULL })

static inline int parse(struct options *opt, char **argv, struct err *err)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	*err = (struct err){ 0 };
	return options_parse(opt, argc, argv, err);
}

static inline void parse_ok(struct options *opt, char **argv)
{
	struct err err;

	if (parse(opt, argv, &err) < 0)
		fail_msg("refused: %s", err.text);
}

static inline void write_text(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_true(write(fd, text, len) == (ssize_t)len);
	close(fd);
}

static inline void write_config(const char *text)
{
	write_text(config, text, strlen(text));
}

/* One line, ERR_USAGE, with all of this in it; NULL ends. */
static inline void assert_refused(char **argv, const char *const *parts)
{
	struct options opt;
	struct err err;

	if (parse(&opt, argv, &err) == 0)
		fail_msg("accepted; expected: %s", parts[0]);
	assert_int_equal(err.kind, ERR_USAGE);
	assert_null(strchr(err.text, '\n'));
	for (; *parts; parts++)
		if (!strstr(err.text, *parts))
			fail_msg("\"%s\" lacks \"%s\"", err.text, *parts);
}

#define REFUSED(...) ((const char *const[]){ __VA_ARGS__, NULL })

static inline int set_up(void **state)
{
	(void)state;
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	if (!mkdtemp(dir))
		return -1;
	snprintf(config, sizeof config, "%s/c.conf", dir);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	unlink(config);
	return rmdir(dir);
}

#endif
