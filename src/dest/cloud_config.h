/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_CONFIG_H
#define CCSNAP_CLOUD_CONFIG_H

#include <stdbool.h>

/* Who we are to a cloud, and where it is: from clouds.yaml, from OS_* in the
 * environment, or from the instance's metadata service.
 *
 * A cloud that is named (--to=glance:NAME, --os-cloud, OS_CLOUD) is looked up as
 * openstacksdk does it: the first clouds.yaml (or .yml, .json) of
 * OS_CLIENT_CONFIG_FILE, ".", openstack/ in $XDG_CONFIG_HOME, ~/.config and
 * $XDG_CONFIG_DIRS (/etc/xdg), /etc/openstack; clouds-public.yaml for its profile;
 * secure.yaml (OS_CLIENT_SECURE_FILE) on top; then the variables that the openstack
 * client lets win (see cloud_env.h).  Without a name: credentials in OS_* of the
 * environment; a clouds.yaml with a single cloud; the metadata service, to which
 * CCSNAP_METADATA_URL may give another address.  Scalars stay the strings that they
 * are in the file; only null, ~ and nothing, without quotes, are no value.
 */
struct err;
struct http_request;

enum cloud_auth { CLOUD_PASSWORD, CLOUD_TOKEN, CLOUD_APPLICATION_CREDENTIAL };

/* All strings from malloc; NULL: not given. */
struct cloud_config {
	char *origin; /* for messages: "cloud lab in /etc/openstack/clouds.yaml" */
	enum cloud_auth auth;
	char *auth_url;

	char *user_name, *user_id, *user_domain_name, *user_domain_id;
	char *application_credential_id, *application_credential_name;
	char *secret; /* password, token or application credential secret (base/secret.h) */

	/* The scope; an application credential brings its own. */
	char *project_name, *project_id, *project_domain_name, *project_domain_id;
	char *domain_name, *domain_id;

	char *region_name;
	char *interface;      /* "public", "internal" or "admin" */
	char *image_endpoint; /* instead of the catalog's */

	char *cacert, *cert, *key;
	bool insecure;

	bool from_metadata;
};

/* name: NULL when none was given.  -1: ERR_USAGE (nothing or something impossible
 * was asked for) or ERR_REFUSED (what the files hold does not do); the message
 * says which file, line or variable.  The environment's secrets are taken out of it
 * (secret_take_env), so that this works once.
 */
int cloud_config_load(const char *name, struct cloud_config *out, struct err *err);

/* With from_metadata: a fresh token where we got the old one.  like: how to ask. */
int cloud_config_refresh(struct cloud_config *cfg, const struct http_request *like,
			 struct err *err);

void cloud_config_free(struct cloud_config *cfg);

#endif
