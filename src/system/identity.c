// SPDX-License-Identifier: Apache-2.0
#include "system/identity.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "system/edit.h"
#include "system/identity_inner.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct identity_removal cloud_state[] = {
	{ REMOVE, "var/lib/cloud/instance", "cloud-init: which instance this was" },
	{ REMOVE, "var/lib/cloud/instances", "cloud-init: state of the old instance" },
	{ REMOVE, "var/lib/cloud/data", "cloud-init: state of the old instance" },
	{ REMOVE, "var/lib/cloud/sem", "cloud-init: what had run once" },
	{ 0 },
};

#define LEASE "a lease of the old instance's network address"
#define DUID  "identifies the old instance to DHCP servers"
static const struct identity_removal dhcp_state[] = {
	{ REMOVE_FILES, "var/lib/dhcp/dhclient*", LEASE },
	{ REMOVE_FILES, "var/lib/dhcp3/dhclient*", LEASE },
	{ REMOVE_FILES, "var/lib/dhclient/*", LEASE },
	{ REMOVE_FILES, "var/lib/dhcpcd/*.lease*", LEASE },
	{ REMOVE_FILES, "var/lib/dhcpcd5/*.lease*", LEASE },
	{ REMOVE_FILES, "var/lib/dhcpcd/duid", DUID },
	{ REMOVE_FILES, "var/lib/dhcpcd/secret", DUID },
	{ REMOVE_FILES, "var/db/dhcpcd/*", LEASE },
	{ REMOVE_FILES, "etc/dhcpcd.duid", DUID },
	{ REMOVE_FILES, "etc/dhcpcd.secret", DUID },
	{ REMOVE_FILES, "var/lib/dhcpv6/dhcp6c_duid", DUID },
	{ REMOVE_FILES, "var/lib/NetworkManager/*.lease", LEASE },
	{ REMOVE_FILES, "var/lib/NetworkManager/dhclient-*", LEASE },
	{ REMOVE_FILES, "run/systemd/netif/leases/*", LEASE },
	{ REMOVE_FILES, "var/lib/wicked/lease-*", LEASE },
	{ REMOVE_FILES, "var/lib/wicked/duid.xml", DUID },
	{ REMOVE_FILES, "var/lib/wicked/iaid.xml", DUID },
	{ 0 },
};

#define SEED "a random seed must not be used twice"
static const struct identity_removal random_seeds[] = {
	{ REMOVE, "var/lib/systemd/random-seed", SEED },
	{ REMOVE, "var/lib/urandom/random-seed", SEED },
	{ REMOVE, "var/lib/random-seed", SEED },
	{ REMOVE, "var/lib/misc/random-seed", SEED },
	{ REMOVE, "var/lib/seedrng/*", SEED },
	{ REMOVE, "boot/loader/random-seed", SEED },
	{ REMOVE, "boot/efi/loader/random-seed", SEED },
	{ REMOVE, "efi/loader/random-seed", SEED },
	{ 0 },
};

static const struct identity_removal lvm_devices[] = {
	{ REMOVE, "etc/lvm/devices/system.devices",
	  "lists the old disks only, LVM would not look at others" },
	{ 0 },
};

static const struct identity_removal nm_secret[] = {
	{ REMOVE, "var/lib/NetworkManager/secret_key",
	  "stable addresses and DHCP identifiers are made from it" },
	{ 0 },
};

static const struct identity_removal bash_history[] = {
	{ REMOVE_FILES, "root/.bash_history", "a shell's history" },
	{ REMOVE_FILES, "home/*/.bash_history", "a shell's history" },
	{ 0 },
};

static const struct identity_removal crash_data[] = {
	{ REMOVE, "var/crash/*", "crash data" },
	{ REMOVE, "var/log/dump/*", "crash data" },
	{ REMOVE, "var/lib/systemd/coredump/*", "crash data" },
	{ REMOVE, "var/spool/abrt/*", "crash data" },
	{ 0 },
};

static const struct identity_removal cron_spool[] = {
	{ REMOVE_FILES, "var/spool/cron/crontabs/*", "a user's crontab" },
	{ REMOVE_FILES, "var/spool/cron/tabs/*", "a user's crontab" },
	{ REMOVE_FILES, "var/spool/cron/*", "a user's crontab" },
	{ REMOVE_FILES, "var/spool/cron/atjobs/*", "a user's at job" },
	{ REMOVE_FILES, "var/spool/at/*", "a user's at job" },
	{ 0 },
};

static const struct identity_removal logfiles[] = {
	{ REMOVE_FILES, "var/log/*.log*", "a log" },
	{ REMOVE_FILES, "var/log/*/*.log*", "a log" },
	{ REMOVE_FILES, "var/log/btmp*", "a log" },
	{ REMOVE_FILES, "var/log/cron*", "a log" },
	{ REMOVE_FILES, "var/log/debug*", "a log" },
	{ REMOVE_FILES, "var/log/dmesg*", "a log" },
	{ REMOVE_FILES, "var/log/faillog*", "a log" },
	{ REMOVE_FILES, "var/log/lastlog*", "a log" },
	{ REMOVE_FILES, "var/log/mail*", "a log" },
	{ REMOVE_FILES, "var/log/messages*", "a log" },
	{ REMOVE_FILES, "var/log/secure*", "a log" },
	{ REMOVE_FILES, "var/log/spooler*", "a log" },
	{ REMOVE_FILES, "var/log/syslog*", "a log" },
	{ REMOVE_FILES, "var/log/tallylog*", "a log" },
	{ REMOVE_FILES, "var/log/wtmp*", "a log" },
	{ REMOVE, "var/log/journal/*", "the journal" },
	{ 0 },
};

