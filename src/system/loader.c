// SPDX-License-Identifier: Apache-2.0
#include "system/loader.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "ext4/model.h"
#include "system/edit.h"
#include "system/esp.h"
#include "walk/reach.h"

#include <string.h>
#include <sys/stat.h>

/* Enough of any loader to see what it is. */
#define HEAD_MAX (4 * 1024 * 1024)

/* Microsoft PE Format: where the PE header is, and in it (behind "PE\0\0" and the
 * 20 bytes of the COFF header) the optional header of PE32+ with its data
 * directories, of which the fifth is the table of certificates.
 */
enum {
	PE_OFFSET_AT = 0x3c,
	OPTIONAL_AT = 4 + 20,
	MAGIC_PE32_PLUS = 0x20b,
	DIRECTORY_COUNT_AT = OPTIONAL_AT + 108,
	CERTIFICATES = 4,
	CERTIFICATE_SIZE_AT = OPTIONAL_AT + 112 + CERTIFICATES * 8 + 4,
	PE_SIZE = CERTIFICATE_SIZE_AT + 4,
	CERTIFICATE_MIN = 8, /* its header */
};

/* The PE header, NULL when it is no program. */
static const uint8_t *find_pe(const uint8_t *head, size_t len)
{
	uint32_t at;

	if (len < PE_OFFSET_AT + 4 || memcmp(head, "MZ", 2) != 0)
		return NULL;
	at = get_le32(head + PE_OFFSET_AT);
	if (at > len || len - at < PE_SIZE || memcmp(head + at, "PE\0\0", 4) != 0)
		return NULL;
	return head + at;
}

/* The table lies in the file, behind the headers. */
static bool is_signed(const uint8_t *pe, uint64_t file_size)
{
	uint64_t at = get_le32(pe + CERTIFICATE_SIZE_AT - 4);
	uint64_t size = get_le32(pe + CERTIFICATE_SIZE_AT);

	return get_le16(pe + OPTIONAL_AT) == MAGIC_PE32_PLUS &&
	       get_le32(pe + DIRECTORY_COUNT_AT) > CERTIFICATES && size >= CERTIFICATE_MIN &&
	       at >= PE_SIZE && at + size <= file_size;
}

static enum loader_kind kind_of(const uint8_t *head, size_t len, uint64_t file_size)
{
	static const char systemd_boot[] = "#### LoaderInfo: systemd-boot";
	const uint8_t *pe = find_pe(head, len);

	if (!pe)
		return LOADER_NONE;
	return is_signed(pe, file_size) || memmem(head, len, systemd_boot, strlen(systemd_boot))
		       ? LOADER_PORTABLE
		       : LOADER_UNKNOWN;
}

int loader_look(const struct edit *e, uint32_t esp, const char *name, enum loader_kind *kind,
		struct err *err)
{
	autofree char *path = str_format("EFI/BOOT/%s", name);
	autofree uint8_t *head = malloc(HEAD_MAX);
	uint32_t node = path ? esp_lookup(e->model, esp, path) : MODEL_NONE;
	autoclose int fd = -1;
	struct stat now;
	ssize_t len;

	*kind = LOADER_NONE;
	if (!path || !head)
		return err_nomem(err);
	if (node == MODEL_NONE || !S_ISREG(e->model->nodes[node].mode))
		return 0;
	fd = reach_file(e->reach, node, &now);
	len = fd < 0 ? -1 : io_pread(fd, head, HEAD_MAX, 0, NULL);
	if (len > 0)
		*kind = kind_of(head, (size_t)len, e->model->nodes[node].size);
	return 0;
}
