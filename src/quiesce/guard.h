/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GUARD_H
#define CCSNAP_GUARD_H

#include "base/cleanup.h"

/* The process that thaws a domain when we cannot: this program started anew
 * (/proc/self/exe), in a session of its own, with its own connection to libvirt, its memory
 * locked where that is allowed, deaf to HUP, INT and QUIT.  It thaws
 *
 *	- when the deadline passes that counts from guard_arm,
 *	- when we die, stop being its parent, or it is told to terminate (SIGTERM),
 *
 * and goes on until the agent says thawed or the domain no longer runs, with new connections
 * when the daemon went away; while we live it then thaws again after each deadline until it is
 * disarmed, or the record no longer says frozen.  When we died, or left it, it then clears all
 * else that the record names (recover.h).  It holds the record's lock as long as it lives, so no
 *other run begins before it is done.
 *
 * The two speak over a socket pair, one byte each way; whoever reads its end knows that the
 * other is gone.
 */
struct domain;
struct err;
struct guard;
struct record;

/* Returns when it is ready, with everything open that it will need. */
struct guard *guard_start(struct domain *d, const struct record *record, unsigned freeze_seconds,
			  struct err *err);

/* The freeze is about to be asked for: the deadline counts from here. */
int guard_arm(struct guard *g, struct err *err);

/* Has it left all as it is until now?  1 yes; 0 when it has thawed, or begun to; -1 when it is
 * gone.  Waits for no answer behind the deadline: 0.
 */
int guard_is_calm(struct guard *g, struct err *err);

/* All is thawed.  Returns as guard_is_calm does. */
int guard_disarm(struct guard *g, struct err *err);

/* Thaw now, and return when the agent says thawed (0), or that it cannot (-1). */
int guard_thaw(struct guard *g, struct err *err);

/* Ends it; nothing is cleared.  One that is still armed is left to its work instead, as if we
 * had died.
 */
void guard_stop(struct guard *g); /* NULL is fine */

/* Leave it, armed or not, to what is still to be done, as if we had died. */
void guard_leave(struct guard *g); /* NULL is fine */

/* main() of the guard's process, called when the program's name (argv[0]) is GUARD_NAME. */
#define GUARD_NAME "ccsnap-guard"
int guard_main(int argc, char **argv);

CLEANUP_TYPE(struct guard, guard, guard_stop)
#define autoguard CLEANUP(guard_cleanup)

#endif
