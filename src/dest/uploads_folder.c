// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"
#include "dest/uploads.h"

#include <string.h>

char *uploads_default_folder(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return strdup("/var/lib/ccsnap/uploads");
	/* the XDG rules have relative paths ignored */
	if (state && state[0] == '/')
		return str_format("%s/ccsnap/uploads", state);
	if (home && home[0] == '/')
		return str_format("%s/.local/state/ccsnap/uploads", home);
	return NULL;
}
