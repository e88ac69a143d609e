// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_settings_inner.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "dest/cloud_tree.h"

#include <string.h>
#include <strings.h>

static int find_key(const struct source *s, const char *key, enum order order,
		    const struct cloud_node **out, struct err *err)
{
	const char *const keys[SPELLINGS_MAX] = { key };

	return source_find_text(s, keys, order, out, err);
}

/* --- what follows from what is given ---------------------------------------------- */

/* The words of YAML 1.1, and those of the shell. */
static int is_true(const struct source *s, const struct cloud_node *node, bool *out,
		   struct err *err)
{
	static const char *const words[][2] = { { "true", "false" }, { "yes", "no" },
						{ "on", "off" },     { "y", "n" },
						{ "t", "f" },	     { "1", "0" } };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		for (size_t k = 0; k < 2; k++) {
			if (strcasecmp(node->text, words[i][k]) == 0) {
				*out = k == 0;
				return 0;
			}
		}
	}
	return err_set(err, source_blame(s), "%s: expected true or false",
		       cloud_node_place(node).text);
}

static int read_verify(const struct source *s, struct cloud_config *out, struct err *err)
{
	const struct cloud_node *insecure, *verify;
	bool is_verified = true;

	if (find_key(s, "insecure", TOP_ONLY, &insecure, err) < 0 ||
	    find_key(s, "verify", TOP_ONLY, &verify, err) < 0)
		return -1;
	if (insecure && is_true(s, insecure, &out->insecure, err) < 0)
		return -1;
	if (verify && is_true(s, verify, &is_verified, err) < 0)
		return -1;
	out->insecure |= !is_verified;
	return 0;
}

/* By which a user or a project gets the domain that it has not: the scope's, as
 * openstacksdk does it, then keystoneauth's and the openstack client's variables.
 */
static int default_domain(const struct source *s, const struct cloud_config *cfg, char **name,
			  char **id, struct err *err)
{
	static const char *const id_keys[SPELLINGS_MAX] = { "default_domain_id", "default_domain" };
	const struct cloud_node *node;

	if (*name || *id)
		return 0;
	if (cfg->domain_id || cfg->domain_name) {
		*id = cfg->domain_id ? strdup(cfg->domain_id) : NULL;
		*name = cfg->domain_name ? strdup(cfg->domain_name) : NULL;
		return *id || *name ? 0 : err_nomem(err);
	}
	if (source_find_text(s, id_keys, TOP_FIRST, &node, err) < 0)
		return -1;
	if (node)
		return (*id = strdup(node->text)) ? 0 : err_nomem(err);
	if (find_key(s, "default_domain_name", TOP_FIRST, &node, err) < 0)
		return -1;
	if (node && !(*name = strdup(node->text)))
		return err_nomem(err);
	return 0;
}

static void drop(char **text)
{
	free(*text);
	*text = NULL;
}

static int settle_domains(const struct source *s, struct cloud_config *cfg, struct err *err)
{
	bool has_project = cfg->project_name || cfg->project_id;

	if (cfg->user_name &&
	    default_domain(s, cfg, &cfg->user_domain_name, &cfg->user_domain_id, err) < 0)
		return -1;
	if (cfg->project_name &&
	    default_domain(s, cfg, &cfg->project_domain_name, &cfg->project_domain_id, err) < 0)
		return -1;
	if (has_project) {
		drop(&cfg->domain_name);
		drop(&cfg->domain_id);
	}
	return 0;
}

/* Keystone refuses an application credential with a scope. */
static void settle_scope(struct cloud_config *cfg)
{
	if (cfg->auth != CLOUD_APPLICATION_CREDENTIAL)
		return;
	drop(&cfg->project_name);
	drop(&cfg->project_id);
	drop(&cfg->project_domain_name);
	drop(&cfg->project_domain_id);
	drop(&cfg->domain_name);
	drop(&cfg->domain_id);
}

static int settle_interface(const struct source *s, struct cloud_config *cfg, struct err *err)
{
	static const char *const known[] = { "public", "internal", "admin" };

	if (!cfg->interface && !(cfg->interface = strdup(known[0])))
		return err_nomem(err);
	if (str_ends(cfg->interface, "URL"))
		cfg->interface[strlen(cfg->interface) - strlen("URL")] = '\0';
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (str_equal(cfg->interface, known[i]))
			return 0;
	return err_set(err, source_blame(s),
		       "the interface is \"%s\", but must be public, internal or admin",
		       cfg->interface);
}

