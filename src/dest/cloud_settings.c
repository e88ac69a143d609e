// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_settings_inner.h"

#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "dest/cloud_env.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

/* --- finding ---------------------------------------------------------------------- */

enum err_kind source_blame(const struct source *s)
{
	return s->kind == CLOUD_FROM_ENVIRONMENT ? ERR_USAGE : ERR_REFUSED;
}

static const struct field {
	size_t offset; /* in struct cloud_config */
	enum order order;
	const char *keys[SPELLINGS_MAX]; /* the first that is set counts */
} fields[] = {
#define FIELD(member) offsetof(struct cloud_config, member)
	{ FIELD(auth_url), TOP_FIRST, { "auth_url" } },
	{ FIELD(user_name), TOP_FIRST, { "username", "user_name" } },
	{ FIELD(user_id), TOP_FIRST, { "user_id" } },
	{ FIELD(user_domain_name), AUTH_FIRST, { "user_domain_name" } },
	{ FIELD(user_domain_id), AUTH_FIRST, { "user_domain_id" } },
	{ FIELD(application_credential_id), TOP_FIRST, { "application_credential_id" } },
	{ FIELD(application_credential_name), TOP_FIRST, { "application_credential_name" } },
	{ FIELD(project_name), AUTH_FIRST, { "project_name", "tenant_name" } },
	{ FIELD(project_id), AUTH_FIRST, { "project_id", "tenant_id" } },
	{ FIELD(project_domain_name), AUTH_FIRST, { "project_domain_name" } },
	{ FIELD(project_domain_id), AUTH_FIRST, { "project_domain_id" } },
	{ FIELD(domain_name), AUTH_FIRST, { "domain_name" } },
	{ FIELD(domain_id), AUTH_FIRST, { "domain_id" } },
	{ FIELD(region_name), TOP_ONLY, { "image_region_name", "region_name" } },
	{ FIELD(interface),
	  TOP_ONLY,
	  { "image_interface", "image_endpoint_type", "endpoint_type", "interface" } },
	{ FIELD(image_endpoint), TOP_ONLY, { "image_endpoint_override", "image_endpoint" } },
	{ FIELD(cacert), TOP_ONLY, { "cacert" } },
	{ FIELD(cert), TOP_ONLY, { "cert" } },
	{ FIELD(key), TOP_ONLY, { "key" } },
#undef FIELD
};

static char **member_of(struct cloud_config *cfg, size_t offset)
{
	return (char **)((char *)cfg + offset);
}

const struct cloud_node *source_find(const struct source *s, const char *key, enum order order)
{
	const struct cloud_node *top = cloud_node_setting(s->top, key);
	const struct cloud_node *auth = order == TOP_ONLY ? NULL : cloud_node_setting(s->auth, key);

	if (order == AUTH_FIRST)
		return auth ? auth : top;
	return top ? top : auth;
}

int source_find_text(const struct source *s, const char *const keys[SPELLINGS_MAX],
		     enum order order, const struct cloud_node **out, struct err *err)
{
	*out = NULL;
	for (size_t i = 0; i < SPELLINGS_MAX && keys[i] && !*out; i++)
		*out = source_find(s, keys[i], order);
	if (*out && (*out)->kind != CLOUD_TEXT)
		return err_set(err, source_blame(s), "%s: expected a text",
			       cloud_node_place(*out).text);
	return 0;
}

static int fill_fields(const struct source *s, struct cloud_config *out, struct err *err)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char **to = member_of(out, fields[i].offset);
		const struct cloud_node *node;

		if (source_find_text(s, fields[i].keys, fields[i].order, &node, err) < 0)
			return -1;
		if (node && !(*to = strdup(node->text)))
			return err_nomem(err);
	}
	return 0;
}

void cloud_config_free(struct cloud_config *cfg)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		free(*member_of(cfg, fields[i].offset));
	free(cfg->origin);
	secret_free(cfg->secret);
	memset(cfg, 0, sizeof *cfg);
}

/* --- how to log in ---------------------------------------------------------------- */

static const struct {
	const char *name;
	enum cloud_auth auth;
} auth_types[] = {
	{ "password", CLOUD_PASSWORD },
	{ "v3password", CLOUD_PASSWORD },
	{ "token", CLOUD_TOKEN },
	{ "v3token", CLOUD_TOKEN },
	{ "v3applicationcredential", CLOUD_APPLICATION_CREDENTIAL },
};

