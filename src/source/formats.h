/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FORMATS_H
#define CCSNAP_FORMATS_H

#include "source/source.h"

/* The constructors behind source_formats, and source_open_export's.  Their messages begin with the
 * name of the file that they are about.
 */
struct err;

struct source *disk_open(const struct source_config *cfg, struct err *err);

/* cfg->format is qcow2, vmdk, vdi or vhdx.  Call it from a thread that outlives
 * the source (see base/child.h).
 */
struct source *qemu_open(const struct source_config *cfg, struct err *err);

struct source *export_open(const struct source_export *cfg, struct err *err);

#endif
