// SPDX-License-Identifier: Apache-2.0

/* The yardstick for the engine: one thread that preads each cluster of a raw
 * disk into one hot buffer and, when it is not zero, packs it with the same
 * codec; nothing is written.  Prints CPU seconds and packed bytes.
 *
 *   bare-codec DISK CODEC LEVEL CLUSTER_SIZE
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "compress/codec.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "bare-codec: %s\n", what);
	exit(1);
}

/* Packed or plain size of one cluster, 0 for zeros. */
static size_t cluster_cost(const struct codec *codec, void *state, char *packed, const char *plain,
			   size_t size)
{
	struct err err;
	long n;

	if (plain[0] == 0 && memcmp(plain, plain + 1, size - 1) == 0)
		return 0;
	n = codec->pack(state, packed, size - 1, plain, size, &err);
	if (n < 0)
		die(err.text);
	return n ? (size_t)n : size;
}

int main(int argc, char **argv)
{
	const struct codec *codec = argc == 5 ? codec_find(argv[2]) : NULL;
	size_t size = codec ? (size_t)atol(argv[4]) : 0;
	char *plain = malloc(size), *packed = malloc(size);
	int fd = codec ? open(argv[1], O_RDONLY) : -1;
	unsigned long long total = 0;
	struct err err;
	struct stat st;
	void *state;
	double start = clock_cpu_seconds();
	off_t at = 0;

	if (fd < 0 || !plain || !packed || fstat(fd, &st) < 0)
		die("usage: bare-codec DISK CODEC LEVEL CLUSTER_SIZE");
	state = codec->start(atoi(argv[3]), size, &err);
	if (!state)
		die(err.text);
	while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && at < st.st_size) {
		ssize_t n;

		at -= at % (off_t)size;
		n = io_pread(fd, plain, size, (uint64_t)at, NULL);
		if (n < 0)
			die("cannot read");
		memset(plain + n, 0, size - (size_t)n);
		total += cluster_cost(codec, state, packed, plain, size);
		at += (off_t)size;
	}
	codec->stop(state);
	printf("%.2f %llu\n", clock_cpu_seconds() - start, total);
	return 0;
}
