// SPDX-License-Identifier: Apache-2.0
#include "boot-kit.h"
#include "system/describe.h"
#include "system/machine.h"

#include <elf.h>

#define autodescription CLEANUP(description_free)

/* --- os-release ---------------------------------------------------------------------- */

static void values_are_read_as_a_shell_would(void **state)
{
	static const struct {
		const char *text, *id;
	} rows[] = {
		{ "ID=debian\n", "debian" },
		{ "NAME=x\nID=\"opensuse-leap\"\nVERSION_ID=15\n", "opensuse-leap" },
		{ "ID='a b'", "a b" },
		{ "ID=\"a\\\"b\"", "a\"b" },
		{ "ID=debian\r\n", "debian" },
		{ "ID=debian # not this\n", "debian" },
		{ "ID=one\nID=two\n", "two" },
		{ "ID=one\nID=\n", NULL },
		{ "#ID=x\nVERSION_ID=1\nID_LIKE=y\nMYID=z\n", NULL },
		{ "ID", NULL },
		{ "ID=\"\"", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		autofree char *id = os_release_value(slice_of(rows[i].text), "ID");

		if (rows[i].id && !id)
			fail_msg("nothing in %s", rows[i].text);
		if (rows[i].id)
			assert_string_equal(id, rows[i].id);
		else
			assert_null(id);
	}
}

static void a_value_that_is_too_long_or_has_a_nul_is_none(void **state)
{
	char text[3 + 256];
	autofree char *most = NULL;

	(void)state;
	memset(text, 'x', sizeof text);
	memcpy(text, "ID=", 3);
	most = os_release_value((struct slice){ text, 3 + 255 }, "ID");
	assert_non_null(most);
	assert_int_equal(strlen(most), 255);
	assert_null(os_release_value((struct slice){ text, 3 + 256 }, "ID"));
	text[10] = '\0';
	assert_null(os_release_value((struct slice){ text, 20 }, "ID"));
}

static void assert_os(const struct tree_file *files, const char *id, const char *version)
{
	autotree struct tree t;
	struct description autodescription d;

	tree_start_real(&t, files);
	describe_tree(&t.edit, &d);
	if (id)
		assert_string_equal(d.os_id, id);
	else
		assert_null(d.os_id);
	if (version)
		assert_string_equal(d.os_version, version);
	else
		assert_null(d.os_version);
	assert_int_equal(t.account.len, 0);
}

static void the_system_is_told_by_the_file_in_etc_or_else_in_usr(void **state)
{
	const struct tree_file both[] = { TREE_FILE("etc/os-release", "ID=a\n"),
					  TREE_FILE("usr/lib/os-release", "ID=b\nVERSION_ID=2\n"),
					  { 0 } };
	const struct tree_file linked[] = { TREE_FILE("usr/lib/os-release", "ID=b\nVERSION_ID=2\n"),
					    TREE_LINK("etc/os-release", "../usr/lib/os-release"),
					    { 0 } };
	const struct tree_file dangling[] = { TREE_FILE("usr/lib/os-release", "ID=b\n"),
					      TREE_LINK("etc/os-release", "nowhere"),
					      { 0 } };
	const struct tree_file none[] = { TREE_DIR("etc"), { 0 } };

	(void)state;
	assert_os(both, "a", NULL);
	assert_os(linked, "b", "2");
	assert_os(dangling, "b", NULL);
	assert_os(none, NULL, NULL);
	assert_string_equal(warned, "");
}

/* There is such a file on nearly every machine, and it must not be ours that is told. */
static void links_that_lead_out_of_the_tree_stay_in_it(void **state)
{
	const struct tree_file out[] = { TREE_LINK("etc/os-release", "/usr/lib/os-release"),
					 TREE_LINK("opt/chameleon/provenance.json", "/etc/passwd"),
					 { 0 } };
	const struct tree_file up[] = {
		TREE_LINK("etc/os-release", "../../../../../usr/lib/os-release"),
		TREE_LINK("opt/chameleon", "../../../../../../etc"),
		{ 0 },
	};
	autotree struct tree t;
	struct description autodescription d;

	(void)state;
	assert_os(out, NULL, NULL);
	assert_os(up, NULL, NULL);
	tree_start_real(&t, out);
	describe_tree(&t.edit, &d);
	assert_null(d.provenance);
	assert_string_equal(warned, "");
}

/* --- provenance ------------------------------------------------------------------------ */

static void provenance_comes_as_it_is(void **state)
{
	const struct tree_file files[] = { TREE_FILE(DESCRIBE_PROVENANCE, "{\"a\": \xff"), { 0 } };
	autotree struct tree t;
	struct description autodescription d;

	(void)state;
	tree_start_real(&t, files);
	describe_tree(&t.edit, &d);
	assert_string_equal(d.provenance, "{\"a\": \xff");
	assert_int_equal(d.provenance_len, 7);
}

static void what_cannot_be_read_costs_a_warning(void **state)
{
	const struct tree_file files[] = { TREE_FILE("etc/os-release", "ID=a\n"),
					   TREE_FILE("usr/lib/os-release", "ID=b\n"),
					   TREE_FILE(DESCRIBE_PROVENANCE, "{}"),
					   { 0 } };
	autotree struct tree t;
	struct description autodescription d;
	char full[512];

	(void)state;
	tree_start_real(&t, files);
	tree_join(&t, "etc/os-release", full, sizeof full);
	assert_int_equal(truncate(full, INT64_C(1) << 40), 0);
	tree_join(&t, DESCRIBE_PROVENANCE, full, sizeof full);
	assert_int_equal(truncate(full, INT64_C(1) << 40), 0);
	describe_tree(&t.edit, &d);
	assert_null(d.os_id);
	assert_null(d.provenance);
	assert_non_null(strstr(warned, "/etc/os-release"));
	assert_non_null(strstr(warned, "/" DESCRIBE_PROVENANCE));
}

/* --- the machine ------------------------------------------------------------------------ */

static void add_program(struct tree *t, const char *path, unsigned char class, unsigned char order,
			unsigned machine)
{
	unsigned char head[64] = ELFMAG;

	head[EI_CLASS] = class;
	head[EI_DATA] = order;
	head[18 + (order == ELFDATA2MSB)] = (unsigned char)machine;
	head[18 + (order == ELFDATA2LSB)] = (unsigned char)(machine >> 8);
	assert_int_equal(
		edit_create(&t->edit, path, (char *)head, sizeof head, 0755, "test", &t->err), 0);
}

static void the_machine_is_that_of_a_program(void **state)
{
	static const struct {
		unsigned char class, order;
		unsigned machine;
		const char *name;
	} rows[] = {
		{ ELFCLASS64, ELFDATA2LSB, EM_X86_64, "x86_64" },
		{ ELFCLASS32, ELFDATA2LSB, EM_386, "i686" },
		{ ELFCLASS64, ELFDATA2LSB, EM_AARCH64, "aarch64" },
		{ ELFCLASS32, ELFDATA2LSB, EM_ARM, "armv7l" },
		{ ELFCLASS64, ELFDATA2LSB, EM_PPC64, "ppc64le" },
		{ ELFCLASS64, ELFDATA2LSB, EM_RISCV, "riscv64" },
		{ ELFCLASS64, ELFDATA2MSB, EM_S390, "s390x" },
		{ ELFCLASS64, ELFDATA2MSB, EM_PPC64, NULL },
		{ ELFCLASS32, ELFDATA2LSB, EM_X86_64, NULL },
		{ ELFCLASS64, ELFDATA2LSB, EM_ALPHA, NULL },
		{ ELFCLASS64, ELFDATANONE, EM_NONE, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tree_file files[] = { TREE_FILE("usr/bin/env", "#!/bin/sh\n# script"),
						   TREE_LINK("bin", "usr/bin"),
						   { 0 } };
		autotree struct tree t;
		const char *name;

		tree_start(&t, files);
		add_program(&t, "usr/bin/sh", rows[i].class, rows[i].order, rows[i].machine);
		name = machine_of_tree(&t.edit, NULL);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_null(name);
	}
}

static bool is_64_bit_pc(const char *name)
{
	return str_equal(name, "x86_64");
}

static void a_program_for_a_machine_that_is_not_wanted_is_passed_over(void **state)
{
	const struct tree_file files[] = { TREE_DIR("usr"), { 0 } };
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	assert_null(machine_of_tree(&t.edit, NULL));
	add_program(&t, "usr/bin/env", ELFCLASS32, ELFDATA2LSB, EM_386);
	assert_null(machine_of_tree(&t.edit, is_64_bit_pc));
	add_program(&t, "bin/sh", ELFCLASS64, ELFDATA2LSB, EM_X86_64);
	assert_string_equal(machine_of_tree(&t.edit, is_64_bit_pc), "x86_64");
	assert_string_equal(machine_of_tree(&t.edit, NULL), "i686");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_are_read_as_a_shell_would),
		TEST(a_value_that_is_too_long_or_has_a_nul_is_none),
		TEST(the_system_is_told_by_the_file_in_etc_or_else_in_usr),
		TEST(links_that_lead_out_of_the_tree_stay_in_it),
		TEST(provenance_comes_as_it_is),
		TEST(what_cannot_be_read_costs_a_warning),
		TEST(the_machine_is_that_of_a_program),
		TEST(a_program_for_a_machine_that_is_not_wanted_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
