/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_VALUE_H
#define CCSNAP_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* JSON values.  NULL is out of memory, which value_put and value_append pass on (-1), so that
 * an object is built without looking at each, and judged by value_finish.
 */
json_t *value_text(const char *s); /* any bytes (str_to_utf8); NULL is null */
json_t *value_integer(uint64_t n); /* sizes are those of files, so they fit */
json_t *value_integer_or_null(uint64_t n, bool known);

/* To the millisecond, so that none needs an exponent.  What did not run, and what is no number,
 * is null.
 */
json_t *value_seconds(double s);

int value_put(json_t *object, const char *key, json_t *value);
int value_append(json_t *array, json_t *value);

/* The object, or NULL (and it is gone) when one of its members failed. */
json_t *value_finish(json_t *object, int bad);

/* On one line or indented, with a newline behind it (malloc); o is gone.  15 digits: more than
 * milliseconds need, and 0.1 stays 0.1.
 */
struct err;
char *value_print(json_t *o, size_t flags, struct err *err);

#endif
