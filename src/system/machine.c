// SPDX-License-Identifier: Apache-2.0
#include "system/machine.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "system/edit.h"
#include "system/edit_inner.h"
#include "walk/reach.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	unsigned elf; /* e_machine */
	unsigned char class, order;
} machines[] = {
	{ "x86_64", EM_X86_64, ELFCLASS64, ELFDATA2LSB },
	{ "i686", EM_386, ELFCLASS32, ELFDATA2LSB },
	{ "aarch64", EM_AARCH64, ELFCLASS64, ELFDATA2LSB },
	{ "armv7l", EM_ARM, ELFCLASS32, ELFDATA2LSB },
	{ "ppc64le", EM_PPC64, ELFCLASS64, ELFDATA2LSB },
	{ "riscv64", EM_RISCV, ELFCLASS64, ELFDATA2LSB },
	{ "s390x", EM_S390, ELFCLASS64, ELFDATA2MSB },
};

/* Every system has one of them, made for its own machine. */
static const char *const programs[] = {
	"usr/bin/env",
	"bin/sh",
	"usr/bin/sh",
	"sbin/init",
	"usr/lib/systemd/systemd",
	"bin/busybox",
	"lib/systemd/systemd",
	"usr/bin/true",
	"bin/true",
};

enum { ELF_HEAD = 20 }; /* up to the end of e_machine */

/* False when the file's beginning cannot be had. */
static bool read_head(const struct edit *e, const char *path, unsigned char head[ELF_HEAD])
{
	uint32_t id = edit_find_file(e->model, path);
	const struct model_node *node = id == MODEL_NONE ? NULL : &e->model->nodes[id];
	autoclose int fd = -1;
	struct stat st;

	if (!node || node->size < ELF_HEAD)
		return false;
	if (node->content) {
		memcpy(head, node->content, ELF_HEAD);
		return true;
	}
	fd = e->reach ? reach_file(e->reach, id, &st) : -1;
	return fd >= 0 && io_pread(fd, head, ELF_HEAD, 0, NULL) == ELF_HEAD;
}

static const char *machine_of_head(const unsigned char head[ELF_HEAD])
{
	unsigned elf = head[EI_DATA] == ELFDATA2MSB ? head[18] * 256u + head[19]
						    : head[19] * 256u + head[18];

	if (memcmp(head, ELFMAG, SELFMAG) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
		if (machines[i].elf == elf && machines[i].class == head[EI_CLASS] &&
		    machines[i].order == head[EI_DATA])
			return machines[i].name;
	return NULL;
}

const char *machine_of_tree(const struct edit *e, bool (*is_wanted)(const char *name))
{
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		unsigned char head[ELF_HEAD];
		const char *name = read_head(e, programs[i], head) ? machine_of_head(head) : NULL;

		if (name && (!is_wanted || is_wanted(name)))
			return name;
	}
	return NULL;
}
