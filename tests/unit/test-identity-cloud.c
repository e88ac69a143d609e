// SPDX-License-Identifier: Apache-2.0
#include "identity-kit.h"

/* --- SSH host keys --------------------------------------------------------- */

#define SSHD "usr/lib/systemd/system/sshd.service"

enum { MORE_MAX = 5 };

/* Trees with host keys and something more. */
struct keys_case {
	const char *what;
	struct tree_file more[MORE_MAX];
};

static const struct keys_case makes_new[] = {
	{ "cloud-init, disabled nowhere",
	  { CLOUD, CFG(MODULES),
	    TREE_FILE("etc/kernel/cmdline", "ro cloud-init=enabled x-cloud-init=disabled\n"),
	    TREE_FILE("etc/cloud/ds-identify.cfg", "#policy: disabled\npolicy: enabled\n") } },
	{ "cloud-init with its ssh module", { CLOUD, CFG(MODULES) } },
	{ "a list at the margin, with a comment",
	  { CLOUD, CFG("cloud_config_modules:\n- ssh  # keys\n") } },
	{ "a module with a frequency", { CLOUD, CFG("cloud_final_modules:\n - [ssh, always]\n") } },
	{ "a flow list", { CLOUD, CFG("cloud_init_modules: [bootcmd, ssh]\n") } },
	{ "ssh_deletekeys said in so many words",
	  { CLOUD, CFG(MODULES "ssh_deletekeys: true\nssh_genkeytypes: [rsa]\n") } },
	{ "a later file that takes an earlier one back",
	  { CLOUD, CFG(MODULES "ssh_deletekeys: false\n"),
	    TREE_FILE("etc/cloud/cloud.cfg.d/10.cfg", "ssh_deletekeys: 1\n") } },
	{ "cloud-init's unit enabled",
	  { CLOUD, CFG(MODULES), TREE_FILE("usr/lib/systemd/system/cloud-init.service", ""),
	    TREE_LINK("etc/systemd/system/cloud-init.target.wants/cloud-init.service",
		      "/usr/lib/systemd/system/cloud-init.service") } },
	{ "Fedora's units",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshd-keygen.target\n"),
	    TREE_FILE("usr/lib/systemd/system/sshd-keygen.target", ""),
	    TREE_FILE("usr/lib/systemd/system/sshd-keygen@.service", "") } },
	{ "RHEL 7's unit",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshd-keygen.service\n"),
	    TREE_FILE("usr/lib/systemd/system/sshd-keygen.service", "") } },
	{ "Arch's unit",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshdgenkeys.service\n"),
	    TREE_FILE("usr/lib/systemd/system/sshdgenkeys.service", "") } },
	{ "openSUSE's unit",
	  { TREE_FILE(SSHD, "[Service]\nExecStartPre=/usr/sbin/sshd-gen-keys-start\n") } },
	{ "a drop-in of the site",
	  { TREE_FILE("lib/systemd/system/ssh.service", "[Service]\n"),
	    TREE_FILE("etc/systemd/system/ssh.service.d/keys.conf",
		      "[Service]\nExecStartPre=/usr/bin/ssh-keygen -A\n") } },
	{ "a unit of its own, enabled",
	  { TREE_FILE("usr/lib/systemd/system/ssh.service", "[Service]\n"),
	    TREE_LINK("etc/systemd/system/multi-user.target.wants/sshd-keygen.service",
		      "/usr/lib/systemd/system/sshd-keygen.service") } },
	{ "Alpine's script",
	  { TREE_FILE("etc/init.d/sshd", "start_pre() {\n ssh-keygen -A\n}\n") } },
};

