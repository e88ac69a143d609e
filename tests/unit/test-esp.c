// SPDX-License-Identifier: Apache-2.0
#include "system/esp.h"

#include "base/io.h"
#include "base/size.h"
#include "system/esp_list.h"
#include "system/tool.h"

#include <sys/mman.h>

#include "tree-kit.h"

#define NAME_255 NAME_50 NAME_50 NAME_50 NAME_50 NAME_50 "nnnnn"
#define NAME_50	 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define NAME_230 NAME_50 NAME_50 NAME_50 NAME_50 "nnnnnnnnnnnnnnnnnnnnnnnnnn.efi"

static const char loader[] = "MZ the loader", stub[] = "configfile";
static const struct esp_file add[] = {
	{ "EFI/BOOT/BOOTX64.EFI", ESP_IF_MISSING, loader, sizeof loader - 1 },
	{ "EFI/BOOT/grub.cfg", ESP_IF_MISSING, stub, sizeof stub - 1 },
};
static const struct tree_file no_files[] = { { 0 } };
static char place[64]; /* images and what is copied from them */

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *fmt, ...)
{
	char command[4096] = "exec 2>&1; export PATH=$PATH:/usr/sbin:/sbin MTOOLSRC=/dev/null "
			     "TZ=UTC0; ";
	size_t len = strlen(command);
	va_list ap;

	va_start(ap, fmt);
	assert_true(vsnprintf(command + len, sizeof command - len, fmt, ap) <
		    (int)(sizeof command - len));
	va_end(ap);
	if (system(command) != 0)
		fail_msg("%s", command + len);
}

/* What a command prints. */
static const char *told(const char *command)
{
	static char text[16384];
	char whole[512];
	FILE *pipe;
	size_t len;

	snprintf(whole, sizeof whole,
		 "cd %s; export PATH=$PATH:/usr/sbin:/sbin MTOOLSRC=/dev/null TZ=UTC0; %s 2>&1",
		 place, command);
	pipe = popen(whole, "r");
	assert_non_null(pipe);
	len = fread(text, 1, sizeof text - 1, pipe);
	text[len] = '\0';
	pclose(pipe);
	return text;
}

static void assert_tells(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("'%s' is not in: %s", what, text);
}

/* As the walk enters them: times that the kit does not know. */
static void note_times(struct tree *t)
{
	for (uint32_t i = 0; i < t->model.node_count; i++) {
		struct model_node *node = &t->model.nodes[i];
		autofree char *path = model_path(&t->model, i);
		char full[1024];
		struct stat st;

		assert_true(snprintf(full, sizeof full, "%s%s", t->dir, path) < 1024);
		assert_int_equal(lstat(full, &st), 0);
		node->found_ctime_sec = st.st_ctim.tv_sec;
		node->found_ctime_nsec = (uint32_t)st.st_ctim.tv_nsec;
		node->mtime_sec = st.st_mtim.tv_sec;
		node->mtime_nsec = (uint32_t)st.st_mtim.tv_nsec;
	}
}

static void start(struct tree *t, const struct tree_file *files)
{
	autofree char *mtools = tool_find("mcopy"), *fsck = tool_find("fsck.fat");

	if (!mtools || !fsck)
		skip();
	strcpy(place, "/tmp/ccsnap-test-esp-XXXXXX");
	assert_non_null(mkdtemp(place));
	tree_start_real(t, files);
	note_times(t);
}

static void stop(struct tree *t)
{
	tree_stop(t);
	nftw(place, tree_delete, 16, FTW_DEPTH | FTW_PHYS);
}

static struct esp_config config_of(struct tree *t)
{
	return (struct esp_config){
		.edit = &t->edit,
		.source = MODEL_ROOT,
		.serial = "ABCD-1234",
		.label = "",
		.sector_size = 512,
		.min_size = MIB,
		.time = TREE_TIME,
	};
}

