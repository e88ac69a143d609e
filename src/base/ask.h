/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ASK_H
#define CCSNAP_ASK_H

#include <stdbool.h>

/* Tell what, then ask the question, on the terminal.  False unless the answer is yes,
 * and at once when nobody sits there or a signal comes.
 */
bool ask_yes(const char *what, const char *question);

#endif
