/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_IDENTITY_INNER_H
#define CCSNAP_SYSTEM_IDENTITY_INNER_H

#include <stdbool.h>

/* Shared by the operations of identity.h. */
struct edit;
struct err;

enum identity_action {
	REMOVE,		/* whatever it is */
	REMOVE_FILES,	/* but no directories */
	REMOVE_CONTENT, /* of a directory */
};

/* A table of them ends with a NULL pattern (edit_glob's; without * ? [ a path
 * whose links are followed).
 */
struct identity_removal {
	enum identity_action action;
	const char *pattern, *why;
};

int identity_remove(struct edit *e, const struct identity_removal *table, struct err *err);

/* For each path of the pattern. */
int identity_each(struct edit *e, const char *pattern,
		  int (*each)(struct edit *e, const char *path, void *ctx, struct err *err),
		  void *ctx, struct err *err);

/* A configuration file's text (malloc), NULL when it is not there or cannot be
 * read: what depends on it is decided as if it were not there.
 */
char *identity_text(struct edit *e, const char *path);

/* Does a line that is no comment have the word in it? */
bool identity_mentions(const char *text, const char *word);

bool identity_matches(const struct edit *e, const char *pattern);

/* Does boot configuration have the kernel argument?  A name that ends with "=" stands for
 * all that begin so.
 */
bool identity_has_argument(struct edit *e, const char *name);

/* Leave it out of each file of boot configuration, entered as edited with why. */
int identity_remove_argument(struct edit *e, const char *name, const char *why, struct err *err);

/* ACCOUNT_KEPT. */
void identity_keep(struct edit *e, const char *path, const char *why);

/* Is the unit a link to /dev/null in etc/systemd/system? */
bool identity_is_masked(const struct edit *e, const char *unit);

/* What cloud-init will do at the first boot of an instance. */
struct identity_cloud {
	const char *idle; /* why it will not run; NULL: it will */
	bool makes_host_keys;
	bool makes_network;
};
struct identity_cloud identity_cloud_look(struct edit *e);

/* What stays although it identifies the machine. */
void identity_tell_storage(struct edit *e);

int identity_machine_id(struct edit *e, struct err *err);
int identity_ssh_hostkeys(struct edit *e, struct err *err);
int identity_udev_net(struct edit *e, struct err *err);
int identity_net_hwaddr(struct edit *e, struct err *err);
int identity_net_nmconn(struct edit *e, struct err *err);
int identity_net_cloud(struct edit *e, struct err *err);

#endif
