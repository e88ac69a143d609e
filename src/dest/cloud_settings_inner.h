/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_SETTINGS_INNER_H
#define CCSNAP_CLOUD_SETTINGS_INNER_H

#include "base/err.h"
#include "dest/cloud_settings.h"

/* What cloud_settings.c (reads) and cloud_settle.c (completes and checks) share. */

/* The settings as they are merged, and what we are to say of them. */
struct source {
	const struct cloud_node *top, *auth; /* auth: its section of that name, or NULL */
	enum cloud_source kind;
	const char *origin;
};

/* What a wrong value in them is. */
enum err_kind source_blame(const struct source *s);

/* Where both have it: openstacksdk moves names of projects and domains, and tokens, from
 * the top to where the auth section has none; the openstack client then lets what is
 * left at the top win.
 */
enum order { AUTH_FIRST, TOP_FIRST, TOP_ONLY };

#define SPELLINGS_MAX 4

const struct cloud_node *source_find(const struct source *s, const char *key, enum order order);

/* A text, or NULL (*out) where there is none.  keys: the first that is set counts. */
int source_find_text(const struct source *s, const char *const keys[SPELLINGS_MAX],
		     enum order order, const struct cloud_node **out, struct err *err);

/* How to log in with each enum cloud_auth. */
struct login {
	const char *keys[SPELLINGS_MAX]; /* of its secret */
	enum order order;
	const char *variable;
};
extern const struct login cloud_logins[];

/* After all has been read: */
int cloud_settle(const struct source *s, struct cloud_config *cfg, struct err *err);
int cloud_check(const struct source *s, const struct cloud_config *cfg, struct err *err);

#endif
