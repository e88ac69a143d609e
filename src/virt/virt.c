// SPDX-License-Identifier: Apache-2.0
#include "virt/virt.h"

#include "base/str.h"
#include "virt/errand.h"
#include "virt/virt_inner.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A daemon that leaves so many questions unanswered, so many seconds apart, is given up: (4 + 1)
 * times 5 seconds.
 */
enum { KEEP_ALIVE_SECONDS = 5, KEEP_ALIVE_COUNT = 4 };

struct virt {
	virConnectPtr conn;
	enum virt_access access;
	char *uri;
};

/* While a connection is opened nothing is kept alive yet. */
struct opening {
	struct errand base;
	virConnectPtr conn;
	enum virt_access access;
	char *uri; /* as asked for */
};

/* Nobody sits there to be asked for a password: libvirt's own files may know one. */
static virConnectAuth no_questions = { .credtype = NULL };

static int opening_run(struct errand *base, struct err *err)
{
	struct opening *o = (struct opening *)base;
	unsigned flags = o->access == VIRT_LOOK ? VIR_CONNECT_RO : 0;

	o->conn = virConnectOpenAuth(o->uri, &no_questions, flags);
	if (!o->conn)
		return virt_fail(err, ERR_REFUSED, "cannot connect to %s", o->uri);
	/* what has no daemon cannot, and need not */
	virConnectSetKeepAlive(o->conn, KEEP_ALIVE_SECONDS, KEEP_ALIVE_COUNT);
	return 0;
}

static void opening_free(struct errand *base)
{
	struct opening *o = (struct opening *)base;

	if (o->conn)
		virConnectClose(o->conn);
	free(o->uri);
	free(o);
}

static const struct errand opening = {
	.run = opening_run,
	.free = opening_free,
	.kind = ERR_REFUSED,
	.advice = "libvirtd hangs; look at it, and try again",
};

static struct errand *opening_new(const char *uri, enum virt_access access, enum errand_wait wait)
{
	struct opening *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->base = opening;
	o->base.wait = wait;
	o->access = access;
	o->uri = strdup(uri);
	if (o->uri)
		return &o->base;
	free(o);
	return NULL;
}

/* The connection, or NULL. */
static virConnectPtr open_in_time(const char *uri, enum virt_access access, enum errand_wait wait,
				  struct err *err)
{
	autofree char *what = str_format("cannot connect to %s", uri);
	autoerrand struct errand *e = what ? opening_new(uri, access, wait) : NULL;

	if (!e) {
		err_nomem(err);
		return NULL;
	}
	return errand_run(&e, what, err) == 0 ? steal(&((struct opening *)e)->conn) : NULL;
}

/* libvirt's own choice would depend on what it finds on this machine. */
static const char *default_uri(void)
{
	const char *uri = getenv("LIBVIRT_DEFAULT_URI");

	if (uri && *uri)
		return uri;
	return geteuid() == 0 ? "qemu:///system" : "qemu:///session";
}

static struct virt *virt_new(const char *uri, enum virt_access access, enum errand_wait wait,
			     struct err *err)
{
	autovirt struct virt *v = calloc(1, sizeof *v);

	if (!v) {
		err_nomem(err);
		return NULL;
	}
	v->access = access;
	if (virt_events_start(err) < 0)
		return NULL;
	v->conn = open_in_time(uri, access, wait, err);
	if (!v->conn)
		return NULL;
	v->uri = virConnectGetURI(v->conn);
	if (v->uri)
		return steal(&v);
	virt_fail(err, ERR_FAILED, "cannot ask for the connection's URI");
	return NULL;
}

struct virt *virt_open(const char *uri, enum virt_access access, struct err *err)
{
	return virt_new(uri && *uri ? uri : default_uri(), access, ERRAND_CUT_SHORT, err);
}

struct virt *virt_reopen(const struct virt *v, struct err *err)
{
	return virt_new(v->uri, v->access, ERRAND_IN_FULL, err);
}

const char *virt_uri(const struct virt *v)
{
	return v->uri;
}

enum virt_access virt_access(const struct virt *v)
{
	return v->access;
}

enum virt_place virt_place(const struct virt *v)
{
	return virt_place_of(v->uri);
}

/* A question that every daemon answers shows what the socket does not know yet. */
bool virt_is_alive(const struct virt *v)
{
	unsigned long version;

	virConnectGetLibVersion(v->conn, &version);
	return virConnectIsAlive(v->conn) == 1;
}

void virt_close(struct virt *v)
{
	if (!v)
		return;
	if (v->conn)
		virConnectClose(v->conn);
	free(v->uri);
	free(v);
}

virConnectPtr virt_connection(const struct virt *v)
{
	return v->conn;
}
