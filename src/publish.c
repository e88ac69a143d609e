// SPDX-License-Identifier: Apache-2.0
#include "publish.h"

#include "dest/dest.h"
#include "report/report.h"

static const char *const cleanup_names[] = {
	[CLEANUP_NOTHING] = NULL,
	[CLEANUP_DONE] = "done",
	[CLEANUP_FAILED] = "failed",
	[CLEANUP_KEPT] = "kept",
};

int publish_image(struct dest *dest, struct image_info *info, struct report *r, struct err *err)
{
	const struct receipt *receipt = &dest->receipt;
	int done = dest->ops->publish(dest, info, err);

	r->upload.arrived = done == 0;
	r->upload.image_id = receipt->image_id;
	r->upload.attempts = receipt->attempts;
	r->upload.sent_bytes = receipt->sent_bytes;
	r->upload.verified = receipt->verified;
	r->upload.verified_by = receipt->verified_by;
	r->upload.cleanup = cleanup_names[receipt->cleanup];
	if (done == 0 || receipt->is_kept)
		r->image.path = dest->path;
	return done;
}
