/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SIZE_H
#define CCSNAP_SIZE_H

#include <stdint.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Parse bytes: a whole number, then nothing or one of K M G T P (powers of
 * 1024, an "iB" may follow, case does not matter).  Returns 0, or -1 when the
 * text is something else or does not fit.
 */
int size_parse(const char *text, uint64_t *bytes);

/* "512 B", "4 KiB", "2.7 GiB": rounded, for people. */
struct size_text {
	char text[24];
};
struct size_text size_format(uint64_t bytes);

static inline uint64_t round_up(uint64_t n, uint64_t step)
{
	return n + (step - n % step) % step;
}

/* How many steps it takes to hold n. */
static inline uint64_t div_up(uint64_t n, uint64_t step)
{
	return n / step + (n % step != 0);
}

static inline uint64_t round_down(uint64_t n, uint64_t step)
{
	return n - n % step;
}

#endif
