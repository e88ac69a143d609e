// SPDX-License-Identifier: Apache-2.0
#include "virt/virt_inner.h"

#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	ADVICE_CAP = 128,
	REASON_CAP = VIRT_WORDS_CAP - ADVICE_CAP,
};

#define NO_REASON "libvirt gives no reason"

/* What libvirt puts in front of the reason for each code, where it tells a user nothing. */
static const char *const preambles[] = {
	"internal error: ",
	"operation failed: ",
	"invalid argument: ",
	"argument unsupported: ",
	"unsupported configuration: ",
	"Requested operation is not valid: ",
	"Operation not supported: ",
	"Timed out during operation: ",
	"Guest agent is not responding: ",
	"Domain not found: ",
	"Storage pool not found: ",
	"Storage volume not found: ",
	"Cannot recv data: ",
};

#define START_IT   "is libvirtd running? say with --connect where it is"
#define LOOK_AT_IT "libvirtd hangs or was stopped; look at it, and try again"
#define ASK_FOR_RIGHTS                                                                             \
	"be root or in the group libvirt there, or take your own guests: --connect qemu:///session"
#define URI_FORM "a URI looks like qemu:///system or qemu+ssh://HOST/system"

#define RESTART_AGENT "restart qemu-guest-agent in the guest"

/* The first row that fits; 0 and NULL fit all. */
static const struct {
	int code, sys_errno;
	const char *words; /* in libvirt's message */
	const char *advice;
} advices[] = {
	{ VIR_ERR_SYSTEM_ERROR, ENOENT, "connect socket", START_IT },
	{ VIR_ERR_SYSTEM_ERROR, ECONNREFUSED, "connect", START_IT },
	{ VIR_ERR_SYSTEM_ERROR, EACCES, "connect socket", ASK_FOR_RIGHTS },
	{ VIR_ERR_SYSTEM_ERROR, 0, "recv data: Connection reset", LOOK_AT_IT },
	{ VIR_ERR_SYSTEM_ERROR, ECONNRESET,
	  "recv data: ", "ssh has to get there without a question: try it by hand" },
	{ VIR_ERR_SYSTEM_ERROR, 0, "End of file", LOOK_AT_IT },
	{ VIR_ERR_SYSTEM_ERROR, EPIPE, NULL, LOOK_AT_IT },
	{ VIR_ERR_INTERNAL_ERROR, 0, "client socket is closed", LOOK_AT_IT },
	{ VIR_ERR_INTERNAL_ERROR, 0, "keepalive timeout", LOOK_AT_IT },
	{ VIR_ERR_INTERNAL_ERROR, 0, "parse URI", URI_FORM },
	{ VIR_ERR_NO_DOMAIN, 0, NULL, "it was undefined, or was transient and has ended" },
	{ VIR_ERR_NO_CONNECT, 0, NULL, URI_FORM },
	{ VIR_ERR_INVALID_ARG, 0, "remote", URI_FORM },
	{ VIR_ERR_AUTH_FAILED, 0, NULL, ASK_FOR_RIGHTS },
	{ VIR_ERR_AUTH_CANCELLED, 0, NULL, ASK_FOR_RIGHTS },
	{ VIR_ERR_AUTH_UNAVAILABLE, 0, NULL, ASK_FOR_RIGHTS },
	{ VIR_ERR_ACCESS_DENIED, 0, NULL, ASK_FOR_RIGHTS },
	{ VIR_ERR_NO_SUPPORT, 0, NULL, "the hypervisor there, or its libvirt, cannot do that" },
	{ VIR_ERR_OPERATION_TIMEOUT, 0, NULL,
	  "another job holds the domain; try again when it is over (virsh domjobinfo)" },
	{ VIR_ERR_ARGUMENT_UNSUPPORTED, 0, "guest agent is not configured",
	  "give the domain a channel named org.qemu.guest_agent.0" },
	{ VIR_ERR_AGENT_UNRESPONSIVE, 0, "not connected",
	  "install qemu-guest-agent in the guest, and start it" },
	{ VIR_ERR_AGENT_UNRESPONSIVE, 0, "disappeared",
	  "qemu-guest-agent was stopped in the guest, or the guest restarts" },
	{ VIR_ERR_AGENT_UNRESPONSIVE, 0, NULL, "the guest is too busy, or its agent hangs" },
	{ VIR_ERR_AGENT_UNSYNCED, 0, NULL, RESTART_AGENT },
};

static bool advice_fits(size_t i, const virError *e)
{
	return advices[i].code == e->code &&
	       (!advices[i].sys_errno || advices[i].sys_errno == e->int1) &&
	       (!advices[i].words || strstr(e->message, advices[i].words));
}

static const char *advice_for(const virError *e)
{
	for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
		if (advice_fits(i, e))
			return advices[i].advice;
	return NULL;
}

static const char *skip_preamble(const char *s)
{
	for (size_t i = 0; i < sizeof preambles / sizeof *preambles; i++)
		if (str_starts(s, preambles[i]))
			return s + strlen(preambles[i]);
	return s;
}

static const char *skip_preambles(const char *s)
{
	const char *next = skip_preamble(s);

	while (next != s) {
		s = next;
		next = skip_preamble(s);
	}
	return s;
}

/* One line, whatever white space is in it. */
static void join_lines(char *dst, size_t cap, const char *src)
{
	size_t at = 0;

	for (; *src && at + 1 < cap; src++)
		if (!isspace((unsigned char)*src))
			dst[at++] = *src;
		else if (at > 0 && dst[at - 1] != ' ')
			dst[at++] = ' ';
	while (at > 0 && (dst[at - 1] == ' ' || dst[at - 1] == '.'))
		at--;
	dst[at] = '\0';
}

/* "Failed" becomes "failed"; "QEMU" stays. */
static void start_small(char *s)
{
	if (isupper((unsigned char)s[0]) && !isupper((unsigned char)s[1]))
		s[0] = (char)tolower((unsigned char)s[0]);
}

static void reason(char *dst, size_t cap, const virError *e)
{
	char line[4 * REASON_CAP];

	join_lines(line, sizeof line, skip_preambles(e->message));
	log_printable(dst, cap, *line ? line : NO_REASON);
	start_small(dst);
}

/* What an agent says in place of an answer is nothing that a user should read. */
static bool repeats_garbage(const virError *e)
{
	return e->code == VIR_ERR_INTERNAL_ERROR &&
	       (strstr(e->message, "cannot parse json") || strstr(e->message, "JSON reply"));
}

char *virt_words(const virError *e, char *text, size_t cap)
{
	char why[REASON_CAP];
	const char *advice;

	if (!e || !e->message) {
		snprintf(text, cap, NO_REASON);
		return text;
	}
	if (repeats_garbage(e)) {
		snprintf(text, cap, "the answer makes no sense; " RESTART_AGENT);
		return text;
	}
	advice = advice_for(e);
	reason(why, sizeof why, e);
	snprintf(text, cap, "%s%s%s", why, advice ? "; " : "", advice ? advice : "");
	return text;
}

char *virt_last_words(char *text, size_t cap)
{
	return virt_words(virGetLastError(), text, cap);
}

int virt_last_code(void)
{
	return virGetLastErrorCode();
}

int virt_fail(struct err *err, enum err_kind kind, const char *what, ...)
{
	char text[VIRT_WORDS_CAP], where[512];
	va_list ap;

	virt_last_words(text, sizeof text);
	va_start(ap, what);
	secret_format(where, sizeof where, what, ap);
	va_end(ap);
	return err_set(err, kind, "%s: %s", where, text);
}
