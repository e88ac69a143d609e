/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GUARD_INNER_H
#define CCSNAP_GUARD_INNER_H

/* What the two sides of the guard have to agree on. */

/* One byte each.  Every word of ours but quit is answered, in order. */
enum guard_word {
	/* ours */
	GUARD_ARM = 'a',
	GUARD_ASK = 'c', /* yes: calm */
	GUARD_DISARM = 'd',
	GUARD_THAW = 't',
	GUARD_QUIT = 'q',

	/* the guard's */
	GUARD_READY = 'r',
	GUARD_REFUSES = 'e', /* why follows, up to the end */
	GUARD_YES = 'y',
	GUARD_NO = 'n',
};

/* The guard's descriptors. */
enum { GUARD_SOCKET = 3, GUARD_RECORD = 4 };

/* Its arguments. */
enum { GUARD_ARG_URI = 1, GUARD_ARG_UUID, GUARD_ARG_SECONDS, GUARD_ARGS };

/* It answers GUARD_THAW at the latest after the freeze's seconds and these, and what is still
 * under way then: some calls of libvirt, each of which the agent's patience ends.
 */
enum { GUARD_THAW_SECONDS = 30, GUARD_ANSWER_SECONDS = 60 };

#endif
