// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/str.h"
#include "virt/backup.h"
#include "virt/chain.h"
#include "virt/hardware.h"
#include "virt/job_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

static char vda[] = "vda", vdb[] = "vdb", awkward[] = "h\"d<&c";
static struct virt_disk disks[] = { { .target = vda }, { .target = vdb }, { .target = awkward } };
static const struct hardware hw = { .disks = disks, .disk_count = 3 };
static struct err err;

static struct backup_job job;
static struct chain chain;

static int begin(void **state)
{
	(void)state;
	err = (struct err){ 0 };
	job = (struct backup_job){ 0 };
	chain = (struct chain){ 0 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	backup_job_free(&job);
	chain_free(&chain);
	return 0;
}

/* --- what we say --- */

static void a_backup_is_of_one_disk_alone(void **state)
{
	const struct backup_request request = { "vda", "ccsnap-x", "/s/socket", "/s/scratch" };
	char *xml = job_xml_backup(&request, &hw, &err);

	(void)state;
	assert_string_equal(xml, HEAD "<domainbackup mode=\"pull\">"
				      "<server transport=\"unix\" socket=\"/s/socket\"/>"
				      "<disks><disk name=\"vda\" backup=\"yes\" type=\"file\" "
				      "exportname=\"ccsnap-x\"><driver type=\"qcow2\"/>"
				      "<scratch file=\"/s/scratch\"/></disk>"
				      "<disk name=\"vdb\" backup=\"no\"/>"
				      "<disk name=\"h&quot;d&lt;&amp;c\" backup=\"no\"/>"
				      "</disks></domainbackup>\n");
	free(xml);
}

static void a_snapshot_is_of_one_disk_alone(void **state)
{
	char *xml = job_xml_overlay("vdb", "/s/overlay", &hw, &err);

	(void)state;
	assert_string_equal(xml,
			    HEAD "<domainsnapshot><memory snapshot=\"no\"/>"
				 "<disks><disk name=\"vdb\" snapshot=\"external\" type=\"file\">"
				 "<driver type=\"qcow2\"/><source file=\"/s/overlay\"/></disk>"
				 "<disk name=\"vda\" snapshot=\"no\"/>"
				 "<disk name=\"h&quot;d&lt;&amp;c\" snapshot=\"no\"/>"
				 "</disks></domainsnapshot>\n");
	free(xml);
}

static void any_name_comes_through_unharmed(void **state)
{
	const char *const socket = "/a b/'\"<&>\xc3\xa4]]>", *const scratch = "/&amp;<!--";
	const struct backup_request request = { "h\"d<&c", "\"/><x>", socket, scratch };
	char *xml = job_xml_backup(&request, &hw, &err);

	(void)state;
	assert_int_equal(job_xml_read_backup(xml, &job, &err), 0);
	assert_string_equal(job.target, "h\"d<&c");
	assert_string_equal(job.socket, socket);
	assert_string_equal(job.scratch, scratch);
	free(xml);
}

static void what_xml_cannot_hold_is_refused(void **state)
{
	static const char *const names[] = { "/a\nb", "/a\x01", "/\xff", "/\xc3", "/\x7f" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const struct backup_request request = { "vda", "x", "/s", names[i] };

		assert_null(job_xml_backup(&request, &hw, &err));
		assert_int_equal(err.kind, ERR_REFUSED);
		assert_null(job_xml_overlay("vda", names[i], &hw, &err));
		assert_int_equal(err.kind, ERR_REFUSED);
		assert_null(strpbrk(err.text, "\n\x01\x7f\xff"));
	}
}

/* --- what libvirt says of a backup --- */

static void a_backup_is_known_by_the_disk_that_takes_part(void **state)
{
	(void)state;
	assert_int_equal(
		job_xml_read_backup(
			"<domainbackup mode='pull'><server transport='unix' socket='/s'/><disks>"
			"<disk name='vda' backup='no'/>"
			"<disk name='vdb' backup='yes' type='file' exportname='x' index='3'>"
			"<driver type='qcow2'/><scratch file='/scratch'/></disk>"
			"</disks></domainbackup>",
			&job, &err),
		0);
	assert_string_equal(job.target, "vdb");
	assert_string_equal(job.socket, "/s");
	assert_string_equal(job.scratch, "/scratch");
}

static void a_backup_of_others_may_lack_all_of_that(void **state)
{
	(void)state;
	assert_int_equal(job_xml_read_backup("<domainbackup mode='push'><disks><disk name='vda' "
					     "backup='yes'><target file='/t'/></disk></disks>"
					     "</domainbackup>",
					     &job, &err),
			 0);
	assert_string_equal(job.target, "vda");
	assert_null(job.socket);
	assert_null(job.scratch);
	backup_job_free(&job);
	assert_int_equal(job_xml_read_backup("<domainbackup><server transport='tcp' name='h' "
					     "port='1'/></domainbackup>",
					     &job, &err),
			 0);
	assert_null(job.target);
	assert_null(job.socket);
}

static void what_is_no_backup_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(job_xml_read_backup("<domain/>", &job, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_int_equal(job_xml_read_backup("", &job, &err), -1);
}

/* --- what it says of a disk's layers --- */

#define DISK(more)                                                                                 \
	"<domain><devices><disk type='block'><source dev='/x'/><target dev='vdx'/></disk>"         \
	"<disk type='file'><driver type='qcow2'/>" more "<target dev='vda'/></disk>"               \
	"</devices></domain>"
#define TOP   "<source file='/top' index='4'/>"
#define BELOW "<backingStore type='block' index='2'><format type='raw'/><source dev='/base'/>"

static void a_chain_is_read_from_the_top(void **state)
{
	(void)state;
	assert_int_equal(
		chain_read(DISK(TOP BELOW "<backingStore/></backingStore>"), "vda", &chain, &err),
		0);
	assert_int_equal(chain.count, 2);
	assert_string_equal(chain.layers[0].kind, "file");
	assert_string_equal(chain.layers[0].source, "/top");
	assert_string_equal(chain.layers[0].format, "qcow2");
	assert_int_equal(chain.layers[0].index, 4);
	assert_string_equal(chain.layers[1].kind, "block");
	assert_string_equal(chain.layers[1].source, "/base");
	assert_string_equal(chain.layers[1].format, "raw");
	assert_null(chain.mirror);
	assert_int_equal(chain_find(&chain, "/top"), 0);
	assert_true(chain_find(&chain, "/base") == SIZE_MAX); /* a block device is no overlay */
	assert_true(chain_find(&chain, "/to") == SIZE_MAX);
}

static void the_end_of_a_chain_may_not_be_said(void **state)
{
	(void)state;
	assert_int_equal(chain_read(DISK(TOP), "vda", &chain, &err), 0);
	assert_int_equal(chain.count, 1);
	assert_int_equal(chain.layers[0].index, 4);
	chain_free(&chain);
	assert_int_equal(chain_read(DISK(""), "vda", &chain, &err), 0);
	assert_int_equal(chain.count, 0);
}

static void the_job_on_a_disk_is_told(void **state)
{
	static const struct {
		const char *ready;
		bool is_ready;
	} cases[] = { { "", false }, { "ready='yes'", true }, { "ready='abort'", false } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *xml = str_format(DISK(TOP "<mirror type='file' job='active-commit' %s>"
						"<source file='/base'/></mirror>"),
				       cases[i].ready);

		assert_int_equal(chain_read(xml, "vda", &chain, &err), 0);
		assert_string_equal(chain.mirror, "active-commit");
		assert_string_equal(chain.copied_to, "/base");
		assert_int_equal(chain.is_ready, cases[i].is_ready);
		chain_free(&chain);
		free(xml);
	}
}

static void a_disk_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(chain_read(DISK(TOP), "vdc", &chain, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_non_null(strstr(err.text, "vdc"));
	assert_int_equal(chain_read("<domain", "vda", &chain, &err), -1);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_backup_is_of_one_disk_alone),
		TEST(a_snapshot_is_of_one_disk_alone),
		TEST(any_name_comes_through_unharmed),
		TEST(what_xml_cannot_hold_is_refused),
		TEST(a_backup_is_known_by_the_disk_that_takes_part),
		TEST(a_backup_of_others_may_lack_all_of_that),
		TEST(what_is_no_backup_is_an_error),
		TEST(a_chain_is_read_from_the_top),
		TEST(the_end_of_a_chain_may_not_be_said),
		TEST(the_job_on_a_disk_is_told),
		TEST(a_disk_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
