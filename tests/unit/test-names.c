// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "base/uuid.h"
#include "boot-kit.h"
#include "system/device.h"
#include "system/fsname.h"
#include "walk/mounts.h"
#include "walk/walk.h"

/* --- words ---------------------------------------------------------------------------- */

static void uuids_are_parsed_strictly(void **state)
{
	static const char *const wrong[] = { "",
					     "ABCD-1234",
					     "11111111-2222-4333-8444-55555555555",
					     "11111111-2222-4333-8444-5555555555555",
					     "11111111-2222-4333-8444-55555555555g",
					     "11111111-2222-4333-84445-55555555555",
					     "1111111--2222-4333-8444-555555555555",
					     "00000000-0000-0000-0000-000000000000",
					     "12345678-01" };
	uint8_t uuid[16];
	char text[37];

	(void)state;
	assert_true(uuid_parse("0A1b2C3d-4E5f-6071-8293-a4B5c6D7e8F9", uuid));
	uuid_format(uuid, text);
	assert_string_equal(text, "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(uuid_parse(wrong[i], uuid));
}

static const struct {
	const char *text;
	enum device_kind kind;
	const char *value;
} devices[] = {
	{ "UUID=abc", DEVICE_UUID, "abc" },
	{ "UUID=\"abc\"", DEVICE_UUID, "abc" },
	{ "LABEL=my disk", DEVICE_LABEL, "my disk" },
	{ "PARTUUID=x", DEVICE_PARTUUID, "x" },
	{ "/dev/disk/by-uuid/abc", DEVICE_UUID, "abc" },
	{ "/dev/disk/by-label/my\\x20disk\\x2f", DEVICE_LABEL, "my disk/" },
	{ "/dev/disk/by-label/a\\x2", DEVICE_LABEL, "a\\x2" },
	{ "/dev/disk/by-id/x", DEVICE_OTHER, "" },
	{ "PARTLABEL=x", DEVICE_OTHER, "x" },
	{ "/dev/vda1", DEVICE_OTHER, "" },
	{ "/dev/zram0", DEVICE_ELSEWHERE, "" },
	{ "tmpfs", DEVICE_ELSEWHERE, "" },
	{ "host:/x", DEVICE_ELSEWHERE, "" },
	{ "/swapfile", DEVICE_ELSEWHERE, "" },
	{ "", DEVICE_ELSEWHERE, "" },
};

static void devices_are_known_by_all_their_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
		struct device device = device_parse(devices[i].text);

		assert_int_equal(device.kind, devices[i].kind);
		assert_string_equal(device.value, devices[i].value);
	}
}

static void a_name_that_is_too_long_finds_nothing(void **state)
{
	char text[600] = "LABEL=";
	struct device device;

	(void)state;
	memset(text + 6, 'x', sizeof text - 7);
	device = device_parse(text);
	assert_int_equal(device.kind, DEVICE_OTHER);
	assert_false(device_is(&device, &root_only.root));
}

static void an_empty_label_finds_nothing(void **state)
{
	const struct volume_names bare = VOLUME(ROOT_UUID, "", ROOT_PART);
	struct device device = device_parse("LABEL=");

	(void)state;
	assert_false(device_is(&device, &bare));
}

/* --- derived -------------------------------------------------------------------------- */

