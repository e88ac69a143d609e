// SPDX-License-Identifier: Apache-2.0
#include "quiesce/scratch_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACCOUNT_BYTES = 64 * 1024 }; /* one line of passwd or group */

/* --- who --- */

/* Digits and nothing else, as an id that means something. */
static int parse_id(const char *text, uint32_t *id)
{
	uint64_t n = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n >= UINT32_MAX) /* which is "no change" */
			return -1;
	}
	*id = (uint32_t)n;
	return 0;
}

static int find_user(const char *name, uid_t *uid)
{
	autofree char *buffer = malloc(ACCOUNT_BYTES);
	struct passwd entry, *found = NULL;

	if (buffer)
		getpwnam_r(name, &entry, buffer, ACCOUNT_BYTES, &found);
	if (found)
		*uid = found->pw_uid;
	return found ? 0 : -1;
}

static int find_group(const char *name, gid_t *gid)
{
	autofree char *buffer = malloc(ACCOUNT_BYTES);
	struct group entry, *found = NULL;

	if (buffer)
		getgrnam_r(name, &entry, buffer, ACCOUNT_BYTES, &found);
	if (found)
		*gid = found->gr_gid;
	return found ? 0 : -1;
}

/* As libvirt reads them: +NUMBER, else a name, else a number. */
static int read_id(const char *text, int (*find)(const char *name, uint32_t *id), uint32_t *id)
{
	if (*text == '+')
		return parse_id(text + 1, id);
	return *text && find(text, id) == 0 ? 0 : parse_id(text, id);
}

/* What libvirt gives a QEMU: the groups that the account has. */
static void add_groups(struct qemu_user *user)
{
	autofree char *buffer = malloc(ACCOUNT_BYTES);
	struct passwd entry, *found = NULL;
	int count = QEMU_GROUPS;

	user->groups[0] = user->gid;
	user->group_count = 1;
	if (buffer)
		getpwuid_r(user->uid, &entry, buffer, ACCOUNT_BYTES, &found);
	if (found && getgrouplist(found->pw_name, user->gid, user->groups, &count) >= 0)
		user->group_count = (size_t)count;
}

int qemu_user_find(const char *label, struct qemu_user *out, struct err *err)
{
	autofree char *text = label ? strdup(label) : NULL;
	char *colon = text ? strchr(text, ':') : NULL;

	*out = (struct qemu_user){ .uid = geteuid(), .gid = getegid() };
	if (!label)
		return 0;
	if (!text)
		return err_nomem(err);
	if (colon)
		*colon = '\0';
	if (read_id(text, find_user, &out->uid) < 0 ||
	    (colon && read_id(colon + 1, find_group, &out->gid) < 0))
		return err_set(err, ERR_REFUSED,
			       "the domain's QEMU runs as '%s', and this host has no such user "
			       "and group",
			       label);
	add_groups(out);
	return 0;
}

bool qemu_user_is_us(const struct qemu_user *user)
{
	return user->uid == geteuid();
}

/* --- a try --- */

enum verdict { ALL_WELL, CANNOT_BECOME, CANNOT_ENTER, CANNOT_WRITE, NO_SOCKETS };

struct finding {
	enum verdict verdict;
	int cause;    /* errno */
	size_t depth; /* so many bytes of the path lead to what is in the way */
};

/* All that a forked process needs: nothing may be allocated or locked there. */
struct trial {
	const struct qemu_user *user;
	const char *dir;
	char *path; /* a copy of dir, to be cut */
	char *probe;
};

static struct finding found(enum verdict verdict, size_t depth)
{
	return (struct finding){ verdict, errno, depth };
}

static struct finding try_way(const struct trial *t)
{
	for (size_t i = 1;; i++) {
		char c = t->path[i];
		int rc;

		if (c != '/' && c != '\0')
			continue;
		t->path[i] = '\0';
		rc = faccessat(AT_FDCWD, t->path, X_OK, AT_EACCESS);
		t->path[i] = c;
		if (rc < 0)
			return found(CANNOT_ENTER, i);
		if (c == '\0')
			return found(ALL_WELL, i);
	}
}

static struct finding try_all(const struct trial *t)
{
	struct finding way = try_way(t);
	int fd;

	if (way.verdict != ALL_WELL)
		return way;
	fd = open(t->probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return found(CANNOT_WRITE, way.depth);
	close(fd);
	if (unlink(t->probe) < 0)
		return found(CANNOT_WRITE, way.depth);
	if (mknod(t->probe, S_IFSOCK | 0600, 0) < 0)
		return found(NO_SOCKETS, way.depth);
	unlink(t->probe);
	return way;
}

/* System calls as they are: the C library's would tell other threads, of which the forked
 * process has none, but perhaps their locks.
 */
static int become(const struct qemu_user *user)
{
	if (syscall(SYS_setgroups, user->group_count, user->groups) < 0 ||
	    syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0 ||
	    syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
		return -1;
	return 0;
}

/* When it hangs, it holds nothing else: the lock of a record goes with the open file. */
static void keep_only(int fd)
{
	if (fd > 0)
		close_range(0, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0U, 0);
}

/* A process of its own, not setfsuid in this thread: the groups, and what root may do, go with
 * the user, and however it ends, no thread of ours goes on with the rights of another.
 */
static int try_in_fork(const struct trial *t, struct finding *out, struct err *err)
{
	ssize_t n;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, ERR_FAILED, "cannot try %s", t->dir);
	pid = fork();
	if (pid == 0) {
		keep_only(ends[1]);
		*out = become(t->user) < 0 ? found(CANNOT_BECOME, 0) : try_all(t);
		_exit(write(ends[1], out, sizeof *out) == sizeof *out ? 0 : 1);
	}
	close(ends[1]);
	do
		n = pid < 0 ? 0 : read(ends[0], out, sizeof *out);
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return n == sizeof *out ? 0 : err_set(err, ERR_FAILED, "cannot try %s", t->dir);
}

static int explain(const struct trial *t, const struct finding *f, struct err *err)
{
	static const char *const what[] = {
		[CANNOT_BECOME] = "cannot try the rights",
		[CANNOT_ENTER] = "cannot be entered",
		[CANNOT_WRITE] = "cannot be written",
		[NO_SOCKETS] = "can hold no socket",
	};
	const char *advice = f->verdict == CANNOT_ENTER ? "open it (chmod o+x), or use another "
							  "--scratch-dir"
							: "use another --scratch-dir";

	errno = f->cause;
	err_errno(err, ERR_REFUSED, "%.*s%s%s by the user that QEMU runs as (%u)", (int)f->depth,
		  t->dir, f->depth > 0 ? " " : "", what[f->verdict], t->user->uid);
	return err_hint(err, "%s", advice);
}

int qemu_user_try(const struct qemu_user *user, const char *dir, struct err *err)
{
	autofree char *path = strdup(dir);
	autofree char *probe = str_format("%s/try", dir);
	const struct trial trial = { user, dir, path, probe };
	struct finding finding;

	if (!path || !probe)
		return err_nomem(err);
	if (qemu_user_is_us(user))
		finding = try_all(&trial);
	else if (try_in_fork(&trial, &finding, err) < 0)
		return -1;
	return finding.verdict == ALL_WELL ? 0 : explain(&trial, &finding, err);
}
