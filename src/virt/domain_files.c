// SPDX-License-Identifier: Apache-2.0
#include "virt/domain.h"

#include "base/array.h"
#include "base/io.h"
#include "base/str.h"
#include "virt/below.h"
#include "virt/chain.h"
#include "virt/errand.h"
#include "virt/hardware.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"
#include "virt/xml.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	HANG_SECONDS = 10, /* a file whose server does not answer */
	LAYERS_MAX = 200,
};

/* Files are looked at in an errand, since any of them may hang. */
struct files {
	struct errand base;
	struct {
		char *path;
		bool may_have_below; /* that the XML does not tell */
	} * list;
	size_t count, cap;
};

/* --- looking at them --- */

static void protect(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
		io_protect(&st);
}

static void protect_below(const char *path)
{
	autofree char *at = strdup(path);
	struct err unused;

	for (int i = 0; at && i < LAYERS_MAX && below_step(&at, &unused) == 0 && at; i++)
		protect(at);
}

static int files_run(struct errand *base, struct err *err)
{
	struct files *f = (struct files *)base;

	(void)err;
	for (size_t i = 0; i < f->count; i++) {
		protect(f->list[i].path);
		if (f->list[i].may_have_below)
			protect_below(f->list[i].path);
	}
	return 0;
}

static void files_free(struct errand *base)
{
	struct files *f = (struct files *)base;

	for (size_t i = 0; i < f->count; i++)
		free(f->list[i].path);
	free(f->list);
	free(f);
}

static const struct errand errand = {
	.run = files_run,
	.free = files_free,
	.seconds = HANG_SECONDS,
	.kind = ERR_FAILED,
	.advice = "",
};

/* --- finding them --- */

/* Takes path over. */
static void add(struct files *f, char *path, bool may_have_below)
{
	if (!path || path[0] != '/' || !array_room(f->list, f->cap, f->count + 1)) {
		free(path);
		return;
	}
	f->list[f->count].path = path;
	f->list[f->count++].may_have_below = may_have_below;
}

static char *copy(const char *path)
{
	return path ? strdup(path) : NULL;
}

static bool is_qcow2(const char *format)
{
	return format && str_equal(format, "qcow2");
}

static void add_layers(struct files *f, const char *xml, const char *target)
{
	autochain struct chain chain = { 0 };
	struct err unused;

	if (chain_read(xml, target, &chain, &unused) < 0)
		return;
	for (size_t i = 0; i < chain.count; i++) {
		const struct chain_layer *layer = &chain.layers[i];

		if (str_equal(layer->kind, "file") || str_equal(layer->kind, "block"))
			add(f, copy(layer->source),
			    i + 1 == chain.count && is_qcow2(layer->format));
	}
	add(f, copy(chain.copied_to), false);
}

static void add_disks(struct files *f, struct domain *d, const char *xml)
{
	autohardware struct hardware hw = { 0 };
	struct err unused;

	if (hardware_parse(xml, &hw, &unused) < 0)
		return;
	for (size_t i = 0; i < hw.disk_count; i++) {
		const struct virt_disk *disk = &hw.disks[i];

		add_layers(f, xml, disk->target);
		if (str_equal(disk->kind, "volume"))
			add(f, domain_disk_path(d, disk, &unused), is_qcow2(disk->format));
	}
}

static void add_named(struct files *f, const xmlNode *element)
{
	char *text = NULL, *source = NULL;
	struct err unused;

	xml_copy_text(element, &text, &unused);
	xml_copy(xml_child(element, "source"), "file", &source, &unused);
	add(f, text, false);
	add(f, source, false);
}

static void add_firmware(struct files *f, const char *xml)
{
	static const char *const names[] = { "loader", "nvram", "kernel", "initrd", "dtb" };
	struct err unused;
	autoxml xmlDoc *doc = xml_read(xml, "domain", &unused);
	const xmlNode *os = doc ? xml_child(xmlDocGetRootElement(doc), "os") : NULL;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		add_named(f, xml_child(os, names[i]));
}

static void add_all(struct files *f, struct domain *d)
{
	static const unsigned views[] = { 0, VIR_DOMAIN_XML_INACTIVE };
	struct err unused;

	for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
		autofree char *xml = domain_xml(d, views[i], ERRAND_CUT_SHORT, &unused);

		if (!xml)
			continue;
		add_disks(f, d, xml);
		add_firmware(f, xml);
	}
}

void domain_protect_files(struct domain *d)
{
	bool is_here = virt_place(d->virt) == VIRT_HERE;
	struct files *f = is_here ? calloc(1, sizeof *f) : NULL;
	autoerrand struct errand *e = f ? &f->base : NULL;
	struct err unused;

	if (!f)
		return;
	f->base = errand;
	add_all(f, d);
	errand_run(&e, "its files", &unused);
}
