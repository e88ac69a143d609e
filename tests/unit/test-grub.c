// SPDX-License-Identifier: Apache-2.0
#include "system/grub.h"

#include "base/io.h"
#include "system/boot.h"
#include "system/tool.h"

#include <endian.h>
#include <sys/syscall.h>

#include "tree-kit.h"

/* Copies of this system's own modules play those of a tree. */
#define HOST_BIOS "/usr/lib/grub/i386-pc"
#define HOST_EFI  "/usr/lib/grub/x86_64-efi"
#define TREE_EFI  "usr/lib/grub/x86_64-efi"
#define TREE_BIOS "usr/lib/grub/i386-pc"
#define UUID_TEXT "0a1b2c3d-0000-4000-8000-00000000beef"

static const struct boot_machine x86 = {
	.name = "x86_64",
	.bios = "i386-pc",
	.efi = "x86_64-efi",
	.efi_loader = "BOOTX64.EFI",
};
static const struct boot boot = { .machine = &x86 };
static const struct grub_config config = { .uuid = UUID_TEXT, .prefix = "/boot/grub" };
static const struct tree_file no_files[] = { { 0 } };
static const struct tree_file both_dirs[] = {
	TREE_DIR(TREE_BIOS),
	TREE_DIR(TREE_EFI),
	{ 0 },
};

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static bool is_missing(const char *path)
{
	return access(path, F_OK) < 0;
}

static void need_host(void)
{
	autofree char *program = tool_find("grub-mkimage");

	if (!program || is_missing(HOST_BIOS "/kernel.img") || is_missing(HOST_EFI "/kernel.img"))
		skip();
}

/* A tree with those directories, which get modules. */
static void start_with_modules(struct tree *t)
{
	need_host();
	tree_start_real(t, both_dirs);
	run("cp " HOST_BIOS "/*.mod " HOST_BIOS "/*.img " HOST_BIOS "/*.lst %s/" TREE_BIOS, t->dir);
	run("cp " HOST_EFI "/*.mod " HOST_EFI "/kernel.img " HOST_EFI "/*.lst %s/" TREE_EFI,
	    t->dir);
}

static struct grub find(struct tree *t)
{
	struct grub grub;
	bool can_make = false;

	if (grub_find(&t->edit, &boot, &grub, &can_make, &t->err) < 0)
		fail_msg("%s", t->err.text);
	assert_true(can_make);
	return grub;
}

static struct grub_image make_efi(struct tree *t, const struct grub *grub)
{
	struct grub_image image;

	if (grub_make_efi(grub, &boot, &config, &image, &t->err) < 0)
		fail_msg("%s", t->err.text);
	return image;
}

static void modules_of_this_system_serve_a_tree_without(void **state)
{
	struct tree t;
	struct grub grub;

	(void)state;
	need_host();
	tree_start_real(&t, no_files);
	grub = find(&t);
	assert_true(grub.bios.fd >= 0 && grub.efi.fd >= 0);
	assert_false(grub.bios.of_tree || grub.efi.of_tree);
	grub_free(&grub);
	tree_stop(&t);
}

static void modules_of_the_tree_come_first(void **state)
{
	struct tree t;
	struct grub grub;

	(void)state;
	start_with_modules(&t);
	grub = find(&t);
	assert_true(grub.bios.of_tree && grub.efi.of_tree);
	grub_free(&grub);
	tree_stop(&t);
}

static void a_link_on_the_way_leads_inside_of_the_tree(void **state)
{
	static const struct tree_file files[] = {
		TREE_DIR("opt/grub/x86_64-efi"),
		TREE_LINK("usr/lib/grub2", "/opt/grub"),
		{ 0 },
	};
	struct tree t;
	struct grub grub;

	(void)state;
	need_host();
	tree_start_real(&t, files);
	run("cp " HOST_EFI "/*.mod " HOST_EFI "/kernel.img " HOST_EFI "/*.lst "
	    "%s/opt/grub/x86_64-efi",
	    t.dir);
	grub = find(&t);
	assert_true(grub.efi.of_tree);
	assert_false(grub.bios.of_tree);
	grub_free(&grub);
	tree_stop(&t);
}

static void an_incomplete_directory_does_not_count(void **state)
{
	static const char *const missing[] = { TREE_EFI "/normal.mod", TREE_BIOS "/boot.img" };
	struct tree t;
	struct grub grub;

	(void)state;
	start_with_modules(&t);
	for (size_t i = 0; i < 2; i++)
		run("rm %s/%s", t.dir, missing[i]);
	grub = find(&t);
	assert_false(grub.efi.of_tree || grub.bios.of_tree);
	grub_free(&grub);
	tree_stop(&t);
}

