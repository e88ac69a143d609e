/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_BOOT_KIT_H
#define CCSNAP_TEST_BOOT_KIT_H

/* What the tests of boot configuration share: the names of an image, and a text that
 * is compared whole.
 */
#include "base/log.h"
#include "system/names.h"
#include "system/text.h"
#include "tree-kit.h"

#define ROOT_UUID  "11111111-2222-4333-8444-555555555555"
#define ROOT_PART  "aaaaaaaa-2222-4333-8444-555555555555"
#define BOOT_UUID  "66666666-2222-4333-8444-555555555555"
#define BOOT_PART  "bbbbbbbb-2222-4333-8444-555555555555"
#define ESP_SERIAL "ABCD-1234"
#define ESP_PART   "cccccccc-2222-4333-8444-555555555555"
#define OLD_UUID   "99999999-9999-4999-8999-999999999999"
#define OTHER_UUID "77777777-7777-4777-8777-777777777777"

#define VOLUME(u, l, p)                                                                            \
	{                                                                                          \
		.present = true, .uuid_text = u, .label = l, .partuuid_text = p                    \
	}

static const struct names root_only = { .root = VOLUME(ROOT_UUID, "rootfs", ROOT_PART),
					.esp = VOLUME(ESP_SERIAL, "ESP", ESP_PART) };

static const struct names with_boot = { .root = VOLUME(ROOT_UUID, "rootfs", ROOT_PART),
					.boot = VOLUME(BOOT_UUID, "bootfs", BOOT_PART),
					.esp = VOLUME(ESP_SERIAL, "ESP", ESP_PART) };

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

static inline void assert_became(const struct text *out, const char *expected)
{
	assert_false(out->failed);
	assert_string_equal(out->at ? out->at : "", expected);
	assert_int_equal(out->len, strlen(expected));
}

/* A mount in a model: what is below dir becomes the content of another filesystem. */
static inline void tree_mount(struct tree *t, const char *dir)
{
	const struct model_node top = { .mode = S_IFDIR | 0755,
					.parent = MODEL_NONE,
					.mounted = MODEL_NONE };
	uint32_t point = tree_find(t, dir), root = model_add(&t->model, &top, &t->err);

	assert_int_not_equal(point, MODEL_NONE);
	assert_int_not_equal(root, MODEL_NONE);
	t->model.nodes[root].parent = point;
	t->model.nodes[point].mounted = root;
}

#define TEST(name) cmocka_unit_test_setup(name, quiet_log)

#endif