static const struct identity_removal mail_spool[] = {
	{ REMOVE, "var/mail/*", "a user's mail" },
	{ REMOVE, "var/spool/mail/*", "a user's mail" },
	{ 0 },
};

static const struct identity_removal package_cache[] = {
	{ REMOVE_FILES, "var/cache/apt/*.bin", "the package manager's cache" },
	{ REMOVE_FILES, "var/cache/apt/archives/*.deb", "the package manager's cache" },
	{ REMOVE_FILES, "var/cache/apt/archives/partial/*", "the package manager's cache" },
	{ REMOVE, "var/cache/dnf/*", "the package manager's cache" },
	{ REMOVE, "var/cache/libdnf5/*", "the package manager's cache" },
	{ REMOVE, "var/cache/yum/*", "the package manager's cache" },
	{ REMOVE, "var/cache/zypp/*", "the package manager's cache" },
	{ REMOVE_FILES, "var/cache/pacman/pkg/*", "the package manager's cache" },
	{ REMOVE_FILES, "var/cache/apk/*", "the package manager's cache" },
	{ 0 },
};

static const struct identity_removal ssh_userdir[] = {
	{ REMOVE, "root/.ssh", "a user's SSH keys and settings" },
	{ REMOVE, "home/*/.ssh", "a user's SSH keys and settings" },
	{ 0 },
};

static const struct identity_removal tmp_files[] = {
	{ REMOVE_CONTENT, "tmp", "temporary files" },
	{ REMOVE_CONTENT, "var/tmp", "temporary files" },
	{ 0 },
};

static int reset_credential_secret(struct edit *e, struct err *err)
{
	const char *secret = "var/lib/systemd/credential.secret";

	if (!edit_exists(e, secret))
		return 0;
	if (identity_matches(e, "etc/credstore.encrypted/*"))
		log_warn("what is in /etc/credstore.encrypted cannot be decrypted in the image: "
			 "/%s is left out (keep it by --reset=identity,-systemd-credential-secret)",
			 secret);
	return edit_remove(e, secret, "systemd's key for credentials of this machine", err);
}

const struct identity_operation identity_operations[] = {
	{ "cloud-init", true, "Let cloud-init begin afresh; its seed directory stays", cloud_state,
	  NULL },
	{ "dhcp-client-state", true, "Remove DHCP leases and identifiers", dhcp_state, NULL },
	{ "lvm-system-devices", true, "Remove LVM's list of known devices", lvm_devices, NULL },
	{ "machine-id", true, "Empty the machine ID, and leave it out of the kernel arguments",
	  NULL, identity_machine_id },
	{ "net-cloud-init", true,
	  "Remove network settings (netplan, ifupdown, networkd) written by cloud-init, if it "
	  "will write new ones",
	  NULL, identity_net_cloud },
	{ "net-hwaddr", true,
	  "Remove ifcfg files written by cloud-init, if it will write new ones, and BOOTIF= from "
	  "the kernel arguments",
	  NULL, identity_net_hwaddr },
	{ "net-nmconn", true,
	  "Remove NetworkManager connections written by cloud-init, if it will write new ones",
	  NULL, identity_net_nmconn },
	{ "nm-secret-key", true, "Remove NetworkManager's secret key", nm_secret, NULL },
	{ "random-seed", true, "Remove random seeds", random_seeds, NULL },
	{ "ssh-hostkeys", true,
	  "Remove SSH host keys, if something will make new ones at the first boot", NULL,
	  identity_ssh_hostkeys },
	{ "systemd-credential-secret", true, "Remove systemd's key for credentials", NULL,
	  reset_credential_secret },
	{ "udev-persistent-net", true,
	  "Remove generated names of network interfaces, and ifname= from the kernel arguments",
	  NULL, identity_udev_net },

	{ "bash-history", false, "Remove bash's history of root and in /home", bash_history, NULL },
	{ "crash-data", false, "Remove crash dumps", crash_data, NULL },
	{ "cron-spool", false, "Remove users' cron and at jobs", cron_spool, NULL },
	{ "logfiles", false, "Remove logs", logfiles, NULL },
	{ "mail-spool", false, "Remove users' mail", mail_spool, NULL },
	{ "package-manager-cache", false, "Remove packages and lists that were downloaded",
	  package_cache, NULL },
	{ "ssh-userdir", false, "Remove .ssh of root and in /home", ssh_userdir, NULL },
	{ "tmp-files", false, "Remove temporary files", tmp_files, NULL },
	{ 0 },
};

/* --- for the operations ------------------------------------------------------ */

