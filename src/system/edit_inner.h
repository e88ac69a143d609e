/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_EDIT_INNER_H
#define CCSNAP_SYSTEM_EDIT_INNER_H

#include "base/account.h"
#include "ext4/model.h"

#include <sys/stat.h>

/* For what implements edit.h or goes through the model itself. */
struct edit;
struct err;

/* Where the entries of a directory are: in what is mounted on it. */
static inline uint32_t edit_directory_top(const struct model *m, uint32_t node)
{
	while (S_ISDIR(m->nodes[node].mode) && m->nodes[node].mounted != MODEL_NONE)
		node = m->nodes[node].mounted;
	return node;
}

/* The regular file at path, MODEL_NONE when there is none. */
static inline uint32_t edit_find_file(const struct model *m, const char *path)
{
	uint32_t node = model_resolve(m, path, MODEL_FOLLOW);

	return node != MODEL_NONE && S_ISREG(m->nodes[node].mode) ? node : MODEL_NONE;
}

/* Enter a node under its path; why and more, one behind the other, say what of it. */
int edit_account(const struct edit *e, enum account_kind kind, uint32_t node, const char *why,
		 const char *more, struct err *err);

#endif
