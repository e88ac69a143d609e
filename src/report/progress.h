/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PROGRESS_H
#define CCSNAP_PROGRESS_H

#include <stdint.h>

/* How far it is: a bar on a terminal (stderr), one JSON object a line
 * (stdout), or nothing.  Called from one thread; warnings of any thread make
 * the bar step aside through base/log.h.
 */
enum progress_style { PROGRESS_NONE, PROGRESS_BAR, PROGRESS_JSON };

struct progress;

/* Never fails: without memory there is no progress to see (NULL), and every
 * function here takes NULL.
 */
struct progress *progress_start(enum progress_style style);

/* A new phase of total bytes begins; ends the one before. */
void progress_phase(struct progress *p, const char *phase, uint64_t total);

/* Cheap enough for every chunk; shows something new a few times a second.
 * Takes a void pointer to serve as a callback.
 */
void progress_update(void *progress, uint64_t done);

/* Wipe the bar and free. */
void progress_stop(struct progress *p);

/* "auto": the bar when stderr is a terminal that can, else nothing.  -1 for
 * a word that is none of auto, bar, json, none.
 */
int progress_style_parse(const char *word, enum progress_style *style);

#endif
