/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SCRATCH_INNER_H
#define CCSNAP_SCRATCH_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;
struct scratch;

/* --- scratch_user.c: who QEMU runs as --- */

enum { QEMU_GROUPS = 64 };

struct qemu_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[QEMU_GROUPS]; /* gid among them */
	size_t group_count;
};

/* label as in struct hardware; NULL is ourselves. */
int qemu_user_find(const char *label, struct qemu_user *out, struct err *err);
bool qemu_user_is_us(const struct qemu_user *user);

/* Can that user come to this directory (absolute), and make a file and a socket there?
 * ERR_REFUSED names what is in the way.
 */
int qemu_user_try(const struct qemu_user *user, const char *dir, struct err *err);

/* --- scratch_place.c: where --- */

/* SUN_LEN of every system that QEMU runs on. */
enum { SOCKET_PATH_MAX = 107 };

/* The directory to make ours in, as it is without symbolic links (malloc); the default one
 * is made.
 */
char *scratch_place(const char *wanted, const struct qemu_user *user, struct err *err);

/* The default one, made or not (malloc); NULL without a home. */
char *scratch_default_place(void);

/* Let others pass through a folder of ours (not look into it), unless something in it relies
 * on its being closed; then nothing is changed.
 */
void scratch_let_pass(const char *folder);

/* The names of one run in it; what it makes has to fit into an XML text and a socket's
 * address.
 */
int scratch_check_name(const char *path, struct err *err);

/* UINT64_MAX: unknown */
uint64_t scratch_room(const char *dir);

/* --- scratch_clear.c: what is ours --- */

/* All that scratch_close and scratch_clear ever remove; ends with NULL.  An overlay is not among
 * them: it may hold what the guest has written.
 */
extern const char *const scratch_names[];
#define SCRATCH_SOCKET scratch_names[0]
#define SCRATCH_FILE   scratch_names[1]

/* Made by us, or made by us and given away: nobody can give the group away to us. */
bool scratch_is_ours(const struct stat *st);

/* A directory of ours that is locked as long as its run lives.  A descriptor, -1 with errno. */
int scratch_lock(const char *dir);

/* The names of what a run makes: a prefix, and then so many of some letters. */
enum { SCRATCH_TAG_LEN = 6 };
#define SCRATCH_LETTERS "abcdefghijklmnopqrstuvwxyz234567"

/* Remove the directories of ours in place that have such names and whose runs are dead, if they
 * hold nothing but these names (ends with NULL).
 */
void scratch_sweep(const char *place, const char *prefix, const char *letters,
		   const char *const *names);

const char *scratch_tag(const struct scratch *s); /* what its files have for a name */

#endif
