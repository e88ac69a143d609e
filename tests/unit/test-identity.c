// SPDX-License-Identifier: Apache-2.0
#include "identity-kit.h"

/* --- what goes without conditions ------------------------------------------ */

/* Each row is a tree of two files: the operation takes the first and leaves the
 * second, which looks much like it.
 */
static const struct {
	const char *operation, *goes, *stays;
} rows[] = {
	{ "cloud-init", "var/lib/cloud/instances", "var/lib/cloud/seed/nocloud/user-data" },
	{ "cloud-init", "var/lib/cloud/data", "var/lib/cloud/scripts/per-boot/mine" },
	{ "cloud-init", "var/lib/cloud/sem", "etc/cloud/cloud.cfg" },
	{ "dhcp-client-state", "var/lib/dhcp/dhclient.eth0.leases", "var/lib/dhcp/dhcpd.leases" },
	{ "dhcp-client-state", "var/lib/dhclient/dhclient--eth0.lease", "etc/dhcp/dhclient.conf" },
	{ "dhcp-client-state", "var/lib/dhcpcd/eth0.lease", "etc/dhcpcd.conf" },
	{ "dhcp-client-state", "var/lib/dhcpcd/duid", "var/lib/dhcpcd/hook" },
	{ "dhcp-client-state", "var/lib/NetworkManager/internal-1-eth0.lease",
	  "var/lib/NetworkManager/NetworkManager.state" },
	{ "dhcp-client-state", "run/systemd/netif/leases/2", "run/systemd/netif/state" },
	{ "dhcp-client-state", "var/lib/wicked/lease-eth0-dhcp-ipv4.xml", "etc/wicked/common.xml" },
	{ "lvm-system-devices", "etc/lvm/devices/system.devices", "etc/lvm/lvm.conf" },
	{ "nm-secret-key", "var/lib/NetworkManager/secret_key",
	  "var/lib/NetworkManager/timestamps" },
	{ "random-seed", "var/lib/systemd/random-seed", "var/lib/systemd/timers/stamp" },
	{ "random-seed", "var/lib/urandom/random-seed", "var/lib/urandom/other" },
	{ "random-seed", "var/lib/random-seed", "home/u/random-seed" },
	{ "random-seed", "boot/loader/random-seed", "boot/loader/loader.conf" },
	{ "random-seed", "boot/efi/loader/random-seed", "boot/efi/loader/entries/a.conf" },
	{ "random-seed", "efi/loader/random-seed", "efi/EFI/BOOT/BOOTX64.EFI" },
	{ "systemd-credential-secret", "var/lib/systemd/credential.secret",
	  "var/lib/systemd/other.secret" },
	{ "bash-history", "root/.bash_history", "root/.bashrc" },
	{ "bash-history", "home/u/.bash_history", "home/u/sub/.bash_history" },
	{ "crash-data", "var/crash/127.0.0.1-2020", "var/lib/crash" },
	{ "crash-data", "var/lib/systemd/coredump/core.x", "home/u/core.x" },
	{ "cron-spool", "var/spool/cron/crontabs/u", "etc/crontab" },
	{ "cron-spool", "var/spool/cron/u", "etc/cron.d/job" },
	{ "logfiles", "var/log/syslog.1", "var/log/nginx/dir/x" },
	{ "logfiles", "var/log/nginx/access.log.2.gz", "var/lib/x.log" },
	{ "logfiles", "var/log/journal/0123", "var/log/README" },
	{ "mail-spool", "var/mail/u", "home/u/Maildir/new/1" },
	{ "mail-spool", "var/spool/mail/u", "var/spool/postfix/active/1" },
	{ "package-manager-cache", "var/cache/apt/archives/a_1_amd64.deb",
	  "var/cache/apt/archives/lock" },
	{ "package-manager-cache", "var/cache/dnf/x", "var/cache/ldconfig/aux-cache" },
	{ "ssh-userdir", "root/.ssh", "root/.sshrc" },
	{ "ssh-userdir", "home/u/.ssh", "home/u/work/.ssh" },
};

