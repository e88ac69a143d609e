// SPDX-License-Identifier: Apache-2.0
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char units[] = "KMGTP";

int size_parse(const char *text, uint64_t *bytes)
{
	const char *unit;
	unsigned shift;
	uint64_t n;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -1;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno)
		return -1;
	if (*end == '\0') {
		*bytes = n;
		return 0;
	}
	unit = strchr(units, toupper((unsigned char)*end));
	if (!unit || (end[1] != '\0' && strcasecmp(end + 1, "iB") != 0))
		return -1;
	shift = 10 * (unsigned)(unit - units + 1);
	if (n > UINT64_MAX >> shift)
		return -1;
	*bytes = n << shift;
	return 0;
}

struct size_text size_format(uint64_t bytes)
{
	struct size_text s;
	double n = (double)bytes;
	int unit = -1;

	while (n >= 1024 && units[unit + 1]) {
		n /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(s.text, sizeof s.text, "%d B", (int)bytes);
	else
		snprintf(s.text, sizeof s.text,
			 n < 10 && n != (double)(int)n ? "%.1f %ciB" : "%.0f %ciB", n, units[unit]);
	return s;
}
