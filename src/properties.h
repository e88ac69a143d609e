/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PROPERTIES_H
#define CCSNAP_PROPERTIES_H

/* The properties of an image, whatever it goes to: what is known of the system in it
 * (os_distro, os_version, architecture, hw_firmware_type), what ccsnap notes of its own
 * (ccsnap_version, ccsnap_series, ccsnap_source), its provenance, and the user's, each of
 * which replaces one of the same key.
 */
struct err;
struct instance_facts;
struct plan;
struct tree_facts;

/* "KEY=VALUE" strings, ends with NULL (malloc, freed by str_list_free).  tree, instance: NULL
 * where the source is none.  user: plan->properties.
 */
char **properties_of(const struct plan *plan, const struct tree_facts *tree,
		     const struct instance_facts *instance, struct err *err);

/* The same with one more, or another value for a key that is there.  *list is replaced. */
int properties_set(char ***list, const char *key, const char *value, struct err *err);

/* The user's, "KEY=VALUE", ends with NULL or is NULL: each replaces one of the same key,
 * and takes it away when VALUE is empty.  ERR_USAGE for keys that are ccsnap's own.
 */
int properties_set_users(char ***list, char *const *pairs, struct err *err);

/* PROPERTY_SOURCE for a path on this machine: a UUID derived from the machine's id
 * (/etc/machine-id; the host's name without one) and the real path.
 */
struct uuid_text;
int properties_source_id(const char *path, struct uuid_text *out, struct err *err);

/* The same for a domain, wherever it runs: derived from its UUID. */
void properties_domain_id(const char *uuid, struct uuid_text *out);

#endif
