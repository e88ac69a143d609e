// SPDX-License-Identifier: Apache-2.0
#include "source/formats.h"

#include "base/child.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "source/extent.h"
#include "source/graph.h"
#include "source/nbd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Formats that QEMU knows: a read-only qemu-nbd of our own reads them.  It
 * gets every file as a descriptor and its socket from us, so it opens nothing
 * by name and is reachable for nobody else.
 */

/* What qemu-nbd needs of the system: its libraries and modules (NixOS and Guix
 * have theirs in a store), and settings of the libraries that it is linked to.
 * Nothing here is anybody's secret.
 */
static const char *const readable[] = {
	"/usr",
	"/lib",
	"/lib32",
	"/lib64",
	"/bin", /* a wrapper's shell */
	"/nix/store",
	"/gnu/store",
	"/etc/ld.so.cache",
	"/etc/ld.so.preload",
	"/etc/ssl/openssl.cnf",
	"/etc/pki/tls/openssl.cnf",
	"/etc/crypto-policies",
	"/etc/gnutls",
	"/sys/devices/system/cpu",
	"/sys/devices/system/node",
	"/dev/urandom",
	NULL,
};

struct qemu_disk {
	struct source source;
	struct graph graph;
	struct child *child;
	struct source *nbd;
	int believe_holes;
};

static struct qemu_disk *qemu_of(struct source *src)
{
	return (struct qemu_disk *)src;
}

static int qemu_extents(struct source *src, uint64_t offset, uint64_t length,
			struct extent_list *out, struct err *err)
{
	struct qemu_disk *disk = qemu_of(src);

	if (!disk->believe_holes)
		return extent_list_add(out, offset, length, false, err);
	return disk->nbd->ops->extents(disk->nbd, offset, length, out, err);
}

static int qemu_read_at(struct source *src, void *buf, size_t len, uint64_t offset, struct err *err)
{
	struct source *nbd = qemu_of(src)->nbd;

	return nbd->ops->read_at(nbd, buf, len, offset, err);
}

static void qemu_abort(struct source *src)
{
	source_abort(qemu_of(src)->nbd);
}

static int is_ours(const void *ctx, const struct stat *st)
{
	return graph_has(ctx, st);
}

/* An image that changed between our look at its headers and QEMU's own may
 * have led it elsewhere: where nothing keeps it from opening what it is told
 * to, what it has open still shows it.
 */
static int check_open_files(const struct qemu_disk *disk, struct err *err)
{
	return child_check_files(disk->child, is_ours, &disk->graph, err);
}

static int qemu_check(struct source *src, struct err *err)
{
	const struct qemu_disk *disk = qemu_of(src);

	return check_open_files(disk, err) < 0 ? -1 : graph_check(&disk->graph, err);
}

static void qemu_close(struct source *src)
{
	struct qemu_disk *disk = qemu_of(src);

	source_close(disk->nbd);
	child_stop(disk->child);
	graph_close(&disk->graph);
	free(src->name);
	free(disk);
}

static const struct source_ops qemu_ops = {
	.name = "qemu-nbd",
	.extents = qemu_extents,
	.read_at = qemu_read_at,
	.abort = qemu_abort,
	.check = qemu_check,
	.close = qemu_close,
};

/* The two ends of what qemu-nbd will serve. */
struct sockets {
	int listening;
	int *clients;
	unsigned count;
};

static void sockets_close(struct sockets *sockets)
{
	if (sockets->listening >= 0)
		close(sockets->listening);
	for (unsigned i = 0; i < sockets->count; i++)
		close(sockets->clients[i]);
	free(sockets->clients);
}

/* The name goes through the directory's descriptor, since a path may be longer
 * than a socket's name can be.
 */
static int connect_sockets(struct sockets *sockets, int dir, unsigned count)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const struct sockaddr *any = (const struct sockaddr *)&name;

	snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d/s", dir);
	sockets->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sockets->listening < 0 || bind(sockets->listening, any, sizeof name) < 0 ||
	    listen(sockets->listening, (int)count) < 0)
		return -1;
	while (sockets->count < count) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return -1;
		sockets->clients[sockets->count++] = fd;
		if (connect(fd, any, sizeof name) < 0)
			return -1;
	}
	return 0;
}

/* A new directory for us alone.  Returns its descriptor, its path in *path. */
static int make_private_dir(char **path)
{
	const char *const places[] = { getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		autofree char *name =
			places[i] && *places[i] ? str_format("%s/ccsnap-XXXXXX", places[i]) : NULL;
		int fd;

		if (!name || !mkdtemp(name))
			continue;
		fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0) {
			*path = steal(&name);
			return fd;
		}
		rmdir(name);
	}
	return -1;
}

/* All connections wait in the socket's queue before there is a server, so its
 * name can go at once: nothing is left behind however we end.
 */
static int open_sockets(struct sockets *sockets, unsigned count, struct err *err)
{
	autofree char *path = NULL;
	autoclose int dir = make_private_dir(&path);
	int rc;

	sockets->clients = calloc(count, sizeof *sockets->clients);
	if (!sockets->clients)
		return err_nomem(err);
	if (dir < 0)
		return err_errno(err, ERR_REFUSED,
				 "cannot make a private directory under $TMPDIR or /tmp");
	rc = connect_sockets(sockets, dir, count);
	if (rc < 0)
		err_errno(err, ERR_FAILED, "cannot make a private socket");
	unlinkat(dir, "s", 0);
	rmdir(path);
	return rc;
}

