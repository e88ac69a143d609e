// SPDX-License-Identifier: Apache-2.0
#include "virt/call.h"

#include "base/log.h"
#include "base/str.h"

#include <string.h>

/* Errors of libvirt belong to the thread in which they came up. */
struct errand_of_call {
	struct errand base;
	virDomainPtr dom;
	char *target, *text, *pool_name;
	struct call call;
};

static int run(struct errand *base, struct err *err)
{
	struct errand_of_call *e = (struct errand_of_call *)base;
	int rc = e->call.make(e->dom, &e->call);

	if (rc >= 0)
		return rc;
	e->call.code = virt_last_code();
	virt_last_words(e->call.words, sizeof e->call.words);
	return err_set(err, ERR_FAILED, "%s", e->call.words);
}

static void errand_free(struct errand *base)
{
	struct errand_of_call *e = (struct errand_of_call *)base;

	call_free(&e->call);
	virDomainFree(e->dom);
	free(e->target);
	free(e->text);
	free(e->pool_name);
	free(e);
}

static const struct errand errand = {
	.run = run,
	.free = errand_free,
	.kind = ERR_FAILED,
	.advice = "its QEMU or libvirtd hangs; look at its storage, and try again",
};

static int copy(const char *text, char **own, const char **out)
{
	*own = text ? strdup(text) : NULL;
	*out = *own;
	return text && !*own ? -1 : 0;
}

static struct errand *errand_new(const struct call *c, const struct domain *d)
{
	struct errand_of_call *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->base = errand;
	e->base.wait = c->wait;
	e->base.seconds = c->seconds;
	virDomainRef(d->dom);
	e->dom = d->dom;
	e->call = *c;
	if (copy(c->target, &e->target, &e->call.target) == 0 &&
	    copy(c->text, &e->text, &e->call.text) == 0 &&
	    copy(c->pool_name, &e->pool_name, &e->call.pool_name) == 0)
		return &e->base;
	errand_free(&e->base);
	return NULL;
}

static void bring_back(struct errand *base, struct call *c)
{
	struct call *done = &((struct errand_of_call *)base)->call;

	done->target = c->target;
	done->text = c->text;
	done->pool_name = c->pool_name;
	*c = *done;
	*done = (struct call){ 0 };
}

static char *complain(const struct call *c, const struct domain *d)
{
	char target[40];

	if (!c->target)
		return str_format("domain %.120s: %s", d->name, c->complaint);
	return str_format("domain %.120s, disk %s: %s", d->name,
			  log_printable(target, sizeof target, c->target), c->complaint);
}

int call_make(struct call *c, const struct domain *d, struct err *err)
{
	autofree char *what = complain(c, d);
	autoerrand struct errand *e = what ? errand_new(c, d) : NULL;
	int rc;

	if (!e)
		return err_nomem(err);
	rc = errand_run(&e, what, err);
	c->is_left_behind = !e;
	if (!e)
		return -1;
	bring_back(e, c);
	return rc < 0 ? err_context(err, "%s", what) : rc;
}

int call_look_for_job(virDomainPtr dom, struct call *c)
{
	return virDomainGetJobStats(dom, &c->params.type, &c->params.list, &c->params.count,
				    c->flags);
}
