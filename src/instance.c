// SPDX-License-Identifier: Apache-2.0
#include "instance.h"

#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "quiesce/record.h"
#include "quiesce/recover.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/virt.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* What the guest overwrites during a capture has to fit into the scratch space.  Nobody knows how
 * much that will be: less than a 20th of the disk is not worth beginning with.
 */
enum { SCRATCH_SHARE = 20 };

struct instance {
	struct instance_config cfg;
	struct virt *virt;
	struct domain *domain;
	struct domain_status status;
	struct hardware hardware;
	const struct virt_disk *disk; /* one of the hardware's */
	char *path;		      /* of the disk, when it is read without QEMU */
	struct record *record;
	struct quiesce *quiesce;
	struct instance_facts facts;

	pthread_mutex_t lock; /* guards the rest, for end_reading is called in another thread */
	struct source *source;
	bool is_to_end; /* it is aborted, or will be as soon as it is there */
};

/* --- finding ---------------------------------------------------------------------- */

static int check_state(struct instance *i, struct err *err)
{
	static const char *const advice[] = {
		[DOMAIN_AWAY] = "capture it there, since its disk may be in use",
		[DOMAIN_BUSY] = "try again when that is over",
		[DOMAIN_BROKEN] = "mend it, or shut it off, first",
	};

	if (domain_status(i->domain, &i->status, err) < 0)
		return -1;
	if (!advice[i->status.state])
		return 0;
	return err_set(err, ERR_REFUSED, "domain %s is %s; %s", domain_name(i->domain),
		       i->status.text, advice[i->status.state]);
}

static bool is_active(const struct instance *i)
{
	return i->status.state != DOMAIN_OFF;
}

/* What it knew in its memory is not on its disks. */
static bool is_like_after_power_cut(const struct instance *i)
{
	return i->status.has_saved_memory || i->status.has_crashed;
}

static int find_disk(struct instance *i, struct err *err)
{
	struct domain_disk_size size;

	if (domain_hardware(i->domain, &i->hardware, err) < 0)
		return -1;
	i->disk = hardware_root_disk(&i->hardware, i->cfg.disk, err);
	if (!i->disk)
		return err_context(err, "domain %s", domain_name(i->domain));
	if (domain_disk_size(i->domain, i->disk, &size, err) < 0)
		return -1;
	i->facts.size = round_up(size.capacity, 512);
	i->facts.allocation = size.allocation;
	return 0;
}

static void fill_facts(struct instance *i)
{
	struct instance_facts *f = &i->facts;

	f->uri = virt_uri(i->virt);
	f->name = domain_name(i->domain);
	f->uuid = domain_uuid(i->domain);
	f->state = i->status.text;
	f->is_active = is_active(i);
	f->is_like_after_power_cut = is_like_after_power_cut(i);
	f->disk = i->disk->target;
	f->bus = i->disk->bus;
	f->path = i->disk->source;
	f->format = i->disk->format;
	f->firmware = i->hardware.firmware;
	f->architecture = i->hardware.architecture;
	f->sector_size = i->disk->sector_size ? i->disk->sector_size : 512;
	f->has_agent = i->hardware.agent_is_connected;
}

static int find_domain(struct instance *i, struct err *err)
{
	enum virt_access access = i->cfg.intent == SOURCE_LOOK ? VIRT_LOOK : VIRT_MANAGE;

	i->virt = virt_open(i->cfg.uri, access, err);
	i->domain = i->virt ? domain_find(i->virt, i->cfg.name, err) : NULL;
	if (!i->domain)
		return -1;
	return access == VIRT_LOOK ? 0 : domain_may_be_managed(i->domain, err);
}

static void tell(void *ctx, const char *done)
{
	log_note("domain %s: left by an earlier run: %s", domain_name(ctx), done);
}

/* Before anything else is looked at: it may be stopped, or on an overlay. */
static int clear_leftovers(struct instance *i, struct err *err)
{
	i->record = record_open(domain_uuid(i->domain), i->cfg.lock_wait_seconds, err);
	if (!i->record)
		return -1;
	if (record_is_clear(i->record))
		return 0;
	return recover_uuid(i->virt, domain_uuid(i->domain), i->record, tell, i->domain, err);
}