static const struct keys_case makes_none[] = {
	{ "nothing at all", { { 0 } } },
	{ "Debian's sshd",
	  { TREE_FILE("usr/lib/systemd/system/ssh.service",
		      "[Service]\nExecStartPre=/usr/sbin/sshd -t\n"),
	    TREE_FILE("etc/init.d/ssh", "/usr/sbin/sshd\n") } },
	{ "cloud-init without its configuration", { CLOUD } },
	{ "a configuration without cloud-init", { CFG(MODULES) } },
	{ "cloud-init without its ssh module",
	  { CLOUD, CFG("cloud_init_modules:\n - bootcmd\n - ssh-import-id\n - ssh_authkey\n") } },
	{ "the word elsewhere",
	  { CLOUD, CFG("cloud_init_modules:\n - bootcmd\n # - ssh\ngroups:\n - ssh\n") } },
	{ "cloud-init disabled",
	  { CLOUD, CFG(MODULES), TREE_FILE("etc/cloud/cloud-init.disabled", "") } },
	{ "cloud-init disabled in grub.cfg",
	  { CLOUD, CFG(MODULES),
	    TREE_FILE("boot/grub/grub.cfg",
		      "menuentry x {\n linux /vmlinuz ro cloud-init=disabled quiet\n}\n") } },
	{ "cloud-init disabled in the next grub.cfg",
	  { CLOUD, CFG(MODULES),
	    TREE_FILE("etc/default/grub", "GRUB_CMDLINE_LINUX=\"cloud-init=disabled\"\n") } },
	{ "cloud-init disabled in a boot loader entry",
	  { CLOUD, CFG(MODULES),
	    TREE_FILE("boot/loader/entries/a.conf",
		      "linux /vmlinuz\noptions ro cloud-init=disabled\n") } },
	{ "cloud-init disabled in the kernel's arguments",
	  { CLOUD, CFG(MODULES), TREE_FILE("etc/kernel/cmdline", "ro cloud-init=disabled\n") } },
	{ "cloud-init disabled by policy",
	  { CLOUD, CFG(MODULES),
	    TREE_FILE("etc/cloud/ds-identify.cfg",
		      "# mine\npolicy: search,found=all\npolicy:  disabled # really\n") } },
	{ "cloud-init disabled by a policy among the arguments",
	  { CLOUD, CFG(MODULES), TREE_FILE("etc/kernel/cmdline", "ci.di.policy=disabled") } },
	{ "cloud-init masked",
	  { CLOUD, CFG(MODULES),
	    TREE_LINK("etc/systemd/system/cloud-init.service", "/dev/null") } },
	{ "cloud-init's unit not enabled",
	  { CLOUD, CFG(MODULES), TREE_FILE("usr/lib/systemd/system/cloud-init.service", "") } },
	{ "keys to be kept", { CLOUD, CFG(MODULES "ssh_deletekeys:   False\n") } },
	{ "keys to be kept, said later",
	  { CLOUD, CFG(MODULES),
	    TREE_FILE("etc/cloud/cloud.cfg.d/99.cfg", "ssh_deletekeys: 0 # site\n") } },
	{ "no types of keys", { CLOUD, CFG(MODULES "ssh_genkeytypes: ~\n") } },
	{ "an empty list of types", { CLOUD, CFG(MODULES "ssh_genkeytypes: []\n") } },
	{ "modules replaced later",
	  { CLOUD, CFG(MODULES),
	    TREE_FILE("etc/cloud/cloud.cfg.d/99.cfg", "cloud_init_modules:\n - bootcmd\n") } },
	{ "a keygen unit that is asked for but not there",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshd-keygen.target\n") } },
	{ "a keygen unit that nobody asks for",
	  { TREE_FILE(SSHD, "[Unit]\n# Wants=sshd-keygen.service\n"),
	    TREE_FILE("usr/lib/systemd/system/sshd-keygen.service", "") } },
	{ "a masked keygen unit",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshdgenkeys.service\n"),
	    TREE_FILE("usr/lib/systemd/system/sshdgenkeys.service", ""),
	    TREE_LINK("etc/systemd/system/sshdgenkeys.service", "/dev/null") } },
	{ "a masked target",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshd-keygen.target\n"),
	    TREE_FILE("usr/lib/systemd/system/sshd-keygen@.service", ""),
	    TREE_LINK("etc/systemd/system/sshd-keygen.target", "/dev/null") } },
	{ "masked units behind a target",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshd-keygen.target\n"),
	    TREE_FILE("usr/lib/systemd/system/sshd-keygen@.service", ""),
	    TREE_LINK("etc/systemd/system/sshd-keygen@.service", "/dev/null") } },
	{ "Alpine told not to",
	  { TREE_FILE("etc/init.d/sshd", "ssh-keygen -A\n"),
	    TREE_FILE("etc/conf.d/sshd", "SSHD_DISABLE_KEYGEN=\"yes\"\n") } },
	{ "RHEL told not to",
	  { TREE_FILE(SSHD, "[Unit]\nWants=sshd-keygen.service\n"),
	    TREE_FILE("usr/lib/systemd/system/sshd-keygen.service", ""),
	    TREE_FILE("etc/sysconfig/sshd", "AUTOCREATE_SERVER_KEYS=NO\n") } },
};

