// SPDX-License-Identifier: Apache-2.0
#include "report/value.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"

json_t *value_text(const char *s)
{
	autofree char *utf8 = NULL;

	if (!s)
		return json_null();
	utf8 = str_to_utf8(s);
	return utf8 ? json_string(utf8) : NULL;
}

json_t *value_integer(uint64_t n)
{
	return json_integer((json_int_t)MIN(n, (uint64_t)INT64_MAX));
}

json_t *value_integer_or_null(uint64_t n, bool known)
{
	return known ? value_integer(n) : json_null();
}

json_t *value_seconds(double s)
{
	if (!(s >= 0 && s < 1e12))
		return json_null();
	return json_real((double)(int64_t)(s * 1e3 + 0.5) / 1e3);
}

int value_put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

int value_append(json_t *array, json_t *value)
{
	return json_array_append_new(array, value);
}

json_t *value_finish(json_t *object, int bad)
{
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

char *value_print(json_t *o, size_t flags, struct err *err)
{
	autofree char *json = o ? json_dumps(o, flags | JSON_REAL_PRECISION(15)) : NULL;
	char *line = json ? str_format("%s\n", json) : NULL;

	json_decref(o);
	if (!line)
		err_nomem(err);
	return line;
}
