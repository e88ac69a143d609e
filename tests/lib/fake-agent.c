// SPDX-License-Identifier: Apache-2.0
//
// A guest agent that misbehaves.  Runs in the mini guest (see make-mini-guest) in the place
// of qemu-ga, so that libvirt and QEMU between it and the program under test are the real ones.
//
//	fake-agent PORT MODE[:SECONDS]
//
//	honest           does what qemu-ga would do
//	silent           reads everything, answers nothing
//	silent-freeze    answers all but a freeze, which it does not do
//	mute-freeze      does freeze, and does not say so
//	slow             freezes at once, says so after SECONDS (default 5)
//	late             freezes after SECONDS, and then says so
//	slow-thaw        thaws at once, says so after SECONDS
//	late-thaw        thaws after SECONDS, and then says so
//	refuse-freeze    GenericError
//	refuse-thaw      GenericError, three times; then it thaws
//	disabled         CommandNotFound for all of fsfreeze
//	freezes-nothing  0 filesystems
//	lies             3 frozen, 1 thawed; in truth 1 each
//	huge, negative   counts like that
//	text             the count is a word
//	garbage          bytes that are no JSON instead of an answer to a freeze, which it does;
//	                 libvirt 9 speaks to it no more until libvirtd is restarted
//	zeros            the same with zeros in it: libvirt 9 speaks, but hears nothing until then
//	flood            megabytes of text in an answer to a freeze, which it does
//	babble           garbage for everything
//	half             freezes, ends in mid-answer; comes back honest when it is started again
//	frozen-already   frozen when it starts, as if by somebody else; honest otherwise
//
// Where there is a disk /dev/vdb, its first sector tells the mode, with a newline behind it, and
// may be written to at any time: "agent TIME_MS is MODE" then tells that it is so.
//
// Each command is told to the standard output as "agent TIME_MS COMMAND", and what happens to
// /data as "agent TIME_MS frozen|thawed COUNT"; times are CLOCK_BOOTTIME.
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define DIED_IN_HALF "/run/fake-agent-died"
#define MODE_DISK    "/dev/vdb"
#define SECTOR	     512

static int port = -1;
static char mode[32];
static unsigned int seconds = 5;
static int is_frozen, thaws_refused;

struct request {
	const char *text;
	char command[64];
};

// --- what it does ---------------------------------------------------------------

static unsigned long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

static int mode_is(const char *name)
{
	return !strcmp(mode, name);
}

static void put_bytes(const char *data, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(port, data, len);
		if (n < 0 && errno != EAGAIN)
			return;
		if (n <= 0) {
			usleep(10000); // nobody listens at the other side
			continue;
		}
		data += n;
		len -= (size_t)n;
	}
}

static void put(const char *text)
{
	put_bytes(text, strlen(text));
}

static void put_number(long long number)
{
	char text[64];

	sprintf(text, "{\"return\": %lld}\n", number);
	put(text);
}

static void put_error(const char *class, const char *description)
{
	char text[256];

	sprintf(text, "{\"error\": {\"class\": \"%s\", \"desc\": \"%s\"}}\n", class, description);
	put(text);
}

// Bytes from LEAST up.
static void put_garbage(unsigned int least)
{
	char noise[4096];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(least + (i * 2654435761u >> 13) % (256 - least));
	put_bytes(noise, sizeof(noise));
	put("{\"return\": [[[[{{{\n}\n");
}

static void put_flood(void)
{
	char line[1024];

	memset(line, 'x', sizeof(line));
	put("{\"return\": \"");
	for (int i = 0; i < 4 << 10; i++)
		put_bytes(line, sizeof(line));
	put("\"}\n");
}

static int change(unsigned long request, const char *word)
{
	const int fd = open("/data", O_RDONLY | O_DIRECTORY);
	const int done = fd >= 0 && ioctl(fd, request, 0) == 0;

	if (fd >= 0)
		close(fd);
	is_frozen = request == FIFREEZE;
	printf("agent %llu %s %d\n", now_ms(), word, done);
	return done;
}

static int freeze(void)
{
	return change(FIFREEZE, "frozen");
}

static int thaw(void)
{
	return change(FITHAW, "thawed");
}