static const struct tree_file keys[] = {
	TREE_MODE("etc/ssh/ssh_host_ed25519_key", "secret", S_IFREG | 0600),
	TREE_FILE("etc/ssh/ssh_host_ed25519_key.pub", "public"),
	TREE_FILE("etc/ssh/ssh_host_rsa_key-cert.pub", "certificate"),
	TREE_FILE("etc/ssh/sshd_config", "Port 22\n"),
	TREE_FILE("etc/ssh/moduli", "m"),
};

enum { KEYS = sizeof keys / sizeof *keys, HOST_KEYS = 3 };

static void start_with_keys(struct tree *t, const struct keys_case *c)
{
	struct tree_file files[KEYS + MORE_MAX + 1] = { 0 };

	memcpy(files, keys, sizeof keys);
	memcpy(files + KEYS, c->more, sizeof c->more);
	tree_start(t, files);
	warned[0] = '\0';
}

static void host_keys_go_where_something_makes_new_ones(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof makes_new / sizeof *makes_new; i++) {
		autotree struct tree t;

		start_with_keys(&t, &makes_new[i]);
		reset(&t, "identity");
		if (tree_has(&t, keys[0].path))
			fail_msg("kept in spite of %s", makes_new[i].what);
		for (size_t k = 0; k < KEYS; k++) {
			if (k < HOST_KEYS)
				assert_gone(&t, keys[k].path);
			else
				assert_true(tree_has(&t, keys[k].path));
		}
		assert_string_equal(warned, "");
	}
}

static void host_keys_stay_where_nothing_makes_new_ones(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof makes_none / sizeof *makes_none; i++) {
		autotree struct tree t;

		start_with_keys(&t, &makes_none[i]);
		reset(&t, "identity");
		if (!tree_has(&t, keys[0].path))
			fail_msg("removed with %s", makes_none[i].what);
		for (size_t k = 0; k < HOST_KEYS; k++)
			assert_kept(&t, keys[k].path, "would make a new");
		assert_non_null(strstr(warned, "SSH host keys"));
	}
}

static void without_host_keys_there_is_nothing_to_say(void **state)
{
	static const struct tree_file files[] = { TREE_FILE("etc/ssh/sshd_config", ""), { 0 } };
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_int_equal(t.account.len, 0);
	assert_string_equal(warned, "");
}

/* --- network --------------------------------------------------------------- */

#define DATASOURCE                                                                                 \
	"# This file is generated from information provided by the datasource.  Changes\n"         \
	"# to it will not persist across an instance reboot.\n"
#define RULE(mac)                                                                                  \
	"SUBSYSTEM==\"net\", ACTION==\"add\", DRIVERS==\"?*\", ATTR{address}==\"" mac "\", "

static const struct tree_file generated[] = {
	TREE_FILE("etc/netplan/50-cloud-init.yaml", DATASOURCE "network: {version: 2}\n"),
	TREE_FILE("etc/network/interfaces.d/50-cloud-init", DATASOURCE "auto lo\n"),
	TREE_FILE("etc/systemd/network/10-cloud-init-eth0.network", "[Match]\nName=eth0\n"),
	TREE_FILE(
		"etc/sysconfig/network-scripts/ifcfg-eth0",
		"# Created by cloud-init automatically, do not edit.\n#\nHWADDR=fa:16:3e:0:0:1\n"),
	TREE_FILE("etc/sysconfig/network/ifcfg-eth1",
		  "# Created by cloud-init automatically, do not edit.\n"),
	TREE_FILE("etc/NetworkManager/system-connections/cloud-init-eth0.nmconnection",
		  "# Generated by cloud-init. Changes will be lost.\n\n[connection]\n"),
	TREE_FILE("etc/udev/rules.d/70-persistent-net.rules",
		  "# by cloud-init\n" RULE("fa:16:3e:00:00:01") "NAME=\"eth0\"\n"),
	{ 0 },
};