/* Build it, check it, store it as esp.img; its size. */
static uint64_t build(const struct esp_config *cfg, struct err *err)
{
	char path[128];
	uint64_t size = 0;
	int fd = -1, copy;
	char *map;

	if (esp_build(cfg, &fd, &size, err) < 0)
		fail_msg("%s", err->text);
	assert_int_equal(lseek(fd, 0, SEEK_END), size);
	assert_int_equal(write(fd, "x", 1), -1); /* sealed */
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	snprintf(path, sizeof path, "%s/esp.img", place);
	copy = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_true(copy >= 0);
	assert_int_equal(io_pwrite(copy, map, size, 0), 0);
	munmap(map, size);
	close(copy);
	close(fd);
	run("cd %s && fsck.fat -n esp.img >fsck.log || { cat fsck.log; false; }", place);
	assert_null(strstr(told("cat fsck.log"), "different"));
	return size;
}

/* All that is on it, in a directory of its own. */
static void copy_back(void)
{
	run("cd %s && rm -rf back && mkdir back && mcopy -s -m -n -i esp.img '::/*' back", place);
}

static void assert_names(const char *expected)
{
	assert_string_equal(told("cd back; find . -type f | LC_ALL=C sort"), expected);
}

static void a_source_is_copied_whole(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("EFI/debian/shimx64.efi", "shim"),
		TREE_FILE("EFI/debian/grub.cfg", "search"),
		TREE_FILE("EFI/debian/BOOTX64.CSV", ""),
		TREE_FILE("EFI/Microsoft/Boot/bootmgfw.efi", "windows"),
		TREE_FILE("loader/entries/0123456789abcdef-6.1.0-13-amd64.conf", "title x"),
		TREE_FILE("loader/.hidden", "h"),
		TREE_FILE("startup.nsh", "fs0:"),
		TREE_DIR("empty"),
		{ 0 },
	};
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	copy_back();
	run("diff -r %s %s/back", t.dir, place);
	assert_int_equal(t.account.len, 0);
	stop(&t);
}

static void large_files_come_through(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("EFI/Linux/one.efi", "x"),
						  TREE_FILE("EFI/Linux/two.efi", "x"),
						  { 0 } };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	run("cd %s/EFI/Linux && head -c 40000001 /dev/urandom >one.efi && "
	    "head -c 50000000 /dev/urandom >two.efi",
	    t.dir);
	t.model.nodes[tree_find(&t, "EFI/Linux/one.efi")].size = 40000001;
	t.model.nodes[tree_find(&t, "EFI/Linux/two.efi")].size = 50000000;
	note_times(&t);
	cfg = config_of(&t);
	assert_in_range(build(&cfg, &t.err), 90 * MIB, 120 * MIB);
	copy_back();
	run("diff -r %s %s/back", t.dir, place);
	assert_int_equal(t.account.len, 0);
	stop(&t);
}

static void many_small_files_fit(void **state)
{
	struct tree t;
	struct esp_config cfg;
	char name[300];

	(void)state;
	start(&t, no_files);
	for (int i = 0; i < 150; i++) {
		snprintf(name, sizeof name, "%03d-%.*s", i, i, NAME_230);
		tree_enter(&t, &(struct tree_file){ .path = name, .content = name });
	}
	model_sort(&t.model);
	note_times(&t);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	copy_back();
	run("diff -r %s %s/back", t.dir, place);
	assert_int_equal(t.account.len, 0);
	stop(&t);
}

static void times_are_kept(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("EFI/a.efi", "a"),
						  TREE_FILE("old", "1970"),
						  TREE_FILE("new", "2200"),
						  { 0 } };
	struct tree t;
	struct esp_config cfg;
	const char *text;

	(void)state;
	start(&t, files);
	run("cd %s && touch -d 2019-08-07T06:05:04Z EFI/a.efi && touch -d 1970-01-01 old && "
	    "touch -d 2200-01-01 new && touch -d 2011-10-09T08:07:06Z EFI",
	    t.dir);
	note_times(&t);
	cfg = config_of(&t);
	cfg.add = add;
	cfg.add_count = 1;
	build(&cfg, &t.err);
	text = told("mdir -i esp.img ::");
	assert_tells(text, "EFI          <DIR>     2011-10-09   8:07");
	assert_tells(text, "1980-01-01   0:00");
	assert_tells(text, "2107-12-31  23:59");
	assert_tells(told("mdir -i esp.img ::/EFI"), "a        efi         1 2019-08-07   6:05");
	assert_tells(told("mdir -i esp.img ::/EFI/BOOT"), "2023-11-14  22:13"); /* TREE_TIME */
	copy_back();
	assert_tells(told("stat -c %Y back/EFI/a.efi"), "1565157904\n");
	stop(&t);
}