static void tell_doubts(const struct instance *i)
{
	if (is_like_after_power_cut(i))
		log_warn("domain %s is %s: the image is like after a power cut",
			 domain_name(i->domain), i->status.text);
	if (i->hardware.boots_host_kernel)
		log_warn("domain %s boots a kernel of its host: the image may not boot by itself",
			 domain_name(i->domain));
}

static int look(struct instance *i, struct err *err)
{
	if (check_state(i, err) < 0 || find_disk(i, err) < 0)
		return -1;
	/* what no image of ours may ever replace */
	domain_protect_files(i->domain);
	fill_facts(i);
	return 0;
}

/* --- the source ----------------------------------------------------------------------- */

static void end_reading(void *reader)
{
	struct instance *i = reader;

	pthread_mutex_lock(&i->lock);
	i->is_to_end = true;
	if (i->source)
		source_abort(i->source);
	pthread_mutex_unlock(&i->lock);
}

static void keep_source(struct instance *i, struct source *source)
{
	pthread_mutex_lock(&i->lock);
	i->source = source;
	if (source && i->is_to_end)
		source_abort(source);
	pthread_mutex_unlock(&i->lock);
}

static void close_source(struct instance *i)
{
	struct source *source;

	pthread_mutex_lock(&i->lock);
	source = steal(&i->source);
	pthread_mutex_unlock(&i->lock);
	source_close(source);
}

/* --- what is to be ready before anything begins -------------------------------------- */

static int prepare_active(struct instance *i, struct err *err)
{
	const struct quiesce_config cfg = {
		.domain = i->domain,
		.hardware = &i->hardware,
		.disk = i->disk,
		.record = i->record,
		.wish = i->cfg.wish,
		.freeze_seconds = i->cfg.freeze_seconds,
		.wants_trim = i->cfg.wants_trim,
		.scratch_dir = i->cfg.scratch_dir,
		.scratch_bytes = i->facts.size / SCRATCH_SHARE,
		.allow_backing = i->cfg.allow_backing,
		.end_reading = end_reading,
		.reader = i,
	};

	i->quiesce = quiesce_open(&cfg, err);
	return i->quiesce ? 0 : -1;
}

/* Nobody can freeze it any more. */
static int check_quiet(const struct instance *i, struct err *err)
{
	if (i->cfg.wish != QUIESCE_REQUIRE || !is_like_after_power_cut(i))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "domain %s is %s, so that its disk is like after a power cut; start it and "
		       "shut it down, or capture it without --quiesce=require",
		       domain_name(i->domain), i->status.text);
}

static int prepare_offline(struct instance *i, struct err *err)
{
	const char *why_not;

	if (check_quiet(i, err) < 0)
		return -1;
	if (virt_place(i->virt) != VIRT_HERE)
		return err_set(err, ERR_REFUSED,
			       "domain %s does not run, and its disk is on another host; run "
			       "ccsnap there, or start it",
			       domain_name(i->domain));
	why_not = virt_disk_why_not_off(i->disk);
	if (why_not)
		return err_set(err, ERR_REFUSED,
			       "domain %s does not run: disk %s cannot be captured: %s",
			       domain_name(i->domain), i->disk->target, why_not);
	i->path = domain_disk_path(i->domain, i->disk, err);
	return i->path ? 0 : -1;
}

static int prepare(struct instance *i, struct err *err)
{
	if (!is_active(i))
		return prepare_offline(i, err);
	return i->cfg.intent == SOURCE_LOOK ? 0 : prepare_active(i, err);
}

struct instance *instance_open(const struct instance_config *cfg, struct err *err)
{
	autoinstance struct instance *i = calloc(1, sizeof *i);

	if (!i) {
		err_nomem(err);
		return NULL;
	}
	pthread_mutex_init(&i->lock, NULL);
	i->cfg = *cfg;
	if (find_domain(i, err) < 0 ||
	    (cfg->intent != SOURCE_LOOK && clear_leftovers(i, err) < 0) || look(i, err) < 0 ||
	    prepare(i, err) < 0)
		return NULL;
	tell_doubts(i);
	return steal(&i);
}

