/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ASK_H
#define CCSNAP_ASK_H

#include <stdbool.h>

/* Asks on the terminal; false unless the answer is yes, and at once, without a
 * question, when nobody sits there.
 */
bool ask_yes(const char *why, const char *question);

#endif
