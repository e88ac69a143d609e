// SPDX-License-Identifier: Apache-2.0
#include "base/child.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WORDS_MAX = 64 * 1024, /* of stderr that are kept */
	PATIENCE_MS = 1000,    /* between SIGTERM and SIGKILL */
	PAUSE_MAX_NS = 20 * 1000 * 1000,
	FIRST_FD = 3,
};

struct child {
	pid_t pid;
	int ended; /* reaped: pid means nothing any more */
	int status;
	int stderr_fd;
	char name[64]; /* of the program, for messages */
	char words[512];
};

/* All that the forked process needs: nothing may be allocated or locked there,
 * since another thread may have held the lock when we forked.
 */
struct launch {
	const struct child_config *cfg;
	char **envp;
	char *listen_pid; /* where its number goes in envp, NULL without a socket */
	pid_t parent;
	int std[3];
	int report; /* errno of a failed exec goes here */
	int rules;  /* for confine_enter */
	int *moved; /* room for fd_count descriptors */
};

/* Nothing else is handed on: our environment may hold passwords. */
static const char *const inherited[] = {
	"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "LD_LIBRARY_PATH",
};

/* On top of that: where services and their credentials are. */
static const char *const inherited_by_heirs[] = {
	"XDG_RUNTIME_DIR",   "XDG_CONFIG_HOME",	    "XDG_CACHE_HOME",
	"XDG_DATA_HOME",     "XDG_STATE_HOME",	    "USER",
	"LOGNAME",	     "SSH_AUTH_SOCK",	    "KRB5CCNAME",
	"LIBVIRT_AUTH_FILE", "LIBVIRT_DEFAULT_URI",
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static size_t count_strings(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* Does the list say NAME=? */
static bool is_set_in(const char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return true;
	return false;
}

/* Those of names that are set, behind envp[*n]; returns how many found no memory. */
static size_t inherit(char **envp, size_t *n, const char *const *names, size_t count,
		      const char *const *own)
{
	size_t failed = 0;

	for (size_t i = 0; i < count; i++) {
		const char *value = is_set_in(own, names[i]) ? NULL : getenv(names[i]);

		if (value && (envp[*n] = str_format("%s=%s", names[i], value)))
			++*n;
		else if (value)
			failed++;
	}
	return failed;
}

static char **make_environment(struct launch *launch, struct err *err)
{
	const char *const *own = launch->cfg->env;
	size_t room = COUNT(inherited) + COUNT(inherited_by_heirs) + count_strings(own) + 3;
	autostrings char **envp = calloc(room, sizeof *envp);
	size_t n = 0, failed = 0;

	if (envp)
		failed += inherit(envp, &n, inherited, COUNT(inherited), own);
	if (envp && launch->cfg->bond == CHILD_HEIR)
		failed += inherit(envp, &n, inherited_by_heirs, COUNT(inherited_by_heirs), own);
	for (; envp && own && *own; own++) {
		if ((envp[n] = strdup(*own)))
			n++;
		else
			failed++;
	}
	if (launch->cfg->listen_fd && envp) {
		char *pid = str_format("LISTEN_PID=%20s", "");

		envp[n++] = pid;
		envp[n] = str_format("LISTEN_FDS=1");
		failed += !pid || !envp[n];
		launch->listen_pid = pid ? pid + strlen("LISTEN_PID=") : NULL;
	}
	if (!envp || failed > 0) {
		err_nomem(err);
		return NULL;
	}
	return steal(&envp);
}

/* As printf("%d"), which must not be called after fork. */
static void write_number(char *dst, pid_t number)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (n > 0)
		*dst++ = digits[--n];
	*dst = '\0';
}

static void reset_signals(void)
{
	const struct sigaction fresh = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, &fresh, NULL); /* fails for those that nobody may set */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* To a number from floor on. */
static int move_up(int fd, int floor)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, floor);

	if (moved < 0 && errno == EINVAL)
		errno = EMFILE; /* floor is behind the last one that ulimit -n allows */
	return moved;
}

/* Put the descriptors where the program expects them.  All of them go out of
 * the way first, so that none is overwritten before it was moved.
 */
static int place_descriptors(struct launch *launch)
{
	int count = (int)launch->cfg->fd_count, floor = FIRST_FD + count;
	int report = move_up(launch->report, floor);

	if (report < 0)
		return -1; /* told through the old one, which is still there */
	launch->report = report;
	for (int i = 0; i < 3; i++)
		if ((launch->std[i] = move_up(launch->std[i], floor)) < 0)
			return -1;
	for (int i = 0; i < count; i++)
		if ((launch->moved[i] = move_up(launch->cfg->fds[i], floor)) < 0)
			return -1;
	for (int i = 0; i < 3; i++)
		if (dup2(launch->std[i], i) < 0)
			return -1;
	for (int i = 0; i < count; i++)
		if (dup2(launch->moved[i], FIRST_FD + i) < 0)
			return -1;
	/* Ours are all O_CLOEXEC; this is for what was open when we started. */
	close_range((unsigned)floor, ~0U, CLOSE_RANGE_CLOEXEC);
	return 0;
}

