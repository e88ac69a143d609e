// SPDX-License-Identifier: Apache-2.0
#include "source/formats.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "source/nbd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct sockets {
	int fds[NBD_READERS_MAX + 1];
	unsigned count;
};

static void sockets_close(struct sockets *s)
{
	while (s->count > 0)
		close(s->fds[--s->count]);
}

/* What lies there cannot be exchanged for something else meanwhile, and its path may be
 * longer than a socket's name can be.
 */
static int find_socket(const char *path, struct err *err)
{
	autoclose int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot find the NBD server's socket %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_FAILED, "%s is no socket of an NBD server", path);
	return steal_fd(&fd);
}

/* A server that has more clients waiting than it wants says EAGAIN. */
static int wait_for_turn(uint64_t start_ns, struct err *err)
{
	if (interrupt_check(err) < 0)
		return -1;
	if (clock_seconds_since(start_ns) > NBD_CONNECT_SECONDS)
		return err_set(err, ERR_FAILED,
			       "the NBD server took no connection within %d seconds",
			       NBD_CONNECT_SECONDS);
	clock_sleep_ms(20);
	return 0;
}

static int connect_one(const char *path, int place, struct err *err)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const struct sockaddr *any = (const struct sockaddr *)&name;
	uint64_t start = clock_ns();

	snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d", place);
	if (fd < 0)
		return err_errno(err, ERR_FAILED, "cannot make a socket");
	while (connect(fd, any, sizeof name) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return err_errno(err, ERR_FAILED, "cannot connect to the NBD server at %s",
					 path);
		if (wait_for_turn(start, err) < 0)
			return -1;
	}
	return steal_fd(&fd);
}

static int connect_sockets(struct sockets *s, const struct source_export *cfg, struct err *err)
{
	unsigned count = MIN(cfg->connections, NBD_READERS_MAX) + 1;
	autoclose int place = find_socket(cfg->socket, err);

	if (place < 0)
		return -1;
	while (s->count < count) {
		int fd = connect_one(cfg->socket, place, err);

		if (fd < 0)
			return -1;
		s->fds[s->count++] = fd;
	}
	return 0;
}

static struct source *open_disk(const struct source_export *cfg, struct err *err)
{
	CLEANUP(sockets_close) struct sockets sockets = { .count = 0 };
	struct nbd_config nbd = {
		.name = cfg->name,
		.export_name = cfg->export_name,
		.bytes_per_second = cfg->bytes_per_second,
		.stall_seconds = cfg->stall_seconds,
		.sockets = sockets.fds,
	};

	if (connect_sockets(&sockets, cfg, err) < 0)
		return NULL;
	nbd.socket_count = sockets.count;
	sockets.count = 0; /* nbd_source_open has them */
	return nbd_source_open(&nbd, err);
}

struct source *export_open(const struct source_export *cfg, struct err *err)
{
	struct source *src = open_disk(cfg, err);

	if (src)
		src->sector_size = cfg->sector_size;
	else
		err_context(err, "%s", cfg->name);
	return src;
}
