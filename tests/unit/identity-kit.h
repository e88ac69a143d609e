/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_IDENTITY_KIT_H
#define CCSNAP_TEST_IDENTITY_KIT_H

/* What the tests of --reset share: run it, look at what went and what was told. */
#include "system/identity.h"

#include "base/log.h"
#include "tree-kit.h"

static char warned[4096];

static inline void remember_warning(void *ctx, const char *warning)
{
	(void)ctx;
	strncat(warned, warning, sizeof warned - strlen(warned) - 2);
	strcat(warned, "\n");
}

static inline int quiet_log(void **state)
{
	(void)state;
	warned[0] = '\0';
	log_set_level(LOG_ERROR);
	log_set_sink(remember_warning, NULL);
	return 0;
}

static inline void reset(struct tree *t, const char *list)
{
	int rc = identity_reset(&t->edit, list, &t->err);

	if (rc)
		fail_msg("%s", t->err.text);
}

static inline void assert_gone(const struct tree *t, const char *path)
{
	if (tree_has(t, path))
		fail_msg("%s is still there", path);
	if (!tree_told(t, ACCOUNT_RESET, path))
		fail_msg("%s went in silence", path);
	assert_true(*tree_told(t, ACCOUNT_RESET, path));
}

static inline void assert_kept(const struct tree *t, const char *path, const char *why)
{
	const char *told = tree_told(t, ACCOUNT_KEPT, path);

	if (!tree_has(t, path))
		fail_msg("%s is gone", path);
	if (!told)
		fail_msg("%s: nobody was told that it stays", path);
	if (!strstr(told, why))
		fail_msg("%s stays because \"%s\", not because \"%s\"", path, told, why);
}

/* Two things that trees for cloud-init have. */
#define CLOUD	TREE_FILE("usr/bin/cloud-init", "#!/usr/bin/python3\n")
#define CFG(s)	TREE_FILE("etc/cloud/cloud.cfg", s)
#define MODULES "cloud_init_modules:\n - bootcmd\n - ssh\ncloud_config_modules:\n - runcmd\n"

#define TEST(name) cmocka_unit_test_setup(name, quiet_log)

#endif
