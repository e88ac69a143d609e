// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include "base/secret.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	err->kind = kind;
	err->sys_errno = 0;
	va_start(ap, fmt);
	secret_format(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	return -1;
}

int err_errno(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	int saved = errno;
	size_t len;
	va_list ap;

	err->kind = kind;
	err->sys_errno = saved;
	va_start(ap, fmt);
	secret_format(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof err->text - len, ": %s", strerror(saved));
	return -1;
}

int err_nomem(struct err *err)
{
	return err_set(err, ERR_FAILED, "out of memory");
}

int err_context(struct err *err, const char *fmt, ...)
{
	char rest[sizeof err->text];
	size_t len;
	va_list ap;

	memcpy(rest, err->text, sizeof rest);
	va_start(ap, fmt);
	secret_format(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof err->text - len, ": %s", rest);
	return -1;
}

int err_hint(struct err *err, const char *fmt, ...)
{
	size_t len = strlen(err->text);
	char hint[sizeof err->text];
	va_list ap;

	if (len > 0 && err->text[len - 1] == '.')
		len--;
	va_start(ap, fmt);
	secret_format(hint, sizeof hint, fmt, ap);
	va_end(ap);
	snprintf(err->text + len, sizeof err->text - len, "; %s", hint);
	return -1;
}

int err_exit_code(const struct err *err)
{
	switch (err->kind) {
	case ERR_NONE:
		return 0;
	case ERR_FAILED:
		return 1;
	case ERR_USAGE:
		return 2;
	case ERR_REFUSED:
		return 4;
	case ERR_BUSY:
		return 75;
	case ERR_INTERRUPTED:
		return 128 + err->sys_errno;
	}
	return 1;
}
