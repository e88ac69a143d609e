/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_UPLOADS_H
#define CCSNAP_UPLOADS_H

#include "base/cleanup.h"

#include <stdbool.h>

/* The images that runs on this host have begun to make at image services: a note
 * each, on stable storage before the service hears of the image, and gone when the
 * image is proven or deleted.  A note is locked (flock) as long as its run lives;
 * one without a lock tells of an image that a killed run left behind.
 *
 * In /var/lib/ccsnap/uploads for root, else in $XDG_STATE_HOME/ccsnap/uploads
 * (~/.local/state): one JSON file an image, 0600, named by its id.
 */
struct err;
struct uploads;

struct upload_note {
	const char *image_id;
	const char *endpoint, *project_id; /* whose id it is */
	const char *name;		   /* of the image, for messages */
	bool is_young; /* in a sweep: the service may still be about to make it */
};

/* The folder (malloc), made or not; NULL without a home. */
char *uploads_default_folder(void);

/* Could a note be written there?  Changes nothing. */
int uploads_check(struct err *err);

struct uploads *uploads_open(struct err *err); /* makes the folder */
void uploads_close(struct uploads *u);	       /* NULL is fine; notes stay */

int uploads_begin(struct uploads *u, const struct upload_note *note, struct err *err);
void uploads_end(struct uploads *u, const char *image_id);

/* Call forget for each note of a dead run with that endpoint and project; 0 from it
 * removes the note.  Notes that cannot be read are left, with a warning.
 */
int uploads_sweep(struct uploads *u, const char *endpoint, const char *project_id,
		  int (*forget)(void *ctx, const struct upload_note *note), void *ctx,
		  struct err *err);

/* Hold a name that other runs on this host would take, too, as long as the descriptor is
 * open; key tells the name apart from all others.  Waits so many seconds, then ERR_BUSY.
 */
int uploads_lock_name(struct uploads *u, const char *key, unsigned wait_seconds, int *fd,
		      struct err *err);
void uploads_unlock_name(struct uploads *u, const char *key, int *fd);

CLEANUP_TYPE(struct uploads, uploads, uploads_close)
#define autouploads CLEANUP(uploads_cleanup)

#endif
