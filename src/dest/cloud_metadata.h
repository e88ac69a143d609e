/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_METADATA_H
#define CCSNAP_CLOUD_METADATA_H

#include "base/cleanup.h"

/* What the metadata service of a Chameleon instance says (as its cc-snapshot script uses
 * it): member "chameleon" of vendor_data2.json, or vendor_data.json.
 */
struct err;
struct http_request;

#define CLOUD_METADATA_VARIABLE "CCSNAP_METADATA_URL" /* instead of the usual address */

/* Strings from malloc; NULL: not told. */
struct cloud_metadata {
	char *url; /* of the file it is from */
	char *region, *project_id;
	char *auth_url; /* never NULL */
	char *token;	/* never NULL; a secret */
};

/* 1; 0 when there is no such service here (err says why); -1 when there is one that does
 * not do.  like: how often to ask, and whether to go on after a signal.
 */
int cloud_metadata_read(struct cloud_metadata *out, const struct http_request *like,
			struct err *err);
void cloud_metadata_free(struct cloud_metadata *metadata);
#define autocloudmetadata CLEANUP(cloud_metadata_free)

#endif
