/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_ENV_H
#define CCSNAP_CLOUD_ENV_H

#include "dest/cloud_tree.h"

/* The OS_* variables as settings.  Empty ones are unset.  The secrets among them are
 * taken out of the environment, also those that we have no use for.
 *
 * With a cloud by name, the openstack client looks at its file first and then lets
 * variables win over most of it: OS_REGION_NAME chooses among the regions, and
 * OS_INTERFACE, OS_CACERT, OS_CERT, OS_KEY, OS_AUTH_TYPE, OS_AUTH_URL, OS_USERNAME,
 * OS_USER_ID, OS_PASSWORD and OS_APPLICATION_CREDENTIAL_* replace what is in the file; but
 * a token, project or domain in the file's auth section goes before its variable, and
 * OS_INSECURE, OS_ENDPOINT_TYPE and OS_*_ENDPOINT_OVERRIDE are not looked at.  So do we.
 */
struct cloud_env {
	const struct cloud_node *all;	/* for no cloud by name */
	const struct cloud_node *named; /* to put on top of a cloud by name */
	bool has_credentials;
	const char *region; /* NULL: not set */
};

int cloud_env_read(struct cloud_tree *tree, struct cloud_env *out, struct err *err);

/* The variables that replace credentials of settings, "OS_A, OS_B"; "" for none (malloc). */
char *cloud_env_replaced(const struct cloud_env *env, const struct cloud_node *settings);

#endif