// --- freeze and thaw, by mode ----------------------------------------------------

static void answer_freeze(void)
{
	if (mode_is("silent-freeze"))
		return;
	if (mode_is("refuse-freeze")) {
		put_error("GenericError", "failed to freeze /data: not in the mood");
		return;
	}
	if (mode_is("freezes-nothing")) {
		put_number(0);
		return;
	}
	if (mode_is("late"))
		sleep(seconds);
	const int count = freeze();
	if (mode_is("mute-freeze"))
		return;
	if (mode_is("slow"))
		sleep(seconds);
	if (mode_is("garbage") || mode_is("zeros"))
		put_garbage(mode_is("zeros") ? 0 : 1);
	else if (mode_is("flood"))
		put_flood();
	else if (mode_is("text"))
		put("{\"return\": \"one\"}\n");
	else if (mode_is("huge"))
		put("{\"return\": 99999999999999999999}\n");
	else
		put_number(mode_is("negative") ? -1 : mode_is("lies") ? 3 : count);
}

static void die_in_half(void)
{
	freeze();
	close(open(DIED_IN_HALF, O_CREAT | O_WRONLY, 0600));
	put("{\"return\": ");
	exit(1);
}

static void answer_thaw(void)
{
	if (mode_is("refuse-thaw") && thaws_refused++ < 3) {
		put_error("GenericError", "failed to thaw /data: not in the mood");
		return;
	}
	if (mode_is("late-thaw"))
		sleep(seconds);
	const int count = thaw();
	if (mode_is("slow-thaw"))
		sleep(seconds);
	if (mode_is("huge"))
		put("{\"return\": 99999999999999999999}\n");
	else
		put_number(mode_is("negative") ? -1 : count);
}

static void on_freeze(const struct request *request)
{
	(void)request;
	if (is_frozen)
		put_error("CommandNotFound", "Command guest-fsfreeze-freeze has been disabled: the "
					     "agent is in frozen state");
	else if (mode_is("half") && access(DIED_IN_HALF, F_OK))
		die_in_half();
	else
		answer_freeze();
}

static void on_thaw(const struct request *request)
{
	(void)request;
	answer_thaw();
}

static void on_status(const struct request *request)
{
	(void)request;
	put(is_frozen ? "{\"return\": \"frozen\"}\n" : "{\"return\": \"thawed\"}\n");
}

// --- the other commands -----------------------------------------------------------

static void on_ping(const struct request *request)
{
	(void)request;
	put("{\"return\": {}}\n");
}

static void on_sync(const struct request *request)
{
	const char *id = strstr(request->text, "\"id\"");

	if (!strcmp(request->command, "guest-sync-delimited"))
		put("\xff");
	put_number(id ? strtoll(id + strcspn(id, "-0123456789"), NULL, 10) : 0);
}

static void on_fsinfo(const struct request *request)
{
	(void)request;
	put("{\"return\": [{\"name\": \"vda\", \"mountpoint\": \"/data\", \"type\": \"ext4\", "
	    "\"total-bytes\": 500000000, \"used-bytes\": 50000000, \"disk\": []}]}\n");
}

static void on_fstrim(const struct request *request)
{
	(void)request;
	put("{\"return\": {\"paths\": [{\"path\": \"/data\", \"minimum\": 0, \"trimmed\": 0}]}}\n");
}

static void on_info(const struct request *request);

