/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_VIRT_INNER_H
#define CCSNAP_VIRT_INNER_H

#include "base/err.h"
#include "virt/errand.h"
#include "virt/virt.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <stdbool.h>
#include <stddef.h>

/* What the files of src/virt/ share, and nobody else sees. */
struct domain_status;
struct hardware;
struct virt_disk;

struct domain {
	virDomainPtr dom;
	struct virt *virt; /* borrowed */
	char *name;
	char uuid[VIR_UUID_STRING_BUFLEN];
	unsigned agent_seconds; /* the patience that we have set; 0: none */
};

virConnectPtr virt_connection(const struct virt *v);

/* What libvirt said last in this thread, behind "WHAT: " (virt/error.c): one line, without
 * libvirt's own preambles and full stop, with advice where a table there has some.  Returns -1.
 * Call it before any other call of libvirt, which forgets the error.
 */
int virt_fail(struct err *err, enum err_kind kind, const char *what, ...)
	__attribute__((format(printf, 3, 4)));

/* Room for what libvirt says, with advice. */
enum { VIRT_WORDS_CAP = 448 };

/* Its code (enum virErrorNumber), VIR_ERR_OK when there was none. */
int virt_last_code(void);

/* The same words and advice alone; returns text. */
char *virt_last_words(char *text, size_t cap);

/* Those of any error; NULL: there is none. */
char *virt_words(const virError *e, char *text, size_t cap);

/* The domain's XML (malloc), by flags of virDomainGetXMLDesc; NULL with err filled. */
char *domain_xml(struct domain *d, unsigned flags, enum errand_wait wait, struct err *err);

/* domain_hardware and domain_disk_path, for those who are to be cut short by a signal and for
 * those who are not.
 */
int domain_read_hardware(struct domain *d, enum errand_wait wait, struct hardware *out,
			 struct err *err);
char *domain_find_path(struct domain *d, const struct virt_disk *disk, enum errand_wait wait,
		       struct err *err);

/* Is it defined, so that it is there when it does not run?  False also when nothing answers. */
bool domain_is_persistent(const struct domain *d);

/* 1, 0, -1; of a driver that cannot save memory none is there. */
int domain_has_saved_image(struct domain *d, enum errand_wait wait, struct err *err);

/* Once per process, before the first connection (virt/events.c). */
int virt_events_start(struct err *err);

/* By the URI alone (virt/place.c). */
enum virt_place virt_place_of(const char *uri);

/* libvirt's state and reason in our words (virt/domain_state.c). */
void domain_state_name(int state, int reason, struct domain_status *out);

/* Into *out, when a job of that operation keeps the domain from being captured. */
void domain_job_name(int operation, struct domain_status *out);

#endif
