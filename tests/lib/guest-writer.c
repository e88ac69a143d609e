// SPDX-License-Identifier: Apache-2.0
//
// Runs in the mini guest (see make-mini-guest) and tells the serial console how its disk fares.
//
//	guest-writer pairs       file A, fsync, then file B that holds A's name and SHA-256
//	guest-writer heavy MIB   writes over a file of that size
//
// Both go on for ever.
//
// pairs: whenever the disk is looked at, each b-* in /data/pairs must name an a-* that is there
// and has that hash.  Beside it a pinger overwrites a few bytes without any journal or flush,
// so that nothing but a freeze can hold it up, and prints
//
//	gap TRANSACTIONS START_MS END_MS LENGTH_MS     one write took 20 ms or more
//	tick TRANSACTIONS TIME_MS LONGEST_MS           every second: the longest write in it
//	stall TRANSACTIONS START_MS END_MS LENGTH_MS   one transaction took 100 ms or more
//
// Times are CLOCK_BOOTTIME in milliseconds.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DIRECTORY "/data/pairs"
#define KEPT	  48
#define A_MAX	  (256 << 10)
#define MIB	  (1 << 20)

static atomic_uint transactions;

static void die(const char *what)
{
	printf("guest-writer: %s: %m\n", what);
	fflush(stdout);
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void pause_us(long us)
{
	const struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

static void tell_span(const char *word, uint64_t start_us, uint64_t end_us)
{
	printf("%s %u %llu %llu %llu\n", word, transactions, (unsigned long long)start_us / 1000,
	       (unsigned long long)end_us / 1000, (unsigned long long)(end_us - start_us) / 1000);
}

// --- SHA-256 (FIPS 180-4) -----------------------------------------------------

struct sha256 {
	uint32_t state[8];
	uint32_t k[64];
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

// The first 32 bits of the fraction of a root: of n * 2^(32 * power), whole.
static uint32_t root_fraction(unsigned int n, int power)
{
	unsigned __int128 low = 0, high = (unsigned __int128)1 << 36, middle, raised;

	while (high - low > 1) {
		middle = (low + high) / 2;
		raised = middle * middle;
		if (power == 3)
			raised *= middle;
		if (raised <= (unsigned __int128)n << (32 * power))
			low = middle;
		else
			high = middle;
	}
	return (uint32_t)low;
}

static int is_prime(unsigned int n)
{
	for (unsigned int d = 2; d * d <= n; d++)
		if (n % d == 0)
			return 0;
	return 1;
}

static void sha256_init(struct sha256 *s)
{
	unsigned int n = 2;

	for (int i = 0; i < 64; n++) {
		if (!is_prime(n))
			continue;
		if (i < 8)
			s->state[i] = root_fraction(n, 2);
		s->k[i++] = root_fraction(n, 3);
	}
}

static void sha256_block(struct sha256 *s, const unsigned char *p)
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		const uint32_t one = v[7] + s->k[i] + w[i] + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
				     (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25));
		const uint32_t two = ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])) +
				     (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		s->state[i] += v[i];
}

static void sha256_hex(const unsigned char *data, size_t len, char hex[65])
{
	static struct sha256 fresh;
	struct sha256 s;
	unsigned char last[128] = { 0 };
	const size_t rest = len % 64, padded = rest < 56 ? 64 : 128;

	if (!fresh.k[0])
		sha256_init(&fresh);
	s = fresh;
	for (size_t at = 0; at + 64 <= len; at += 64)
		sha256_block(&s, data + at);
	memcpy(last, data + len - rest, rest);
	last[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		last[padded - 1 - i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
	for (size_t at = 0; at < padded; at += 64)
		sha256_block(&s, last + at);
	for (int i = 0; i < 8; i++)
		sprintf(hex + 8 * i, "%08x", s.state[i]);
}

// --- pairs ----------------------------------------------------------------------

static void fill(unsigned char *data, size_t len, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;

	for (size_t i = 0; i + 8 <= len; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(data + i, &x, 8);
	}
}

static void sync_directory(void)
{
	const int fd = open(DIRECTORY, O_RDONLY | O_DIRECTORY);

	if (fd < 0 || fsync(fd))
		die(DIRECTORY);
	close(fd);
}

static void put_file(const char *path, const void *data, size_t len)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fsync(fd) || close(fd))
		die(path);
}

