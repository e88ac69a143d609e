/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IMAGE_H
#define CCSNAP_IMAGE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chunks to a file.  An image sees chunks, never sources or codecs. */
struct err;
struct digests;
struct image;

enum cluster_form { CLUSTER_ZERO, CLUSTER_PLAIN, CLUSTER_PACKED };

/* One cluster of a chunk: its bytes are chunk.data[at .. at+size). */
struct cluster {
	enum cluster_form form;
	uint32_t at, size;
};

/* A run of whole clusters of the guest disk on its way into the image.  Only
 * the disk's last cluster may reach past the end: it is padded with zeros.
 */
struct chunk {
	uint64_t offset; /* in the guest disk, a multiple of the cluster size */
	uint64_t length; /* of guest bytes, clipped at the disk's end */
	bool zero;	 /* all of it; there are no clusters and no data then */
	struct cluster *clusters;
	size_t cluster_count;
	uint8_t *data;
};

struct image_ops {
	/* From one thread, ascending offsets.  Once all are in, any may be put
	 * again, in any order: the newest counts, and what it replaces takes no
	 * more than room in the file.
	 */
	int (*put)(struct image *img, const struct chunk *chunk, struct err *err);

	/* Write what could only be known at the end.  Returns with every byte
	 * handed to the kernel; syncing is the caller's.
	 */
	int (*finish)(struct image *img, struct err *err);

	void (*close)(struct image *img);
};

struct image {
	const struct image_ops *ops;
	uint64_t size;	     /* of the guest disk */
	size_t cluster_size; /* unit of zero detection and packing */
	int fd;		     /* the caller's, as name; never closed here */
	const char *name;    /* for messages */

	/* Of the finished file, for formats that are hashed in passing; NULL
	 * when a chunk was put again.
	 */
	const struct digests *digests;
};

/* When a format that could have its digests in passing computes them: later, by the caller, is
 * for sources that should not be kept waiting.
 */
enum image_hashing { IMAGE_HASH_IN_PASSING, IMAGE_HASH_LATER };

struct image_config {
	int fd;			 /* an empty regular file, open for reading and writing */
	const char *name;	 /* for messages */
	uint64_t size;		 /* of the guest disk, a multiple of 512 */
	size_t cluster_size;	 /* a power of two in the format's range */
	const char *compression; /* "none" or a name that the format knows */
	enum image_hashing hashing;
};

struct image_format {
	const char *name;
	const char *suffix;		 /* of file names, with the dot */
	const char *const *compressions; /* ends with NULL; the first is the default */
	size_t cluster_min, cluster_max, cluster_default;

	/* The file's digests come with it (struct image); otherwise it has to
	 * be read back.
	 */
	bool hashed_in_passing;

	/* Largest guest disk at this cluster size. */
	uint64_t (*size_max)(size_t cluster_size);

	/* What the file takes at the most besides the data of so many
	 * clusters of a disk of that size.
	 */
	uint64_t (*overhead)(uint64_t size, size_t cluster_size, uint64_t clusters);

	struct image *(*create)(const struct image_config *cfg, struct err *err);
};

/* Ends with a NULL name; the first is the default. */
extern const struct image_format image_formats[];

const struct image_format *image_format_find(const char *name);

int image_put(struct image *img, const struct chunk *chunk, struct err *err);
int image_finish(struct image *img, struct err *err);
void image_close(struct image *img); /* NULL is fine */

CLEANUP_TYPE(struct image, image, image_close)
#define autoimage CLEANUP(image_cleanup)

#endif
