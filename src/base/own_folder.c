// SPDX-License-Identifier: Apache-2.0
#include "base/own_folder.h"

#include "base/str.h"

#include <stdlib.h>
#include <unistd.h>

char *own_folder(const char *variable, const char *in_home, const char *name)
{
	const char *dir = getenv(variable), *home = getenv("HOME");

	if (geteuid() == 0)
		return str_format("/var/lib/ccsnap/%s", name);
	/* the XDG rules have relative paths ignored */
	if (dir && dir[0] == '/')
		return str_format("%s/ccsnap/%s", dir, name);
	if (home && home[0] == '/')
		return str_format("%s/%s/ccsnap/%s", home, in_home, name);
	return NULL;
}