static const struct tree_file by_hand[] = {
	TREE_FILE("etc/netplan/01-mine.yaml", "network:\n  match: {macaddress: 'fa:16'}\n"),
	TREE_FILE("etc/network/interfaces", "iface eth0 inet dhcp\n  hwaddress fa:16\n"),
	TREE_FILE("etc/network/interfaces.d/lab", "auto eth1\n"),
	TREE_FILE("etc/systemd/network/20-mine.network", "[Match]\nMACAddress=fa:16\n"),
	TREE_FILE("etc/sysconfig/network-scripts/ifcfg-lab", "HWADDR=fa:16:3e:0:0:2\n"),
	TREE_FILE("etc/NetworkManager/system-connections/lab.nmconnection",
		  "[ethernet]\nmac-address=FA:16\n"),
	TREE_FILE("etc/udev/rules.d/75-persistent-net-lab.rules",
		  "SUBSYSTEM==\"net\", ATTR{address}==\"fa:16\", NAME=\"lab0\"\n"),
	{ 0 },
};

enum { MANY = 24 };

static void start_with_network(struct tree *t, const struct tree_file *more)
{
	struct tree_file files[MANY] = { 0 };
	size_t n = 0;

	for (const struct tree_file *f = generated; f->path; f++)
		files[n++] = *f;
	for (const struct tree_file *f = by_hand; f->path; f++)
		files[n++] = *f;
	for (; more->path; more++)
		files[n++] = *more;
	assert_true(n < MANY);
	tree_start(t, files);
}

static const struct tree_file cloud[] = { CLOUD, CFG(MODULES), { 0 } };

static void generated_network_settings_go_and_those_by_hand_stay(void **state)
{
	autotree struct tree t;

	(void)state;
	start_with_network(&t, cloud);
	reset(&t, "identity");
	for (const struct tree_file *f = generated; f->path; f++)
		assert_gone(&t, f->path);
	for (const struct tree_file *f = by_hand; f->path; f++)
		assert_kept(&t, f->path, "not");
	assert_kept(&t, "etc/netplan/01-mine.yaml", "hardware address");
	assert_kept(&t, "etc/network/interfaces", "hardware address");
	assert_null(
		strstr(tree_told(&t, ACCOUNT_KEPT, "etc/network/interfaces.d/lab"), "hardware"));
}

/* With why not. */
static void assert_network_stays(const struct tree_file *more, const char *why)
{
	autotree struct tree t;

	start_with_network(&t, more);
	reset(&t, "identity");
	for (const struct tree_file *f = generated; f->path; f++)
		if (!strstr(f->path, "udev"))
			assert_kept(&t, f->path, why);
	for (const struct tree_file *f = by_hand; f->path; f++)
		assert_true(tree_has(&t, f->path));
}

static void network_settings_stay_where_nothing_makes_new_ones(void **state)
{
	static const struct tree_file none[] = { { 0 } };
	static const struct tree_file disabled[] = { CLOUD,
						     TREE_FILE("etc/cloud/cloud-init.disabled", ""),
						     { 0 } };
	static const struct tree_file no_network[] = {
		CLOUD,
		CFG(MODULES),
		TREE_FILE("etc/cloud/cloud.cfg.d/99-disable-network-config.cfg",
			  "network: {config: disabled}\n"),
		{ 0 }
	};
	static const struct tree_file no_network_block[] = {
		CLOUD,
		CFG(MODULES),
		TREE_FILE("etc/cloud/cloud.cfg.d/99.cfg", "network:\n  config: disabled\n"),
		{ 0 }
	};
	static const struct tree_file no_network_argument[] = {
		CLOUD,
		CFG(MODULES),
		TREE_FILE("etc/kernel/cmdline", "ro network-config=disabled\n"),
		{ 0 }
	};

	(void)state;
	assert_network_stays(no_network_argument, "leave the network alone");
	assert_network_stays(none, "not installed");
	assert_network_stays(disabled, "disabled");
	assert_network_stays(no_network, "leave the network alone");
	assert_network_stays(no_network_block, "leave the network alone");
}

