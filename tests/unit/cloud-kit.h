/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_CLOUD_KIT_H
#define CCSNAP_TEST_CLOUD_KIT_H

/* A directory of its own as current one and as home, an environment without OS_*, and a
 * cloud_config as text.
 */
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "dest/cloud_config.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

static char kit_dir[64];
static char kit_said[16384]; /* on stderr, by the last load() */
static char kit_text[4096];
static struct err err;

static inline int kit_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static inline void kit_forget_variables(void)
{
	for (size_t i = 0; environ[i];) {
		char name[256];

		snprintf(name, sizeof name, "%.*s", (int)strcspn(environ[i], "="), environ[i]);
		if (str_starts(name, "OS_") || str_starts(name, "XDG_") ||
		    str_ends(name, "_proxy") || str_ends(name, "_PROXY"))
			unsetenv(name);
		else
			i++;
	}
}

static inline int kit_enter(void **state)
{
	char site[128];

	(void)state;
	strcpy(kit_dir, "/tmp/test-cloud-XXXXXX");
	if (!mkdtemp(kit_dir) || chdir(kit_dir) < 0)
		return -1;
	kit_forget_variables();
	setenv("HOME", kit_dir, 1);
	snprintf(site, sizeof site, "%s/xdg", kit_dir);
	setenv("XDG_CONFIG_DIRS", site, 1);
	setenv("CCSNAP_METADATA_URL", "http://127.0.0.1:1", 1); /* nobody there */
	return 0;
}

static inline int kit_leave(void **state)
{
	(void)state;
	return chdir("/") < 0 || nftw(kit_dir, kit_remove, 8, FTW_DEPTH | FTW_PHYS) < 0 ? -1 : 0;
}

/* With the directories on the way. */
static inline void put(const char *path, const char *text)
{
	char dir[256];
	FILE *out;

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(dir, sizeof dir, "%.*s", (int)(at - path), path);
		if (*dir)
			mkdir(dir, 0700);
	}
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	assert_int_equal(chmod(path, 0600), 0);
}

static inline void listen_to_stderr(int *saved)
{
	int fd = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);

	fflush(stderr);
	*saved = dup(2);
	assert_true(fd >= 0 && *saved >= 0 && dup2(fd, 2) == 2);
	close(fd);
}

static inline void stop_listening(int saved)
{
	ssize_t n;

	fflush(stderr);
	lseek(2, 0, SEEK_SET);
	n = read(2, kit_said, sizeof kit_said - 1);
	kit_said[n > 0 ? n : 0] = '\0';
	dup2(saved, 2);
	close(saved);
	unlink("said");
}

static inline int load(const char *name, struct cloud_config *out)
{
	int saved, rc;

	memset(&err, 0, sizeof err);
	log_set_level(LOG_DEBUG);
	listen_to_stderr(&saved);
	rc = cloud_config_load(name, out, &err);
	stop_listening(saved);
	log_set_level(LOG_ERROR);
	if (rc == 0)
		assert_int_equal(err.kind, ERR_NONE);
	return rc;
}

static inline void show(const char *key, const char *value)
{
	size_t len = strlen(kit_text);

	if (value)
		snprintf(kit_text + len, sizeof kit_text - len, "%s=%s\n", key, value);
}

/* One line for each thing that is given, secret and all. */
static inline const char *shown(const struct cloud_config *c)
{
	static const char *const auth[] = { "password", "token", "appcred" };

	kit_text[0] = '\0';
	show("auth", auth[c->auth]);
	show("auth_url", c->auth_url);
	show("user_name", c->user_name);
	show("user_id", c->user_id);
	show("user_domain_name", c->user_domain_name);
	show("user_domain_id", c->user_domain_id);
	show("appcred_id", c->application_credential_id);
	show("appcred_name", c->application_credential_name);
	show("secret", c->secret);
	show("project_name", c->project_name);
	show("project_id", c->project_id);
	show("project_domain_name", c->project_domain_name);
	show("project_domain_id", c->project_domain_id);
	show("domain_name", c->domain_name);
	show("domain_id", c->domain_id);
	show("region", c->region_name);
	show("interface", c->interface);
	show("image_endpoint", c->image_endpoint);
	show("cacert", c->cacert);
	show("cert", c->cert);
	show("key", c->key);
	show("insecure", c->insecure ? "yes" : NULL);
	show("metadata", c->from_metadata ? "yes" : NULL);
	return kit_text;
}

/* shown() of what is loaded, or what went wrong ("2: ..." for its exit code). */
static inline const char *loaded(const char *name)
{
	struct cloud_config cfg;

	if (load(name, &cfg) < 0) {
		snprintf(kit_text, sizeof kit_text, "%d: %s", err_exit_code(&err), err.text);
		return kit_text;
	}
	shown(&cfg);
	cloud_config_free(&cfg);
	return kit_text;
}

static inline void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

/* Variables as "A=1", ends with NULL. */
static inline void set_variables(const char *const *list)
{
	for (; *list; list++) {
		char name[256];
		size_t n = strcspn(*list, "=");

		snprintf(name, sizeof name, "%.*s", (int)n, *list);
		setenv(name, *list + n + 1, 1);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_enter, kit_leave)

#endif
