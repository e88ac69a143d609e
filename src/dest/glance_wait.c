// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"

#include <string.h>

#define SLICE_MS     100 /* between looks for a signal */
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 10000

/* What becomes of an image in that status; NULL: it may still be active. */
static const struct ending {
	const char *status, *meaning;
} endings[] = {
	{ "queued", NULL },
	{ "saving", NULL },
	{ "uploading", NULL },
	{ "importing", NULL },
	{ "killed", "the image service could not store it (killed)" },
	{ "deleted", "somebody has deleted it meanwhile" },
	{ "pending_delete", "somebody has deleted it meanwhile" },
	{ "deactivated", "it has been deactivated at the image service" },
};

static int say_ended(const struct glance_wait *w, const char *why, struct err *err)
{
	return err_set(err, ERR_FAILED, "image %s: %s", w->id, why);
}

/* An import that fails leaves the image in any of the states before it, and its reason
 * with its task.
 */
static int look_at_import(const struct glance_wait *w, const char *status, struct err *err)
{
	autofree char *why = service_import_failure(w->session, w->id);

	if (why)
		return err_set(err, ERR_FAILED, "image %s: its import failed: %s", w->id, why);
	if (str_equal(status, "queued"))
		return say_ended(w, "its import failed, and the image service does not say why",
				 err);
	return 0;
}

/* 1: active, 0: not yet, -1. */
static int judge(const struct glance_wait *w, const char *status, struct err *err)
{
	if (str_equal(status, "active"))
		return 1;
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		if (!str_equal(endings[i].status, status))
			continue;
		if (endings[i].meaning)
			return say_ended(w, endings[i].meaning, err);
		return w->way == SERVICE_STAGE ? look_at_import(w, status, err) : 0;
	}
	return err_set(err, ERR_FAILED, "image %s has the status \"%s\", which is not known here",
		       w->id, status);
}

/* As judge.  The service not answering for a while is no end. */
static int ask(const struct glance_wait *w, struct service_image *out, struct err *err)
{
	int found;

	service_image_free(out);
	found = service_get(w->session, w->id, out, err);
	if (found < 0 && err->kind == ERR_FAILED) {
		log_debug("still waiting for image %s: %s", w->id, err->text);
		return 0;
	}
	if (found == 0)
		return say_ended(w, "somebody has deleted it meanwhile", err);
	return found < 0 ? -1 : judge(w, out->status, err);
}

static int pause_ms(unsigned ms, struct err *err)
{
	for (unsigned done = 0; done < ms; done += SLICE_MS) {
		if (interrupt_check(err) < 0)
			return -1;
		clock_sleep_ms(SLICE_MS);
	}
	return interrupt_check(err);
}

int glance_wait(const struct glance_wait *w, struct service_image *out, struct err *err)
{
	uint64_t start = clock_ns();
	unsigned pause = PAUSE_MIN_MS;

	for (;;) {
		int done = ask(w, out, err);

		if (done != 0)
			return done;
		if (clock_seconds_since(start) >= w->seconds)
			break;
		if (pause_ms(pause, err) < 0)
			return -1;
		pause = MIN(pause * 2, PAUSE_MAX_MS);
	}
	err_set(err, ERR_FAILED,
		"image %s is still not active (%s) %u seconds after all of it was sent; a longer "
		"--upload-stall-timeout may help",
		w->id, out->status ? out->status : "the image service does not answer", w->seconds);
	return 0;
}
