// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_env.h"

#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"

#include <string.h>

enum {
	NAMED = 1,
	CREDENTIAL = 2,
	SECRET = 4,
	GIVES_WAY = 8, /* to what stands in a named cloud's auth section */
};

static const struct variable {
	const char *name, *key; /* key NULL: only kept from children */
	unsigned flags;
} variables[] = {
	{ "OS_AUTH_TYPE", "auth_type", NAMED | CREDENTIAL },
	{ "OS_AUTH_PLUGIN", "auth_plugin", CREDENTIAL },
	{ "OS_AUTH_URL", "auth_url", NAMED | CREDENTIAL },
	{ "OS_USERNAME", "username", NAMED | CREDENTIAL },
	{ "OS_USER_ID", "user_id", NAMED | CREDENTIAL },
	{ "OS_USER_DOMAIN_NAME", "user_domain_name", NAMED },
	{ "OS_USER_DOMAIN_ID", "user_domain_id", NAMED },
	{ "OS_PASSWORD", "password", NAMED | CREDENTIAL | SECRET },
	{ "OS_TOKEN", "token", NAMED | CREDENTIAL | SECRET | GIVES_WAY },
	{ "OS_AUTH_TOKEN", "auth_token", CREDENTIAL | SECRET },
	{ "OS_APPLICATION_CREDENTIAL_ID", "application_credential_id", NAMED | CREDENTIAL },
	{ "OS_APPLICATION_CREDENTIAL_NAME", "application_credential_name", NAMED | CREDENTIAL },
	{ "OS_APPLICATION_CREDENTIAL_SECRET", "application_credential_secret",
	  NAMED | CREDENTIAL | SECRET },
	{ "OS_PROJECT_NAME", "project_name", NAMED },
	{ "OS_PROJECT_ID", "project_id", NAMED },
	{ "OS_TENANT_NAME", "tenant_name", NAMED },
	{ "OS_TENANT_ID", "tenant_id", NAMED },
	{ "OS_PROJECT_DOMAIN_NAME", "project_domain_name", NAMED },
	{ "OS_PROJECT_DOMAIN_ID", "project_domain_id", NAMED },
	{ "OS_DOMAIN_NAME", "domain_name", NAMED },
	{ "OS_DOMAIN_ID", "domain_id", NAMED },
	{ "OS_DEFAULT_DOMAIN", "default_domain", NAMED },
	{ "OS_DEFAULT_DOMAIN_NAME", "default_domain_name", NAMED },
	{ "OS_DEFAULT_DOMAIN_ID", "default_domain_id", NAMED },
	{ "OS_TRUST_ID", "trust_id", NAMED },
	{ "OS_SYSTEM_SCOPE", "system_scope", NAMED },
	{ "OS_REGION_NAME", "region_name", NAMED },
	{ "OS_INTERFACE", "interface", NAMED },
	{ "OS_ENDPOINT_TYPE", "endpoint_type", 0 },
	{ "OS_IMAGE_ENDPOINT_OVERRIDE", "image_endpoint_override", 0 },
	{ "OS_ENDPOINT_OVERRIDE", "image_endpoint", 0 },
	{ "OS_CACERT", "cacert", NAMED },
	{ "OS_CERT", "cert", NAMED },
	{ "OS_KEY", "key", NAMED },
	{ "OS_INSECURE", "insecure", 0 },
	{ "OS_IDENTITY_API_VERSION", "identity_api_version", NAMED },
	{ "OS_CLIENT_SECRET", NULL, SECRET },
	{ "OS_ACCESS_TOKEN", NULL, SECRET },
	{ "OS_PASSCODE", NULL, SECRET },
};

/* *out stays NULL when it is unset or empty. */
static int value_of(struct cloud_tree *tree, const struct variable *v, struct cloud_node **out,
		    struct err *err)
{
	const struct cloud_node place = { .file = v->name };
	autosecret char *secret = v->flags & SECRET ? secret_take_env(v->name) : NULL;
	const char *value = v->flags & SECRET ? secret : getenv(v->name);

	if (!v->key || !value || !*value)
		return 0;
	*out = cloud_node_new(tree, CLOUD_TEXT, value, &place, err);
	return *out ? 0 : -1;
}

static int take(struct cloud_tree *tree, const struct variable *v, struct cloud_node *all,
		struct cloud_node *named, struct err *err)
{
	const struct cloud_node place = { .file = v->name };
	struct cloud_node *value = NULL, *key;

	if (value_of(tree, v, &value, err) < 0)
		return -1;
	if (!value)
		return 0;
	key = cloud_node_new(tree, CLOUD_TEXT, v->key, &place, err);
	if (!key || cloud_node_add(tree, all, key, value, err) < 0)
		return -1;
	if (v->flags & NAMED && cloud_node_add(tree, named, key, value, err) < 0)
		return -1;
	return 0;
}

static unsigned flags_of(const struct cloud_pair *pair)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		if (str_equal(pair->value->file, variables[i].name))
			return variables[i].flags;
	return 0;
}

int cloud_env_read(struct cloud_tree *tree, struct cloud_env *out, struct err *err)
{
	const struct cloud_node place = { .file = "the environment" };
	struct cloud_node *all = cloud_node_new(tree, CLOUD_MAP, NULL, &place, err);
	struct cloud_node *named = cloud_node_new(tree, CLOUD_MAP, NULL, &place, err);
	const struct cloud_node *region;

	*out = (struct cloud_env){ .all = all, .named = named };
	if (!all || !named)
		return -1;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		if (take(tree, &variables[i], all, named, err) < 0)
			return -1;
	for (size_t i = 0; i < all->count; i++)
		out->has_credentials |= (flags_of(&all->pairs[i]) & CREDENTIAL) != 0;
	region = cloud_node_member(all, "region_name");
	out->region = region ? region->text : NULL;
	return 0;
}

static bool is_replaced(const struct cloud_pair *pair, const struct cloud_node *settings)
{
	const struct cloud_node *auth = cloud_node_setting(settings, "auth");
	const struct cloud_node *in_auth = cloud_node_setting(auth, pair->key->text);
	const struct cloud_node *old = cloud_node_setting(settings, pair->key->text);
	unsigned flags = flags_of(pair);

	old = old ? old : in_auth;
	if (!(flags & CREDENTIAL) || !old || (flags & GIVES_WAY && in_auth))
		return false;
	return !old->text || !str_equal(old->text, pair->value->text);
}

char *cloud_env_replaced(const struct cloud_env *env, const struct cloud_node *settings)
{
	char *names = strdup("");

	for (size_t i = 0; i < env->named->count && names; i++) {
		const struct cloud_pair *pair = &env->named->pairs[i];
		char *longer;

		if (!is_replaced(pair, settings))
			continue;
		longer = str_format("%s%s%s", names, *names ? ", " : "", pair->value->file);
		free(names);
		names = longer;
	}
	return names;
}
