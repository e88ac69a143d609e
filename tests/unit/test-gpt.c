// SPDX-License-Identifier: Apache-2.0
#include "tree/gpt.h"

#include "base/io.h"
#include "base/size.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DISK_TEXT  "6E500D6A-0102-4304-8506-0708090A0B0C"
#define PART2_TEXT "00112233-4455-4677-8899-AABBCCDDEEFF"

/* Slot 3 lies in front of slot 2. */
static const struct gpt_partition partitions[] = {
	{ .number = 1,
	  .type = gpt_type_bios_boot,
	  .guid = { 1, 2, 3 },
	  .name = "bios",
	  .offset = MIB,
	  .length = MIB },
	{ .number = 2,
	  .type = gpt_type_root_x86_64,
	  .guid = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x46, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc,
		    0xdd, 0xee, 0xff },
	  .name = "a name of thirty-six characters here",
	  .offset = 10 * MIB,
	  .length = 20 * MIB },
	{ .number = 3,
	  .type = gpt_type_esp,
	  .guid = { 4, 5, 6 },
	  .name = "esp",
	  .offset = 2 * MIB,
	  .length = 8 * MIB },
};

struct table {
	struct gpt_config cfg;
	uint8_t *head, *tail;
	char path[64];
};

/* A sparse file with the table at both ends. */
static struct table make_disk(uint64_t size, unsigned sector_size, const uint8_t *boot_code)
{
	struct table t = {
		.cfg = { .disk_size = size,
			 .sector_size = sector_size,
			 .disk_guid = { 0x6e, 0x50, 0x0d, 0x6a, 1, 2, 0x43, 4, 0x85, 6, 7, 8, 9, 10,
					11, 12 },
			 .partitions = partitions,
			 .count = 3,
			 .boot_code = boot_code },
		.head = malloc(gpt_head_size(sector_size)),
		.tail = malloc(gpt_tail_size(sector_size)),
		.path = "/tmp/test-gpt-XXXXXX",
	};
	int fd = mkstemp(t.path);

	assert_true(fd >= 0);
	memset(t.head, 0xa5, gpt_head_size(sector_size));
	memset(t.tail, 0xa5, gpt_tail_size(sector_size));
	gpt_encode(&t.cfg, t.head, t.tail);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(io_pwrite(fd, t.head, gpt_head_size(sector_size), 0), 0);
	assert_int_equal(io_pwrite(fd, t.tail, gpt_tail_size(sector_size),
				   size - gpt_tail_size(sector_size)),
			 0);
	close(fd);
	return t;
}

static void free_disk(struct table *t)
{
	unlink(t->path);
	free(t->head);
	free(t->tail);
}

/* What a tool says of the file; skips the test without the tool. */
static const char *told_by(const char *tool, const char *arguments, const char *path)
{
	static char text[8192];
	char command[512];
	size_t len;
	FILE *pipe;

	snprintf(command, sizeof command,
		 "PATH=$PATH:/usr/sbin:/sbin; command -v %s >/dev/null || exit 77; %s %s %s 2>&1",
		 tool, tool, arguments, path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	len = fread(text, 1, sizeof text - 1, pipe);
	text[len] = '\0';
	if (pclose(pipe) >> 8 == 77)
		skip();
	return text;
}

static void assert_tells(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("'%s' is not in: %s", what, text);
}

static void sgdisk_finds_no_problem_at_any_size(void **state)
{
	const uint64_t sizes[] = { 31 * MIB, 32 * MIB - 512, GIB, 2 * TIB - 512, 2 * TIB, 3 * TIB };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct table t = make_disk(sizes[i], 512, NULL);
		const char *text = told_by("sgdisk", "-v", t.path);

		assert_tells(text, "No problems found");
		free_disk(&t);
	}
}

static void sfdisk_reads_back_what_was_asked_for(void **state)
{
	struct table t = make_disk(3 * TIB, 512, NULL);
	const char *text = told_by("sfdisk", "--dump", t.path);

	(void)state;
	assert_tells(text, "label: gpt\nlabel-id: " DISK_TEXT "\n");
	assert_tells(text, "first-lba: 34\nlast-lba: 6442450910\n");
	assert_tells(text, "1 : start=        2048, size=        2048, "
			   "type=21686148-6449-6E6F-744E-656564454649, "
			   "uuid=01020300-0000-0000-0000-000000000000, name=\"bios\"");
	assert_tells(text, "2 : start=       20480, size=       40960, "
			   "type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, uuid=" PART2_TEXT
			   ", name=\"a name of thirty-six characters here\"");
	assert_tells(text, "3 : start=        4096, size=       16384, "
			   "type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B");
	free_disk(&t);
}

