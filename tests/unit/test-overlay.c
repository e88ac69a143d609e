// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "virt/backup.h"
#include "virt/below.h"
#include "virt/domain.h"
#include "virt/overlay.h"
#include "virt/virt.h"

#include <endian.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Jobs on a hypervisor that has none (libvirt's test driver), and what is below a file. */
#define UUID "6695eb01-f6a4-8304-79aa-97f2502e193f"

static char dir[] = "/tmp/ccsnap-overlay-XXXXXX";
static struct virt *virt;
static struct domain *domain;
static struct err err;

static int begin(void **state)
{
	(void)state;
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	err = (struct err){ 0 };
	virt = NULL;
	domain = NULL;
	return mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
	char *command = str_format("rm -r '%s'", dir);
	int rc = system(command);

	(void)state;
	free(command);
	domain_close(domain);
	virt_close(virt);
	return rc;
}

static char *path_of(const char *name)
{
	char *path = str_format("%s/%s", dir, name);

	assert_non_null(path);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t len)
{
	char *path = path_of(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	free(path);
}

/* The beginning of a qcow2 image, as far as it names what is below. */
static void write_qcow2(const char *name, const char *backing)
{
	struct {
		uint32_t magic, version;
		uint64_t offset;
		uint32_t length, cluster_bits;
		uint64_t size;
		char name[1100];
	} h = {
		.magic = htobe32(0x514649fb),
		.version = htobe32(3),
		.offset = htobe64(backing ? offsetof(__typeof__(h), name) : 0),
		.length = htobe32(backing ? (uint32_t)strlen(backing) : 0),
	};

	strcpy(h.name, backing ? backing : "");
	write_file(name, &h, sizeof h);
}

static int look_below(const char *top, const char *which)
{
	char *from = path_of(top), *path = path_of(which);
	int found = below_has(from, path, &err);

	free(from);
	free(path);
	return found;
}

/* --- below a file --- */

static void a_file_is_found_in_any_depth(void **state)
{
	char *absolute = path_of("base");

	(void)state;
	write_qcow2("top", "middle");
	write_qcow2("middle", absolute);
	write_file("base", "raw", 3);
	assert_int_equal(look_below("top", "middle"), 1);
	assert_int_equal(look_below("top", "base"), 1);
	assert_int_equal(look_below("top", "other"), 0);
	assert_int_equal(look_below("middle", "middle"), 0);
	assert_int_equal(look_below("base", "top"), 0);
	free(absolute);
}

static void another_name_of_it_counts(void **state)
{
	char *link_name = path_of("link"), *other = path_of("other");

	(void)state;
	write_file("other", "x", 1);
	assert_int_equal(symlink(other, link_name), 0);
	write_qcow2("top", "./link");
	assert_int_equal(look_below("top", "other"), 1);
	free(link_name);
	free(other);
}

static void what_cannot_be_followed_is_no_answer(void **state)
{
	static const char *const names[] = { "missing",	  "json:{\"driver\":\"file\"}",
					     "nbd:h:1",	  "fifo",
					     "/dev/null", "top" };
	char *fifo = path_of("fifo"), name[1026];

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	write_file("nbd:h:1", "x", 1);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		write_qcow2("top", names[i]);
		err = (struct err){ 0 };
		assert_int_equal(look_below("top", "other"), -1);
		assert_int_equal(err.kind, ERR_FAILED);
	}
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	write_qcow2("top", name);
	assert_int_equal(look_below("top", "other"), -1);
	free(fifo);
}

static void a_header_that_is_cut_off_is_no_answer(void **state)
{
	const uint32_t cut[] = { htobe32(0x514649fb), htobe32(3), 0, htobe32(24), htobe32(10) };

	(void)state;
	write_file("top", cut, sizeof cut);
	assert_int_equal(look_below("top", "other"), -1);
	write_file("top", "QFI", 3);
	assert_int_equal(look_below("top", "other"), 0);
}

/* --- a hypervisor without jobs --- */

static void find_domain(const char *uri, const char *name)
{
	virt = virt_open(uri, VIRT_MANAGE, &err);
	assert_non_null(virt);
	domain = domain_find(virt, name, &err);
	assert_non_null(domain);
}

/* Its state is NULL: it runs, or "<test:runstate>5</test:runstate>": off. */
static void define_with(const char *os, const char *devices, const char *state)
{
	char *xml = str_format("<node xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"
			       "<domain type='test'><name>vm</name><uuid>" UUID "</uuid>"
			       "<memory>8192</memory><os><type>hvm</type>%s</os><devices>%s"
			       "</devices>%s</domain></node>",
			       os, devices, state ? state : "");
	char *uri = str_format("test://%s/node.xml", dir);

	write_file("node.xml", xml, strlen(xml));
	find_domain(uri, "vm");
	free(xml);
	free(uri);
}

