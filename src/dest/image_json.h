/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IMAGE_JSON_H
#define CCSNAP_IMAGE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The image service's JSON: what we send, and what comes back, checked member by member.
 * Texts that hold a NUL count as none: others may have made such names.
 */
struct err;
struct service_image;
struct service_images;

/* --- image_json.c --- */

/* The body of POST /v2/images (malloc).  Properties without a value are left out. */
char *image_to_json(const struct service_image *wanted, struct err *err);

/* A JSON patch for PATCH /v2/images/ID (malloc); *count: of the properties in it. */
char *image_properties_patch(char *const *properties, size_t *count, struct err *err);

int image_from_json(const char *text, size_t size, struct service_image *out, struct err *err);

/* A page of a list, added to out; *next is the query that leads to the next page (malloc),
 * NULL on the last one.
 */
int images_from_json(const char *text, size_t size, struct service_images *out, char **next,
		     struct err *err);

/* --- image_answers.c --- */

/* What /tasks says of a failure (malloc); NULL: nothing. */
char *answer_task_failure(const char *text, size_t size);

/* Is glance-direct in /v2/info/import? */
bool answer_can_import(const char *text, size_t size);

/* Bytes that /v2/info/usage leaves; UINT64_MAX: as many as one likes. */
uint64_t answer_room(const char *text, size_t size);

/* As service_takes_format, from /v2/schemas/image. */
int answer_takes_format(const char *text, size_t size, const char *format, struct err *err);

/* --- image_names.c --- */

/* "KEY=VALUE": the value, NULL when there is none to send. */
const char *property_value(const char *property);

/* Is this key a member of an image of its own, no property? */
bool property_is_member(const char *key);

/* Lists that end with NULL, and may be NULL. */
bool texts_hold(char *const *texts, const char *wanted);

/* All that are wanted and have a value. */
bool properties_hold(char *const *properties, char *const *wanted);

#endif
