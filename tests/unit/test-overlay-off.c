// SPDX-License-Identifier: Apache-2.0
//
// An overlay on which a domain has gone off.  What a QEMU would do is made up here, in place of
// some of libvirt's functions; the domain and its state are those of libvirt's test driver.
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "virt/domain.h"
#include "virt/overlay.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define REAL(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

#define START_FLAGS (VIR_DOMAIN_START_PAUSED | VIR_DOMAIN_START_AUTODESTROY)

/* What is true; begin sets it anew. */
static struct {
	const char *disk;   /* what it lies on */
	const char *on_top; /* of the overlay, somebody's */
	bool start_fails, commit_fails, is_away, is_transient, end_hangs;
	bool others_start_it; /* at the moment when we do */
	int has_image;	      /* of its memory; -1: that cannot be told */

	virConnectPtr starter; /* its end is that of the domain */
	bool commits;
	unsigned starts, destroys;
} world;

static struct virt *virt;
static struct domain *domain;
static struct err err;

static char base[] = "/tmp/ccsnap-overlay-off-XXXXXX"; /* a raw file */

#define OVERLAY "/overlay"

static char *layer(const char *element, const char *format, const char *file, const char *below)
{
	return str_format("<%s type='file'%s><%s type='%s'/><source file='%s'/>%s%s</%s>", element,
			  str_equal(element, "disk") ? " device='disk'" : "",
			  str_equal(element, "disk") ? "driver" : "format", format, file,
			  str_equal(element, "disk") ? "<target dev='vda' bus='virtio'/>" : "",
			  below, element);
}

static char *disk_xml(void)
{
	autofree char *below = layer("backingStore", "raw", base, "");
	autofree char *mirror = str_format(
		"%s<mirror type='file' job='active-commit' ready='yes'><source file='%s'/></mirror>",
		below, base);

	if (world.on_top)
		return layer("disk", "qcow2", world.on_top, "");
	if (str_equal(world.disk, base))
		return layer("disk", "raw", base, "");
	return layer("disk", "qcow2", OVERLAY, world.commits ? mirror : below);
}

char *virDomainGetXMLDesc(virDomainPtr dom, unsigned flags)
{
	autofree char *disk = disk_xml();

	(void)dom;
	(void)flags;
	return str_format("<domain type='test'><name>test</name><memory>1</memory><os>"
			  "<type>hvm</type></os><devices>%s</devices></domain>",
			  disk);
}

/* An error of libvirt's. */
static int fail_somehow(virDomainPtr dom)
{
	return REAL(virDomainCreateWithFlags)(dom, ~0U);
}

int virDomainCreateWithFlags(virDomainPtr dom, unsigned flags)
{
	assert_int_equal(flags, START_FLAGS);
	world.starts++;
	if (world.others_start_it)
		assert_int_equal(virDomainCreate(dom), 0);
	if (world.start_fails || world.others_start_it)
		return fail_somehow(dom);
	assert_int_equal(virDomainCreate(dom), 0);
	world.starter = virDomainGetConnect(dom);
	return 0;
}

int virConnectClose(virConnectPtr conn)
{
	virDomainPtr dom;

	if (conn == world.starter && !world.end_hangs) {
		dom = virDomainLookupByName(conn, "test");
		assert_int_equal(REAL(virDomainDestroy)(dom), 0);
		virDomainFree(dom);
	}
	return REAL(virConnectClose)(conn);
}

int virDomainDestroy(virDomainPtr dom)
{
	world.destroys++;
	return REAL(virDomainDestroy)(dom);
}

int virDomainBlockCommit(virDomainPtr dom, const char *disk, const char *below, const char *top,
			 unsigned long bandwidth, unsigned flags)
{
	assert_string_equal(disk, "vda");
	assert_null(below);
	assert_string_equal(top, OVERLAY);
	assert_int_equal(bandwidth, 0);
	assert_int_equal(flags, VIR_DOMAIN_BLOCK_COMMIT_ACTIVE | VIR_DOMAIN_BLOCK_COMMIT_SHALLOW);
	if (world.commit_fails)
		return fail_somehow(dom);
	world.commits = true;
	return 0;
}

int virDomainGetBlockJobInfo(virDomainPtr dom, const char *disk, virDomainBlockJobInfoPtr info,
			     unsigned flags)
{
	(void)dom;
	(void)disk;
	(void)flags;
	info->type = world.commits ? VIR_DOMAIN_BLOCK_JOB_TYPE_ACTIVE_COMMIT : 0;
	return world.commits;
}

int virDomainBlockJobAbort(virDomainPtr dom, const char *disk, unsigned flags)
{
	(void)dom;
	assert_string_equal(disk, "vda");
	assert_int_equal(flags, VIR_DOMAIN_BLOCK_JOB_ABORT_PIVOT);
	assert_true(world.commits);
	world.commits = false;
	world.disk = base;
	return 0;
}

int virDomainGetState(virDomainPtr dom, int *state, int *reason, unsigned flags)
{
	int rc = REAL(virDomainGetState)(dom, state, reason, flags);

	if (world.is_away && *state == VIR_DOMAIN_SHUTOFF)
		*reason = VIR_DOMAIN_SHUTOFF_MIGRATED;
	return rc;
}

