// SPDX-License-Identifier: Apache-2.0
#include "quiesce/contact.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "virt/domain.h"
#include "virt/virt.h"

#include <stddef.h>

enum { PATIENCE_SECONDS = 20, PAUSE_MS = 250, PAUSE_MAX_MS = 2000 };

void contact_begin(struct contact *c, struct domain *given)
{
	*c = (struct contact){ .given = given, .run_id = domain_run_id(given) };
}

void contact_end(struct contact *c)
{
	domain_close(steal(&c->domain));
	virt_close(steal(&c->virt));
}

static struct domain *current(const struct contact *c)
{
	return c->domain ? c->domain : c->given;
}

/* 1, 0 and -1 as contact_reach. */
static int reconnect(struct contact *c, struct err *err)
{
	struct virt *old = domain_connection(c->given);

	contact_end(c);
	c->virt = virt_reopen(old, err);
	c->domain = c->virt ? domain_find_uuid(c->virt, domain_uuid(c->given), err) : NULL;
	if (c->domain)
		return 1;
	if (c->virt && err->kind == ERR_REFUSED)
		return 0;
	err->kind = ERR_FAILED; /* much was done already */
	return -1;
}

int contact_reach(struct contact *c, struct domain **out, struct err *err)
{
	uint64_t start = clock_ns();
	unsigned pause_ms = PAUSE_MS;
	int rc = virt_is_alive(domain_connection(current(c))) ? 1 : reconnect(c, err);

	while (rc < 0 && clock_seconds_since(start) < PATIENCE_SECONDS) {
		clock_sleep_longer_ms(&pause_ms, PAUSE_MAX_MS);
		rc = reconnect(c, err);
	}
	*out = rc > 0 ? current(c) : NULL;
	return rc;
}

static bool is_same_run(const struct contact *c, const struct domain *d)
{
	return domain_run_id(d) == c->run_id;
}

struct domain *contact_same_run(struct contact *c, struct err *err)
{
	const char *name = domain_name(c->given);
	struct domain *d;
	int rc = contact_reach(c, &d, err);

	/* a daemon that goes away while we ask tells nothing of the domain */
	while (rc > 0 && !is_same_run(c, d) && !virt_is_alive(domain_connection(d)))
		rc = contact_reach(c, &d, err);
	if (rc < 0) {
		err_context(err, "libvirt went away while the domain %s was captured", name);
		return NULL;
	}
	if (rc > 0 && is_same_run(c, d))
		return d;
	err_set(err, ERR_FAILED, "the domain %s was %s during the capture", name,
		rc > 0 && domain_is_active(d) ? "restarted" : "shut down");
	return NULL;
}