#define DISK(format, target, below)                                                                \
	"<disk type='file' device='disk'><driver name='qemu' type='" format "'/>"                  \
	"<source file='%s/%s'/>" below "<target dev='" target "' bus='virtio'/></disk>"

static void define_domain(const char *format, const char *disk, const char *state)
{
	char *devices = str_format(DISK("%s", "vda", ""), format, dir, disk);

	define_with("", devices, state);
	free(devices);
}

#define OFF "<test:runstate>5</test:runstate>"

static int begin_backup(void)
{
	const struct backup_request request = { "vda", "x", "/s", "/x" };
	autofree char *xml = backup_xml(domain, &request, &err);

	assert_non_null(xml);
	return backup_begin(domain, "vda", xml, &err);
}

static void no_backup_job_can_be_had_there(void **state)
{
	struct backup_progress progress;
	struct backup_job job;
	char why[100] = "x";

	(void)state;
	define_domain("raw", "disk", NULL);
	assert_int_equal(begin_backup(), 1);
	assert_non_null(strstr(err.text, "domain vm, disk vda: no backup job: "));
	assert_int_equal(backup_find(domain, ERRAND_IN_FULL, &job, &err), 0);
	assert_int_equal(backup_abort(domain, &err), 0);
	assert_int_equal(backup_progress(domain, &progress, &err), -1);
	backup_why_ended(domain, why, sizeof why);
	assert_string_equal(why, "");
}

static void a_domain_that_is_off_gets_neither_job_nor_overlay(void **state)
{
	autofree char *xml = NULL;

	(void)state;
	define_domain("raw", "disk", OFF);
	assert_int_equal(begin_backup(), -1);
	xml = overlay_xml(domain, "vda", "/x", &err);
	assert_non_null(xml);
	assert_int_equal(overlay_begin(domain, "vda", xml, &err), -1);
	assert_string_equal(err.text, "domain vm does not run any more");
}

static int end_overlay(const char *name)
{
	char *path = path_of(name);
	int used = overlay_is_used(domain, "vda", path, &err);
	int rc = overlay_end(domain, "vda", path, &err);

	assert_int_equal(rc == 0, used == 0);
	free(path);
	return rc;
}

static void an_overlay_that_is_not_used_is_at_its_end(void **state)
{
	(void)state;
	define_domain("raw", "disk", NULL);
	assert_int_equal(end_overlay("overlay"), 0);
}

static void an_overlay_that_cannot_be_merged_is_kept(void **state)
{
	(void)state;
	define_domain("qcow2", "overlay", NULL);
	assert_int_equal(end_overlay("overlay"), -1);
	assert_non_null(strstr(err.text, "domain vm, disk vda: "));
}

static void an_overlay_of_a_domain_that_is_off_is_kept(void **state)
{
	(void)state;
	define_domain("qcow2", "overlay", OFF);
	assert_int_equal(end_overlay("overlay"), -1);
	assert_non_null(strstr(err.text, "only while the domain runs"));
}

static void off_and_on_the_base_again_there_is_nothing_to_merge(void **state)
{
	(void)state;
	write_qcow2("base", NULL);
	define_domain("qcow2", "base", OFF);
	assert_int_equal(end_overlay("overlay"), 0);
}

static void the_base_of_a_domain_that_is_off_need_not_be_there_if_raw(void **state)
{
	(void)state;
	define_domain("raw", "missing", OFF);
	assert_int_equal(end_overlay("overlay"), 0);
}

static void an_overlay_below_what_somebody_put_upon_it_is_kept(void **state)
{
	(void)state;
	write_qcow2("theirs", "overlay");
	define_domain("qcow2", "theirs", OFF);
	assert_int_equal(end_overlay("overlay"), -1);
}

static void when_it_cannot_be_told_the_overlay_is_kept(void **state)
{
	(void)state;
	define_domain("qcow2", "missing", OFF);
	assert_int_equal(end_overlay("overlay"), -1);
	assert_non_null(strstr(err.text, "it cannot be told whether it needs"));
}

static void a_disk_that_is_gone_is_no_answer(void **state)
{
	(void)state;
	define_domain("raw", "disk", NULL);
	assert_int_equal(overlay_is_used(domain, "vdb", "/x", &err), -1);
	assert_int_equal(overlay_end(domain, "vdb", "/x", &err), -1);
}

/* --- what is never to be replaced --- */

