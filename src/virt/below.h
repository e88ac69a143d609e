/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_BELOW_H
#define CCSNAP_BELOW_H

/* Does the file path serve as a layer below the qcow2 image top?  For a domain that is off, whose
 * XML tells the topmost file only.  The headers are read, to compare names, by nothing but
 * pread; nothing in them is believed further.  1, 0, -1: that cannot be told, as when their
 * storage hangs; no signal cuts it short.
 */
struct err;

int below_has(const char *top, const char *path, struct err *err);

/* One layer down, for who cannot be held up by it: *at (malloc) becomes the path of the file below
 * it; NULL: there is none. */
int below_step(char **at, struct err *err);

#endif
