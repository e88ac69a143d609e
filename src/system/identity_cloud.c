// SPDX-License-Identifier: Apache-2.0
#include "system/identity_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/edit.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* cloud-init's configuration is YAML: /etc/cloud/cloud.cfg, then the files of
 * cloud.cfg.d by name, a later file's top-level key replacing an earlier one's.
 * Four questions are asked of it, for which words below a top-level key do.
 */
static const char *const stages[] = { "cloud_init_modules", "cloud_config_modules",
				      "cloud_final_modules" };

enum { STAGES = sizeof stages / sizeof *stages };

struct settings {
	bool ssh_in[STAGES];
	bool keeps_keys;       /* ssh_deletekeys: false */
	bool makes_no_keys;    /* ssh_genkeytypes: [] */
	bool network_disabled; /* network: {config: disabled} */
};

/* Key and the word before are "" at the beginning. */
struct word {
	const char *key, *before, *text;
};

/* A key begins: what earlier files said is void. */
static void begin_key(struct settings *s, const char *key)
{
	for (size_t i = 0; i < STAGES; i++)
		if (str_equal(key, stages[i]))
			s->ssh_in[i] = false;
	if (str_equal(key, "ssh_deletekeys"))
		s->keeps_keys = false;
	else if (str_equal(key, "ssh_genkeytypes"))
		s->makes_no_keys = true;
	else if (str_equal(key, "network"))
		s->network_disabled = false;
}

static bool is_false(const char *word)
{
	static const char *const words[] = { "false", "no", "off", "0" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasecmp(word, words[i]) == 0)
			return true;
	return false;
}

static void take_word(struct settings *s, const struct word *w)
{
	for (size_t i = 0; i < STAGES; i++)
		if (str_equal(w->key, stages[i]) && str_equal(w->text, "ssh"))
			s->ssh_in[i] = true;
	if (str_equal(w->key, "ssh_deletekeys"))
		s->keeps_keys = is_false(w->text);
	else if (str_equal(w->key, "ssh_genkeytypes") && !str_equal(w->text, "~") &&
		 !str_equal(w->text, "null"))
		s->makes_no_keys = false;
	else if (str_equal(w->key, "network") && str_equal(w->before, "config") &&
		 str_equal(w->text, "disabled"))
		s->network_disabled = true;
}

static void cut_comment(char *line)
{
	for (char *at = line; (at = strchr(at, '#')); at++)
		if (at == line || at[-1] == ' ' || at[-1] == '\t') {
			*at = '\0';
			return;
		}
}

/* *key lives on from line to line, in the text. */
static void take_line(struct settings *s, char *line, const char **key)
{
	bool is_key = !strchr(" \t-", *line);
	const char *before = "";
	char *rest = line, *word;

	while ((word = strsep(&rest, " \t\r[]{},'\":"))) {
		if (*word == '\0' || str_equal(word, "-"))
			continue;
		if (is_key) {
			*key = word;
			begin_key(s, word);
			is_key = false;
			continue;
		}
		take_word(s, &(struct word){ *key, before, word });
		before = word;
	}
}

static int take_file(struct edit *e, const char *path, void *ctx, struct err *err)
{
	autofree char *text = identity_text(e, path);
	const char *key = "";
	char *rest = text, *line;

	(void)err;
	while (rest && (line = strsep(&rest, "\n"))) {
		cut_comment(line);
		if (*line)
			take_line(ctx, line, &key);
	}
	return 0;
}

static bool ssh_module_runs(const struct settings *s)
{
	for (size_t i = 0; i < STAGES; i++)
		if (s->ssh_in[i])
			return true;
	return false;
}

/* Its units are there, but nothing starts them. */
static bool is_not_enabled(const struct edit *e)
{
	return (identity_matches(e, "usr/lib/systemd/system/cloud-init*.service") ||
		identity_matches(e, "lib/systemd/system/cloud-init*.service")) &&
	       !identity_matches(e, "etc/systemd/system/*.wants/cloud-init*.service") &&
	       !identity_matches(e, "usr/lib/systemd/system/*.wants/cloud-init*.service") &&
	       !identity_matches(e, "lib/systemd/system/*.wants/cloud-init*.service");
}

static bool is_masked(const struct edit *e)
{
	return identity_is_masked(e, "cloud-init.service") ||
	       identity_is_masked(e, "cloud-init-main.service") ||
	       identity_is_masked(e, "cloud-init-network.service") ||
	       identity_is_masked(e, "cloud-init.target");
}

/* The last "policy:" counts; "disabled" may have settings behind it. */
static bool is_policy_disabled(struct edit *e)
{
	autofree char *text = identity_text(e, "etc/cloud/ds-identify.cfg");
	char *rest = text, *line, *save;
	bool disabled = false;

	while (rest && (line = strsep(&rest, "\n"))) {
		const char *key, *value;

		cut_comment(line);
		key = strtok_r(line, ": \t\r", &save);
		value = key ? strtok_r(NULL, ": \t\r\"',", &save) : NULL;
		if (value && str_equal(key, "policy"))
			disabled = str_equal(value, "disabled");
	}
	return disabled;
}

static const char *why_idle(struct edit *e)
{
	if (!edit_exists(e, "usr/bin/cloud-init") && !edit_exists(e, "usr/local/bin/cloud-init"))
		return "cloud-init is not installed";
	if (edit_exists(e, "etc/cloud/cloud-init.disabled"))
		return "cloud-init is disabled (/etc/cloud/cloud-init.disabled)";
	if (identity_has_argument(e, "cloud-init=disabled"))
		return "cloud-init is disabled (kernel argument cloud-init=disabled)";
	if (is_policy_disabled(e) || identity_has_argument(e, "ci.di.policy=disabled"))
		return "cloud-init is disabled (policy of ds-identify)";
	if (is_masked(e))
		return "cloud-init is masked";
	return is_not_enabled(e) ? "cloud-init is not enabled" : NULL;
}

struct identity_cloud identity_cloud_look(struct edit *e)
{
	struct identity_cloud cloud = { .idle = why_idle(e) };
	struct settings s = { 0 };
	struct err err;

	if (cloud.idle)
		return cloud;
	if (identity_each(e, "etc/cloud/cloud.cfg", take_file, &s, &err) < 0 ||
	    identity_each(e, "etc/cloud/cloud.cfg.d/*.cfg", take_file, &s, &err) < 0) {
		cloud.idle = "cloud-init's configuration could not be read";
		return cloud;
	}
	cloud.makes_host_keys = ssh_module_runs(&s) && !s.keeps_keys && !s.makes_no_keys;
	cloud.makes_network =
		!s.network_disabled && !identity_has_argument(e, "network-config=disabled");
	return cloud;
}