const struct login cloud_logins[] = {
	[CLOUD_PASSWORD] = { { "password" }, TOP_FIRST, "OS_PASSWORD" },
	[CLOUD_TOKEN] = { { "token", "auth_token" }, AUTH_FIRST, "OS_TOKEN" },
	[CLOUD_APPLICATION_CREDENTIAL] = { { "application_credential_secret" },
					   TOP_FIRST,
					   "OS_APPLICATION_CREDENTIAL_SECRET" },
};

static int unknown_auth_type(const struct source *s, const struct cloud_node *type, struct err *err)
{
	return err_set(err, source_blame(s),
		       "%s: cannot log in by \"%s\"; password, v3password, token, v3token and "
		       "v3applicationcredential are supported (an application credential can be "
		       "made by whoever logs in otherwise)",
		       cloud_node_place(type).text, type->text);
}

/* openstacksdk takes a password for granted; we look at what there is. */
static enum cloud_auth guess_auth(const struct source *s, const struct cloud_config *cfg)
{
	if (source_find(s, "password", TOP_FIRST))
		return CLOUD_PASSWORD;
	if (cfg->application_credential_id || cfg->application_credential_name ||
	    source_find(s, "application_credential_secret", TOP_FIRST))
		return CLOUD_APPLICATION_CREDENTIAL;
	if (source_find(s, "token", TOP_FIRST) || source_find(s, "auth_token", TOP_FIRST))
		return CLOUD_TOKEN;
	return CLOUD_PASSWORD;
}

static int choose_auth(const struct source *s, struct cloud_config *out, struct err *err)
{
	static const char *const keys[SPELLINGS_MAX] = { "auth_type", "auth_plugin" };
	const struct cloud_node *type;

	if (source_find_text(s, keys, TOP_ONLY, &type, err) < 0)
		return -1;
	if (!type) {
		out->auth = guess_auth(s, out);
		return 0;
	}
	for (size_t i = 0; i < sizeof auth_types / sizeof *auth_types; i++) {
		if (str_equal(type->text, auth_types[i].name)) {
			out->auth = auth_types[i].auth;
			return 0;
		}
	}
	return unknown_auth_type(s, type, err);
}

/* It becomes a header. */
static int check_token(const struct source *s, const struct cloud_node *token, struct err *err)
{
	for (const char *at = token->text; *at; at++)
		if ((unsigned char)*at <= 0x20 || *at == 0x7f)
			return err_set(err, source_blame(s), "%s: a token has no blanks in it",
				       cloud_node_place(token).text);
	return 0;
}

static void hint_at_permissions(const struct cloud_node *secret)
{
	struct stat st;

	if (secret->line && stat(secret->file, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_mode & S_IROTH)
		log_note("everybody can read the secret in %s: chmod 600 %s", secret->file,
			 secret->file);
}

static int take_secret(const struct source *s, struct cloud_config *out, struct err *err)
{
	const struct login *login = &cloud_logins[out->auth];
	const struct cloud_node *secret;

	if (source_find_text(s, login->keys, login->order, &secret, err) < 0)
		return -1;
	if (!secret)
		return 0;
	if (out->auth == CLOUD_TOKEN && check_token(s, secret, err) < 0)
		return -1;
	hint_at_permissions(secret);
	out->secret = secret_new(secret->text);
	return out->secret ? 0 : err_nomem(err);
}

/* --- all of it -------------------------------------------------------------------- */

static const struct cloud_node *with_env(struct cloud_tree *tree, const struct cloud_node *settings,
					 const struct cloud_env *env, enum cloud_source source,
					 struct err *err)
{
	const struct cloud_node *top = source == CLOUD_FROM_FILES ? env->named : env->all;

	return cloud_node_merged(tree, settings, top, CLOUD_MERGE_AUTH, err);
}

int cloud_settings_apply(struct cloud_tree *tree, const struct cloud_node *settings,
			 const struct cloud_env *env, enum cloud_source source,
			 struct cloud_config *out, struct err *err)
{
	struct source s = { .kind = source, .origin = out->origin };

	s.top = with_env(tree, settings, env, source, err);
	if (!s.top)
		return -1;
	s.auth = cloud_node_setting(s.top, "auth");
	if (s.auth && s.auth->kind != CLOUD_MAP)
		return err_set(err, source_blame(&s), "%s: auth must be a map",
			       cloud_node_place(s.auth).text);
	if (fill_fields(&s, out, err) < 0 || choose_auth(&s, out, err) < 0 ||
	    take_secret(&s, out, err) < 0 || cloud_settle(&s, out, err) < 0)
		return -1;
	return cloud_check(&s, out, err);
}