static void the_same_tree_makes_the_same_bytes_at_any_time(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("EFI/debian/grubx64.efi", "g"),
						  TREE_FILE("a long name.efi", "l"),
						  { 0 } };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	cfg = config_of(&t);
	cfg.label = "ESP";
	cfg.add = add;
	cfg.add_count = 2;
	build(&cfg, &t.err);
	run("mv %s/esp.img %s/first.img", place, place);
	sleep(3); /* FAT counts in steps of two seconds */
	setenv("TZ", "Asia/Tokyo", 1);
	build(&cfg, &t.err);
	unsetenv("TZ");
	run("cmp %s/first.img %s/esp.img", place, place);
	stop(&t);
}

static void serial_and_label_are_as_asked(void **state)
{
	static const char *const labels[] = { "", "ESP", "efi-system_", "Lower case" };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, no_files);
	cfg = config_of(&t);
	cfg.serial = "00FE-9C0D";
	for (size_t i = 0; i < 4; i++) {
		char expected[64];

		cfg.label = labels[i];
		build(&cfg, &t.err);
		snprintf(expected, sizeof expected, "%s\n00FE-9C0D\n", labels[i]);
		assert_string_equal(told("blkid -p -s LABEL -o value esp.img | grep . || echo; "
					 "blkid -p -s UUID -o value esp.img"),
				    expected);
		assert_tells(told("mlabel -s -i esp.img ::"),
			     labels[i][0] ? labels[i] : "has no label");
	}
	stop(&t);
}

static void a_wrong_serial_is_refused(void **state)
{
	static const char *const wrong[] = { "",	  "ABCD",      "ABCD-12345",
					     "ABCD1-234", "ABCD-12G4", "-ABCD1234" };
	struct tree t;
	struct esp_config cfg;
	uint64_t size;
	int fd;

	(void)state;
	start(&t, no_files);
	cfg = config_of(&t);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		cfg.serial = wrong[i];
		assert_int_equal(esp_build(&cfg, &fd, &size, &t.err), -1);
	}
	stop(&t);
}

static void sectors_of_4096_bytes_are_made(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("EFI/debian/grubx64.efi", "g"), { 0 } };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	cfg = config_of(&t);
	cfg.sector_size = 4096;
	cfg.label = "esp";
	assert_int_equal(build(&cfg, &t.err) % MIB, 0);
	assert_tells(told("fsck.fat -nv esp.img"), "4096 bytes per logical sector");
	assert_tells(told("fsck.fat -nv esp.img"), "32 bit entries");
	assert_tells(told("blkid -p esp.img"), "LABEL=\"esp\"");
	copy_back();
	run("diff -r %s %s/back", t.dir, place);
	stop(&t);
}

static void it_is_at_least_as_large_as_asked(void **state)
{
	static const uint64_t sizes[] = { 1, 100 * MIB, 100 * MIB + 1, 300 * MIB, 600 * MIB };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, no_files);
	cfg = config_of(&t);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t size;

		cfg.min_size = sizes[i];
		size = build(&cfg, &t.err);
		assert_int_equal(size % MIB, 0);
		assert_in_range(size, sizes[i], MAX(sizes[i] + MIB, 70 * MIB));
		assert_tells(told("fsck.fat -nv esp.img"), "32 bit entries");
		run("rm %s/esp.img", place);
	}
	stop(&t);
}

static void what_is_added_stands_behind_what_is_there(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("efi/Boot/bootx64.efi", "shim"),
						  { 0 } };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	cfg = config_of(&t);
	cfg.add = add;
	cfg.add_count = 2;
	build(&cfg, &t.err);
	copy_back();
	assert_names("./efi/Boot/bootx64.efi\n./efi/Boot/grub.cfg\n");
	assert_string_equal(told("cat back/efi/Boot/bootx64.efi"), "shim");
	assert_string_equal(told("cat back/efi/Boot/grub.cfg"), stub);
	stop(&t);
}

