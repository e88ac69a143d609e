// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce.h"

#include <stddef.h>

const char *const quiesce_wish_names[] = {
	[QUIESCE_AUTO] = "auto", [QUIESCE_REQUIRE] = "require", [QUIESCE_OFF] = "off", NULL
};