static void the_backup_alone_is_enough(void **state)
{
	struct table t = make_disk(GIB, 512, NULL);
	int fd = open(t.path, O_WRONLY);
	const uint8_t zeros[1024] = { 0 };

	(void)state;
	assert_int_equal(io_pwrite(fd, zeros, sizeof zeros, 512), 0);
	close(fd);
	assert_tells(told_by("sfdisk", "--dump", t.path), "uuid=" PART2_TEXT);
	free_disk(&t);
}

static void fdisk_reads_sectors_of_4096_bytes(void **state)
{
	struct table t = make_disk(GIB, 4096, NULL);
	const char *text = told_by("fdisk", "-b 4096 -o Start,End,UUID,Name -l", t.path);

	(void)state;
	assert_tells(text, "Disk identifier: " DISK_TEXT);
	assert_tells(text, " 7679 " PART2_TEXT " a name of thirty-six characters here");
	assert_null(strstr(text, "corrupt"));
	assert_null(strstr(text, "does not match"));
	free_disk(&t);
}

static uint64_t get_le(const uint8_t *bytes, int count)
{
	uint64_t value = 0;

	while (count-- > 0)
		value = value << 8 | bytes[count];
	return value;
}

static void fields_lie_where_the_specification_says(void **state)
{
	struct table t = make_disk(GIB, 4096, NULL);
	const uint8_t *header = t.head + 4096, *entry = t.head + 2 * 4096 + 128;
	const uint8_t *backup = t.tail + 16384;

	(void)state;
	assert_int_equal(gpt_head_size(4096), 6 * 4096);
	assert_int_equal(gpt_tail_size(4096), 5 * 4096);
	assert_memory_equal(header, "EFI PART\0\0\1\0\x5c\0\0\0", 16);
	assert_int_equal(get_le(header + 24, 8), 1);
	assert_int_equal(get_le(header + 32, 8), 262143);
	assert_int_equal(get_le(header + 72, 8), 2);
	assert_int_equal(get_le(backup + 24, 8), 262143);
	assert_int_equal(get_le(backup + 32, 8), 1);
	assert_int_equal(get_le(backup + 72, 8), 262139);
	assert_memory_equal(entry + 16, "\x33\x22\x11\x00\x55\x44\x77\x46\x88\x99\xaa\xbb", 12);
	assert_int_equal(get_le(entry + 32, 8), 2560);
	assert_int_equal(get_le(entry + 40, 8), 7679);
	assert_memory_equal(t.head + 2 * 4096, t.tail, 16384);
	free_disk(&t);
}

/* The rules of OpenStack's image format inspector for a GPT. */
static void the_protective_entry_is_what_image_services_demand(void **state)
{
	const uint64_t sizes[] = { GIB, 3 * TIB };
	const uint8_t zeros[48] = { 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct table t = make_disk(sizes[i], 512, NULL);

		assert_memory_equal(t.head + 446, "\x00\x00\x02\x00\xee\xff\xff\xff\1\0\0\0", 12);
		assert_int_equal(get_le(t.head + 458, 4), i == 0 ? 2097151 : UINT32_MAX);
		assert_memory_equal(t.head + 462, zeros, 48);
		assert_memory_equal(t.head + 510, "\x55\xaa", 2);
		free_disk(&t);
	}
}

static void boot_code_fills_the_first_440_bytes_only(void **state)
{
	uint8_t code[440];
	const uint8_t zeros[6] = { 0 };
	struct table t;

	(void)state;
	memset(code, 0xfa, sizeof code);
	t = make_disk(GIB, 512, code);
	assert_memory_equal(t.head, code, sizeof code);
	assert_memory_equal(t.head + 440, zeros, sizeof zeros);
	assert_memory_equal(t.head + 446, "\x00\x00\x02\x00\xee", 5);
	free_disk(&t);
	t = make_disk(GIB, 512, NULL);
	assert_int_equal(t.head[0], 0);
	assert_int_equal(t.head[439], 0);
	free_disk(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sgdisk_finds_no_problem_at_any_size),
		cmocka_unit_test(sfdisk_reads_back_what_was_asked_for),
		cmocka_unit_test(the_backup_alone_is_enough),
		cmocka_unit_test(fdisk_reads_sectors_of_4096_bytes),
		cmocka_unit_test(fields_lie_where_the_specification_says),
		cmocka_unit_test(the_protective_entry_is_what_image_services_demand),
		cmocka_unit_test(boot_code_fills_the_first_440_bytes_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
