/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_SETTINGS_H
#define CCSNAP_CLOUD_SETTINGS_H

#include "dest/cloud_config.h"
#include "dest/cloud_tree.h"

/* From settings, in whichever of their spellings, to a cloud_config that is complete. */
struct cloud_env;
struct err;

enum cloud_source { CLOUD_FROM_ENVIRONMENT, CLOUD_FROM_FILES, CLOUD_FROM_METADATA };

/* settings NULL: the environment alone.  out->origin is set already, and the rest
 * is empty.  Messages about what is missing say where from it may come.
 */
int cloud_settings_apply(struct cloud_tree *tree, const struct cloud_node *settings,
			 const struct cloud_env *env, enum cloud_source source,
			 struct cloud_config *out, struct err *err);

#endif