int identity_each(struct edit *e, const char *pattern,
		  int (*each)(struct edit *e, const char *path, void *ctx, struct err *err),
		  void *ctx, struct err *err)
{
	autoglob char **paths = edit_glob(e, pattern, err);

	if (!paths)
		return -1;
	for (char **path = paths; *path; path++)
		if (each(e, *path, ctx, err) < 0)
			return -1;
	return 0;
}

static int remove_path(struct edit *e, const char *path, void *ctx, struct err *err)
{
	const struct identity_removal *r = ctx;
	uint32_t node = model_resolve(e->model, path, MODEL_NOFOLLOW);

	if (r->action == REMOVE_CONTENT)
		return edit_remove_content(e, path, r->why, err);
	if (node == MODEL_NONE ||
	    (r->action == REMOVE_FILES && S_ISDIR(e->model->nodes[node].mode)))
		return 0;
	return edit_remove(e, path, r->why, err);
}

int identity_remove(struct edit *e, const struct identity_removal *table, struct err *err)
{
	for (; table->pattern; table++) {
		struct identity_removal row = *table;
		int rc;

		if (strpbrk(row.pattern, "*?["))
			rc = identity_each(e, row.pattern, remove_path, &row, err);
		else
			rc = remove_path(e, row.pattern, &row, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

char *identity_text(struct edit *e, const char *path)
{
	struct err err;
	size_t len;
	bool missing;
	char *text = edit_read(e, path, &len, &missing, &err);

	if (!text && !missing)
		log_debug("%s", err.text);
	return text;
}

bool identity_mentions(const char *text, const char *word)
{
	for (const char *at = text; (at = strstr(at, word)); at++) {
		const char *line = at;

		while (line > text && line[-1] != '\n')
			line--;
		line += strspn(line, " \t");
		if (*line != '#' && *line != ';')
			return true;
	}
	return false;
}

bool identity_matches(const struct edit *e, const char *pattern)
{
	struct err ignored;
	autoglob char **paths = edit_glob(e, pattern, &ignored);

	return paths && *paths;
}

void identity_keep(struct edit *e, const char *path, const char *why)
{
	autofree char *full = str_format("/%s", path);

	account_add(e->account, ACCOUNT_KEPT, full ? full : path, "%s", why);
}

bool identity_is_masked(const struct edit *e, const char *unit)
{
	autofree char *path = str_format("etc/systemd/system/%s", unit);
	uint32_t node = path ? model_resolve(e->model, path, MODEL_NOFOLLOW) : MODEL_NONE;
	const struct model_node *n = node == MODEL_NONE ? NULL : &e->model->nodes[node];

	return n && S_ISLNK(n->mode) && n->content && str_equal(n->content, "/dev/null");
}

/* --- which of them --------------------------------------------------------- */

_Static_assert(sizeof identity_operations / sizeof *identity_operations <= 65, "bits of a set");

/* The operations that a word means, as bits; 0 when it is unknown. */
static uint64_t word_operations(const char *word)
{
	uint64_t set = 0;

	for (unsigned i = 0; identity_operations[i].name; i++) {
		const struct identity_operation *op = &identity_operations[i];

		if (str_equal(word, op->name) || (op->in_identity && str_equal(word, "identity")))
			set |= UINT64_C(1) << i;
	}
	return set;
}

static int apply_word(const char *word, uint64_t *set, struct err *err)
{
	const char *name = word + (*word == '-');
	uint64_t operations = word_operations(name);

	if (!operations)
		return err_set(err, ERR_USAGE,
			       "\"%s\" is nothing that can be reset (none, identity, or names of "
			       "operations separated by commas)",
			       name);
	*set = *word == '-' ? *set & ~operations : *set | operations;
	return 0;
}

static int parse_list(const char *list, uint64_t *set, struct err *err)
{
	autofree char *copy = strdup(list);
	char *rest = copy, *word;

	*set = 0;
	if (!copy)
		return err_nomem(err);
	if (str_equal(list, "none"))
		return 0;
	if (*list == '-')
		return err_set(err, ERR_USAGE,
			       "\"%s\" takes something from nothing: begin with "
			       "\"identity,\"",
			       list);
	while ((word = strsep(&rest, ",")))
		if (apply_word(word, set, err) < 0)
			return -1;
	return 0;
}

bool identity_list_is_valid(const char *list)
{
	struct err ignored;
	uint64_t set;

	return parse_list(list, &set, &ignored) == 0;
}

static int run_operation(struct edit *e, const struct identity_operation *op, struct err *err)
{
	if (op->removals && identity_remove(e, op->removals, err) < 0)
		return -1;
	return op->run ? op->run(e, err) : 0;
}

int identity_reset(struct edit *e, const char *list, struct err *err)
{
	uint64_t set;

	if (parse_list(list, &set, err) < 0)
		return -1;
	for (unsigned i = 0; identity_operations[i].name; i++)
		if (set >> i & 1 && run_operation(e, &identity_operations[i], err) < 0)
			return -1;
	if (set & word_operations("identity"))
		identity_tell_storage(e);
	return 0;
}
