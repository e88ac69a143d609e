// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_files.h"

#include "base/array.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/cloud_region.h"
#include "dest/cloud_yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>

#define FILE_MAX MIB

static const struct cloud_node nowhere = { .file = "clouds.yaml" };

/* --- where ------------------------------------------------------------------------ */

struct places {
	char **dirs;
	size_t len, cap;
};

static void places_free(struct places *places)
{
	for (size_t i = 0; i < places->len; i++)
		free(places->dirs[i]);
	free(places->dirs);
}

static int place_add(struct places *places, char *dir, struct err *err)
{
	if (!dir || !array_room(places->dirs, places->cap, places->len + 1)) {
		free(dir);
		return err_nomem(err);
	}
	for (size_t i = 0; i < places->len; i++) {
		if (str_equal(places->dirs[i], dir)) {
			free(dir);
			return 0;
		}
	}
	places->dirs[places->len++] = dir;
	return 0;
}

static const char *home(void)
{
	const char *dir = getenv("HOME");
	const struct passwd *user = dir && *dir ? NULL : getpwuid(getuid());

	return user ? user->pw_dir : dir && *dir ? dir : "/";
}

/* XDG Base Directory Specification, 0.8 */
static int add_site_dirs(struct places *places, struct err *err)
{
	const char *dirs = getenv("XDG_CONFIG_DIRS");

	for (dirs = dirs && *dirs ? dirs : "/etc/xdg"; *dirs;) {
		size_t n = strcspn(dirs, ":");

		if (n > 0 && place_add(places, str_format("%.*s/openstack", (int)n, dirs), err) < 0)
			return -1;
		dirs += n + (dirs[n] == ':');
	}
	return 0;
}

static int places_list(struct places *places, struct err *err)
{
	const char *user = getenv("XDG_CONFIG_HOME");

	if (place_add(places, strdup("."), err) < 0)
		return -1;
	if (user && *user && place_add(places, str_format("%s/openstack", user), err) < 0)
		return -1;
	if (place_add(places, str_format("%s/.config/openstack", home()), err) < 0)
		return -1;
	if (add_site_dirs(places, err) < 0)
		return -1;
	return place_add(places, strdup("/etc/openstack"), err);
}

/* --- reading ---------------------------------------------------------------------- */

/* A file name lives in the tree, as the text of a node. */
static const char *name_kept(struct cloud_tree *tree, const char *path, struct err *err)
{
	const struct cloud_node *node = cloud_node_new(tree, CLOUD_TEXT, path, &nowhere, err);

	return node ? node->text : NULL;
}

static const struct cloud_node *parse(struct cloud_tree *tree, const char *path, const char *text,
				      size_t len, struct err *err)
{
	const char *file = name_kept(tree, path, err);
	const struct cloud_node *root = file ? cloud_yaml_read(tree, file, text, len, err) : NULL;

	if (root && root->kind != CLOUD_MAP && root->kind != CLOUD_NULL) {
		err_set(err, ERR_REFUSED, "%s: expected a map", cloud_node_place(root).text);
		return NULL;
	}
	return root;
}

/* 1 and the file's root, 0 when it cannot be read, -1. */
static int read_file(struct cloud_tree *tree, const char *path, const struct cloud_node **root,
		     struct err *err)
{
	size_t len = 0;
	autofree char *text = io_read_file(AT_FDCWD, path, FILE_MAX, &len, err);

	if (!text && err->sys_errno == 0)
		return -1;
	if (!text) {
		if (err->sys_errno != ENOENT && err->sys_errno != ENOTDIR)
			log_debug("%s", err->text);
		return 0;
	}
	*root = parse(tree, path, text, len, err);
	explicit_bzero(text, len);
	return *root ? 1 : -1;
}

/* openstacksdk goes on to the usual places, too. */
static int read_named(struct cloud_tree *tree, const char *variable, const struct cloud_node **root,
		      struct err *err)
{
	const char *path = variable ? getenv(variable) : NULL;
	int found = path && *path ? read_file(tree, path, root, err) : 0;

	if (found == 0 && path && *path)
		log_note("%s is passed over: %s", variable, err->text);
	return found;
}

static int read_in(struct cloud_tree *tree, const char *dir, const char *stem,
		   const struct cloud_node **root, struct err *err)
{
	static const char *const suffixes[] = { "yaml", "yml", "json" };
	int found = 0;

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && found == 0; i++) {
		autofree char *path = str_format("%s/%s.%s", dir, stem, suffixes[i]);

		found = path ? read_file(tree, path, root, err) : err_nomem(err);
	}
	return found;
}

/* The first that can be read; *root stays NULL when there is none. */
static int read_first(struct cloud_tree *tree, const char *variable, const char *stem,
		      const struct cloud_node **root, struct err *err)
{
	CLEANUP(places_free) struct places places = { .dirs = NULL };
	struct err why;
	int found;

	if (places_list(&places, err) < 0)
		return -1;
	found = read_named(tree, variable, root, &why);
	for (size_t i = 0; i < places.len && found == 0; i++)
		found = read_in(tree, places.dirs[i], stem, root, &why);
	if (found < 0)
		*err = why;
	return found < 0 ? -1 : 0;
}

static char *joined(const struct places *places)
{
	char *all = strdup("");

	for (size_t i = 0; i < places->len && all; i++) {
		char *longer = str_format("%s%s%s", all, i ? ", " : "", places->dirs[i]);

		free(all);
		all = longer;
	}
	return all;
}