/* base/hash.h has its SHA-256 from elsewhere. */
static void assert_derived(const char *name, size_t len, const char *use)
{
	autofree char *text = malloc(strlen(use) + 1 + len);
	struct digests *digests = calloc(1, sizeof *digests);
	struct err err = { 0 };
	struct hash *hash = hash_start(HASH_OURS, &err);
	uint8_t uuid[16];
	char hex[33];

	assert_true(text && digests && hash);
	strcpy(text, use);
	memcpy(text + strlen(use) + 1, name, len);
	assert_int_equal(hash_update(hash, text, strlen(use) + 1 + len, &err), 0);
	assert_int_equal(hash_finish(hash, digests, &err), 0);
	uuid_derive(name, len, use, uuid);
	for (size_t i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", uuid[i]);
	assert_memory_equal(hex, digests->sha256, 12);
	assert_int_equal(hex[12], '8');
	assert_memory_equal(hex + 13, digests->sha256 + 13, 3);
	assert_non_null(strchr("89ab", hex[16]));
	assert_memory_equal(hex + 17, digests->sha256 + 17, 15);
	hash_stop(hash);
	free(digests);
}

static void derived_uuids_are_sha256_of_use_and_name(void **state)
{
	char name[300];

	(void)state;
	memset(name, 'n', sizeof name);
	for (size_t len = 0; len < sizeof name; len += 7)
		assert_derived(name, len, "root filesystem");
	assert_derived("\0\1", 2, "");
}

static void uses_and_names_make_a_difference(void **state)
{
	uint8_t a[16], b[16], c[16], again[16];

	(void)state;
	uuid_derive("x", 1, "a", a);
	uuid_derive("x", 1, "b", b);
	uuid_derive("y", 1, "a", c);
	uuid_derive("x", 1, "a", again);
	assert_memory_not_equal(a, b, 16);
	assert_memory_not_equal(a, c, 16);
	assert_memory_equal(a, again, 16);
}

/* --- what the system knows --------------------------------------------------------------- */

static void udevs_database_is_understood(void **state)
{
	struct fsname name = { 0 };

	(void)state;
	fsname_from_udev("S:disk/by-uuid/x\nE:ID_FS_UUID=" ROOT_UUID
			 "\nE:ID_FS_UUID_ENC=other\nE:ID_FS_LABEL=my_disk\n"
			 "E:ID_FS_LABEL_ENC=my\\x20disk\nE:ID_PART_ENTRY_UUID=" ROOT_PART "\n",
			 &name);
	assert_string_equal(name.uuid, ROOT_UUID);
	assert_string_equal(name.label, "my disk");
	assert_string_equal(name.partuuid, ROOT_PART);
}

static void what_is_known_is_not_asked_of_udev(void **state)
{
	struct fsname name = { .uuid = ROOT_UUID };

	(void)state;
	fsname_from_udev("E:ID_FS_UUID=" OTHER_UUID "\nE:ID_FS_LABEL_ENC=12345678901234567\n",
			 &name);
	assert_string_equal(name.uuid, ROOT_UUID);
	assert_string_equal(name.label, "");
}

static void a_uevent_has_its_keys_at_the_beginning_of_lines(void **state)
{
	static const char text[] = "MAJOR=8\nXDEVNAME=no\nDEVNAME=sda1\nDEVNAMES=x\nLONG=abcdefgh";
	char value[8] = "?";

	(void)state;
	assert_true(fsname_uevent_value(text, "DEVNAME", value, sizeof value));
	assert_string_equal(value, "sda1");
	assert_true(fsname_uevent_value(text, "LONG", value, sizeof value));
	assert_string_equal(value, "");
	assert_false(fsname_uevent_value(text, "NAME", value, sizeof value));
	assert_false(fsname_uevent_value("DEVNAME", "DEVNAME", value, sizeof value));
}

static void a_tmpfs_has_no_name(void **state)
{
	autoclose int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char uuid[37], label[17], partuuid[37];

	(void)state;
	if (fd < 0)
		skip();
	assert_false(names_of_filesystem(fd, uuid, label, partuuid));
	assert_false(names_of_filesystem(-1, uuid, label, partuuid));
	assert_string_equal(uuid, "");
}

/* --- choosing ------------------------------------------------------------------------------ */

static void choose(struct tree *t, const struct names_config *given, bool want_esp,
		   struct names *out)
{
	struct names_config cfg = *given;

	cfg.root_fd = cfg.boot_fd = cfg.esp_fd = -1;
	if (!cfg.image_name)
		cfg.image_name = "image";
	if (names_choose(&cfg, &t->edit, want_esp, out, &t->err) < 0)
		fail_msg("%s", t->err.text);
}

/* What etc/fstab and etc/kernel/cmdline say, and what the root becomes; NULL: derived. */
static const struct {
	const char *fstab, *cmdline, *env_label;
	const char *uuid, *label, *partuuid;
} roots[] = {
	{ "", "", NULL, NULL, "", NULL },
	{ "UUID=" OLD_UUID " / ext4 rw\n", "", NULL, OLD_UUID, "", NULL },
	{ "UUID=" OLD_UUID " / ext4 rw\n", "root=UUID=" OTHER_UUID, NULL, OTHER_UUID, "", NULL },
	{ "LABEL=old / ext4 rw\n", "root=LABEL=new", NULL, NULL, "new", NULL },
	{ "LABEL=old / ext4 rw\n", "root=UUID=" OTHER_UUID, NULL, OTHER_UUID, "old", NULL },
	{ "LABEL=old / ext4 rw\n", "", "mine", NULL, "mine", NULL },
	{ "LABEL=old / ext4 rw\n", "", "", NULL, "old", NULL },
	{ "LABEL=a-label-of-seventeen / ext4 rw\n", "", NULL, NULL, "", NULL },
	{ "LABEL=a\\040b / ext4 rw\n", "", NULL, NULL, "a b", NULL },
	{ "PARTUUID=AAAAAAAA-2222-4333-8444-555555555555 / ext4 rw\n", "", NULL, NULL, "",
	  ROOT_PART },
	{ "PARTUUID=1234abcd-01 / ext4 rw\n", "", NULL, NULL, "", NULL },
	{ "UUID=ABCD-1234 / vfat rw\n", "root=/dev/sda1", NULL, NULL, "", NULL },
	{ "UUID=00000000-0000-0000-0000-000000000000 / ext4 rw\n", "", NULL, NULL, "", NULL },
	{ "# UUID=" OLD_UUID " / ext4 rw\nUUID=" OTHER_UUID " /home ext4 rw\n", "", NULL, NULL, "",
	  NULL },
};

static void a_trees_root_is_called_what_its_configuration_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		const struct tree_file files[] = { TREE_FILE("etc/fstab", roots[i].fstab),
						   TREE_FILE("etc/kernel/cmdline",
							     roots[i].cmdline),
						   { 0 } };
		const struct names_config cfg = { .label = roots[i].env_label };
		autotree struct tree t;
		struct names names;
		uint8_t derived[16];
		char text[37];

		tree_start(&t, files);
		choose(&t, &cfg, false, &names);
		uuid_derive("image", 5, "root filesystem", derived);
		uuid_format(derived, text);
		assert_string_equal(names.root.uuid_text, roots[i].uuid ? roots[i].uuid : text);
		assert_int_equal(strcmp(names.origin, "derived from the image's name") == 0,
				 !roots[i].uuid);
		assert_string_equal(names.root.label, roots[i].label);
		uuid_derive(names.root.uuid, 16, "root partition", derived);
		uuid_format(derived, text);
		assert_string_equal(names.root.partuuid_text,
				    roots[i].partuuid ? roots[i].partuuid : text);
		assert_true(names.root.present);
		assert_false(names.boot.present || names.esp.present);
	}
}

