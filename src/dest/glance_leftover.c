// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

/* Deleted now, it would leave its data in the service's store, where nobody finds them.
 * Once its task has failed, nothing comes any more.
 */
static bool is_being_imported(const struct glance_leftover *l, const struct service_image *image)
{
	autofree char *failure = NULL;

	if (!str_equal(image->status, "importing"))
		return false;
	failure = service_import_failure(l->session, l->id);
	return !failure;
}

/* A protection is our own: it was the last step of a run that did not get further. */
static int delete_it(const struct glance_leftover *l, const struct service_image *image,
		     struct err *err)
{
	if (image->is_protected && service_unprotect(l->session, l->id, l->when, err) < 0)
		return -1;
	return service_delete(l->session, l->id, l->when, err) < 0 ? -1 : 1;
}

/* As glance_delete_leftover; *patience: that something else may come of it (seconds). */
static int try_once(const struct glance_leftover *l, unsigned *patience, struct err *err)
{
	struct service_image image = { 0 };
	int rc = service_look(l->session, l->id, l->when, &image, err);

	*patience = 0;
	if (rc == 0) {
		*patience = l->come_seconds;
	} else if (rc == 1 && is_being_imported(l, &image)) {
		*patience = l->import_seconds;
		rc = err_set(err, ERR_FAILED, "it is still being imported");
	} else if (rc == 1) {
		rc = delete_it(l, &image, err);
	}
	service_image_free(&image);
	return rc;
}

int glance_delete_leftover(const struct glance_leftover *l, struct err *err)
{
	uint64_t start = clock_ns();

	for (;;) {
		unsigned patience;
		int rc = try_once(l, &patience, err);

		if (clock_seconds_since(start) >= patience)
			return rc;
		clock_sleep_ms(1000);
	}
}
