// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_config.h"

#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "dest/cloud_env.h"
#include "dest/cloud_files.h"
#include "dest/cloud_metadata.h"
#include "dest/cloud_settings.h"
#include "dest/http.h"

#include <string.h>

static int keep_origin(struct cloud_config *out, char *origin, struct err *err)
{
	out->origin = origin;
	return origin ? 0 : err_nomem(err);
}

/* --- a cloud by name -------------------------------------------------------------- */

/* Also a surprise for those who know the openstack client, which is why we tell. */
static int note_replaced(const struct cloud_env *env, const struct cloud_node *settings,
			 const char *origin, struct err *err)
{
	autofree char *names = cloud_env_replaced(env, settings);

	if (!names)
		return err_nomem(err);
	if (*names)
		log_note("%s of the environment replaces what %s says", names, origin);
	return 0;
}

static int load_named(struct cloud_tree *tree, const struct cloud_files *files,
		      const struct cloud_env *env, const char *name, struct cloud_config *out,
		      struct err *err)
{
	struct cloud_node *settings;

	settings = cloud_files_settings(tree, files, name, env->region, err);
	if (!settings ||
	    keep_origin(out, str_format("cloud %s in %s", name, files->paths), err) < 0 ||
	    note_replaced(env, settings, out->origin, err) < 0)
		return -1;
	return cloud_settings_apply(tree, settings, env, CLOUD_FROM_FILES, out, err);
}

/* --- the environment -------------------------------------------------------------- */

static int load_env(struct cloud_tree *tree, const struct cloud_env *env, struct cloud_config *out,
		    struct err *err)
{
	if (keep_origin(out, strdup("the environment"), err) < 0)
		return -1;
	return cloud_settings_apply(tree, NULL, env, CLOUD_FROM_ENVIRONMENT, out, err);
}

/* --- the metadata service --------------------------------------------------------- */

static int nothing_given(const struct cloud_files *files, const struct err *why, struct err *err)
{
	autofree char *names = cloud_node_names(files->clouds), *choice = NULL;

	if (names && *names)
		choice = str_format("%s has the clouds %s", files->paths, names);
	else
		choice = str_format("no clouds.yaml has one in %s", files->searched);
	if (!names || !choice)
		return err_nomem(err);
	return err_set(err, ERR_USAGE,
		       "no credentials for the image service: set OS_AUTH_URL and the other OS_* "
		       "variables; or name a cloud by --os-cloud or OS_CLOUD (%s); or run on an "
		       "instance whose metadata service gives a token (%s)",
		       choice, why->text);
}

static int add(struct cloud_tree *tree, struct cloud_node *map, const char *key, const char *value,
	       struct err *err)
{
	struct cloud_node *k, *v;

	if (!value)
		return 0;
	k = cloud_node_new(tree, CLOUD_TEXT, key, map, err);
	v = k ? cloud_node_new(tree, CLOUD_TEXT, value, map, err) : NULL;
	return v ? cloud_node_add(tree, map, k, v, err) : -1;
}

static int use_metadata(struct cloud_tree *tree, struct cloud_metadata *metadata,
			const struct cloud_env *env, struct cloud_config *out, struct err *err)
{
	const struct cloud_node place = { .file = "the metadata service" };
	struct cloud_node *settings = cloud_node_new(tree, CLOUD_MAP, NULL, &place, err);

	if (!settings || add(tree, settings, "auth_type", "token", err) < 0 ||
	    add(tree, settings, "auth_url", metadata->auth_url, err) < 0 ||
	    add(tree, settings, "token", metadata->token, err) < 0 ||
	    add(tree, settings, "project_id", metadata->project_id, err) < 0 ||
	    add(tree, settings, "region_name", metadata->region, err) < 0 ||
	    keep_origin(out, str_format("the metadata service (%s)", metadata->url), err) < 0)
		return -1;
	out->from_metadata = true;
	return cloud_settings_apply(tree, settings, env, CLOUD_FROM_METADATA, out, err);
}

static int load_metadata(struct cloud_tree *tree, const struct cloud_files *files,
			 const struct cloud_env *env, struct cloud_config *out, struct err *err)
{
	autocloudmetadata struct cloud_metadata metadata;
	/* what is not there at once is not there */
	const struct http_request like = { .tries = 2 };
	struct err why = { .kind = ERR_NONE };
	int found = cloud_metadata_read(&metadata, &like, &why);

	if (found == 0)
		return nothing_given(files, &why, err);
	if (found < 0) {
		*err = why;
		return -1;
	}
	return use_metadata(tree, &metadata, env, out, err);
}

int cloud_config_refresh(struct cloud_config *cfg, const struct http_request *like, struct err *err)
{
	autocloudmetadata struct cloud_metadata metadata;
	int found = cloud_metadata_read(&metadata, like, err);

	if (found < 1)
		return found < 0 ? -1 : err_context(err, "there is no other token");
	secret_free(cfg->secret);
	cfg->secret = steal(&metadata.token);
	return 0;
}

/* --- all of them ------------------------------------------------------------------ */

static const char *set_in_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int load(struct cloud_tree *tree, const char *name, struct cloud_config *out,
		struct err *err)
{
	autocloudfiles struct cloud_files files = { .clouds = NULL };
	struct cloud_env env;

	if (cloud_env_read(tree, &env, err) < 0)
		return -1;
	name = name ? name : set_in_env("OS_CLOUD");
	if (!name && env.has_credentials)
		return load_env(tree, &env, out, err);
	if (cloud_files_read(tree, &files, err) < 0)
		return -1;
	name = name ? name : cloud_files_single(&files);
	if (name)
		return load_named(tree, &files, &env, name, out, err);
	return load_metadata(tree, &files, &env, out, err);
}

int cloud_config_load(const char *name, struct cloud_config *out, struct err *err)
{
	autocloudtree struct cloud_tree tree = { .nodes = NULL };

	memset(out, 0, sizeof *out);
	if (load(&tree, name, out, err) == 0)
		return 0;
	cloud_config_free(out);
	return -1;
}