static void the_image_name_decides_when_nothing_else_does(void **state)
{
	const struct tree_file files[] = { TREE_DIR("etc"), { 0 } };
	const struct names_config a = { .image_name = "a" }, b = { .image_name = "b" };
	autotree struct tree t;
	struct names x, y, again;

	(void)state;
	tree_start(&t, files);
	choose(&t, &a, true, &x);
	choose(&t, &b, true, &y);
	choose(&t, &a, true, &again);
	assert_string_not_equal(x.root.uuid_text, y.root.uuid_text);
	assert_string_not_equal(x.esp.uuid_text, y.esp.uuid_text);
	assert_memory_not_equal(x.disk_guid, y.disk_guid, 16);
	assert_memory_equal(&x, &again, sizeof x);
}

static void a_label_that_no_image_can_hold_is_refused(void **state)
{
	const struct tree_file files[] = { TREE_DIR("etc"), { 0 } };
	const struct names_config cfg = { .root_fd = -1,
					  .boot_fd = -1,
					  .esp_fd = -1,
					  .image_name = "i",
					  .label = "12345678901234567" };
	autotree struct tree t;
	struct names names;

	(void)state;
	tree_start(&t, files);
	assert_int_equal(names_choose(&cfg, &t.edit, false, &names, &t.err), -1);
	assert_int_equal(t.err.kind, ERR_USAGE);
}

