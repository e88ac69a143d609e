/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_STATE_KIT_H
#define CCSNAP_TEST_STATE_KIT_H

/* A directory for each test, in which own_folder has its folders, whoever runs the test:
 * include it once a program.
 */
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/str.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define UUID	   "6a0d3a6e-0d6c-4d8b-9d0c-0a0b0c0d0e0f"
#define OTHER_UUID "7b1e4b7f-1e7d-4e9c-8e1d-1b1c1d1e1f10"

static struct err err;
static char dir[64]; /* open to all, so that other users can be tried */
static bool is_homeless;

char *own_folder(const char *variable, const char *in_home, const char *name)
{
	(void)variable;
	(void)in_home;
	return is_homeless ? NULL : str_format("%s/lib/%s", dir, name);
}

static inline int make_state(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ccsnap-test-state.XXXXXX");
	is_homeless = false;
	err = (struct err){ 0 };
	log_set_level(LOG_ERROR);
	return mkdtemp(dir) ? chmod(dir, 0755) : -1;
}

static inline int remove_state(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

#define STATE_TEST(claim) cmocka_unit_test_setup_teardown(claim, make_state, remove_state)

static inline bool file_is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static inline void put_file(const char *path, const char *text, mode_t mode)
{
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite(fd, text, strlen(text), 0), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static inline void assert_says(const char *words)
{
	if (!strstr(err.text, words))
		fail_msg("'%s' is not in: %s", words, err.text);
}

#endif
