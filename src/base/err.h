/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ERR_H
#define CCSNAP_ERR_H

/* What went wrong, in the words the user will read.
 *
 * Every function that can fail takes a struct err as its last parameter and
 * returns -1 (or NULL) after filling it in; on success it leaves err alone.
 * The lowest layer that knows the cause writes the message, one line, without
 * a final full stop; upper layers may put in front where it happened.  The
 * message lives inside the struct: nothing to free, safe to copy between
 * threads.
 */

/* The kind decides how the run ends (see err_exit_code), nothing else. */
enum err_kind {
	ERR_NONE,
	ERR_FAILED,	 /* something broke while working */
	ERR_USAGE,	 /* a wrong option, value or combination */
	ERR_REFUSED,	 /* a limit or pre-flight check; nothing was done */
	ERR_BUSY,	 /* another run holds the lock */
	ERR_INTERRUPTED, /* a signal; its number is in sys_errno */
};

struct err {
	enum err_kind kind;
	int sys_errno; /* 0 when the cause was no system call */
	char text[1024];
};

/* Each returns -1, so that "return err_set(...)" reads well. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As err_set, with errno's text behind it. */
int err_errno(struct err *err, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

int err_nomem(struct err *err);

/* Put "WHERE: " in front of the message that is there. */
int err_context(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "; HINT" behind it, in place of a full stop. */
int err_hint(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 0, 1, 2, 4, 75 or 128 + signal. */
int err_exit_code(const struct err *err);

#endif
