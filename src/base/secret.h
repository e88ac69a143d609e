/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SECRET_H
#define CCSNAP_SECRET_H

#include "base/cleanup.h"

#include <stdarg.h>
#include <stddef.h>

/* Passwords, tokens and their like.  A secret is a string from malloc that is
 * wiped before it is freed.  From the first one on, the process leaves no core
 * file and lets no other process of the same user look into it, and no message,
 * log line or report shows the secret: err_set and the log replace it (see
 * secret_mask), also where it comes back in the words of a server.
 */
char *secret_new(const char *text); /* NULL for NULL, or when out of memory */

/* The value of an environment variable, which is wiped and unset: neither
 * /proc/PID/environ nor a child shows it.  NULL when it is unset or empty.
 */
char *secret_take_env(const char *name);

void secret_free(char *secret); /* NULL is fine */

/* Put asterisks over every known secret in text, also as JSON, as part of a URL
 * and in base64.  Very short ones (less than 4 bytes) are left: they would hit
 * ordinary words.  Four asterisks stand for each, so that text may get shorter.
 * From any thread.
 */
void secret_mask(char *text);

/* As vsnprintf, but masked, and before it is cut: no beginning of a secret is left at
 * the end.
 */
void secret_format(char *dst, size_t cap, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static inline void secret_cleanup(char **secret)
{
	secret_free(*secret);
}
#define autosecret CLEANUP(secret_cleanup)

#endif