/* openstacksdk expands "~/" in paths ... */
static int expand_home(char **path, struct err *err)
{
	const char *home = getenv("HOME");
	char *full;

	if (!*path || !home || !str_starts(*path, "~/"))
		return 0;
	full = str_format("%s%s", home, *path + 1);
	if (!full)
		return err_nomem(err);
	free(*path);
	*path = full;
	return 0;
}

/* ... and "{region_name}" in URLs, of which vendor profiles make use. */
static int expand_region(char **url, const char *region, struct err *err)
{
	static const char word[] = "{region_name}";
	size_t done = 0;
	char *at;

	while (*url && region && (at = strstr(*url + done, word))) {
		size_t before = (size_t)(at - *url);
		char *full =
			str_format("%.*s%s%s", (int)before, *url, region, at + sizeof word - 1);

		if (!full)
			return err_nomem(err);
		free(*url);
		*url = full;
		done = before + strlen(region);
	}
	return 0;
}

int cloud_settle(const struct source *s, struct cloud_config *cfg, struct err *err)
{
	if (read_verify(s, cfg, err) < 0 || settle_domains(s, cfg, err) < 0 ||
	    settle_interface(s, cfg, err) < 0 || expand_home(&cfg->cacert, err) < 0 ||
	    expand_home(&cfg->cert, err) < 0 || expand_home(&cfg->key, err) < 0 ||
	    expand_region(&cfg->auth_url, cfg->region_name, err) < 0 ||
	    expand_region(&cfg->image_endpoint, cfg->region_name, err) < 0)
		return -1;
	settle_scope(cfg);
	return 0;
}

/* --- is it enough? ---------------------------------------------------------------- */

static int check_is_v3(const struct source *s, struct err *err)
{
	const struct cloud_node *version;

	if (find_key(s, "identity_api_version", TOP_ONLY, &version, err) < 0)
		return -1;
	if (version && version->text[0] == '2')
		return err_set(err, source_blame(s),
			       "%s: version 2 of the identity service is not supported, only 3",
			       cloud_node_place(version).text);
	return 0;
}

static int check_scope(const struct source *s, struct err *err)
{
	static const char *const unknown[] = { "trust_id", "system_scope" };

	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		const struct cloud_node *node = source_find(s, unknown[i], AUTH_FIRST);

		if (node)
			return err_set(err, source_blame(s),
				       "%s: trusts and the system scope are not supported, "
				       "only projects",
				       cloud_node_place(node).text);
	}
	return 0;
}

static int missing(const struct source *s, const char *variable, const char *key, struct err *err)
{
	if (s->kind == CLOUD_FROM_ENVIRONMENT)
		return err_set(err, ERR_USAGE, "%s is not set", variable);
	return err_set(err, ERR_REFUSED,
		       "%s has no %s (in quotes, if it is a null or ~), and %s is not set",
		       s->origin, key, variable);
}

static int check_user(const struct source *s, const struct cloud_config *cfg, struct err *err)
{
	if (cfg->auth == CLOUD_APPLICATION_CREDENTIAL && !cfg->application_credential_id &&
	    !cfg->application_credential_name)
		return missing(s, "OS_APPLICATION_CREDENTIAL_ID", "application_credential_id", err);
	if (cfg->auth == CLOUD_TOKEN || cfg->application_credential_id)
		return 0;
	if (!cfg->user_name && !cfg->user_id)
		return missing(s, "OS_USERNAME", "username", err);
	return 0;
}

/* A token has a scope already, as has an application credential. */
static int check_project(const struct source *s, const struct cloud_config *cfg, struct err *err)
{
	if (cfg->auth != CLOUD_PASSWORD || cfg->project_name || cfg->project_id ||
	    cfg->domain_name || cfg->domain_id)
		return 0;
	if (s->kind == CLOUD_FROM_ENVIRONMENT)
		return err_set(err, ERR_USAGE, "no project: set OS_PROJECT_NAME or OS_PROJECT_ID");
	return err_set(err, ERR_REFUSED,
		       "no project: %s has neither project_name nor project_id in auth", s->origin);
}

static int check_is_complete(const struct source *s, const struct cloud_config *cfg,
			     struct err *err)
{
	if (!cfg->auth_url)
		return missing(s, "OS_AUTH_URL", "auth_url", err);
	if (check_user(s, cfg, err) < 0)
		return -1;
	if (!cfg->secret)
		return missing(s, cloud_logins[cfg->auth].variable, cloud_logins[cfg->auth].keys[0],
			       err);
	return check_project(s, cfg, err);
}

int cloud_check(const struct source *s, const struct cloud_config *cfg, struct err *err)
{
	if (check_is_v3(s, err) < 0 || check_scope(s, err) < 0)
		return -1;
	return check_is_complete(s, cfg, err);
}
