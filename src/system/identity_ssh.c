// SPDX-License-Identifier: Apache-2.0
#include "system/identity_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "system/edit.h"

#include <stdlib.h>
#include <string.h>

/* Host keys go only if something makes new ones at the first boot: without any,
 * sshd does not start, and whoever has no console is locked out.
 */

/* Where systemd looks, the first that has a unit counts. */
static const char *const unit_dirs[] = { "etc/systemd/system", "usr/local/lib/systemd/system",
					 "usr/lib/systemd/system", "lib/systemd/system" };

static const char *const ssh_units[] = { "sshd.service", "ssh.service", "sshd@.service",
					 "ssh@.service" };

/* What a distribution's unit of sshd asks for before it starts, and the unit
 * that then must be there (NULL: it is a program).
 */
static const struct {
	const char *word, *unit;
} keygens[] = {
	{ "sshd-keygen.target", "sshd-keygen@.service" }, /* Fedora and its family */
	{ "sshd-keygen@", "sshd-keygen@.service" },
	{ "sshd-keygen.service", "sshd-keygen.service" },
	{ "sshdgenkeys.service", "sshdgenkeys.service" }, /* Arch */
	{ "sshd-gen-keys-start", NULL },		  /* openSUSE */
	{ "sshd-keygen-start", NULL },
	{ "ssh-keygen", NULL },
};

/* Scripts that start sshd where systemd does not. */
static const char *const scripts[] = { "etc/init.d/sshd", "etc/init.d/ssh", "etc/sv/sshd/run",
				       "etc/rc.d/rc.sshd" };

/* Settings by which they are told not to make keys. */
static const struct {
	const char *path, *setting, *value;
} vetoes[] = {
	{ "etc/conf.d/sshd", "SSHD_DISABLE_KEYGEN", "yes" },
	{ "etc/sysconfig/sshd", "AUTOCREATE_SERVER_KEYS", "NO" },
};

static bool is_vetoed(struct edit *e)
{
	for (size_t i = 0; i < sizeof vetoes / sizeof *vetoes; i++) {
		autofree char *text = identity_text(e, vetoes[i].path);
		autofree char *plain = str_format("%s=%s", vetoes[i].setting, vetoes[i].value);
		autofree char *quoted = str_format("%s=\"%s\"", vetoes[i].setting, vetoes[i].value);

		if (text && plain && quoted &&
		    (identity_mentions(text, plain) || identity_mentions(text, quoted)))
			return true;
	}
	return false;
}

/* The file of a unit (malloc), NULL when there is none or it is masked. */
static char *find_unit(const struct edit *e, const char *unit)
{
	if (identity_is_masked(e, unit))
		return NULL;
	for (size_t i = 0; i < sizeof unit_dirs / sizeof *unit_dirs; i++) {
		autofree char *path = str_format("%s/%s", unit_dirs[i], unit);

		if (path && edit_exists(e, path))
			return steal(&path);
	}
	return NULL;
}

static bool unit_is_there(const struct edit *e, const char *unit)
{
	autofree char *path = find_unit(e, unit);

	return path != NULL;
}

static bool asks_for_keys(const struct edit *e, const char *text)
{
	for (size_t i = 0; i < sizeof keygens / sizeof *keygens; i++)
		if (identity_mentions(text, keygens[i].word) &&
		    (!keygens[i].unit || unit_is_there(e, keygens[i].unit)) &&
		    !identity_is_masked(e, keygens[i].word))
			return true;
	return false;
}

/* *found: so far, does anything ask for keys? */
static int look_at_file(struct edit *e, const char *path, void *found, struct err *err)
{
	autofree char *text = identity_text(e, path);

	(void)err;
	if (text && asks_for_keys(e, text))
		*(bool *)found = true;
	return 0;
}

/* The unit's file and its drop-ins. */
static bool unit_asks_for_keys(struct edit *e, const char *unit, const char *file)
{
	bool found = false;
	struct err ignored;

	look_at_file(e, file, &found, &ignored);
	for (size_t i = 0; i < sizeof unit_dirs / sizeof *unit_dirs && !found; i++) {
		autofree char *dropins = str_format("%s/%s.d/*.conf", unit_dirs[i], unit);

		if (dropins)
			identity_each(e, dropins, look_at_file, &found, &ignored);
	}
	return found;
}

/* Is a unit that makes keys started on its own account? */
static bool keygen_is_enabled(const struct edit *e)
{
	for (size_t i = 0; i < sizeof unit_dirs / sizeof *unit_dirs; i++) {
		autofree char *wants = str_format("%s/*.wants/sshd-keygen*", unit_dirs[i]);
		autofree char *arch = str_format("%s/*.wants/sshdgenkeys.service", unit_dirs[i]);

		if ((wants && identity_matches(e, wants)) || (arch && identity_matches(e, arch)))
			return !identity_is_masked(e, "sshd-keygen.service") &&
			       !identity_is_masked(e, "sshdgenkeys.service");
	}
	return false;
}

static bool script_makes_keys(struct edit *e)
{
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		autofree char *text = identity_text(e, scripts[i]);

		if (text && identity_mentions(text, "ssh-keygen"))
			return true;
	}
	return false;
}

static bool sshd_makes_keys(struct edit *e)
{
	bool has_unit = false;

	if (is_vetoed(e))
		return false;
	for (size_t i = 0; i < sizeof ssh_units / sizeof *ssh_units; i++) {
		autofree char *file = find_unit(e, ssh_units[i]);

		has_unit |= file != NULL;
		if (file && unit_asks_for_keys(e, ssh_units[i], file))
			return true;
	}
	return has_unit ? keygen_is_enabled(e) : script_makes_keys(e);
}

static const struct identity_removal host_keys[] = {
	{ REMOVE_FILES, "etc/ssh/ssh_host_*_key", "an SSH host key" },
	{ REMOVE_FILES, "etc/ssh/ssh_host_*_key.pub", "an SSH host key" },
	{ REMOVE_FILES, "etc/ssh/ssh_host_*_key-cert.pub", "a certificate of an SSH host key" },
	{ 0 },
};

static int keep_key(struct edit *e, const char *path, void *why, struct err *err)
{
	(void)err;
	identity_keep(e, path, why);
	return 0;
}

static int keep_keys(struct edit *e, struct err *err)
{
	static char why[] = "nothing in the image would make a new SSH host key";

	for (const struct identity_removal *row = host_keys; row->pattern; row++)
		if (identity_each(e, row->pattern, keep_key, why, err) < 0)
			return -1;
	log_warn("the image keeps its SSH host keys, since nothing in it would make new ones: all "
		 "instances made from it have the same");
	return 0;
}

int identity_ssh_hostkeys(struct edit *e, struct err *err)
{
	if (!identity_matches(e, "etc/ssh/ssh_host_*_key*"))
		return 0;
	if (identity_cloud_look(e).makes_host_keys || sshd_makes_keys(e))
		return identity_remove(e, host_keys, err);
	return keep_keys(e, err);
}