static int describe(struct cloud_files *out, const struct cloud_node *config,
		    const struct cloud_node *secure, struct err *err)
{
	CLEANUP(places_free) struct places places = { .dirs = NULL };

	if (places_list(&places, err) < 0)
		return -1;
	out->searched = joined(&places);
	if (config && secure)
		out->paths = str_format("%s and %s", config->file, secure->file);
	else if (config || secure)
		out->paths = strdup((config ? config : secure)->file);
	if (!out->searched || ((config || secure) && !out->paths))
		return err_nomem(err);
	return 0;
}

int cloud_files_read(struct cloud_tree *tree, struct cloud_files *out, struct err *err)
{
	const struct cloud_node *config = NULL, *secure = NULL, *all;

	*out = (struct cloud_files){ .clouds = NULL };
	if (read_first(tree, "OS_CLIENT_CONFIG_FILE", "clouds", &config, err) < 0 ||
	    read_first(tree, "OS_CLIENT_SECURE_FILE", "secure", &secure, err) < 0)
		return -1;
	all = cloud_node_merged(tree, config, secure, CLOUD_MERGE_EVERYWHERE, err);
	if (!all)
		return -1;
	out->clouds = cloud_node_member(all, "clouds");
	if (out->clouds && out->clouds->kind == CLOUD_NULL)
		out->clouds = NULL;
	if (out->clouds && out->clouds->kind != CLOUD_MAP)
		return err_set(err, ERR_REFUSED, "%s: clouds must be a map",
			       cloud_node_place(out->clouds).text);
	return describe(out, config, secure, err);
}

void cloud_files_free(struct cloud_files *files)
{
	free(files->paths);
	free(files->searched);
	*files = (struct cloud_files){ .clouds = NULL };
}

const char *cloud_files_single(const struct cloud_files *files)
{
	bool single = files->clouds && files->clouds->count == 1;

	return single ? files->clouds->pairs[0].key->text : NULL;
}

/* --- one cloud -------------------------------------------------------------------- */

static int no_such_cloud(const struct cloud_files *files, const char *name, struct err *err)
{
	autofree char *names = cloud_node_names(files->clouds);

	if (!names)
		return err_nomem(err);
	if (!files->paths)
		return err_set(err, ERR_USAGE,
			       "there is no cloud \"%s\": no clouds.yaml was found in %s", name,
			       files->searched);
	return err_set(err, ERR_USAGE, "there is no cloud \"%s\": %s has %s", name, files->paths,
		       *names ? names : "none");
}

static int no_such_profile(const struct cloud_node *profile, const struct cloud_node *known,
			   struct err *err)
{
	autofree char *names = cloud_node_names(known);

	if (!names)
		return err_nomem(err);
	return err_set(err, ERR_REFUSED,
		       "%s: there is no profile \"%s\"; %s%s%s, and ccsnap has none built in: "
		       "write auth_url and region_name into the cloud's entry",
		       cloud_node_place(profile).text, profile->text,
		       known ? known->file : "there is no clouds-public.yaml", known ? " has " : "",
		       names);
}

/* As openstacksdk, we go on without it when the entry can stand alone. */
static int profile_missing(const struct cloud_node *entry, const struct cloud_node *profile,
			   const struct cloud_node *known, struct err *err)
{
	struct err why;

	no_such_profile(profile, known, &why);
	if (!cloud_node_setting(cloud_node_setting(entry, "auth"), "auth_url") &&
	    !cloud_node_setting(entry, "auth_url")) {
		*err = why;
		return -1;
	}
	log_note("%s", why.text);
	return 0;
}

/* *out stays NULL when the entry has no profile ("cloud" is its old name). */
static int find_profile(struct cloud_tree *tree, const struct cloud_node *entry,
			const struct cloud_node **out, struct err *err)
{
	const struct cloud_node *profile = cloud_node_setting(entry, "profile");
	const struct cloud_node *root = NULL, *known;

	profile = profile ? profile : cloud_node_setting(entry, "cloud");
	if (!profile)
		return 0;
	if (profile->kind != CLOUD_TEXT)
		return err_set(err, ERR_REFUSED, "%s: profile must be a text",
			       cloud_node_place(profile).text);
	if (read_first(tree, NULL, "clouds-public", &root, err) < 0)
		return -1;
	known = root ? cloud_node_member(root, "public-clouds") : NULL;
	*out = cloud_node_member(known, profile->text);
	return *out ? 0 : profile_missing(entry, profile, known, err);
}

/* openstacksdk looks at the profile's regions only where the entry has none. */
static const struct cloud_node *regions_of(const struct cloud_node *entry,
					   const struct cloud_node *profile)
{
	const struct cloud_node *from[] = { entry, profile };

	for (size_t i = 0; i < 2; i++) {
		const struct cloud_node *list = cloud_node_setting(from[i], "regions");

		list = list ? list : cloud_node_setting(from[i], "region_name");
		if (list)
			return list;
	}
	return NULL;
}

struct cloud_node *cloud_files_settings(struct cloud_tree *tree, const struct cloud_files *files,
					const char *name, const char *region, struct err *err)
{
	const struct cloud_node *entry = cloud_node_member(files->clouds, name), *profile = NULL;
	struct cloud_node *settings;

	if (!entry) {
		no_such_cloud(files, name, err);
		return NULL;
	}
	if (entry->kind != CLOUD_MAP) {
		err_set(err, ERR_REFUSED, "%s: cloud \"%s\" must be a map",
			cloud_node_place(entry).text, name);
		return NULL;
	}
	if (find_profile(tree, entry, &profile, err) < 0)
		return NULL;
	settings = cloud_node_merged(tree, profile, entry, CLOUD_MERGE_AUTH, err);
	if (!settings)
		return NULL;
	return cloud_region_apply(tree, settings, regions_of(entry, profile), region, name, err);
}
