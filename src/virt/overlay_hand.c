// SPDX-License-Identifier: Apache-2.0

/* What a user types when we could not undo something, of which merging an overlay takes more than a
 * word.
 */
#include "base/str.h"
#include "virt/chain.h"
#include "virt/domain.h"
#include "virt/overlay.h"
#include "virt/overlay_inner.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"

#include <stdarg.h>
#include <string.h>

static bool is_plain(const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "_@%+=:,./-";

	return *s && s[strspn(s, plain)] == '\0';
}

static char *put_quoted(char *at, const char *s)
{
	*at++ = '\'';
	for (; *s; s++)
		if (*s == '\'')
			at = stpcpy(at, "'\\''");
		else
			*at++ = *s;
	*at++ = '\'';
	*at = '\0';
	return at;
}

/* As one word of a shell's (malloc). */
static char *quote(const char *s)
{
	char *word;

	if (is_plain(s))
		return strdup(s);
	word = malloc(4 * strlen(s) + 3);
	if (word)
		put_quoted(word, s);
	return word;
}

/* Takes line over. */
static char *add_word(char *line, const char *word)
{
	autofree char *before = line, *quoted = quote(word);

	return before && quoted ? str_format("%s %s", before, quoted) : NULL;
}

char *virt_by_hand(struct domain *d, const char *command, ...)
{
	autofree char *uri = quote(virt_uri(d->virt));
	char *line = uri ? str_format("virsh -c %s %s %s", uri, command, d->uuid) : NULL;
	const char *word;
	va_list ap;

	va_start(ap, command);
	while ((word = va_arg(ap, const char *)))
		line = add_word(line, word);
	va_end(ap);
	return line;
}

/* --- an overlay --- */

static char *commit_command(struct domain *d, const char *target)
{
	return virt_by_hand(d, "blockcommit", target, "--shallow", "--active", "--pivot",
			    "--verbose", NULL);
}

static char *pivot_command(struct domain *d, const char *target)
{
	return virt_by_hand(d, "blockjob", target, "--pivot", NULL);
}

/* It takes a QEMU, but not the guest: that need not even begin to run. */
static char *start_and_commit(struct domain *d, const char *target)
{
	autofree char *start = virt_by_hand(d, "start --paused", NULL);
	autofree char *commit = commit_command(d, target);
	autofree char *end = virt_by_hand(d, "destroy", NULL);

	return start && commit && end ? str_format("%s && %s && %s", start, commit, end) : NULL;
}

static char *offline_command(const char *path)
{
	autofree char *file = quote(path);

	return file ? str_format("qemu-img commit -f qcow2 %s", file) : NULL;
}

/* Where memory was saved, the guest goes on from there: that is lost when it is destroyed. */
static char *restore_and_commit(struct domain *d, const char *target)
{
	autofree char *start = virt_by_hand(d, "start", NULL);
	autofree char *commit = commit_command(d, target);

	return start && commit ? str_format("%s && %s", start, commit) : NULL;
}

/* Of a transient domain nothing is left but the files. */
static char *by_hand_when_off(struct domain *d, const char *target, const char *path)
{
	struct err unused;

	if (!domain_is_persistent(d))
		return offline_command(path);
	return domain_has_saved_image(d, ERRAND_IN_FULL, &unused) == 1
		       ? restore_and_commit(d, target)
		       : start_and_commit(d, target);
}

char *overlay_by_hand(struct domain *d, const char *target, const char *path)
{
	autochain struct chain chain = { 0 };
	struct err unused;

	if (!domain_is_active(d))
		return by_hand_when_off(d, target, path);
	if (overlay_chain(d, target, OVERLAY_NOW, &chain, &unused) < 0)
		return commit_command(d, target);
	if (chain.mirror && str_equal(chain.mirror, "active-commit"))
		return pivot_command(d, target);
	return commit_command(d, target);
}