static const char *program_of(const struct child_config *cfg)
{
	return cfg->program ? cfg->program : cfg->argv[0];
}

/* The forked process, up to exec. */
static void become(struct launch *launch)
{
	char **argv = (char **)(uintptr_t)launch->cfg->argv;
	bool is_heir = launch->cfg->bond == CHILD_HEIR;
	int cause;

	if (!is_heir)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!is_heir && getppid() != launch->parent)
		_exit(127); /* it died before the line above */
	setsid();	    /* Ctrl-C is for us to handle */
	reset_signals();
	if (launch->listen_pid)
		write_number(launch->listen_pid, getpid());
	/* Confined first: the rules' own number may be taken by another. */
	if ((!launch->cfg->readable || confine_enter(launch->rules) == 0) &&
	    place_descriptors(launch) == 0)
		execvpe(program_of(launch->cfg), argv, launch->envp);
	cause = errno;
	if (write(launch->report, &cause, sizeof cause) < 0)
		_exit(126);
	_exit(127);
}

/* A file of a fixed size: the child can neither block on it nor fill our
 * memory, and where it has got to is the offset that we share with it.
 */
static int open_stderr(struct err *err)
{
	autoclose int fd = memfd_create("stderr", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, WORDS_MAX) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return err_errno(err, ERR_FAILED, "cannot keep the messages of a helper");
	return steal_fd(&fd);
}

/* errno of the failed exec, 0 when the program runs. */
static int exec_error(int report)
{
	int cause = 0;
	ssize_t n;

	do {
		n = read(report, &cause, sizeof cause);
	} while (n < 0 && errno == EINTR);
	return n == sizeof cause ? cause : 0;
}

static int launch_child(struct child *child, struct launch *launch, struct err *err)
{
	const char *program = launch->cfg->argv[0];
	autoclose int report_read = -1, report_write = -1;
	int report[2];

	if (pipe2(report, O_CLOEXEC) < 0)
		return err_errno(err, ERR_FAILED, "cannot start %s", program);
	report_read = report[0];
	report_write = launch->report = report[1];
	launch->parent = getpid();
	child->pid = fork();
	if (child->pid < 0)
		return err_errno(err, ERR_FAILED, "cannot start %s", program);
	if (child->pid == 0)
		become(launch);
	close(steal_fd(&report_write));
	errno = exec_error(report_read);
	if (errno == 0)
		return 0;
	err_errno(err, ERR_FAILED, "cannot start %s", program);
	child_wait(child);
	return -1;
}

/* The file that execvpe will find, NULL for none. */
static char *find_program(const char *name)
{
	const char *dir = strchr(name, '/') ? "" : getenv("PATH"), *end;

	for (; dir && *dir; dir = *end ? end + 1 : end) {
		autofree char *path = NULL;

		end = dir + strcspn(dir, ":");
		path = str_format("%.*s/%s", (int)(end - dir), dir, name);
		if (path && access(path, X_OK) == 0)
			return steal(&path);
	}
	return strdup(name);
}

static int prepare_rules(const struct child_config *cfg, int *rules, struct err *err)
{
	autofree char *program = find_program(program_of(cfg));
	const struct confine_config confine = {
		.readable = cfg->readable,
		.program = program,
		.fds = cfg->fds,
		.fd_count = cfg->fd_count,
	};

	return cfg->readable ? confine_prepare(&confine, rules, err) : 0;
}

static void name_child(struct child *child, const char *program)
{
	const char *slash = strrchr(program, '/');

	snprintf(child->name, sizeof child->name, "%s", slash ? slash + 1 : program);
}

struct child *child_start(const struct child_config *cfg, struct err *err)
{
	struct launch launch = { .cfg = cfg };
	autostrings char **envp = make_environment(&launch, err);
	autofree int *moved = calloc(cfg->fd_count + 1, sizeof *moved);
	autochild struct child *child = calloc(1, sizeof *child);
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	autoclose int out_read = -1, out_write = -1, rules = CONFINE_NONE;
	int out[2];

	if (!envp || prepare_rules(cfg, &rules, err) < 0)
		return NULL;
	if (!child || !moved) {
		err_nomem(err);
		return NULL;
	}
	child->ended = 1; /* nothing to reap yet */
	child->stderr_fd = -1;
	name_child(child, cfg->argv[0]);
	if (cfg->bond == CHILD_HELPER && (child->stderr_fd = open_stderr(err)) < 0)
		return NULL;
	if (null < 0 || (cfg->stdout_fd && pipe2(out, O_CLOEXEC) < 0)) {
		err_errno(err, ERR_FAILED, "cannot start %s", cfg->argv[0]);
		return NULL;
	}
	if (cfg->stdout_fd) {
		out_read = out[0];
		out_write = out[1];
	}
	launch.envp = envp;
	launch.moved = moved;
	launch.rules = rules;
	launch.std[0] = null;
	launch.std[1] = cfg->stdout_fd ? out_write : cfg->stdout_file ? *cfg->stdout_file : null;
	launch.std[2] = cfg->bond == CHILD_HELPER ? child->stderr_fd : STDERR_FILENO;
	child->ended = 0;
	if (launch_child(child, &launch, err) < 0) {
		child->ended = 1;
		return NULL;
	}
	if (cfg->stdout_fd)
		*cfg->stdout_fd = steal_fd(&out_read);
	return steal(&child);
}

