// SPDX-License-Identifier: Apache-2.0
#include "dest/keystone_inner.h"

#include "base/cleanup.h"
#include "dest/cloud_config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* As the command line client has it, when a name is given without a domain. */
#define DEFAULT_DOMAIN_ID "default"

/* In all below a NULL stands for what cannot be said in JSON (no memory, no UTF-8); what
 * it would have been a part of becomes NULL, too.
 */
static json_t *domain_of(const char *id, const char *name)
{
	if (id || !name)
		return json_pack("{s:s}", "id", id ? id : DEFAULT_DOMAIN_ID);
	return json_pack("{s:s}", "name", name);
}

/* A name alone means nothing: it is one of a domain. */
static json_t *named(const char *id, const char *name, const char *domain_id,
		     const char *domain_name)
{
	if (id || !name)
		return json_pack("{s:s*}", "id", id);
	return json_pack("{s:s, s:o}", "name", name, "domain", domain_of(domain_id, domain_name));
}

static json_t *user_of(const struct cloud_config *cfg)
{
	return named(cfg->user_id, cfg->user_name, cfg->user_domain_id, cfg->user_domain_name);
}

static json_t *password_identity(const struct cloud_config *cfg, json_t *secret)
{
	json_auto_t *user = user_of(cfg);

	if (json_object_set(user, "password", secret) < 0)
		return NULL;
	return json_pack("{s:[s], s:{s:O}}", "methods", "password", "password", "user", user);
}

static json_t *token_identity(const struct cloud_config *cfg, json_t *secret)
{
	(void)cfg;
	return json_pack("{s:[s], s:{s:O}}", "methods", "token", "token", "id", secret);
}

static json_t *application_identity(const struct cloud_config *cfg, json_t *secret)
{
	static const char method[] = "application_credential";

	if (cfg->application_credential_id)
		return json_pack("{s:[s], s:{s:s, s:O}}", "methods", method, method, "id",
				 cfg->application_credential_id, "secret", secret);
	return json_pack("{s:[s], s:{s:s*, s:o, s:O}}", "methods", method, method, "name",
			 cfg->application_credential_name, "user", user_of(cfg), "secret", secret);
}

static json_t *(*const identity_of[])(const struct cloud_config *, json_t *) = {
	[CLOUD_PASSWORD] = password_identity,
	[CLOUD_TOKEN] = token_identity,
	[CLOUD_APPLICATION_CREDENTIAL] = application_identity,
};

static json_t *scope_of(const struct cloud_config *cfg)
{
	if (!cfg->project_id && !cfg->project_name)
		return json_pack("{s:o}", "domain", domain_of(cfg->domain_id, cfg->domain_name));
	return json_pack("{s:o}", "project",
			 named(cfg->project_id, cfg->project_name, cfg->project_domain_id,
			       cfg->project_domain_name));
}

/* An application credential has one of its own, and must not ask for any. */
bool login_has_scope(const struct cloud_config *cfg)
{
	return cfg->auth != CLOUD_APPLICATION_CREDENTIAL &&
	       (cfg->project_id || cfg->project_name || cfg->domain_id || cfg->domain_name);
}

static json_t *body_of(const struct cloud_config *cfg, json_t *secret)
{
	json_auto_t *auth = json_pack("{s:o}", "identity", identity_of[cfg->auth](cfg, secret));

	if (login_has_scope(cfg) && json_object_set_new(auth, "scope", scope_of(cfg)) < 0)
		return NULL;
	return json_pack("{s:O}", "auth", auth);
}

/* Into memory of exactly that size: a buffer that grew would leave pieces behind. */
static char *dump(const json_t *body)
{
	size_t size = body ? json_dumpb(body, NULL, 0, JSON_COMPACT) : 0;
	char *text = size ? calloc(1, size + 1) : NULL;

	if (text)
		json_dumpb(body, text, size, JSON_COMPACT);
	return text;
}

char *login_body(const struct cloud_config *cfg)
{
	json_auto_t *secret = json_string(cfg->secret);
	json_auto_t *body = secret ? body_of(cfg, secret) : NULL;
	char *text = dump(body);

	/* jansson's copy. */
	if (secret)
		explicit_bzero((char *)json_string_value(secret), json_string_length(secret));
	return text;
}

void login_wipe(char *body)
{
	if (body)
		explicit_bzero(body, strlen(body));
	free(body);
}
