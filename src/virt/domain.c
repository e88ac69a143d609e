// SPDX-License-Identifier: Apache-2.0
#include "virt/domain.h"

#include "base/log.h"
#include "base/str.h"
#include "virt/call.h"
#include "virt/hardware.h"
#include "virt/virt_inner.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- finding ---------------------------------------------------------------------- */

static virDomainPtr by_name(virConnectPtr conn, const char *which)
{
	return virDomainLookupByName(conn, which);
}

static virDomainPtr by_uuid(virConnectPtr conn, const char *which)
{
	return virDomainLookupByUUIDString(conn, which);
}

static virDomainPtr by_id(virConnectPtr conn, const char *which)
{
	char *end;
	long id = strtol(which, &end, 10);

	if (!isdigit((unsigned char)*which) || *end || id > INT_MAX)
		return NULL;
	return virDomainLookupByID(conn, (int)id);
}

static virDomainPtr (*const ways[])(virConnectPtr conn, const char *which) = {
	by_name,
	by_uuid,
	by_id,
};

/* "There is none", and "that is no such thing". */
static bool is_absent(int code)
{
	return code == VIR_ERR_OK || code == VIR_ERR_NO_DOMAIN || code == VIR_ERR_INVALID_ARG;
}

/* 1 when it is there, 0, -1 when it cannot be told. */
static int look_up_by(virDomainPtr (*way)(virConnectPtr conn, const char *which),
		      virConnectPtr conn, const char *which, virDomainPtr *out, struct err *err)
{
	virResetLastError();
	*out = way(conn, which);
	if (*out)
		return 1;
	if (is_absent(virt_last_code()))
		return 0;
	return virt_fail(err, ERR_FAILED, "cannot look for domain %s", which);
}

static int look_up(virConnectPtr conn, const char *which, virDomainPtr *out, struct err *err)
{
	int there = 0;

	for (size_t i = 0; there == 0 && i < sizeof ways / sizeof *ways; i++)
		there = look_up_by(ways[i], conn, which, out, err);
	return there;
}

/* --- what there is instead ---------------------------------------------------------- */

enum { SHOWN = 10, NAME_CAP = 64, LIST_CAP = SHOWN * (NAME_CAP + 2) + 32 };

static int compare_names(const void *a, const void *b)
{
	virDomainPtr const *x = a, *y = b;

	return strcmp(virDomainGetName(*x), virDomainGetName(*y));
}

static void list_domains(virDomainPtr *list, size_t count, char *out, size_t cap)
{
	size_t at = 0;

	qsort(list, count, sizeof *list, compare_names);
	for (size_t i = 0; i < count && i < SHOWN; i++) {
		char name[NAME_CAP];

		log_printable(name, sizeof name, virDomainGetName(list[i]));
		at += (size_t)snprintf(out + at, cap - at, "%s%s", i ? ", " : "", name);
	}
	if (count > SHOWN)
		snprintf(out + at, cap - at, " and %zu more", count - SHOWN);
}

static int refuse(struct virt *v, const char *which, struct err *err)
{
	virDomainPtr *list = NULL;
	char names[LIST_CAP] = "", shown[NAME_CAP * 2];
	int count = virConnectListAllDomains(virt_connection(v), &list, 0);

	err_set(err, ERR_REFUSED, "no domain \"%s\" at %.128s",
		log_printable(shown, sizeof shown, which), virt_uri(v));
	if (count < 0)
		return -1;
	list_domains(list, (size_t)count, names, sizeof names);
	for (int i = 0; i < count; i++)
		virDomainFree(list[i]);
	free(list);
	return err_hint(err, "it has %s", count ? names : "none");
}

/* --- one that was found ------------------------------------------------------------- */

/* Takes dom over. */
static struct domain *domain_new(struct virt *v, virDomainPtr dom, struct err *err)
{
	autodomain struct domain *d = calloc(1, sizeof *d);

	if (!d) {
		virDomainFree(dom);
		err_nomem(err);
		return NULL;
	}
	d->dom = dom;
	d->virt = v;
	d->name = strdup(virDomainGetName(dom));
	if (d->name && virDomainGetUUIDString(dom, d->uuid) == 0)
		return steal(&d);
	err_nomem(err);
	return NULL;
}

static struct domain *found(int there, struct virt *v, const char *which, virDomainPtr dom,
			    struct err *err)
{
	if (there == 0)
		refuse(v, which, err);
	return there > 0 ? domain_new(v, dom, err) : NULL;
}

