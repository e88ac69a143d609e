// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/str.h"
#include "virt/hardware.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DOMAIN(os, devices)                                                                        \
	"<domain type='kvm'><name>vm</name><os>" os "</os><devices>" devices "</devices></domain>"
#define OS		  "<type arch='x86_64' machine='pc-q35-7.2'>hvm</type>"
#define DISKS(disks)	  DOMAIN(OS, disks)
#define TARGET(name, bus) "<target dev='" name "' bus='" bus "'/>"
#define FILE_DISK(name, bus, more)                                                                 \
	"<disk type='file' device='disk'><driver name='qemu' type='qcow2'/>"                       \
	"<source file='/images/" name ".qcow2'/>" TARGET(name, bus) more "</disk>"
#define VDA FILE_DISK("vda", "virtio", "")
#define VDB FILE_DISK("vdb", "virtio", "")
#define CDROM(more)                                                                                \
	"<disk type='file' device='cdrom'><source file='/iso/x.iso'/>" TARGET("hda", "ide") more   \
		"<readonly/></disk>"

static struct hardware hw;
static struct err err;

static int begin(void **state)
{
	(void)state;
	hw = (struct hardware){ 0 };
	err = (struct err){ 0 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	hardware_free(&hw);
	return 0;
}

static void parse(const char *xml)
{
	hardware_free(&hw);
	assert_int_equal(hardware_parse(xml, &hw, &err), 0);
}

static const struct virt_disk *only_disk(const char *xml)
{
	parse(xml);
	assert_int_equal(hw.disk_count, 1);
	return &hw.disks[0];
}

static void assert_no_domain(const char *xml)
{
	assert_int_equal(hardware_parse(xml, &hw, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_null(hw.disks);
}

static void assert_root(const char *xml, const char *wanted, const char *target)
{
	const struct virt_disk *disk;

	parse(xml);
	disk = hardware_root_disk(&hw, wanted, &err);
	assert_non_null(disk);
	assert_string_equal(disk->target, target);
}

static void assert_refused(const char *xml, const char *wanted, const char *words)
{
	parse(xml);
	assert_null(hardware_root_disk(&hw, wanted, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in: %s", words, err.text);
}

/* --- what the XML says --- */

static void a_running_domain_is_read(void **state)
{
	const struct virt_disk *disk = only_disk(DISKS(
		"<disk type='file' device='disk'><driver name='qemu' type='qcow2' discard='unmap'/>"
		"<source file='/images/a.qcow2' index='2'/>"
		"<backingStore type='file' index='1'><format type='raw'/>"
		"<source file='/images/base.raw'/><backingStore/></backingStore>"
		"<mirror type='file' job='active-commit'><source file='/images/base.raw'/></mirror>"
		"<target dev='vda' bus='virtio'/><shareable/><transient/>"
		"<boot order='3'/><blockio logical_block_size='4096'/></disk>"));

	(void)state;
	assert_string_equal(hw.architecture, "x86_64");
	assert_string_equal(hw.machine, "pc-q35-7.2");
	assert_string_equal(disk->target, "vda");
	assert_string_equal(disk->bus, "virtio");
	assert_string_equal(disk->device, "disk");
	assert_string_equal(disk->kind, "file");
	assert_string_equal(disk->source, "/images/a.qcow2");
	assert_string_equal(disk->format, "qcow2");
	assert_string_equal(disk->mirror, "active-commit");
	assert_true(disk->is_shareable && disk->is_transient);
	assert_true(disk->has_backing);
	assert_false(disk->is_encrypted || disk->is_part);
	assert_int_equal(disk->boot_order, 3);
	assert_int_equal(disk->sector_size, 4096);
}

static void what_is_not_said_has_a_default(void **state)
{
	const struct virt_disk *disk = only_disk(
		DISKS("<disk><source file='/a'/><backingStore/><target dev='vda'/></disk>"));

	(void)state;
	assert_null(disk->bus);
	assert_null(disk->mirror);
	assert_string_equal(disk->device, "disk");
	assert_string_equal(disk->kind, "file");
	assert_string_equal(disk->format, "raw");
	assert_false(disk->is_shareable || disk->is_transient);
	assert_false(disk->has_backing);
	assert_int_equal(disk->boot_order, 0);
	assert_int_equal(disk->sector_size, 0);
}

static void every_kind_of_source_is_known(void **state)
{
	static const struct {
		const char *kind, *source, *text;
		bool is_captured;
	} kinds[] = {
		{ "file", "<source file='/a'/>", "/a", true },
		{ "block", "<source dev='/dev/vg/a'/>", "/dev/vg/a", true },
		{ "network",
		  "<source protocol='rbd' name='pool/image'><host name='mon' port='6789'/></source>",
		  "rbd:pool/image", true },
		{ "network", "<source protocol='nbd'><host name='far' port='10809'/></source>",
		  "nbd:far", true },
		{ "volume", "<source pool='p' volume='v'/>", "p/v", true },
		{ "nvme",
		  "<source type='pci' managed='yes' namespace='1'>"
		  "<address domain='0x0000' bus='0x01' slot='0x1f' function='0x2'/></source>",
		  "0000:01:1f.2 namespace 1", true },
		{ "dir", "<source dir='/d'/>", "/d", false },
		{ "vhostuser", "<source type='unix' path='/run/v.sock'/>", "/run/v.sock", false },
		{ "vhostvdpa", "<source dev='/dev/vhost-vdpa-0'/>", "/dev/vhost-vdpa-0", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		char *xml = str_format(DISKS("<disk type='%s'>%s<target dev='vda'/></disk>"),
				       kinds[i].kind, kinds[i].source);
		const struct virt_disk *disk = only_disk(xml);

		assert_string_equal(disk->kind, kinds[i].kind);
		assert_string_equal(disk->source, kinds[i].text);
		assert_int_equal(virt_disk_why_not(disk) == NULL, kinds[i].is_captured);
		free(xml);
	}
	assert_string_equal(only_disk(DISKS("<disk type='volume'><source pool='p' volume='v'/>"
					    "<target dev='vda'/></disk>"))
				    ->volume,
			    "v");
	assert_string_equal(hw.disks[0].pool, "p");
}

static void an_unknown_kind_is_kept_and_refused(void **state)
{
	(void)state;
	assert_refused(
		DISKS("<disk type='tape'><source dev='/dev/st0'/><target dev='vda'/></disk>"), NULL,
		"not known");
	assert_string_equal(hw.disks[0].kind, "tape");
}

static void firmware_is_told_by_either_form(void **state)
{
	(void)state;
	parse(DOMAIN(OS, ""));
	assert_string_equal(hw.firmware, "bios");
	parse(DOMAIN(OS "<loader readonly='yes' type='pflash'>/OVMF_CODE.fd</loader>", ""));
	assert_string_equal(hw.firmware, "uefi");
	parse(DOMAIN(OS "<loader type='rom'>/bios.bin</loader>", ""));
	assert_string_equal(hw.firmware, "bios");
	parse("<domain><os firmware='efi'>" OS "</os></domain>");
	assert_string_equal(hw.firmware, "uefi");
}

static void the_agents_channel_is_found_and_its_state(void **state)
{
	(void)state;
	parse(DISKS("<channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0' "
		    "state='connected'/></channel>"
		    "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/>"
		    "</channel>"));
	assert_true(hw.has_agent_channel);
	assert_false(hw.agent_is_connected);
	parse(DISKS("<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0' "
		    "state='connected'/></channel>"));
	assert_true(hw.agent_is_connected);
	parse(DISKS("<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.01' "
		    "state='connected'/></channel>"));
	assert_false(hw.has_agent_channel);
}

static void the_user_of_qemu_is_the_dac_label(void **state)
{
	(void)state;
	parse("<domain><seclabel type='dynamic' model='apparmor'><label>libvirt-1</label></seclabel>"
	      "<seclabel type='dynamic' model='dac'><label>+64055:+107</label></seclabel></domain>");
	assert_string_equal(hw.qemu_label, "+64055:+107");
	parse("<domain><seclabel type='none' model='dac'/></domain>");
	assert_null(hw.qemu_label);
}

static void a_kernel_of_the_host_is_told(void **state)
{
	(void)state;
	parse(DOMAIN(OS, VDA));
	assert_false(hw.boots_host_kernel);
	parse(DOMAIN(OS "<kernel>/boot/vmlinuz</kernel>", VDA));
	assert_true(hw.boots_host_kernel);
}

static void names_are_taken_out_of_their_xml(void **state)
{
	(void)state;
	assert_string_equal(only_disk(DISKS("<disk><source file='/a&amp;b&lt;&#39;\"&#228;'/>"
					    "<target dev='vda'/></disk>"))
				    ->source,
			    "/a&b<'\"\xc3\xa4");
}

static void what_others_put_in_is_not_libvirts(void **state)
{
	(void)state;
	parse("<domain xmlns:q='urn:q'><metadata><devices>" VDA "</devices></metadata>"
	      "<devices><q:disk><source file='/b'/><target dev='vdb'/></q:disk>"
	      "<disk><source q:file='/c'/><target dev='vdc'/></disk></devices></domain>");
	assert_int_equal(hw.disk_count, 1);
	assert_null(hw.disks[0].source);
}

/* --- what is no domain --- */

static void what_is_no_domain_is_an_error(void **state)
{
	(void)state;
	assert_no_domain("");
	assert_no_domain("no XML");
	assert_no_domain("<domain>");
	assert_no_domain("<domainsnapshot><domain/></domainsnapshot>");
	assert_no_domain("<q:domain xmlns:q='urn:q'/>");
	assert_no_domain("<domain><name>\xff</name></domain>");
}

static void a_dtd_is_refused(void **state)
{
	(void)state;
	assert_no_domain("<!DOCTYPE domain><domain/>");
	assert_no_domain("<!DOCTYPE domain SYSTEM 'file:///etc/passwd'><domain/>");
	assert_no_domain("<!DOCTYPE d [<!ENTITY a 'aaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>"
			 "<domain><name>&b;</name></domain>");
	assert_no_domain("<!DOCTYPE d [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
			 "<domain><seclabel model='dac'><label>&x;</label></seclabel></domain>");
	assert_no_domain("<domain><name>&unknown;</name></domain>");
}

static char *repeat(const char *head, const char *part, size_t count, const char *tail)
{
	size_t n = strlen(part), at = strlen(head);
	char *s = malloc(at + n * count + strlen(tail) + 1);

	assert_non_null(s);
	memcpy(s, head, at);
	for (size_t i = 0; i < count; i++, at += n)
		memcpy(s + at, part, n);
	memcpy(s + at, tail, strlen(tail) + 1);
	return s;
}

static void what_is_too_much_is_an_error(void **state)
{
	char *big = repeat("<domain>", "<a/>", (4 << 20) / 4, "</domain>");
	char *deep = repeat("<domain>", "<a>", 100000, "");
	char *many = repeat("<domain><devices>", "<disk/>", 5000, "</devices></domain>");

	(void)state;
	assert_no_domain(big);
	assert_non_null(strstr(err.text, "4 MiB"));
	assert_no_domain(deep);
	assert_no_domain(many);
	assert_non_null(strstr(err.text, "4096 disks"));
	free(big);
	free(deep);
	free(many);
}

static void a_disk_needs_a_target_of_its_own(void **state)
{
	(void)state;
	assert_no_domain(DISKS("<disk><source file='/a'/></disk>"));
	assert_no_domain(DISKS(VDA VDA));
}

static void numbers_that_are_none_count_as_not_said(void **state)
{
	static const char *const texts[] = {
		"-1", "", "1x", "0x", "4294967297", " 1", "99999999999999999999999"
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char *xml = str_format(
			DISKS("<disk><source file='/a'/><target dev='vda'/><boot order='%s'/></disk>"),
			texts[i]);

		assert_int_equal(only_disk(xml)->boot_order, 0);
		free(xml);
	}
}

/* --- the disk that is meant --- */

static void the_first_by_boot_order_is_taken(void **state)
{
	(void)state;
	assert_root(DISKS(VDA FILE_DISK("vdb", "virtio", "<boot order='3'/>") FILE_DISK(
			    "vdc", "virtio", "<boot order='2'/>") CDROM("<boot order='1'/>")),
		    NULL, "vdc");
}

static void without_boot_order_it_is_the_first_by_name(void **state)
{
	(void)state;
	assert_root(DISKS(CDROM("") VDB VDA), NULL, "vda");
	assert_root(DISKS(FILE_DISK("vdaa", "virtio", "") FILE_DISK("vdz", "virtio", "")), NULL,
		    "vdz");
}

static void the_bus_of_the_first_disk_is_the_one_that_boots(void **state)
{
	(void)state;
	assert_root(DISKS(FILE_DISK("vdb", "virtio", "") FILE_DISK("sda", "sata", "") VDA), NULL,
		    "vda");
	assert_root(DISKS(FILE_DISK("sda", "usb", "") VDA), NULL, "sda");
}

static void a_disk_is_named_by_target_or_source(void **state)
{
	(void)state;
	assert_root(DISKS(VDA VDB), "vdb", "vdb");
	assert_root(DISKS(VDA VDB), "/images/vdb.qcow2", "vdb");
	assert_refused(DISKS(VDA VDB CDROM("")), "vdc",
		       "no disk vdc; there are vda (/images/vda.qcow2), vdb (/images/vdb.qcow2), "
		       "hda (not a disk, /iso/x.iso)");
	assert_refused(DISKS(""), "vda", "no disk vda: the domain has none");
}

static void a_domain_without_a_disk_is_refused(void **state)
{
	(void)state;
	assert_refused(DISKS(""), NULL, "the domain has no disk");
	assert_refused(DISKS(CDROM("")), NULL, "only hda (not a disk, /iso/x.iso)");
}

static void the_disk_that_is_meant_is_never_passed_over(void **state)
{
	(void)state;
	assert_refused(DISKS("<disk type='block' device='lun'><source dev='/dev/sdx'/>"
			     "<target dev='sda' bus='scsi'/><boot order='1'/></disk>" VDA),
		       NULL, "disk sda (/dev/sdx) cannot be captured: it is a LUN");
	assert_refused(DISKS(VDA CDROM("")), "hda", "it is a CD-ROM drive");
	assert_refused(DISKS("<disk type='file'><target dev='vda'/></disk>" VDB), NULL,
		       "it is empty");
	assert_refused(DISKS("<disk device='floppy'><source file='/f'/><target dev='fda'/></disk>"),
		       "fda", "it is a floppy drive");
	assert_refused(DISKS(FILE_DISK("vda", "virtio", "<shareable/>") VDB), NULL, "shareable");
}

static void a_transient_disk_can_be_read_only_while_it_is_off(void **state)
{
	(void)state;
	assert_root(DISKS(FILE_DISK("vda", "virtio", "<transient/>")), NULL, "vda");
	assert_refused(DISKS(FILE_DISK("vda", "virtio",
				       "<transient/><backingStore type='file'>"
				       "<source file='/b'/></backingStore>")),
		       NULL, "it is transient");
}

static void what_only_qemu_can_read_is_refused_when_off(void **state)
{
	static const char *const sources[] = {
		"<source file='/a'><encryption format='luks'/></source>",
		"<source file='/a'/><encryption format='luks'/>",
		"<source file='/a'><slices><slice type='storage' offset='1' size='2'/></slices></source>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
		char *xml = str_format(DISKS("<disk>%s<target dev='vda'/></disk>"), sources[i]);

		assert_null(virt_disk_why_not(only_disk(xml)));
		assert_non_null(virt_disk_why_not_off(&hw.disks[0]));
		free(xml);
	}
	assert_null(virt_disk_why_not_off(only_disk(DISKS(VDA))));
	assert_non_null(virt_disk_why_not_off(only_disk(DISKS(CDROM("")))));
}

static void a_domain_that_boots_a_passed_through_device_is_refused(void **state)
{
#define HOSTDEV "<hostdev mode='subsystem' type='scsi'><boot order='1'/></hostdev>"
	(void)state;
	assert_refused(DISKS(VDA HOSTDEV), NULL, "passed through");
	assert_refused(DISKS(FILE_DISK("vda", "virtio", "<boot order='2'/>") HOSTDEV), NULL,
		       "--disk");
	assert_root(DISKS(FILE_DISK("vda", "virtio", "<boot order='2'/>") HOSTDEV), "vda", "vda");
	assert_root(DISKS(FILE_DISK("vda", "virtio",
				    "<boot order='1'/>") "<hostdev><boot order='2'/></hostdev>"),
		    NULL, "vda");
}

static void names_in_messages_cannot_steer_a_terminal(void **state)
{
	(void)state;
	assert_refused(DISKS("<disk><source file='/a&#9;b&#10;c'/><target dev='v&#10;a'/></disk>"),
		       "\x1b[2J", "no disk \\x1b[2J; there are v\\x0aa (/a\\x09b\\x0ac)");
}

static void a_long_list_of_disks_ends_somewhere(void **state)
{
	char *xml = strdup("<domain><devices>"), *whole;

	(void)state;
	for (size_t i = 0; i < 200; i++) {
		char *longer = str_format("%s<disk><source file='/%0300zu'/><target dev='vd%zu'/>"
					  "</disk>",
					  xml, i, i);

		free(xml);
		xml = longer;
	}
	whole = str_format("%s</devices></domain>", xml);
	assert_refused(whole, "x", "no disk x; there are vd0 (/000");
	free(whole);
	free(xml);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_running_domain_is_read),
		TEST(what_is_not_said_has_a_default),
		TEST(every_kind_of_source_is_known),
		TEST(an_unknown_kind_is_kept_and_refused),
		TEST(firmware_is_told_by_either_form),
		TEST(the_agents_channel_is_found_and_its_state),
		TEST(the_user_of_qemu_is_the_dac_label),
		TEST(a_kernel_of_the_host_is_told),
		TEST(names_are_taken_out_of_their_xml),
		TEST(what_others_put_in_is_not_libvirts),
		TEST(what_is_no_domain_is_an_error),
		TEST(a_dtd_is_refused),
		TEST(what_is_too_much_is_an_error),
		TEST(a_disk_needs_a_target_of_its_own),
		TEST(numbers_that_are_none_count_as_not_said),
		TEST(the_first_by_boot_order_is_taken),
		TEST(without_boot_order_it_is_the_first_by_name),
		TEST(the_bus_of_the_first_disk_is_the_one_that_boots),
		TEST(a_disk_is_named_by_target_or_source),
		TEST(a_domain_without_a_disk_is_refused),
		TEST(the_disk_that_is_meant_is_never_passed_over),
		TEST(a_transient_disk_can_be_read_only_while_it_is_off),
		TEST(what_only_qemu_can_read_is_refused_when_off),
		TEST(a_domain_that_boots_a_passed_through_device_is_refused),
		TEST(names_in_messages_cannot_steer_a_terminal),
		TEST(a_long_list_of_disks_ends_somewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