const struct instance_facts *instance_facts(const struct instance *i)
{
	return &i->facts;
}

/* --- the instant --------------------------------------------------------------------- */

/* A format that we do not read is none that the user has named. */
static struct source *open_file(struct instance *i, const char *path, const char *format,
				struct err *err)
{
	struct source *source = source_open(
		&(struct source_config){
			.path = path,
			.format = format,
			.intent = i->cfg.intent,
			.allow_backing = i->cfg.allow_backing,
			.connections = i->cfg.connections,
			.stall_seconds = i->cfg.stall_seconds,
			.bytes_per_second = i->cfg.bytes_per_second,
		},
		err);

	if (!source && err->kind == ERR_USAGE) {
		err_context(err, "domain %s, disk %s", i->facts.name, i->facts.disk);
		err->kind = ERR_REFUSED;
	}
	return source;
}

static struct source *open_view(struct instance *i, const struct quiesce_view *view,
				struct err *err)
{
	if (view->path)
		return open_file(i, view->path, view->format, err);
	return source_open_export(
		&(struct source_export){
			.name = i->facts.path,
			.socket = view->socket,
			.export_name = view->export_name,
			.connections = i->cfg.connections,
			.sector_size = i->facts.sector_size,
			.bytes_per_second = i->cfg.bytes_per_second,
			.stall_seconds = i->cfg.stall_seconds,
		},
		err);
}

/* Nothing that was planned for one size may be done with another. */
static int check_size(const struct instance *i, struct err *err)
{
	if (i->source->size == i->facts.size)
		return 0;
	return err_set(err, ERR_FAILED,
		       "domain %s: disk %s had %llu bytes and now has %llu; was it resized?",
		       i->facts.name, i->facts.disk, (unsigned long long)i->facts.size,
		       (unsigned long long)i->source->size);
}

static struct source *hold_active(struct instance *i, struct err *err)
{
	struct quiesce_view view;

	if (quiesce_hold(i->quiesce, &view, err) < 0)
		return NULL;
	return open_view(i, &view, err);
}

struct source *instance_hold(struct instance *i, struct err *err)
{
	keep_source(i,
		    i->quiesce ? hold_active(i, err) : open_file(i, i->path, i->disk->format, err));
	return i->source && check_size(i, err) == 0 ? i->source : NULL;
}

void instance_end_reading(struct instance *i)
{
	close_source(i);
}

int instance_check(struct instance *i, struct err *err)
{
	return i->quiesce ? quiesce_check(i->quiesce, err) : 0;
}

/* The source first: what it holds open keeps a disk from being put back. */
int instance_release(struct instance *i, struct err *err)
{
	close_source(i);
	return i->quiesce ? quiesce_release(i->quiesce, err) : 0;
}

const struct quiesce_outcome *instance_outcome(const struct instance *i)
{
	return i->quiesce ? quiesce_outcome(i->quiesce) : NULL;
}

uint64_t instance_scratch_used(const struct instance *i)
{
	return i->quiesce ? quiesce_scratch_used(i->quiesce) : 0;
}

void instance_close(struct instance *i)
{
	if (!i)
		return;
	close_source(i);
	quiesce_close(i->quiesce);
	record_close(i->record);
	hardware_free(&i->hardware);
	free(i->path);
	domain_close(i->domain);
	virt_close(i->virt);
	pthread_mutex_destroy(&i->lock);
	free(i);
}

int instance_uuid(const char *uri, const char *name, struct uuid_text *out, struct err *err)
{
	autovirt struct virt *v = NULL;
	autodomain struct domain *d = NULL;
	uint8_t uuid[16];

	if (uuid_parse(name, uuid)) {
		uuid_format(uuid, out->text);
		return 0;
	}
	v = virt_open(uri, VIRT_LOOK, err);
	d = v ? domain_find(v, name, err) : NULL;
	if (!d)
		return -1;
	snprintf(out->text, sizeof out->text, "%s", domain_uuid(d));
	return 0;
}
