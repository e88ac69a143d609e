/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_KERNELS_H
#define CCSNAP_SYSTEM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* The kernels of a tree by their names, as distributions give them. */
struct edit;
struct err;

struct kernel {
	char *path;    /* "boot/vmlinuz-6.1.0-13-amd64", "efi/MACHINE-ID/6.1/linux" */
	char *version; /* "6.1.0-13-amd64"; NULL: the name does not tell */
	char *initrd;  /* path; NULL: none */
	uint32_t node;
};

struct kernels {
	struct kernel *at; /* the newest first, what is for rescue last */
	size_t len, cap;
};

/* Names with control characters are no kernels. */
int kernels_find(const struct edit *e, struct kernels *out, struct err *err);
void kernels_free(struct kernels *k);

#endif
