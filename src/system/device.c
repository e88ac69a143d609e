// SPDX-License-Identifier: Apache-2.0
#include "system/device.h"

#include "base/str.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *prefix;
	enum device_kind kind;
	bool udev_escapes; /* "\x20", as the names in /dev/disk have them */
} prefixes[] = {
	{ "UUID=", DEVICE_UUID, false },
	{ "LABEL=", DEVICE_LABEL, false },
	{ "PARTUUID=", DEVICE_PARTUUID, false },
	{ "PARTLABEL=", DEVICE_OTHER, false },
	{ "ID=", DEVICE_OTHER, false },
	{ "/dev/disk/by-uuid/", DEVICE_UUID, true },
	{ "/dev/disk/by-label/", DEVICE_LABEL, true },
	{ "/dev/disk/by-partuuid/", DEVICE_PARTUUID, true },
};

/* Made anew by each boot, on no disk. */
static const char *const volatile_devices[] = { "/dev/zram", "/dev/ram", "/dev/fuse", "/dev/null",
						"/dev/shm" };

/* Without a pair of quotes around it. */
static size_t strip_quotes(const char **s)
{
	size_t len = strlen(*s);

	if (len >= 2 && ((*s)[0] == '"' || (*s)[0] == '\'') && (*s)[len - 1] == (*s)[0]) {
		++*s;
		len -= 2;
	}
	return len;
}

static bool copy_value(const char *s, bool udev_escapes, char *dst, size_t cap)
{
	size_t left = strip_quotes(&s), len = 0;

	while (left > 0) {
		bool escape = udev_escapes && left >= 4 && s[0] == '\\' && s[1] == 'x' &&
			      str_hex_byte(s + 2) > 0;

		if (len + 1 >= cap)
			return false;
		dst[len++] = escape ? (char)str_hex_byte(s + 2) : *s;
		s += escape ? 4 : 1;
		left -= escape ? 4 : 1;
	}
	dst[len] = '\0';
	return true;
}

static enum device_kind path_kind(const char *text)
{
	if (!str_starts(text, "/dev/"))
		return DEVICE_ELSEWHERE;
	for (size_t i = 0; i < sizeof volatile_devices / sizeof *volatile_devices; i++)
		if (str_starts(text, volatile_devices[i]))
			return DEVICE_ELSEWHERE;
	return DEVICE_OTHER;
}

struct device device_parse(const char *text)
{
	struct device device = { .kind = path_kind(text) };

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		if (!str_starts(text, prefixes[i].prefix))
			continue;
		device.kind = prefixes[i].kind;
		if (!copy_value(text + strlen(prefixes[i].prefix), prefixes[i].udev_escapes,
				device.value, sizeof device.value)) {
			device.kind = DEVICE_OTHER;
			device.value[0] = '\0';
		}
		break;
	}
	return device;
}

bool device_is(const struct device *device, const struct volume_names *volume)
{
	if (!volume->present || !device->value[0])
		return false;
	switch (device->kind) {
	case DEVICE_UUID:
		return strcasecmp(device->value, volume->uuid_text) == 0;
	case DEVICE_LABEL:
		return str_equal(device->value, volume->label);
	case DEVICE_PARTUUID:
		return strcasecmp(device->value, volume->partuuid_text) == 0;
	default:
		return false;
	}
}

bool fat_serial_parse(const char *text, uint8_t serial[4])
{
	static const uint8_t places[4] = { 0, 2, 5, 7 };

	if (strlen(text) != 9 || text[4] != '-')
		return false;
	for (size_t i = 0; i < 4; i++) {
		int byte = str_hex_byte(text + places[i]);

		if (byte < 0)
			return false;
		serial[i] = (uint8_t)byte;
	}
	return true;
}
