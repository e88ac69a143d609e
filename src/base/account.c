// SPDX-License-Identifier: Apache-2.0
#include "base/account.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One for all accounts: entries are rare. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct {
	const char *word, *how;
	bool warns;
} kinds[ACCOUNT_KINDS] = {
	[ACCOUNT_EXCLUDED] = { "excluded", NULL, false },
	[ACCOUNT_SKIPPED_MOUNT] = { "skipped_mounts", NULL, false },
	[ACCOUNT_FOLDED_MOUNT] = { "folded_mounts", NULL, false },
	[ACCOUNT_GREW] = { "changed", "grew", false },
	[ACCOUNT_CHANGED] = { "changed", "changed", true },
	[ACCOUNT_VANISHED] = { "vanished", NULL, true },
	[ACCOUNT_UNREADABLE] = { "unreadable", NULL, true },
	[ACCOUNT_ATTRIBUTE] = { "attributes", NULL, true },
	[ACCOUNT_RESET] = { "reset", NULL, false },
	[ACCOUNT_KEPT] = { "kept", NULL, false },
	[ACCOUNT_EDITED] = { "edited", NULL, false },
};

static bool make_room(struct account *account)
{
	size_t cap = account->cap ? account->cap * 2 : 64;
	struct account_entry *at;

	if (account->len < account->cap)
		return true;
	at = reallocarray(account->at, cap, sizeof *at);
	if (!at)
		return false;
	account->at = at;
	account->cap = cap;
	return true;
}

static void keep(struct account *account, enum account_kind kind, const char *path,
		 const char *detail, va_list args)
{
	struct account_entry entry = { .kind = kind };

	if (account->count[kind]++ >= ACCOUNT_MAX)
		return;
	entry.path = strdup(path);
	if (vasprintf(&entry.detail, detail, args) < 0)
		entry.detail = NULL;
	if (entry.path && entry.detail && make_room(account)) {
		account->at[account->len++] = entry;
		return;
	}
	account->out_of_memory = true;
	free(entry.path);
	free(entry.detail);
}

void account_add(struct account *account, enum account_kind kind, const char *path,
		 const char *detail, ...)
{
	va_list args;

	va_start(args, detail);
	pthread_mutex_lock(&lock);
	keep(account, kind, path, detail, args);
	pthread_mutex_unlock(&lock);
	va_end(args);
}

const char *account_word(enum account_kind kind)
{
	return kinds[kind].word;
}

const char *account_how(enum account_kind kind)
{
	return kinds[kind].how;
}

bool account_has_warnings(const struct account *account)
{
	for (size_t kind = 0; kind < ACCOUNT_KINDS; kind++)
		if (kinds[kind].warns && account->count[kind] > 0)
			return true;
	return false;
}

void account_free(struct account *account)
{
	for (size_t i = 0; i < account->len; i++) {
		free(account->at[i].path);
		free(account->at[i].detail);
	}
	free(account->at);
	*account = (struct account){ 0 };
}