static void a_directory_with_anything_but_plain_modules_does_not_count(void **state)
{
	static const char *const spoil[] = {
		"ln -sf /etc/passwd video.mod",
		"rm video.mod; mkfifo video.mod",
		"truncate -s 5M video.mod",
	};

	(void)state;
	for (size_t i = 0; i < sizeof spoil / sizeof *spoil; i++) {
		struct tree t;
		struct grub grub;

		start_with_modules(&t);
		run("cd %s/" TREE_EFI " && %s", t.dir, spoil[i]);
		grub = find(&t);
		assert_false(grub.efi.of_tree);
		assert_true(grub.bios.of_tree);
		grub_free(&grub);
		tree_stop(&t);
	}
}

static void a_module_that_became_a_link_brings_no_file_of_the_host(void **state)
{
	struct grub_image image;
	struct tree t, other;
	struct grub grub;

	(void)state;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) <= 0)
		skip();
	start_with_modules(&t);
	tree_start_real(&other, no_files);
	run("cp " HOST_EFI "/true.mod %s/secret", other.dir);
	grub = find(&t);
	assert_true(grub.efi.of_tree);
	run("cd %s/" TREE_EFI " && ln -s %s/secret evil.mod && "
	    "sed -i 's/^probe:.*/probe: evil/; $aevil:' moddep.lst",
	    t.dir, other.dir);
	assert_int_equal(grub_make_efi(&grub, &boot, &config, &image, &t.err), -1);
	if (!strstr(t.err.text, "evil.mod") || !strstr(t.err.text, "Permission denied"))
		fail_msg("%s", t.err.text);
	grub_free(&grub);
	tree_stop(&other);
	tree_stop(&t);
}

static void the_efi_image_is_the_same_at_any_time(void **state)
{
	struct grub_image first, second;
	struct tree t;
	struct grub grub;

	(void)state;
	start_with_modules(&t);
	grub = find(&t);
	first = make_efi(&t, &grub);
	sleep(2);
	second = make_efi(&t, &grub);
	assert_memory_equal(first.bytes, "MZ", 2);
	assert_int_equal(first.len, second.len);
	assert_memory_equal(first.bytes, second.bytes, first.len);
	assert_non_null(memmem(first.bytes, first.len, "--set=found " UUID_TEXT "\n", 49));
	assert_non_null(memmem(first.bytes, first.len, "($root)/boot/grub\n", 18));
	free(first.bytes);
	free(second.bytes);
	grub_free(&grub);
	tree_stop(&t);
}

static void what_a_directory_lacks_is_left_out(void **state)
{
	struct grub_image all, fewer;
	struct tree t;
	struct grub grub;

	(void)state;
	start_with_modules(&t);
	grub = find(&t);
	all = make_efi(&t, &grub);
	run("rm %s/" TREE_EFI "/xfs.mod", t.dir);
	fewer = make_efi(&t, &grub);
	assert_true(fewer.len < all.len);
	free(all.bytes);
	free(fewer.bytes);
	grub_free(&grub);
	tree_stop(&t);
}

static void blscfg_is_noticed(void **state)
{
	struct tree t;
	struct grub grub;

	(void)state;
	start_with_modules(&t);
	run("cp " HOST_EFI "/true.mod %s/" TREE_EFI "/blscfg.mod; rm -f %s/" TREE_BIOS
	    "/blscfg.mod",
	    t.dir, t.dir);
	grub = find(&t);
	assert_true(grub.efi.has_blscfg);
	assert_false(grub.bios.has_blscfg);
	grub_free(&grub);
	tree_stop(&t);
}

static uint64_t le64_at(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof value);
	return le64toh(value);
}

/* As grub-bios-setup writes them. */
static void the_bios_parts_know_where_they_lie(void **state)
{
	struct tree t;
	struct grub grub;
	struct grub_image core, again;
	uint8_t code[440], original[512];
	int fd;

	(void)state;
	start_with_modules(&t);
	grub = find(&t);
	assert_int_equal(grub_make_bios(&grub, &boot, &config, 2048, code, &core, &t.err), 0);
	fd = open(HOST_BIOS "/boot.img", O_RDONLY);
	assert_int_equal(io_pread(fd, original, sizeof original, 0, NULL), sizeof original);
	close(fd);
	assert_int_equal(le64_at(code + 0x5c), 2048);
	assert_memory_equal(code + 0x66, "\x90\x90", 2);
	assert_memory_equal(code, original, 0x5c);
	assert_memory_equal(code + 0x68, original + 0x68, sizeof code - 0x68);
	assert_int_equal(core.len % 512, 0);
	assert_in_range(core.len, 64 * 1024, 450 * 1024);
	assert_int_equal(le64_at(core.bytes + 0x1f4), 2049);
	assert_int_equal(core.bytes[0x1fc] | core.bytes[0x1fd] << 8, core.len / 512 - 1);
	assert_memory_equal(core.bytes + 0x1fe, "\x20\x08", 2);
	assert_int_equal(grub_make_bios(&grub, &boot, &config, 2048, code, &again, &t.err), 0);
	assert_int_equal(core.len, again.len);
	assert_memory_equal(core.bytes, again.bytes, core.len);
	free(core.bytes);
	free(again.bytes);
	grub_free(&grub);
	tree_stop(&t);
}

