// SPDX-License-Identifier: Apache-2.0
#include "base/own_folder.h"
#include "dest/uploads.h"

char *uploads_default_folder(void)
{
	return own_folder("XDG_STATE_HOME", ".local/state", "uploads");
}