static void boot_and_esp_are_called_what_fstab_says(void **state)
{
	const struct tree_file files[] = {
		TREE_FILE("etc/fstab",
			  "UUID=" ROOT_UUID " / ext4 rw\nUUID=" BOOT_UUID " /boot ext4 rw\n"
			  "UUID=abcd-1234 /boot/efi vfat rw\nPARTUUID=" ESP_PART " /efi vfat rw\n"),
		{ 0 }
	};
	const struct walk_totals walked = { .boot_root = 1, .esp_root = MODEL_NONE };
	const struct names_config cfg = { .walked = &walked };
	autotree struct tree t;
	struct names names;

	(void)state;
	tree_start(&t, files);
	choose(&t, &cfg, true, &names);
	assert_true(names.boot.present && names.esp.present);
	assert_string_equal(names.boot.uuid_text, BOOT_UUID);
	assert_string_equal(names.esp.uuid_text, "ABCD-1234");
	assert_memory_equal(names.esp.uuid, "\xab\xcd\x12\x34\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_string_equal(names.esp.partuuid_text, ESP_PART);
}

static void an_esp_at_boot_is_called_what_its_line_says(void **state)
{
	const struct tree_file files[] = { TREE_FILE("etc/fstab", "LABEL=esp /boot vfat rw\n"),
					   { 0 } };
	char point[] = "boot";
	const struct mount mount = { .point = point };
	const struct walk_totals walked = { .boot_root = MODEL_NONE, .esp_root = 1, .esp = &mount };
	const struct names_config cfg = { .walked = &walked };
	autotree struct tree t;
	struct names names;

	(void)state;
	tree_start(&t, files);
	choose(&t, &cfg, false, &names);
	assert_false(names.boot.present);
	assert_true(names.esp.present);
	assert_string_equal(names.esp.label, "esp");
	assert_int_equal(strlen(names.esp.uuid_text), strlen("ABCD-1234"));
}

static void no_two_volumes_share_a_name(void **state)
{
	const struct tree_file files[] = {
		TREE_FILE("etc/fstab",
			  "UUID=" ROOT_UUID " / btrfs rw\nUUID=" ROOT_UUID " /boot btrfs rw\n"
			  "PARTUUID=" ROOT_PART " / ext4 rw\n"),
		TREE_FILE("etc/kernel/cmdline", "root=PARTUUID=" ROOT_PART),
		{ 0 }
	};
	const struct tree_file parts[] = {
		TREE_FILE("etc/fstab", "PARTUUID=" ROOT_PART " / ext4 rw\nPARTUUID=" ROOT_PART
				       " /boot ext4 rw\nPARTUUID=" ROOT_PART " /efi vfat rw\n"),
		{ 0 }
	};
	const struct tree_file labels[] = {
		TREE_FILE("etc/fstab",
			  "LABEL=x / ext4 rw\nLABEL=x /boot ext4 rw\nLABEL=x /efi vfat rw\n"),
		{ 0 }
	};
	const struct tree_file *const all[] = { files, parts, labels };
	const struct walk_totals walked = { .boot_root = 1, .esp_root = MODEL_NONE };
	const struct names_config cfg = { .walked = &walked };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		autotree struct tree t;
		struct names n;

		tree_start(&t, all[i]);
		choose(&t, &cfg, true, &n);
		assert_string_not_equal(n.root.uuid_text, n.boot.uuid_text);
		assert_string_not_equal(n.root.partuuid_text, n.boot.partuuid_text);
		assert_string_not_equal(n.root.partuuid_text, n.esp.partuuid_text);
		assert_string_not_equal(n.boot.partuuid_text, n.esp.partuuid_text);
		assert_true(!*n.boot.label || strcmp(n.root.label, n.boot.label) != 0);
		assert_true(!*n.esp.label || strcmp(n.root.label, n.esp.label) != 0);
	}
}

static void a_label_that_fat_cannot_hold_is_none(void **state)
{
	static const char *const labels[] = { "twelve-bytes", "a*b", "a\\011b" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		autofree char *line = str_format("LABEL=%s /efi vfat rw\n", labels[i]);
		const struct tree_file files[] = { TREE_FILE("etc/fstab", line), { 0 } };
		const struct names_config cfg = { 0 };
		autotree struct tree t;
		struct names names;

		tree_start(&t, files);
		choose(&t, &cfg, true, &names);
		assert_string_equal(names.esp.label, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(uuids_are_parsed_strictly),
		TEST(devices_are_known_by_all_their_names),
		TEST(a_name_that_is_too_long_finds_nothing),
		TEST(an_empty_label_finds_nothing),
		TEST(derived_uuids_are_sha256_of_use_and_name),
		TEST(uses_and_names_make_a_difference),
		TEST(udevs_database_is_understood),
		TEST(what_is_known_is_not_asked_of_udev),
		TEST(a_uevent_has_its_keys_at_the_beginning_of_lines),
		TEST(a_tmpfs_has_no_name),
		TEST(a_trees_root_is_called_what_its_configuration_says),
		TEST(the_image_name_decides_when_nothing_else_does),
		TEST(a_label_that_no_image_can_hold_is_refused),
		TEST(boot_and_esp_are_called_what_fstab_says),
		TEST(an_esp_at_boot_is_called_what_its_line_says),
		TEST(no_two_volumes_share_a_name),
		TEST(a_label_that_fat_cannot_hold_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