static int start_server(struct qemu_disk *disk, const struct source_config *cfg, int listening,
			unsigned count, struct err *err)
{
	autofree char *json = graph_json(&disk->graph, cfg->intent, err);
	autofree int *fds = calloc(disk->graph.file_count + 1, sizeof *fds);
	char shared[16];
	const char *const argv[] = { "qemu-nbd", "--read-only", "--persistent", "--shared", shared,
				     json,	 NULL };
	const struct child_config child = {
		.argv = argv,
		.fds = fds,
		.fd_count = disk->graph.file_count + 1,
		.listen_fd = 1,
		.readable = readable,
	};

	if (!json)
		return -1;
	if (!fds)
		return err_nomem(err);
	snprintf(shared, sizeof shared, "%u", count);
	fds[0] = listening;
	for (size_t i = 0; i < disk->graph.file_count; i++)
		fds[i + 1] = disk->graph.files[i].fd;
	disk->child = child_start(&child, err);
	if (disk->child)
		return 0;
	if (err->sys_errno == ENOENT)
		return err_set(err, ERR_REFUSED,
			       "qemu-nbd is needed to read %s images and was not found; install "
			       "the package qemu-utils",
			       cfg->format);
	return -1;
}

/* What qemu-nbd had to say, without the file name that we gave it, and with
 * the real names of the files that it knows by number.
 */
static int say_refusal(const struct qemu_disk *disk, struct err *err)
{
	static const char fd_path[] = "/proc/self/fd/";
	const char *words = child_last_words(disk->child), *next;
	char text[sizeof err->text] = "";
	size_t len = 0;

	while ((next = strstr(words, "}': ")))
		words = next + strlen("}': ");
	if (*words == '\0')
		return -1; /* what libnbd said is all we know */
	while (*words && len + 1 < sizeof text) {
		char *end = NULL;
		unsigned long number = 0;

		if (str_starts(words, fd_path))
			number = strtoul(words + strlen(fd_path), &end, 10);
		if (end && number >= GRAPH_FIRST_FD &&
		    number - GRAPH_FIRST_FD < disk->graph.file_count) {
			len += (size_t)snprintf(text + len, sizeof text - len, "%s",
						disk->graph.files[number - GRAPH_FIRST_FD].name);
			len = MIN(len, sizeof text - 1);
			words = end;
		} else {
			text[len++] = *words++;
		}
	}
	text[len] = '\0';
	return err_set(err, ERR_REFUSED, "qemu-nbd cannot read it: %s", text);
}

/* What QEMU shows must be all that the headers promise. */
static int check_size(const struct qemu_disk *disk, struct err *err)
{
	uint64_t size = round_up(disk->graph.size, 512);

	if (disk->nbd->size == size && disk->nbd->padding == 0)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "damaged: it says that its disk has %llu bytes, but %llu can be read",
		       (unsigned long long)disk->graph.size,
		       (unsigned long long)(disk->nbd->size - disk->nbd->padding));
}

static int connect_server(struct qemu_disk *disk, const struct source_config *cfg, struct err *err)
{
	unsigned count = MIN(cfg->connections, NBD_READERS_MAX) + 1;
	CLEANUP(sockets_close) struct sockets sockets = { .listening = -1 };
	struct nbd_config nbd = {
		.name = disk->source.name,
		.export_name = "",
		.bytes_per_second = cfg->bytes_per_second,
	};

	if (open_sockets(&sockets, count, err) < 0 ||
	    start_server(disk, cfg, sockets.listening, count, err) < 0)
		return -1;
	/* Ours goes: if the server dies now, the connections die with it. */
	close(steal_fd(&sockets.listening));
	nbd.sockets = sockets.clients;
	nbd.socket_count = sockets.count;
	sockets.count = 0; /* nbd_source_open has them */
	disk->nbd = nbd_source_open(&nbd, err);
	if (!disk->nbd)
		return err->kind == ERR_INTERRUPTED ? -1 : say_refusal(disk, err);
	return check_open_files(disk, err) < 0 ? -1 : check_size(disk, err);
}

struct source *qemu_open(const struct source_config *cfg, struct err *err)
{
	struct qemu_disk *disk = calloc(1, sizeof *disk);

	if (!disk || !(disk->source.name = strdup(cfg->path))) {
		free(disk);
		err_nomem(err);
		return NULL;
	}
	disk->source.ops = &qemu_ops;
	if (graph_open(&disk->graph, cfg, err) < 0) {
		qemu_close(&disk->source);
		return NULL;
	}
	if (connect_server(disk, cfg, err) < 0) {
		err_context(err, "%s", cfg->path);
		qemu_close(&disk->source);
		return NULL;
	}
	disk->source.size = disk->nbd->size;
	disk->source.padding = disk->nbd->padding;
	disk->source.sector_size = disk->graph.sector_size;
	disk->believe_holes = cfg->intent == SOURCE_LOOK || graph_is_synced(&disk->graph);
	return &disk->source;
}
