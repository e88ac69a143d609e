// SPDX-License-Identifier: Apache-2.0
#include "system/identity_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/bootfiles.h"
#include "system/edit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the machine is called: its ID, kernel arguments that speak of it, and its names
 * on storage networks.
 */

/* --- kernel arguments --------------------------------------------------------- */

struct arguments {
	struct edit *edit;
	const char *const *names;
	const char *why; /* NULL: only look */
	bool found;
};

static int write_without(const struct arguments *a, const struct bootfile *file,
			 const struct text *text, unsigned changes, struct err *err)
{
	autofree char *besides = boot_changes_text(changes & ~(unsigned)CHANGE_UNWANTED);
	autofree char *why =
		besides ? str_format("%s%s%s", a->why, *besides ? "; " : "", besides) : NULL;

	if (!why)
		return err_nomem(err);
	return edit_write(a->edit, file->path, text->at ? text->at : "", text->len, why, err);
}

static int look_for_arguments(void *ctx, const struct bootfile *file, struct err *err)
{
	struct arguments *a = ctx;
	struct grubcfg cfg = { .cmdline = { .unwanted = a->names } };
	autotext struct text out = { 0 };

	if (!file->text.at)
		return 0;
	bootfile_rewrite(file->kind, file->text, &cfg, &out);
	if (text_check(&out, err) < 0)
		return -1;
	if (!(cfg.cmdline.changes & CHANGE_UNWANTED))
		return 0;
	a->found = true;
	return a->why ? write_without(a, file, &out, cfg.cmdline.changes, err) : 1;
}

bool identity_has_argument(struct edit *e, const char *name)
{
	const char *const names[] = { name, NULL };
	struct arguments a = { .edit = e, .names = names };
	struct err ignored; /* whoever writes these files will say so */

	return bootfiles_walk(e, look_for_arguments, &a, &ignored) >= 0 && a.found;
}

int identity_remove_argument(struct edit *e, const char *name, const char *why, struct err *err)
{
	const char *const names[] = { name, NULL };
	struct arguments a = { .edit = e, .names = names, .why = why };

	return bootfiles_walk(e, look_for_arguments, &a, err) < 0 ? -1 : 0;
}

/* --- the machine ID ------------------------------------------------------------ */

static const char machine_id[] = "etc/machine-id", dbus_id[] = "var/lib/dbus/machine-id";

/* Without any, an etc that is read-only at first stays without. */
static int make_if_missing(struct edit *e, struct err *err)
{
	uint32_t etc = model_resolve(e->model, "etc", MODEL_FOLLOW);

	if (etc == MODEL_NONE || !S_ISDIR(e->model->nodes[etc].mode) ||
	    model_resolve(e->model, machine_id, MODEL_NOFOLLOW) != MODEL_NONE ||
	    (!edit_exists(e, "usr/lib/systemd/systemd") && !edit_exists(e, "lib/systemd/systemd")))
		return 0;
	return edit_create(e, machine_id, "", 0, 0444,
			   "made, empty: an ID is written to it at the next boot", err);
}

static int remove_copy(struct edit *e, struct err *err)
{
	uint32_t copy = model_resolve(e->model, dbus_id, MODEL_FOLLOW);

	if (copy == MODEL_NONE || (copy == model_resolve(e->model, machine_id, MODEL_NOFOLLOW) &&
				   copy != model_resolve(e->model, dbus_id, MODEL_NOFOLLOW)))
		return 0; /* not there, or a link to the one above */
	return edit_remove(e, dbus_id, "D-Bus's copy of the machine ID", err);
}

int identity_machine_id(struct edit *e, struct err *err)
{
	if (edit_empty(e, machine_id, "a new one is made at the next boot", err) < 0 ||
	    remove_copy(e, err) < 0 || make_if_missing(e, err) < 0)
		return -1;
	return identity_remove_argument(e, "systemd.machine_id=",
					"systemd.machine_id= left out of the kernel arguments: all "
					"copies would have the same ID",
					err);
}

/* --- storage -------------------------------------------------------------------- */

static const struct {
	const char *path, *word; /* that is in it */
} storage_names[] = {
	{ "etc/iscsi/initiatorname.iscsi", "InitiatorName=" },
	{ "etc/nvme/hostnqn", "nqn." },
	{ "etc/nvme/hostid", "-" },
};

void identity_tell_storage(struct edit *e)
{
	for (size_t i = 0; i < sizeof storage_names / sizeof *storage_names; i++) {
		autofree char *text = identity_text(e, storage_names[i].path);

		if (text && identity_mentions(text, storage_names[i].word))
			identity_keep(e, storage_names[i].path,
				      "identifies this machine to its storage; nothing makes a "
				      "new one");
	}
}
