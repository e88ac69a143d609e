// SPDX-License-Identifier: Apache-2.0
#include "dest/keystone_inner.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- times --- */

static int64_t seconds_of(struct tm *t)
{
	if (t->tm_mon < 0 || t->tm_mon > 11 || t->tm_mday < 1 || t->tm_mday > 31 ||
	    t->tm_hour > 23 || t->tm_min > 59 || t->tm_sec > 60)
		return -1;
	return timegm(t);
}

/* "2026-01-31T23:59:59.000000Z", with a fraction or without; -1 when it is none. */
static int64_t iso_time(const char *text)
{
	struct tm t = { 0 };
	int end = 0;

	if (!text || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
			    &t.tm_hour, &t.tm_min, &t.tm_sec, &end) != 6)
		return -1;
	if (text[end] == '.')
		end += 1 + (int)strspn(text + end + 1, "0123456789");
	if (strcmp(text + end, "Z") != 0 && strcmp(text + end, "+00:00") != 0)
		return -1;
	t.tm_year -= 1900;
	t.tm_mon--;
	return seconds_of(&t);
}

/* --- texts --- */

static const char *text_at(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* What is no text counts as missing. */
static int copy(char **out, const char *text, struct err *err)
{
	if (!text)
		return 0;
	*out = strdup(text);
	return *out ? 0 : err_nomem(err);
}

/* --- the catalog --- */

/* Of a large cloud: some hundred. */
#define CATALOG_MAX 10000

static void entry_free(struct catalog_entry *entry)
{
	free(entry->type);
	free(entry->region);
	free(entry->interface);
	free(entry->url);
}

static int entry_add(struct token *t, const char *type, const json_t *endpoint, struct err *err)
{
	const char *region = text_at(endpoint, "region_id"), *url = text_at(endpoint, "url");
	const char *interface = text_at(endpoint, "interface");
	struct catalog_entry *entry;

	if (!url || !interface)
		return 0;
	if (t->len >= CATALOG_MAX)
		return err_set(err, ERR_FAILED, "the cloud's catalog has too many entries");
	if (!array_room(t->catalog, t->cap, t->len + 1))
		return err_nomem(err);
	entry = &t->catalog[t->len++];
	*entry = (struct catalog_entry){ 0 };
	if (copy(&entry->type, type, err) < 0 ||
	    copy(&entry->region, region ? region : text_at(endpoint, "region"), err) < 0 ||
	    copy(&entry->interface, interface, err) < 0 || copy(&entry->url, url, err) < 0)
		return -1;
	return 0;
}

static int read_service(struct token *t, const json_t *service, struct err *err)
{
	const char *type = text_at(service, "type");
	const json_t *endpoints = json_object_get(service, "endpoints");

	for (size_t i = 0; type && i < json_array_size(endpoints); i++)
		if (entry_add(t, type, json_array_get(endpoints, i), err) < 0)
			return -1;
	return 0;
}

static int read_catalog(struct token *t, const json_t *catalog, struct err *err)
{
	for (size_t i = 0; i < json_array_size(catalog); i++)
		if (read_service(t, json_array_get(catalog, i), err) < 0)
			return -1;
	return 0;
}

/* --- the token --- */

static int read_token(struct token *t, const json_t *token, struct err *err)
{
	const json_t *project = json_object_get(token, "project");
	const json_t *domain = json_object_get(token, "domain");

	t->issued_at = iso_time(text_at(token, "issued_at"));
	t->expires_at = iso_time(text_at(token, "expires_at"));
	if (t->issued_at < 0 || t->expires_at < 0)
		return err_set(err, ERR_FAILED,
			       "the identity service's answer does not say when the token "
			       "was issued and expires");
	if (copy(&t->project_id, text_at(project, "id"), err) < 0 ||
	    copy(&t->project_name, text_at(project, "name"), err) < 0 ||
	    copy(&t->domain_id, text_at(domain, "id"), err) < 0 ||
	    copy(&t->domain_name, text_at(domain, "name"), err) < 0)
		return -1;
	return read_catalog(t, json_object_get(token, "catalog"), err);
}

int token_from_json(const char *text, size_t size, struct token *out, struct err *err)
{
	json_auto_t *answer = json_loadb(text, size, 0, NULL);
	const json_t *token = json_object_get(answer, "token");

	*out = (struct token){ 0 };
	if (!json_is_object(token))
		return err_set(err, ERR_FAILED,
			       "the identity service's answer holds no token; "
			       "is the auth URL that of Keystone?");
	if (read_token(out, token, err) == 0)
		return 0;
	token_free(out);
	return -1;
}

void token_free(struct token *t)
{
	for (size_t i = 0; i < t->len; i++)
		entry_free(&t->catalog[i]);
	free(t->catalog);
	free(t->project_id);
	free(t->project_name);
	free(t->domain_id);
	free(t->domain_name);
	*t = (struct token){ 0 };
}
