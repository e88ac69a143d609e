/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_VHDX_H
#define CCSNAP_VHDX_H

#include "source/references.h"

struct err;
struct reader;

/* The vhdx part of references_parse. */
int vhdx_parse(const struct reader *in, struct references *out, struct err *err);

#endif
