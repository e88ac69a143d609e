/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_KINDS_H
#define CCSNAP_KINDS_H

/* The constructors behind dest_kinds[]; rest is what follows the colon. */
struct dest;
struct dest_config;
struct err;

/* A store: each image NAME+suffix has a manifest NAME.manifest.json and may have
 * a report NAME.report.json beside it.
 */
struct dest *folder_open(const struct dest_config *cfg, const char *rest, struct err *err);

/* Just a file. */
struct dest *file_open(const struct dest_config *cfg, const char *rest, struct err *err);

#endif
