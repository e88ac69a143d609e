/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_UPLOADS_INNER_H
#define CCSNAP_UPLOADS_INNER_H

#include "base/uuid.h"
#include "dest/uploads.h"

#include <stddef.h>

/* A note of this run: the descriptor holds its lock. */
struct held_note {
	struct uuid_text id;
	int fd;
};

struct uploads {
	char *folder;
	int dirfd;
	struct uuid_text host;
	struct held_note *notes;
	size_t count, cap;
};

#endif