static void without_a_source_there_is_what_is_added(void **state)
{
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, no_files);
	cfg = config_of(&t);
	cfg.source = MODEL_NONE;
	cfg.add = add;
	cfg.add_count = 2;
	build(&cfg, &t.err);
	copy_back();
	assert_names("./EFI/BOOT/BOOTX64.EFI\n./EFI/BOOT/grub.cfg\n");
	assert_string_equal(told("cat back/EFI/BOOT/BOOTX64.EFI"), loader);
	stop(&t);
}

static void a_file_in_the_way_of_a_directory_is_refused(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("efi", "no directory"), { 0 } };
	struct tree t;
	struct esp_config cfg;
	uint64_t size;
	int fd;

	(void)state;
	start(&t, files);
	cfg = config_of(&t);
	cfg.add = add;
	cfg.add_count = 1;
	assert_int_equal(esp_build(&cfg, &fd, &size, &t.err), -1);
	assert_int_equal(t.err.kind, ERR_REFUSED);
	assert_non_null(strstr(t.err.text, "efi is a file"));
	stop(&t);
}

static void awkward_names_neither_act_nor_vanish(void **state)
{
	static const char *const stored[] = {
		"-rf",
		"@x",
		"~",
		"longfi~1.efi",
		"longfilename.efi",
		"$HOME",
		"`id`",
		"{a,b}",
		"%s%n",
		"a b.c",
		" lead",
		"..x",
		"a'b",
		"x;y",
		"#",
		"conf",
		"nul.t",
		"!",
		"+,;=",
		NAME_230,
		"longfi~2.efi",
		"-",
		"aux1",
		"longfilename.efi.old",
	};
	static const char *const left_out[] = {
		"a*",	     "q?",   "[a]", "a]",   "c:d",	"back\\slash", "tab\t",
		"new\nline", "dot.", "sp ", "con",  "AUX",	"Lpt1",	       "\"q\"",
		"<",	     ">",    "|",   "\x7f", "\xc3\xbc", "\xff",	       NAME_255,
	};
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, no_files);
	for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
		tree_enter(&t, &(struct tree_file){ .path = stored[i], .content = stored[i] });
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		tree_enter(&t, &(struct tree_file){ .path = left_out[i] });
	model_sort(&t.model);
	note_times(&t);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	assert_int_equal(t.account.len, sizeof left_out / sizeof *left_out);
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
		char full[512];

		assert_non_null(tree_told(&t, ACCOUNT_ATTRIBUTE, left_out[i]));
		tree_join(&t, left_out[i], full, sizeof full);
		assert_int_equal(unlink(full), 0);
	}
	copy_back();
	run("diff -r %s %s/back", t.dir, place);
	stop(&t);
}

static void of_names_that_differ_in_case_one_stays(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("EFI/one", "upper"), TREE_FILE("efi/two", "lower"),
		TREE_FILE("x/File", "1"),      TREE_FILE("x/fILE", "2"),
		TREE_FILE("x/file", "3"),      { 0 },
	};
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	copy_back();
	assert_names("./EFI/one\n./x/File\n");
	assert_non_null(tree_told(&t, ACCOUNT_ATTRIBUTE, "efi"));
	assert_non_null(tree_told(&t, ACCOUNT_ATTRIBUTE, "x/fILE"));
	assert_non_null(tree_told(&t, ACCOUNT_ATTRIBUTE, "x/file"));
	assert_int_equal(t.account.len, 3);
	stop(&t);
}

static void only_files_and_directories_go_on_it(void **state)
{
	static const struct tree_file files[] = { TREE_LINK("link", "/etc/passwd"),
						  TREE_FILE("file", "f"),
						  TREE_FILE("huge", ""),
						  { 0 } };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	run("truncate -s 4G %s/huge", t.dir);
	t.model.nodes[tree_find(&t, "huge")].size = 4 * GIB;
	note_times(&t);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	copy_back();
	assert_names("./file\n");
	assert_non_null(tree_told(&t, ACCOUNT_ATTRIBUTE, "link"));
	assert_non_null(tree_told(&t, ACCOUNT_ATTRIBUTE, "huge"));
	stop(&t);
}

static void edited_files_have_their_new_content(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("loader/entries/a.conf", "old"),
						  { 0 } };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	assert_int_equal(
		edit_write(&t.edit, "loader/entries/a.conf", "brand new", 9, "test", &t.err), 0);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	copy_back();
	assert_string_equal(told("cat back/loader/entries/a.conf"), "brand new");
	stop(&t);
}

