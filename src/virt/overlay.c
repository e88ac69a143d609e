// SPDX-License-Identifier: Apache-2.0
#include "virt/overlay.h"

#include "base/str.h"
#include "virt/below.h"
#include "virt/call.h"
#include "virt/chain.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/job_xml.h"
#include "virt/overlay_inner.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"

#include <stdint.h>

static const unsigned views[] = {
	[OVERLAY_NOW] = 0,
	[OVERLAY_NEXT] = VIR_DOMAIN_XML_INACTIVE,
};

/* --- begin --- */

char *overlay_xml(struct domain *d, const char *target, const char *path, struct err *err)
{
	autohardware struct hardware hw = { 0 };

	return domain_hardware(d, &hw, err) < 0 ? NULL : job_xml_overlay(target, path, &hw, err);
}

/* 1: nothing is made, since it is off.  Of such a domain libvirt would make a snapshot as well,
 * which only a running one can get rid of.
 */
static int make_snapshot(virDomainPtr dom, struct call *c)
{
	const unsigned flags = VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY |
			       VIR_DOMAIN_SNAPSHOT_CREATE_ATOMIC |
			       VIR_DOMAIN_SNAPSHOT_CREATE_NO_METADATA;
	virDomainSnapshotPtr snapshot;

	if (virDomainIsActive(dom) == 0)
		return 1;
	snapshot = virDomainSnapshotCreateXML(dom, c->text, flags);
	return snapshot ? virDomainSnapshotFree(snapshot) : -1;
}

int overlay_begin(struct domain *d, const char *target, const char *xml, struct err *err)
{
	struct call c = {
		.make = make_snapshot,
		.complaint = "no snapshot",
		.wait = ERRAND_IN_FULL,
		.target = target,
		.text = xml,
	};
	int rc = call_make(&c, d, err);

	return rc > 0 ? err_set(err, ERR_FAILED, "domain %s does not run any more", d->name) : rc;
}

/* --- is it used? --- */

int overlay_chain(struct domain *d, const char *target, enum overlay_view view, struct chain *out,
		  struct err *err)
{
	autofree char *xml = domain_xml(d, views[view], ERRAND_IN_FULL, err);

	*out = (struct chain){ 0 };
	if (!xml)
		return -1;
	return chain_read(xml, target, out, err) < 0 ? err_context(err, "domain %s", d->name) : 0;
}

static int is_in_xml(struct domain *d, const char *target, const char *path, enum overlay_view view,
		     struct err *err)
{
	autochain struct chain chain = { 0 };

	if (overlay_chain(d, target, view, &chain, err) < 0)
		return -1;
	return chain_find(&chain, path) != SIZE_MAX;
}

static int look_below(struct domain *d, const struct virt_disk *disk, const char *path,
		      struct err *err)
{
	autofree char *top = NULL;

	if (str_equal(disk->format, "raw"))
		return 0;
	if (!str_equal(disk->format, "qcow2") || virt_place(domain_connection(d)) != VIRT_HERE)
		return err_set(err, ERR_FAILED, "its layers cannot be read from here");
	top = domain_find_path(d, disk, ERRAND_IN_FULL, err);
	return top ? below_has(top, path, err) : -1;
}

/* The XML of a domain that is off names the topmost file alone: somebody may have made one more
 * layer upon ours.
 */
static int is_below_definition(struct domain *d, const char *target, const char *path,
			       struct err *err)
{
	autohardware struct hardware hw = { 0 };
	const struct virt_disk *disk;
	int found;

	if (domain_read_hardware(d, ERRAND_IN_FULL, &hw, err) < 0)
		return -1;
	disk = hardware_find_disk(&hw, target);
	if (!disk)
		return err_set(err, ERR_FAILED, "domain %s has no disk %s any more", d->name,
			       target);
	found = look_below(d, disk, path, err);
	if (found < 0)
		err_context(err, "domain %s, disk %s: it cannot be told whether it needs %s",
			    d->name, target, path);
	return found;
}

int overlay_is_defined(struct domain *d, const char *target, const char *path, struct err *err)
{
	int found = is_in_xml(d, target, path, OVERLAY_NEXT, err);

	if (found != 0 || domain_is_active(d))
		return found;
	return is_below_definition(d, target, path, err);
}

int overlay_is_used(struct domain *d, const char *target, const char *path, struct err *err)
{
	int found = is_in_xml(d, target, path, OVERLAY_NOW, err);

	return found != 0 ? found : overlay_is_defined(d, target, path, err);
}
