/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OPTION_SECRET_H
#define CCSNAP_OPTION_SECRET_H

/* A destination may be a URL that holds a user name and password, or is signed by its query
 * (https://USER:PASSWORD@HOST/PATH?SIGNATURE), even where it is none that is accepted.
 */
struct err;

/* From now on no message shows them (base/secret.h). */
int option_keep_secrets(const char *where, struct err *err);

/* Put asterisks over them in argv itself, which ps and /proc show to everybody. */
void option_hide_secrets(char *where);

#endif