static void assert_protected(const char *name, bool expected)
{
	char *path = path_of(name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	if (io_is_protected(&st) != expected)
		fail_msg("%s", name);
	free(path);
}

static void write_names(const char *const *names)
{
	for (; *names; names++)
		write_file(*names, "x", 1);
}

static void all_that_a_domain_needs_is_protected(void **state)
{
	static const char *const raws[] = { "kernel", "initrd", "below",  "lowest",
					    "data",   "named",	"nobody", NULL };
	char *os = str_format("<kernel>%s/kernel</kernel><initrd>%s/initrd</initrd>", dir, dir);
	char *devices =
		str_format(DISK("qcow2", "vda",
				"<backingStore type='file'><format type='raw'/>"
				"<source file='%s/below'/></backingStore>") DISK("qcow2", "vdb", "")
				   DISK("raw", "vdc", "") DISK("raw", "vdd", ""),
			   dir, "top", dir, dir, "other", dir, "data", dir, "guests");

	(void)state;
	write_names(raws);
	write_qcow2("top", NULL);
	write_qcow2("other", "middle");
	write_qcow2("middle", "lowest");
	write_qcow2("guests", "named"); /* what a guest writes tells of no layer */
	define_with(os, devices, OFF);
	domain_protect_files(domain);
	for (size_t i = 0; i < 5; i++)
		assert_protected(raws[i], true);
	assert_protected("top", true);
	assert_protected("other", true);
	assert_protected("middle", true);
	assert_protected("guests", true);
	assert_protected("named", false);
	assert_protected("nobody", false);
	free(os);
	free(devices);
}

static void a_domain_whose_files_are_missing_is_no_trouble(void **state)
{
	(void)state;
	define_domain("qcow2", "missing", NULL);
	domain_protect_files(domain);
}

/* --- by hand --- */

static void the_commands_by_hand_are_words_of_a_shell(void **state)
{
	char *text, *expected;

	(void)state;
	define_domain("raw", "disk", NULL);
	text = overlay_by_hand(domain, "vda; rm 'x'", "/x");
	expected = str_format("virsh -c test://%s/node.xml blockcommit " UUID
			      " 'vda; rm '\\''x'\\''' --shallow --active --pivot --verbose",
			      dir);
	assert_string_equal(text, expected);
	free(text);
	free(expected);
}

static void by_hand_options_and_words_stand_around_the_domain(void **state)
{
	char *thaw, *timeout, *expected;

	(void)state;
	define_domain("raw", "disk", NULL);
	thaw = virt_by_hand(domain, "domfsthaw", NULL);
	timeout = virt_by_hand(domain, "x --y", "--z", "a b", "", NULL);
	expected = str_format("virsh -c test://%s/node.xml domfsthaw " UUID, dir);
	assert_string_equal(thaw, expected);
	assert_true(str_ends(timeout, "/node.xml x --y " UUID " --z 'a b' ''"));
	free(thaw);
	free(timeout);
	free(expected);
}

static void by_hand_a_domain_that_is_off_is_started_for_it(void **state)
{
	char *text;

	(void)state;
	define_domain("raw", "disk", OFF);
	text = overlay_by_hand(domain, "vda", "/x");
	assert_non_null(strstr(text, "start --paused " UUID " && virsh -c "));
	assert_non_null(strstr(text, "/node.xml blockcommit " UUID " vda --shallow"));
	assert_non_null(strstr(text, "/node.xml destroy " UUID));
	free(text);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_found_in_any_depth),
		TEST(another_name_of_it_counts),
		TEST(what_cannot_be_followed_is_no_answer),
		TEST(a_header_that_is_cut_off_is_no_answer),
		TEST(no_backup_job_can_be_had_there),
		TEST(a_domain_that_is_off_gets_neither_job_nor_overlay),
		TEST(an_overlay_that_is_not_used_is_at_its_end),
		TEST(an_overlay_that_cannot_be_merged_is_kept),
		TEST(an_overlay_of_a_domain_that_is_off_is_kept),
		TEST(off_and_on_the_base_again_there_is_nothing_to_merge),
		TEST(the_base_of_a_domain_that_is_off_need_not_be_there_if_raw),
		TEST(an_overlay_below_what_somebody_put_upon_it_is_kept),
		TEST(when_it_cannot_be_told_the_overlay_is_kept),
		TEST(a_disk_that_is_gone_is_no_answer),
		TEST(all_that_a_domain_needs_is_protected),
		TEST(a_domain_whose_files_are_missing_is_no_trouble),
		TEST(the_commands_by_hand_are_words_of_a_shell),
		TEST(by_hand_options_and_words_stand_around_the_domain),
		TEST(by_hand_a_domain_that_is_off_is_started_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