enum { ROWS = sizeof rows / sizeof *rows };

static void each_operation_takes_its_own_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct tree_file files[] = { TREE_FILE(rows[i].goes, "x"),
						   TREE_FILE(rows[i].stays, "y"),
						   { 0 } };
		autotree struct tree t;

		tree_start(&t, files);
		reset(&t, rows[i].operation);
		assert_gone(&t, rows[i].goes);
		assert_true(tree_has(&t, rows[i].stays));
		assert_int_equal(t.account.len, 1);
	}
}

static void every_operation_has_a_name_a_help_and_something_to_do(void **state)
{
	(void)state;
	for (const struct identity_operation *op = identity_operations; op->name; op++) {
		assert_true(op->removals || op->run);
		assert_true(*op->help);
		assert_true(identity_list_is_valid(op->name));
		for (const struct identity_operation *other = op + 1; other->name; other++)
			assert_string_not_equal(op->name, other->name);
	}
}

static bool is_in_identity(const char *name)
{
	for (const struct identity_operation *op = identity_operations; op->name; op++)
		if (str_equal(op->name, name))
			return op->in_identity;
	fail_msg("no operation %s", name);
	return false;
}

/* All the files of the table above in one tree. */
static void start_with_all(struct tree *t)
{
	static struct tree_file files[2 * ROWS + 1];

	for (size_t i = 0; i < ROWS; i++) {
		files[2 * i] = (struct tree_file){ .path = rows[i].goes };
		files[2 * i + 1] = (struct tree_file){ .path = rows[i].stays };
	}
	tree_start(t, files);
}

static void user_data_stays_unless_it_is_asked_for(void **state)
{
	size_t kept = 0;
	autotree struct tree t;

	(void)state;
	start_with_all(&t);
	reset(&t, "identity");
	for (size_t i = 0; i < ROWS; i++) {
		assert_int_equal(tree_has(&t, rows[i].goes), !is_in_identity(rows[i].operation));
		assert_true(tree_has(&t, rows[i].stays));
		kept += tree_has(&t, rows[i].goes);
	}
	assert_true(kept > 10);
}

static void with_none_nothing_goes(void **state)
{
	autotree struct tree t;

	(void)state;
	start_with_all(&t);
	reset(&t, "none");
	for (size_t i = 0; i < ROWS; i++)
		assert_true(tree_has(&t, rows[i].goes));
	assert_int_equal(t.account.len, 0);
}

static void an_operation_can_be_added_or_taken_out(void **state)
{
	autotree struct tree t;

	(void)state;
	start_with_all(&t);
	reset(&t, "identity,logfiles,-random-seed,-dhcp-client-state");
	assert_false(tree_has(&t, "var/log/syslog.1"));
	assert_true(tree_has(&t, "var/lib/systemd/random-seed"));
	assert_true(tree_has(&t, "var/lib/dhcpcd/duid"));
	assert_false(tree_has(&t, "var/lib/cloud/sem"));
	assert_true(tree_has(&t, "var/mail/u"));
}

static void lists_are_checked(void **state)
{
	static const char *const good[] = { "none",
					    "identity",
					    "logfiles",
					    "identity,logfiles",
					    "identity,-ssh-hostkeys",
					    "machine-id,ssh-hostkeys" };
	static const char *const bad[] = { "",
					   ",",
					   "identity,",
					   ",identity",
					   "nosuch",
					   "identity,nosuch",
					   "none,identity",
					   "identity,none",
					   "-identity",
					   "Identity",
					   "identity ",
					   "identity,-",
					   "identity,--machine-id" };
	autotree struct tree t;

	(void)state;
	start_with_all(&t);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!identity_list_is_valid(good[i]))
			fail_msg("\"%s\" is refused", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (identity_list_is_valid(bad[i]))
			fail_msg("\"%s\" is taken", bad[i]);
		assert_int_equal(identity_reset(&t.edit, bad[i], &t.err), -1);
		assert_int_equal(t.err.kind, ERR_USAGE);
	}
	assert_int_equal(t.account.len, 0);
}