static void a_foreign_boot_img_is_refused(void **state)
{
	struct tree t;
	struct grub grub;
	struct grub_image core;
	uint8_t code[440];

	(void)state;
	start_with_modules(&t);
	run("ln -sf " HOST_BIOS "/boot.img %s/boot.img", t.dir);
	grub = find(&t);
	run("truncate -s 513 %s/" TREE_BIOS "/boot.img", t.dir);
	assert_int_equal(grub_make_bios(&grub, &boot, &config, 2048, code, &core, &t.err), -1);
	assert_non_null(strstr(t.err.text, "boot.img"));
	run("ln -sf " HOST_BIOS "/boot.img %s/" TREE_BIOS "/boot.img", t.dir);
	assert_int_equal(grub_make_bios(&grub, &boot, &config, 2048, code, &core, &t.err), -1);
	assert_non_null(strstr(t.err.text, "boot.img"));
	grub_free(&grub);
	tree_stop(&t);
}

static void nothing_but_a_uuid_and_a_path_gets_into_the_script(void **state)
{
	static const struct grub_config bad[] = {
		{ "", "/boot/grub" },
		{ "beef\nhalt", "/boot/grub" },
		{ "beef;halt", "/boot/grub" },
		{ UUID_TEXT "0", "/boot/grub" },
		{ UUID_TEXT, "" },
		{ UUID_TEXT, "boot/grub" },
		{ UUID_TEXT, "/boot/grub\nhalt" },
		{ UUID_TEXT, "/boot/$root" },
		{ UUID_TEXT, "/boot grub" },
		{ UUID_TEXT, "/boot'grub" },
	};
	struct tree t;
	struct grub grub;

	(void)state;
	need_host();
	tree_start_real(&t, no_files);
	grub = find(&t);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct grub_image image;

		if (grub_make_efi(&grub, &boot, &bad[i], &image, &t.err) == 0)
			fail_msg("taken: '%s' '%s'", bad[i].uuid, bad[i].prefix);
	}
	grub_free(&grub);
	tree_stop(&t);
}

static void damaged_modules_are_told_with_grubs_words(void **state)
{
	struct tree t;
	struct grub grub;
	struct grub_image image;

	(void)state;
	start_with_modules(&t);
	run("echo no ELF >%s/" TREE_EFI "/kernel.img", t.dir);
	grub = find(&t);
	assert_int_equal(grub_make_efi(&grub, &boot, &config, &image, &t.err), -1);
	assert_int_equal(t.err.kind, ERR_FAILED);
	assert_non_null(strstr(t.err.text, "x86_64-efi from the source's modules: "));
	assert_non_null(strstr(t.err.text, "grub-mkimage failed with status 1: error: "));
	grub_free(&grub);
	tree_stop(&t);
}

static void a_machine_without_bios_gets_none(void **state)
{
	static const struct boot_machine arm = { .name = "aarch64", .efi = "arm64-efi" };
	const struct boot arm_boot = { .machine = &arm }, unknown = { 0 };
	struct grub_image core;
	struct tree t;
	struct grub grub;
	uint8_t code[440];
	bool can_make;

	(void)state;
	tree_start_real(&t, no_files);
	assert_int_equal(grub_find(&t.edit, &arm_boot, &grub, &can_make, &t.err), 0);
	assert_int_equal(grub.bios.fd, -1);
	assert_int_equal(grub_make_bios(&grub, &arm_boot, &config, 2048, code, &core, &t.err), -1);
	assert_int_equal(t.err.kind, ERR_REFUSED);
	grub_free(&grub);
	assert_int_equal(grub_find(&t.edit, &unknown, &grub, &can_make, &t.err), 0);
	assert_int_equal(grub.efi.fd, -1);
	grub_free(&grub);
	tree_stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_of_this_system_serve_a_tree_without),
		cmocka_unit_test(modules_of_the_tree_come_first),
		cmocka_unit_test(a_link_on_the_way_leads_inside_of_the_tree),
		cmocka_unit_test(an_incomplete_directory_does_not_count),
		cmocka_unit_test(a_directory_with_anything_but_plain_modules_does_not_count),
		cmocka_unit_test(a_module_that_became_a_link_brings_no_file_of_the_host),
		cmocka_unit_test(the_efi_image_is_the_same_at_any_time),
		cmocka_unit_test(what_a_directory_lacks_is_left_out),
		cmocka_unit_test(blscfg_is_noticed),
		cmocka_unit_test(the_bios_parts_know_where_they_lie),
		cmocka_unit_test(a_foreign_boot_img_is_refused),
		cmocka_unit_test(nothing_but_a_uuid_and_a_path_gets_into_the_script),
		cmocka_unit_test(damaged_modules_are_told_with_grubs_words),
		cmocka_unit_test(a_machine_without_bios_gets_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
