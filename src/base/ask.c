// SPDX-License-Identifier: Apache-2.0
#include "base/ask.h"

#include "base/interrupt.h"
#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

bool ask_yes(const char *what, const char *question)
{
	char answer[16] = "", shown[1024];

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	fprintf(stderr, "ccsnap: %s\nccsnap: %s [y/N] ", log_printable(shown, sizeof shown, what),
		question);
	fflush(stderr);
	if (read(STDIN_FILENO, answer, sizeof answer - 1) <= 0 || interrupt_pending())
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}