static void cloud_init_starts_afresh_but_keeps_its_seed(void **state)
{
	static const struct tree_file files[] = {
		TREE_LINK("var/lib/cloud/instance", "instances/i-1"),
		TREE_FILE("var/lib/cloud/instances/i-1/boot-finished", "x"),
		TREE_FILE("var/lib/cloud/sem/x", ""),
		TREE_DIR("var/lib/cloud/seed/nocloud"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_gone(&t, "var/lib/cloud/instance");
	assert_gone(&t, "var/lib/cloud/instances");
	assert_gone(&t, "var/lib/cloud/sem");
	assert_true(tree_has(&t, "var/lib/cloud/seed/nocloud"));
}

static void temporary_files_go_when_asked_and_their_directories_stay(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("tmp/a/b", "x"),
		TREE_FILE("var/tmp/c", "x"),
		TREE_FILE("home/u/tmp/d", "x"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_true(tree_has(&t, "tmp/a/b"));
	reset(&t, "tmp-files");
	assert_true(tree_has(&t, "tmp"));
	assert_false(tree_has(&t, "tmp/a"));
	assert_false(tree_has(&t, "var/tmp/c"));
	assert_true(tree_has(&t, "home/u/tmp/d"));
}

static void directories_of_services_stay_when_logs_or_jobs_go(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("var/log/mail/mail.err", "x"),
		TREE_DIR("var/spool/cron/crontabs"),
		TREE_FILE("var/log/cron.d/x", "x"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "logfiles,cron-spool");
	assert_true(tree_has(&t, "var/log/mail"));
	assert_true(tree_has(&t, "var/log/cron.d/x"));
	assert_true(tree_has(&t, "var/spool/cron/crontabs"));
}

static void encrypted_credentials_that_lose_their_key_are_told(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("var/lib/systemd/credential.secret", "k"),
		TREE_FILE("etc/credstore.encrypted/db", "x"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_gone(&t, "var/lib/systemd/credential.secret");
	assert_non_null(strstr(warned, "credstore.encrypted"));
}

/* --- machine-id ------------------------------------------------------------ */

#define ID "0123456789abcdef0123456789abcdef\n"

static void assert_empty_file(struct tree *t, const char *path)
{
	uint32_t node = tree_find(t, path);

	assert_int_not_equal(node, MODEL_NONE);
	assert_true(S_ISREG(t->model.nodes[node].mode));
	assert_text(t, path, "");
	assert_non_null(tree_told(t, ACCOUNT_RESET, path));
}

static void the_machine_id_is_emptied_and_its_copy_removed(void **state)
{
	static const struct tree_file files[] = {
		TREE_MODE("etc/machine-id", ID, S_IFREG | 0444),
		TREE_FILE("var/lib/dbus/machine-id", ID),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_empty_file(&t, "etc/machine-id");
	assert_int_equal(t.model.nodes[tree_find(&t, "etc/machine-id")].mode, S_IFREG | 0444);
	assert_gone(&t, "var/lib/dbus/machine-id");
}

static void a_link_to_the_machine_id_stays(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("etc/machine-id", ID),
		TREE_LINK("var/lib/dbus/machine-id", "/etc/machine-id"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_empty_file(&t, "etc/machine-id");
	assert_true(tree_has(&t, "var/lib/dbus/machine-id"));
	assert_text(&t, "var/lib/dbus/machine-id", "");
}

static void a_machine_id_that_is_a_link_becomes_an_empty_file(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("var/lib/dbus/machine-id", ID),
		TREE_LINK("etc/machine-id", "../var/lib/dbus/machine-id"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_empty_file(&t, "etc/machine-id");
	assert_gone(&t, "var/lib/dbus/machine-id");
}

static void one_file_under_both_names_is_emptied(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("etc/machine-id", ID),
		TREE_SAME("var/lib/dbus/machine-id", "etc/machine-id"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_empty_file(&t, "etc/machine-id");
	assert_gone(&t, "var/lib/dbus/machine-id");
}

static void no_machine_id_is_made_where_there_is_none(void **state)
{
	static const struct tree_file files[] = {
		TREE_LINK("var/lib/dbus/machine-id", "/etc/machine-id"),
		TREE_DIR("etc"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_false(tree_has(&t, "etc/machine-id"));
	assert_true(tree_has(&t, "var/lib/dbus/machine-id"));
	assert_int_equal(t.account.len, 0);
}

static void where_there_is_systemd_a_missing_machine_id_is_made_empty(void **state)
{
	static const char *const places[] = { "usr/lib/systemd/systemd", "lib/systemd/systemd" };

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const struct tree_file files[] = {
			TREE_DIR("etc"),
			TREE_FILE(places[i], "ELF"),
			{ 0 },
		};
		autotree struct tree t;

		tree_start(&t, files);
		reset(&t, "identity");
		assert_text(&t, "etc/machine-id", "");
		assert_non_null(tree_told(&t, ACCOUNT_EDITED, "etc/machine-id"));
	}
}

static void no_kernel_argument_gives_all_copies_the_same_machine_id(void **state)
{
#define ARGUMENT "systemd.machine_id=0123456789abcdef0123456789abcdef"
	static const struct {
		const char *path, *before, *after;
	} cases[] = {
		{ "boot/grub/grub.cfg",
		  "# " ARGUMENT "\nmenuentry x {\n linux /vmlinuz ro " ARGUMENT " quiet\n}\n",
		  "# " ARGUMENT "\nmenuentry x {\n linux /vmlinuz ro quiet\n}\n" },
		{ "boot/loader/entries/a.conf", "linux /k\noptions " ARGUMENT " root=UUID=1-2\n",
		  "linux /k\noptions root=UUID=1-2\n" },
		{ "etc/default/grub", "GRUB_CMDLINE_LINUX=\"a " ARGUMENT "\"\nX=" ARGUMENT "\n",
		  "GRUB_CMDLINE_LINUX=\"a\"\nX=" ARGUMENT "\n" },
		{ "etc/kernel/cmdline", "ro \"" ARGUMENT "\" rd.luks.uuid=u x" ARGUMENT,
		  "ro rd.luks.uuid=u x" ARGUMENT },
	};
	struct tree_file files[sizeof cases / sizeof *cases + 1] = { 0 };
	autotree struct tree t;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		files[i] = (struct tree_file)TREE_FILE(cases[i].path, cases[i].before);
	tree_start(&t, files);
	reset(&t, "identity,-machine-id");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_text(&t, cases[i].path, cases[i].before);
	reset(&t, "machine-id");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_text(&t, cases[i].path, cases[i].after);
		assert_non_null(strstr(tree_told(&t, ACCOUNT_EDITED, cases[i].path),
				       "systemd.machine_id= left out"));
	}
}

static void names_on_storage_networks_stay_and_that_is_told(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("etc/iscsi/initiatorname.iscsi", "InitiatorName=iqn.1993-08.org:01:a\n"),
		TREE_FILE("etc/nvme/hostnqn", "nqn.2014-08.org.nvmexpress:uuid:1-2\n"),
		TREE_FILE("etc/nvme/hostid", "1-2-3\n"),
		{ 0 },
	};
	static const struct tree_file fresh[] = {
		TREE_FILE("etc/iscsi/initiatorname.iscsi", "# InitiatorName=\nGenerateName=yes\n"),
		TREE_FILE("etc/nvme/hostnqn", ""),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "tmp-files");
	assert_int_equal(t.account.len, 0);
	reset(&t, "identity");
	for (const struct tree_file *f = files; f->path; f++) {
		assert_kept(&t, f->path, "identifies this machine to its storage");
		assert_text(&t, f->path, f->content);
	}
	tree_stop(&t);
	tree_start(&t, fresh);
	reset(&t, "identity");
	assert_int_equal(t.account.len, 0);
}

static void the_source_stays_as_it_is_even_read_only(void **state)
{
	static const struct tree_file files[] = {
		TREE_MODE("etc/machine-id", ID, S_IFREG | 0444),
		TREE_FILE("var/lib/systemd/random-seed", "seed"),
		{ 0 },
	};
	struct stat before, after;
	char etc[128], id[128], seed[128];
	autotree struct tree t;

	(void)state;
	tree_start_real(&t, files);
	tree_join(&t, "etc", etc, sizeof etc);
	tree_join(&t, "etc/machine-id", id, sizeof id);
	tree_join(&t, "var/lib/systemd/random-seed", seed, sizeof seed);
	assert_int_equal(chmod(etc, 0555), 0);
	assert_int_equal(stat(id, &before), 0);
	reset(&t, "identity");
	assert_empty_file(&t, "etc/machine-id");
	assert_gone(&t, "var/lib/systemd/random-seed");
	assert_int_equal(stat(id, &after), 0);
	assert_int_equal(after.st_size, strlen(ID));
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim);
	assert_int_equal(access(seed, F_OK), 0);
	assert_int_equal(chmod(etc, 0755), 0);
}

/* --- hostile trees --------------------------------------------------------- */

static void things_of_the_wrong_kind_end_nothing(void **state)
{
	static const struct tree_file files[] = {
		TREE_DIR("etc/machine-id"),
		TREE_DIR("etc/cloud/cloud.cfg"),
		TREE_LINK("etc/cloud/cloud.cfg.d", "cloud.cfg.d"),
		TREE_MODE("usr/bin/cloud-init", NULL, S_IFIFO | 0600),
		TREE_DIR("etc/ssh/ssh_host_rsa_key"),
		TREE_LINK("etc/ssh/ssh_host_ed25519_key", "ssh_host_ed25519_key"),
		TREE_MODE("etc/netplan/50-cloud-init.yaml", NULL, S_IFIFO | 0600),
		TREE_LINK("etc/netplan/a.yaml", "/nowhere"),
		TREE_LINK("var/lib/cloud", "/etc"),
		TREE_LINK("var/lib/dbus", "/"),
		TREE_LINK("etc/systemd/system/sshd.service", "sshd.service"),
		TREE_FILE("etc/sysconfig/sshd", "AUTOCREATE_SERVER_KEYS="),
		TREE_DIR("var/lib/systemd/random-seed"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity,logfiles,tmp-files,cron-spool");
	assert_true(tree_has(&t, "etc/machine-id"));
	assert_true(tree_has(&t, "etc/netplan/50-cloud-init.yaml"));
	assert_true(tree_has(&t, "etc/cloud/cloud.cfg"));
	assert_null(tree_told(&t, ACCOUNT_KEPT, "etc/netplan/50-cloud-init.yaml"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_operation_takes_its_own_and_no_more),
		TEST(every_operation_has_a_name_a_help_and_something_to_do),
		TEST(user_data_stays_unless_it_is_asked_for),
		TEST(with_none_nothing_goes),
		TEST(an_operation_can_be_added_or_taken_out),
		TEST(lists_are_checked),
		TEST(cloud_init_starts_afresh_but_keeps_its_seed),
		TEST(temporary_files_go_when_asked_and_their_directories_stay),
		TEST(directories_of_services_stay_when_logs_or_jobs_go),
		TEST(encrypted_credentials_that_lose_their_key_are_told),
		TEST(the_machine_id_is_emptied_and_its_copy_removed),
		TEST(a_link_to_the_machine_id_stays),
		TEST(a_machine_id_that_is_a_link_becomes_an_empty_file),
		TEST(one_file_under_both_names_is_emptied),
		TEST(no_machine_id_is_made_where_there_is_none),
		TEST(where_there_is_systemd_a_missing_machine_id_is_made_empty),
		TEST(no_kernel_argument_gives_all_copies_the_same_machine_id),
		TEST(names_on_storage_networks_stay_and_that_is_told),
		TEST(the_source_stays_as_it_is_even_read_only),
		TEST(things_of_the_wrong_kind_end_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