static void path_of(char *path, const char *letter, unsigned int n, const char *suffix)
{
	sprintf(path, DIRECTORY "/%s-%08u%s", letter, n, suffix);
}

// B is never there in part: it gets its name when it is whole.
static void transact(unsigned int n)
{
	static unsigned char data[A_MAX];
	const size_t len = 4096 + (n * 2654435761u >> 8) % (A_MAX - 4096) / 8 * 8;
	char a[64], b[64], b_new[64], text[160], hex[65];

	path_of(a, "a", n, "");
	path_of(b, "b", n, "");
	path_of(b_new, "b", n, ".new");
	fill(data, len, n);
	put_file(a, data, len);
	sync_directory();
	sha256_hex(data, len, hex);
	put_file(b_new, text, (size_t)sprintf(text, "%s  %s\n", hex, a + strlen(DIRECTORY "/")));
	if (rename(b_new, b))
		die(b);
	sync_directory();
}

static void forget(unsigned int n)
{
	char path[64];

	path_of(path, "b", n, "");
	unlink(path);
	sync_directory();
	path_of(path, "a", n, "");
	unlink(path);
}

static void write_pairs(void)
{
	uint64_t start;

	mkdir(DIRECTORY, 0755);
	for (unsigned int n = 1;; n++) {
		start = now_us();
		if (n > KEPT)
			forget(n - KEPT);
		transact(n);
		transactions++;
		if (now_us() - start >= 100000)
			tell_span("stall", start, now_us());
		pause_us(10000);
	}
}

// --- pinger ---------------------------------------------------------------------

static uint64_t ping_us(int fd)
{
	const uint64_t start = now_us();
	uint64_t end;

	if (pwrite(fd, &start, sizeof(start), 0) != sizeof(start))
		die("ping");
	end = now_us();
	if (end - start >= 20000)
		tell_span("gap", start, end);
	return end - start;
}

// The file's block is there and its size stays: with lazytime no write touches the journal.
static int ping_open(void)
{
	static const char block[4096];
	const int fd = open("/data/.ping", O_RDWR | O_CREAT, 0644);

	if (fd < 0 || pwrite(fd, block, sizeof(block), 0) != sizeof(block) || fsync(fd))
		die("/data/.ping");
	return fd;
}

static void *ping(void *unused)
{
	const struct sched_param priority = { .sched_priority = 10 };
	const int fd = ping_open();
	uint64_t told = now_us(), longest = 0, took;

	sched_setscheduler(0, SCHED_FIFO, &priority);
	for (;; pause_us(2000)) {
		took = ping_us(fd);
		longest = took > longest ? took : longest;
		if (now_us() - told < 1000000)
			continue;
		told = now_us();
		printf("tick %u %llu %llu\n", transactions, (unsigned long long)told / 1000,
		       (unsigned long long)longest / 1000);
		longest = 0;
	}
	return unused;
}

// --- heavy ----------------------------------------------------------------------

static void write_heavily(unsigned int mib)
{
	static unsigned char data[MIB];
	const int fd = open("/data/heavy", O_RDWR | O_CREAT, 0644);

	if (fd < 0)
		die("/data/heavy");
	for (unsigned int n = 1;; n++) {
		fill(data, 4096, n);
		for (size_t at = 4096; at < MIB; at += 4096)
			memcpy(data + at, data, 4096);
		if (pwrite(fd, data, MIB, (off_t)((n - 1) % mib) * MIB) != MIB)
			die("/data/heavy");
		if (n % 8 == 0 && fdatasync(fd))
			die("/data/heavy");
		if (n % mib == 0)
			printf("heavy %u %llu\n", n, (unsigned long long)now_us() / 1000);
	}
}

int main(int argc, char **argv)
{
	pthread_t pinger;

	setvbuf(stdout, NULL, _IOLBF, 256);
	if (argc == 3 && !strcmp(argv[1], "heavy") && atoi(argv[2]) > 0)
		write_heavily((unsigned int)atoi(argv[2]));
	if (argc != 2 || strcmp(argv[1], "pairs") || pthread_create(&pinger, NULL, ping, NULL))
		return 2;
	write_pairs();
}
