/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FORWARD_URI_H
#define CCSNAP_FORWARD_URI_H

#include <stdbool.h>

struct err;

/* What a libvirt URI with the ssh transport says about ssh. */
struct ssh_target {
	char *host;	   /* never NULL */
	char *user, *port; /* NULL: ssh decides */
	char *command, *keyfile;
	bool skips_host_key_check; /* no_verify */
};

/* ERR_REFUSED for what is no such URI, or could be taken for an option of ssh. */
int ssh_target_parse(const char *uri, struct ssh_target *out, struct err *err);
void ssh_target_free(struct ssh_target *target);

#endif