const char *child_last_words(struct child *child)
{
	off_t end = child->stderr_fd < 0 ? 0 : lseek(child->stderr_fd, 0, SEEK_CUR);
	off_t start =
		end > (off_t)sizeof child->words - 1 ? end - (off_t)sizeof child->words + 1 : 0;
	ssize_t n =
		end > 0 ? pread(child->stderr_fd, child->words, (size_t)(end - start), start) : 0;
	char *line;

	while (n > 0 && strchr("\r\n \t", child->words[n - 1]))
		n--; /* NUL counts as blank, too: strchr finds its own end */
	child->words[n > 0 ? n : 0] = '\0';
	line = strrchr(child->words, '\n');
	return line ? line + 1 : child->words;
}

static int say_unknown_file(int dir, const char *fd, struct err *err)
{
	char target[512];
	ssize_t n = readlinkat(dir, fd, target, sizeof target - 1);

	target[n > 0 ? n : 0] = '\0';
	return err_set(err, ERR_FAILED, "its helper has opened another file: %s", target);
}

int child_check_files(const struct child *child,
		      int (*is_known)(const void *ctx, const struct stat *st), const void *ctx,
		      struct err *err)
{
	autofree char *path = str_format("/proc/%d/fd", (int)child->pid);
	autodir DIR *dir = path ? opendir(path) : NULL;
	const struct dirent *entry;
	struct stat st;

	if (!dir && child->ended)
		return 0;
	if (!dir)
		return err_errno(err, ERR_FAILED, "cannot tell which files its helper has open");
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) < FIRST_FD ||
		    fstatat(dirfd(dir), entry->d_name, &st, 0) < 0)
			continue;
		if ((S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)) && !is_known(ctx, &st))
			return say_unknown_file(dirfd(dir), entry->d_name, err);
	}
	return 0;
}

/* 1 when it has ended, 0 when it still runs. */
static int reap(struct child *child, int options)
{
	pid_t pid = 0;

	while (!child->ended && (pid = waitpid(child->pid, &child->status, options)) < 0 &&
	       errno == EINTR)
		continue;
	if (pid != 0)
		child->ended = 1;
	return child->ended;
}

int child_wait(struct child *child)
{
	reap(child, 0);
	return child->status;
}

/* Without the program's name or path that many put in front. */
static const char *without_name(const struct child *child, const char *words)
{
	const char *name = strstr(words, child->name);
	const char *end = name ? name + strlen(child->name) : words;

	if (name && str_starts(end, ": ") && strcspn(words, " :") == (size_t)(end - words))
		return end + strlen(": ");
	return words;
}

static int say_failure(struct child *child, struct err *err)
{
	const char *words = without_name(child, child_last_words(child));
	const char *colon = *words ? ": " : "";
	int len = (int)strlen(words) - str_ends(words, ".");

	if (WIFSIGNALED(child->status))
		return err_set(err, ERR_FAILED, "%s was killed by signal %d%s%.*s", child->name,
			       WTERMSIG(child->status), colon, len, words);
	return err_set(err, ERR_FAILED, "%s failed with status %d%s%.*s", child->name,
		       WEXITSTATUS(child->status), colon, len, words);
}

int child_expect_success(struct child *child, struct err *err)
{
	struct timespec pause = { .tv_nsec = 100 * 1000 };

	while (!reap(child, WNOHANG)) {
		if (interrupt_check(err) < 0)
			return -1;
		nanosleep(&pause, NULL);
		pause.tv_nsec = MIN(2 * pause.tv_nsec, PAUSE_MAX_NS);
	}
	if (WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0)
		return 0;
	return say_failure(child, err);
}

int child_has_ended(struct child *child)
{
	return reap(child, WNOHANG);
}

void child_leave(struct child *child)
{
	if (!child)
		return;
	if (child->stderr_fd >= 0)
		close(child->stderr_fd);
	free(child);
}

void child_stop(struct child *child)
{
	uint64_t start = clock_ns();

	if (!child)
		return;
	if (!reap(child, WNOHANG))
		kill(child->pid, SIGTERM);
	while (!reap(child, WNOHANG) && clock_seconds_since(start) * 1000 < PATIENCE_MS)
		clock_sleep_ms(5);
	if (!child->ended) {
		kill(child->pid, SIGKILL);
		child_wait(child);
	}
	child_leave(child);
}
