// SPDX-License-Identifier: Apache-2.0
#include "base/confine.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All rights of the first Landlock, bits 0 to 12.  What later ones added
 * (rename, truncate, ioctl) needs a file that is open for writing or a
 * directory that can be changed, or is needed on block devices.
 */
#define HANDLED	    ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define FILE_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE)
#define DIR_RIGHTS  (FILE_RIGHTS | LANDLOCK_ACCESS_FS_READ_DIR)

/* Sockets can be refused only where this is known. */
#if defined(__x86_64__) && !defined(__ILP32__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define OUR_ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define OUR_ARCH AUDIT_ARCH_S390X
#elif defined(__riscv) && __riscv_xlen == 64
#define OUR_ARCH AUDIT_ARCH_RISCV64
#endif

/* Of the file that is open as fd itself, and of all below it. */
static int allow(int rules, int fd, uint64_t rights, struct err *err)
{
	const struct landlock_path_beneath_attr rule = { rights, fd };

	/* EBADFD: on a filesystem without a path (memfd, sockets), hence free */
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 &&
	    errno != EBADFD)
		return err_errno(err, ERR_FAILED, "cannot confine a helper");
	return 0;
}

static int allow_path(int rules, const char *path, uint64_t more, struct err *err)
{
	autoclose int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* not on this system */
	return allow(rules, fd, (S_ISDIR(st.st_mode) ? DIR_RIGHTS : FILE_RIGHTS) | more, err);
}

int confine_prepare(const struct confine_config *cfg, int *rules, struct err *err)
{
	const struct landlock_ruleset_attr handled = { .handled_access_fs = HANDLED };
	autoclose int fd = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);

	*rules = CONFINE_NONE;
	if (fd < 0)
		return 0;
	if (allow_path(fd, "/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE, err) < 0)
		return -1;
	for (const char *const *path = cfg->readable; *path; path++)
		if (allow_path(fd, *path, 0, err) < 0)
			return -1;
	if (cfg->program && allow_path(fd, cfg->program, 0, err) < 0)
		return -1;
	for (size_t i = 0; i < cfg->fd_count; i++)
		if (allow(fd, cfg->fds[i], LANDLOCK_ACCESS_FS_READ_FILE, err) < 0)
			return -1;
	*rules = steal_fd(&fd);
	return 0;
}

/* Old kernels without seccomp do without. */
static void refuse_sockets(void)
{
#ifdef OUR_ARCH
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
#endif
}

int confine_enter(int rules)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	if (rules != CONFINE_NONE && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return -1;
	refuse_sockets();
	return 0;
}