struct domain *domain_find(struct virt *v, const char *which, struct err *err)
{
	virDomainPtr dom;
	int there = look_up(virt_connection(v), which, &dom, err);

	return found(there, v, which, dom, err);
}

struct domain *domain_find_uuid(struct virt *v, const char *uuid, struct err *err)
{
	virDomainPtr dom;
	int there = look_up_by(by_uuid, virt_connection(v), uuid, &dom, err);

	return found(there, v, uuid, dom, err);
}

const char *domain_name(const struct domain *d)
{
	return d->name;
}

const char *domain_uuid(const struct domain *d)
{
	return d->uuid;
}

struct virt *domain_connection(const struct domain *d)
{
	return d->virt;
}

static int make_look_whether_active(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainIsActive(dom);
}

/* A transient domain is gone for libvirt as soon as it ends. */
bool domain_is_active(struct domain *d)
{
	struct call c = {
		.make = make_look_whether_active,
		.complaint = "cannot ask whether it runs",
		.wait = ERRAND_IN_FULL,
	};
	struct err unused;
	int is = call_make(&c, d, &unused);

	return is < 0 ? c.code != VIR_ERR_NO_DOMAIN : is;
}

static int make_look_whether_persistent(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainIsPersistent(dom);
}

bool domain_is_persistent(const struct domain *d)
{
	struct call c = {
		.make = make_look_whether_persistent,
		.complaint = "cannot ask whether it is defined",
		.wait = ERRAND_IN_FULL,
	};
	struct err unused;

	return call_make(&c, d, &unused) == 1;
}

/* The number in dom is that of the time when it was found. */
static int make_look_for_number(virDomainPtr dom, struct call *c)
{
	virDomainPtr now = virDomainLookupByUUIDString(virDomainGetConnect(dom), c->text);
	unsigned id = now ? virDomainGetID(now) : UINT_MAX;

	if (now)
		virDomainFree(now);
	return id <= INT_MAX ? (int)id : -1;
}

int domain_run_id(const struct domain *d)
{
	struct call c = {
		.make = make_look_for_number,
		.complaint = "cannot ask for its number",
		.wait = ERRAND_IN_FULL,
		.text = d->uuid,
	};
	struct err unused;

	return call_make(&c, d, &unused);
}

/* --- its XML ------------------------------------------------------------------------ */

static int make_xml(virDomainPtr dom, struct call *c)
{
	c->answer = virDomainGetXMLDesc(dom, c->flags);
	return c->answer ? 0 : -1;
}

static const struct call ask_for_xml = {
	.make = make_xml,
	.complaint = "cannot ask for its XML",
};

char *domain_xml(struct domain *d, unsigned flags, enum errand_wait wait, struct err *err)
{
	struct call c = ask_for_xml;

	c.flags = flags;
	c.wait = wait;
	return call_make(&c, d, err) < 0 ? NULL : c.answer;
}

static bool is_denial(int code)
{
	return code == VIR_ERR_OPERATION_DENIED || code == VIR_ERR_ACCESS_DENIED ||
	       code == VIR_ERR_AUTH_FAILED;
}

/* Asks for what is kept from those who may only look. */
int domain_may_be_managed(struct domain *d, struct err *err)
{
	autocall struct call c = ask_for_xml;
	struct err why;

	c.flags = VIR_DOMAIN_XML_SECURE;
	if (call_make(&c, d, &why) < 0 && c.is_left_behind) {
		*err = why;
		return -1;
	}
	if (!is_denial(c.code))
		return 0;
	return err_set(
		err, ERR_REFUSED,
		"the connection to %s may only look at domain %s (read-only); say with --connect one "
		"that may manage it",
		virt_uri(d->virt), d->name);
}

int domain_read_hardware(struct domain *d, enum errand_wait wait, struct hardware *out,
			 struct err *err)
{
	autofree char *xml = domain_xml(d, 0, wait, err);

	*out = (struct hardware){ 0 };
	if (!xml)
		return -1;
	if (hardware_parse(xml, out, err) < 0)
		return err_context(err, "domain %s", d->name);
	return 0;
}

int domain_hardware(struct domain *d, struct hardware *out, struct err *err)
{
	return domain_read_hardware(d, ERRAND_CUT_SHORT, out, err);
}

void domain_close(struct domain *d)
{
	if (!d)
		return;
	virDomainFree(d->dom);
	free(d->name);
	free(d);
}