static void files_that_move_break_nothing_and_are_named(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("gone", "1"),
						  TREE_FILE("grown", "22"),
						  TREE_FILE("shrunk", "333"),
						  TREE_FILE("link", "4"),
						  { 0 } };
	struct tree t;
	struct esp_config cfg;

	(void)state;
	start(&t, files);
	run("cd %s && rm gone && echo more >>grown && : >shrunk && ln -sf /etc/passwd link", t.dir);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	copy_back();
	assert_names("./grown\n./shrunk\n");
	assert_string_equal(told("cat back/grown"), "22");
	assert_string_equal(told("od -An -tx1 back/shrunk"), " 00 00 00\n");
	assert_non_null(tree_told(&t, ACCOUNT_VANISHED, "gone"));
	assert_non_null(tree_told(&t, ACCOUNT_VANISHED, "link"));
	assert_non_null(tree_told(&t, ACCOUNT_CHANGED, "grown"));
	assert_non_null(tree_told(&t, ACCOUNT_CHANGED, "shrunk"));
	stop(&t);
}

static void a_path_too_long_for_firmware_is_left_out(void **state)
{
	struct tree t;
	struct esp_config cfg;
	char path[400] = "";

	(void)state;
	start(&t, no_files);
	for (int i = 0; i < 6; i++)
		snprintf(path + strlen(path), sizeof path - strlen(path), "%s%d/", NAME_50, i);
	strcat(path, "f");
	tree_enter(&t, &(struct tree_file){ .path = path });
	model_sort(&t.model);
	note_times(&t);
	cfg = config_of(&t);
	build(&cfg, &t.err);
	assert_int_equal(t.account.len, 1);
	assert_non_null(strstr(t.account.at[0].detail, "too long"));
	stop(&t);
}

static void a_program_that_is_not_installed_is_refused_with_its_package(void **state)
{
	const char *const argv[] = { "no-such-program-anywhere", NULL };
	const struct tool tool = { .argv = argv, .package = "the-package" };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(tool_run(&tool, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_non_null(strstr(err.text, "install the package the-package"));
}

static void relative_directories_in_path_are_not_searched(void **state)
{
	autofree char *before = strdup(getenv("PATH"));
	char dir[] = "/tmp/ccsnap-test-esp-XXXXXX", file[64];
	autofree char *trap = NULL, *found = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/ccsnap-test-tool", dir);
	run("ln -s /bin/true %s", file);
	setenv("PATH", dir + 1, 1); /* relative to / */
	assert_int_equal(chdir("/"), 0);
	trap = tool_find("ccsnap-test-tool");
	setenv("PATH", dir, 1);
	found = tool_find("ccsnap-test-tool");
	setenv("PATH", before, 1);
	unlink(file);
	rmdir(dir);
	assert_null(trap);
	assert_string_equal(found, file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_is_copied_whole),
		cmocka_unit_test(large_files_come_through),
		cmocka_unit_test(many_small_files_fit),
		cmocka_unit_test(times_are_kept),
		cmocka_unit_test(the_same_tree_makes_the_same_bytes_at_any_time),
		cmocka_unit_test(serial_and_label_are_as_asked),
		cmocka_unit_test(a_wrong_serial_is_refused),
		cmocka_unit_test(sectors_of_4096_bytes_are_made),
		cmocka_unit_test(it_is_at_least_as_large_as_asked),
		cmocka_unit_test(what_is_added_stands_behind_what_is_there),
		cmocka_unit_test(without_a_source_there_is_what_is_added),
		cmocka_unit_test(a_file_in_the_way_of_a_directory_is_refused),
		cmocka_unit_test(awkward_names_neither_act_nor_vanish),
		cmocka_unit_test(of_names_that_differ_in_case_one_stays),
		cmocka_unit_test(only_files_and_directories_go_on_it),
		cmocka_unit_test(edited_files_have_their_new_content),
		cmocka_unit_test(files_that_move_break_nothing_and_are_named),
		cmocka_unit_test(a_path_too_long_for_firmware_is_left_out),
		cmocka_unit_test(a_program_that_is_not_installed_is_refused_with_its_package),
		cmocka_unit_test(relative_directories_in_path_are_not_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