static void a_generated_file_under_another_name_is_somebodys(void **state)
{
	static const struct tree_file files[] = {
		CLOUD,
		CFG(MODULES),
		TREE_FILE("etc/netplan/60-copy.yaml", DATASOURCE "network: {version: 2}\n"),
		TREE_FILE("etc/netplan/50-cloud-init.yaml", "network:\n  ethernets: {eth0: {}}\n"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_kept(&t, "etc/netplan/60-copy.yaml", "not written by cloud-init");
	assert_kept(&t, "etc/netplan/50-cloud-init.yaml", "not written by cloud-init");
}

static void netplan_without_header_is_known_by_its_pin(void **state)
{
	static const struct tree_file files[] = {
		CLOUD,
		CFG(MODULES),
		TREE_FILE("etc/netplan/50-cloud-init.yaml",
			  "network:\n  ethernets:\n    eth0:\n      match:\n"
			  "        macaddress: \"fa:16:3e:00:00:01\"\n      set-name: \"eth0\"\n"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_gone(&t, "etc/netplan/50-cloud-init.yaml");
}

static void names_that_udev_generated_go_without_cloud_init(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("etc/udev/rules.d/70-persistent-net.rules",
			  "# This file was automatically generated by the write_net_rules\n"
			  "# program.\n" RULE("fa:16") "NAME=\"eth0\"\n"),
		TREE_FILE("etc/udev/rules.d/71-persistent-net.rules",
			  RULE("fa:17") "NAME=\"eth1\"\n"),
		TREE_FILE("etc/udev/rules.d/70-persistent-cd.rules", "# automatically generated\n"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "identity");
	assert_gone(&t, "etc/udev/rules.d/70-persistent-net.rules");
	assert_kept(&t, "etc/udev/rules.d/71-persistent-net.rules", "not generated");
	assert_true(tree_has(&t, "etc/udev/rules.d/70-persistent-cd.rules"));
}

static void network_cards_are_not_named_by_kernel_arguments(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("etc/kernel/cmdline",
			  "ro ifname=a:52:54:00:00:00:01 BOOTIF=01-52-54 ip=a:dhcp"),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	reset(&t, "udev-persistent-net");
	assert_text(&t, "etc/kernel/cmdline", "ro BOOTIF=01-52-54 ip=a:dhcp");
	assert_non_null(strstr(tree_told(&t, ACCOUNT_EDITED, "etc/kernel/cmdline"), "ifname="));
	tree_stop(&t);
	tree_start(&t, files);
	reset(&t, "net-hwaddr");
	assert_text(&t, "etc/kernel/cmdline", "ro ifname=a:52:54:00:00:00:01 ip=a:dhcp");
	assert_non_null(strstr(tree_told(&t, ACCOUNT_EDITED, "etc/kernel/cmdline"), "BOOTIF="));
}

static void a_huge_file_is_left_alone(void **state)
{
	static const struct tree_file files[] = {
		CLOUD, CFG(MODULES), TREE_FILE("etc/netplan/50-cloud-init.yaml", DATASOURCE), { 0 }
	};
	autotree struct tree t;
	char full[128];

	(void)state;
	tree_start_real(&t, files);
	tree_join(&t, "etc/netplan/50-cloud-init.yaml", full, sizeof full);
	assert_int_equal(truncate(full, INT64_C(1) << 40), 0);
	reset(&t, "identity");
	assert_kept(&t, "etc/netplan/50-cloud-init.yaml", "could not be looked at");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(host_keys_go_where_something_makes_new_ones),
		TEST(host_keys_stay_where_nothing_makes_new_ones),
		TEST(without_host_keys_there_is_nothing_to_say),
		TEST(generated_network_settings_go_and_those_by_hand_stay),
		TEST(network_settings_stay_where_nothing_makes_new_ones),
		TEST(a_generated_file_under_another_name_is_somebodys),
		TEST(netplan_without_header_is_known_by_its_pin),
		TEST(names_that_udev_generated_go_without_cloud_init),
		TEST(network_cards_are_not_named_by_kernel_arguments),
		TEST(a_huge_file_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
