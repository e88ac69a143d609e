// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* chmod, because the umask may take away what others need. */
static int make_one(const char *path, mode_t mode, struct err *err)
{
	if (mkdir(path, mode) == 0)
		return chmod(path, mode) == 0
			       ? 0
			       : err_errno(err, ERR_REFUSED, "cannot set the mode of %s", path);
	return errno == EEXIST ? 0
			       : err_errno(err, ERR_REFUSED, "cannot create the folder %s", path);
}

int folder_make(const char *path, mode_t mode, struct err *err)
{
	autofree char *part = strdup(path);

	if (!part)
		return err_nomem(err);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (make_one(part, mode, err) < 0)
			return -1;
		*slash = '/';
	}
	return make_one(part, mode, err);
}
