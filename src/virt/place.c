// SPDX-License-Identifier: Apache-2.0
#include "virt/virt_inner.h"

#include "base/size.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* DRIVER[+TRANSPORT]://[USER@][HOST[:PORT]]/... (https://libvirt.org/uri.html).  Without a
 * transport, a host is asked over TLS, and none means a local socket.
 */
struct location {
	char scheme[32];
	bool has_host;
};

static const struct {
	const char *transport;
	enum virt_place place;
} transports[] = {
	{ "unix", VIRT_HERE },
	{ "ssh", VIRT_OVER_SSH },
};

static void parse(const char *uri, struct location *out)
{
	const char *colon = strstr(uri, "://");
	const char *authority = colon ? colon + 3 : "";
	size_t len = colon ? (size_t)(colon - uri) : 0;
	size_t end = strcspn(authority, "/?#");
	const char *at = memrchr(authority, '@', end);
	const char *host = at ? at + 1 : authority;

	snprintf(out->scheme, sizeof out->scheme, "%.*s", (int)MIN(len, sizeof out->scheme), uri);
	out->has_host = host < authority + end && *host != ':';
}

static enum virt_place place_of_transport(const char *transport)
{
	for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
		if (strcasecmp(transport, transports[i].transport) == 0)
			return transports[i].place;
	return VIRT_ELSEWHERE;
}

enum virt_place virt_place_of(const char *uri)
{
	struct location l;
	char *plus;

	parse(uri, &l);
	plus = strchr(l.scheme, '+');
	if (plus)
		*plus = '\0';
	if (strcasecmp(l.scheme, "test") == 0)
		return VIRT_HERE;
	if (plus)
		return place_of_transport(plus + 1);
	return l.has_host || !*l.scheme ? VIRT_ELSEWHERE : VIRT_HERE;
}