int virDomainHasManagedSaveImage(virDomainPtr dom, unsigned flags)
{
	int rc = REAL(virDomainHasManagedSaveImage)(dom, flags);

	return world.has_image < 0 ? fail_somehow(dom) : rc | world.has_image;
}

int virDomainIsPersistent(virDomainPtr dom)
{
	(void)dom;
	return !world.is_transient;
}

/* Pauses take no time. */
static uint64_t now_ns;

uint64_t clock_ns(void)
{
	return now_ns;
}

void clock_sleep_ms(unsigned ms)
{
	now_ns += (uint64_t)ms * 1000000;
}

static int begin(void **state)
{
	int fd;

	(void)state;
	memset(&world, 0, sizeof world);
	world.disk = OVERLAY;
	err = (struct err){ 0 };
	strcpy(strrchr(base, '-'), "-XXXXXX");
	fd = mkstemp(base);
	close(fd);
	virt = virt_open("test:///default", VIRT_MANAGE, &err);
	domain = virt ? domain_find(virt, "test", &err) : NULL;
	return domain && fd >= 0 ? REAL(virDomainDestroy)(domain->dom) : -1;
}

static int end(void **state)
{
	(void)state;
	world.starter = NULL;
	domain_close(domain);
	virt_close(virt);
	return unlink(base);
}

static int end_overlay(void)
{
	return overlay_end(domain, "vda", OVERLAY, &err);
}

static void assert_kept(unsigned starts)
{
	assert_int_equal(end_overlay(), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_int_equal(world.starts, starts);
	assert_string_equal(world.disk, OVERLAY);
	assert_false(domain_is_active(domain));
}

/* --- the claims --- */

static void a_domain_that_is_off_is_put_back_and_off_again(void **state)
{
	(void)state;
	assert_int_equal(end_overlay(), 0);
	assert_string_equal(world.disk, base);
	assert_int_equal(world.starts, 1);
	assert_false(domain_is_active(domain));
	assert_int_equal(world.destroys, 0); /* it has ended with its connection */
}

static void what_does_not_end_by_itself_is_destroyed(void **state)
{
	(void)state;
	world.end_hangs = true;
	assert_int_equal(end_overlay(), 0);
	assert_int_equal(world.destroys, 1);
	assert_false(domain_is_active(domain));
}

static void what_is_put_back_already_is_not_started(void **state)
{
	(void)state;
	world.disk = base;
	assert_int_equal(end_overlay(), 0);
	assert_int_equal(world.starts, 0);
}

static void a_domain_that_does_not_start_stays_as_it_is(void **state)
{
	(void)state;
	world.start_fails = true;
	assert_kept(1);
	assert_non_null(strstr(err.text, "domain test, disk vda: it lies on the overlay " OVERLAY));
	assert_non_null(strstr(err.text, "; domain test: cannot be started, paused, for that: "));
}

static void when_merging_fails_it_is_off_again_as_well(void **state)
{
	(void)state;
	world.commit_fails = true;
	assert_kept(1);
	assert_non_null(strstr(err.text, "the overlay is not merged: "));
}

static void a_domain_with_saved_memory_is_not_started(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(virDomainCreate(domain->dom), 0);
	assert_int_equal(virDomainManagedSave(domain->dom, 0), 0);
	assert_kept(0);
	assert_true(str_ends(err.text, "since its memory is saved"));
	text = overlay_by_hand(domain, "vda", OVERLAY);
	assert_non_null(strstr(text, " start 6695eb01"));
	assert_null(strstr(text, "destroy"));
	free(text);
}

/* Whatever the reason is by which it went off. */
static void a_domain_whose_memory_may_be_saved_is_not_started(void **state)
{
	(void)state;
	world.has_image = 1;
	assert_kept(0);
	world.has_image = -1;
	assert_kept(0);
}

static void a_domain_that_is_elsewhere_is_not_started(void **state)
{
	(void)state;
	world.is_away = true;
	assert_kept(0);
}

static void a_domain_without_a_definition_is_not_started(void **state)
{
	(void)state;
	world.is_transient = true;
	assert_kept(0);
}

static void what_somebody_has_put_upon_it_is_not_started(void **state)
{
	(void)state;
	world.on_top = "/theirs";
	assert_kept(0);
}

static void one_that_somebody_starts_at_that_moment_runs_on(void **state)
{
	(void)state;
	world.others_start_it = true;
	assert_int_equal(end_overlay(), 0);
	assert_string_equal(world.disk, base);
	assert_int_equal(world.starts, 1);
	assert_true(domain_is_active(domain));
	assert_int_equal(world.destroys, 0);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_domain_that_is_off_is_put_back_and_off_again),
		TEST(what_does_not_end_by_itself_is_destroyed),
		TEST(what_is_put_back_already_is_not_started),
		TEST(a_domain_that_does_not_start_stays_as_it_is),
		TEST(when_merging_fails_it_is_off_again_as_well),
		TEST(a_domain_with_saved_memory_is_not_started),
		TEST(a_domain_whose_memory_may_be_saved_is_not_started),
		TEST(a_domain_that_is_elsewhere_is_not_started),
		TEST(a_domain_without_a_definition_is_not_started),
		TEST(what_somebody_has_put_upon_it_is_not_started),
		TEST(one_that_somebody_starts_at_that_moment_runs_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