static const struct command {
	const char *name;
	void (*answer)(const struct request *);
} commands[] = {
	{ "guest-sync", on_sync },
	{ "guest-sync-delimited", on_sync },
	{ "guest-ping", on_ping },
	{ "guest-info", on_info },
	{ "guest-get-fsinfo", on_fsinfo },
	{ "guest-fstrim", on_fstrim },
	{ "guest-fsfreeze-status", on_status },
	{ "guest-fsfreeze-freeze", on_freeze },
	{ "guest-fsfreeze-freeze-list", on_freeze },
	{ "guest-fsfreeze-thaw", on_thaw },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int is_disabled(const char *command)
{
	return mode_is("disabled") && strstr(command, "fsfreeze");
}

static void on_info(const struct request *request)
{
	char item[128];

	(void)request;
	put("{\"return\": {\"version\": \"7.2.0\", \"supported_commands\": [");
	for (size_t i = 0; i < COMMANDS; i++) {
		sprintf(item, "%s{\"enabled\": %s, \"name\": \"%s\", \"success-response\": true}",
			i ? ", " : "", is_disabled(commands[i].name) ? "false" : "true",
			commands[i].name);
		put(item);
	}
	put("]}}\n");
}

static void answer(const struct request *request)
{
	if (mode_is("silent"))
		return;
	if (mode_is("babble")) {
		put_garbage(1);
		return;
	}
	for (size_t i = 0; i < COMMANDS && !is_disabled(request->command); i++)
		if (!strcmp(request->command, commands[i].name)) {
			commands[i].answer(request);
			return;
		}
	put_error("CommandNotFound", "The command has been disabled for this instance");
}

// --- its mode ---------------------------------------------------------------------

static int mode_disk = -1;

static int become(const char *text)
{
	seconds = 5;
	if (sscanf(text, "%31[a-z-]:%u", mode, &seconds) < 1)
		return -1;
	thaws_refused = 0;
	if (mode_is("half") && access(DIED_IN_HALF, F_OK) == 0)
		is_frozen = 1;
	if (mode_is("frozen-already"))
		freeze();
	return 0;
}

static void look_for_mode(void)
{
	static char known[SECTOR] __attribute__((aligned(SECTOR)));
	static char now[SECTOR] __attribute__((aligned(SECTOR)));

	if (mode_disk < 0)
		mode_disk = open(MODE_DISK, O_RDONLY | O_DIRECT);
	if (pread(mode_disk, now, SECTOR, 0) != SECTOR)
		return;
	if (!memchr(now, '\n', SECTOR) || !memcmp(now, known, SECTOR))
		return;
	if (known[0])
		unlink(DIED_IN_HALF);
	memcpy(known, now, SECTOR);
	if (become(now) == 0)
		printf("agent %llu is %.*s\n", now_ms(), (int)strcspn(now, "\n"), now);
}

// --- the port ---------------------------------------------------------------------

// Requests are told by the newline or, without one, by their braces: none has braces in a
// string.
static size_t request_length(const char *text)
{
	int depth = 0;

	for (size_t i = 0; text[i]; i++) {
		depth += (text[i] == '{') - (text[i] == '}');
		if (text[i] == '}' && depth == 0)
			return i + 1;
	}
	return 0;
}

static void handle(const char *text)
{
	struct request request = { .text = text };
	const char *execute = strstr(text, "\"execute\"");

	if (!execute || sscanf(execute + 9, " : \"%63[a-z-]", request.command) != 1)
		return;
	printf("agent %llu %s\n", now_ms(), request.command);
	answer(&request);
}

// Returns what has been used up of the text.
static size_t handle_all(char *text)
{
	size_t used = 0, length;
	char next;

	while ((length = request_length(text + used)) > 0) {
		next = text[used + length];
		text[used + length] = 0;
		handle(text + used);
		used += length;
		text[used] = next;
	}
	return used;
}

static void clean(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || text[i] == '\xff')
			text[i] = ' ';
}

// Nobody may be connected, and then nothing is to be had.
static ssize_t read_port(char *text, size_t cap)
{
	struct pollfd pfd = { .fd = port, .events = POLLIN };
	ssize_t n = poll(&pfd, 1, 100) > 0 ? read(port, text, cap) : 0;

	if (n <= 0)
		usleep(20000);
	return n;
}

static void serve(void)
{
	static char text[65536];
	size_t have = 0, used;
	ssize_t n;

	for (;;) {
		look_for_mode();
		n = read_port(text + have, sizeof(text) - 1 - have);
		if (n <= 0)
			continue;
		clean(text + have, (size_t)n);
		have += (size_t)n;
		text[have] = 0;
		used = handle_all(text);
		if (!used && have == sizeof(text) - 1)
			used = have;
		have -= used;
		memmove(text, text + used, have + 1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 256);
	port = open(argv[1], O_RDWR);
	if (port < 0) {
		perror(argv[1]);
		return 1;
	}
	if (become(argv[2]) < 0)
		return 2;
	serve();
}
