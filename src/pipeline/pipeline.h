/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PIPELINE_H
#define CCSNAP_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

/* Source to image, in parallel: workers claim chunks in disk order, read,
 * detect zeros and pack; the calling thread takes finished chunks in disk
 * order and hands them to the image.  The image's bytes do not depend on the
 * number of workers.  Memory is bounded by the number of workers.
 */
struct codec;
struct err;
struct image;
struct source;

struct pipeline_config {
	unsigned workers;
	const struct codec *codec; /* NULL: store plain */
	int level;

	/* Only this part of the disk, widened to whole clusters; length 0: all. */
	uint64_t offset, length;

	/* Fail when no chunk was finished for so long; 0: never. */
	unsigned stall_seconds;

	/* Called by the calling thread now and then, with guest bytes done. */
	void (*progress)(void *ctx, uint64_t done);
	void *progress_ctx;
};

struct pipeline_stats {
	uint64_t skipped_bytes; /* known to be zero, not read */
	uint64_t read_bytes;	/* from the source */
	uint64_t data_bytes;	/* guest bytes in clusters that hold data */
	uint64_t packed_bytes;	/* what the packed clusters became */
	uint64_t plain_bytes;	/* in clusters stored as they are */
};

/* Move every byte of src, or of the part asked for, into img.  Returns when all
 * of it is there, or at the first error, a signal or a stall, with no thread
 * left running; only when a thread cannot be called back from the source,
 * src->stuck is set and it is left behind with what it uses.
 */
int pipeline_run(const struct pipeline_config *cfg, struct source *src, struct image *img,
		 struct pipeline_stats *stats, struct err *err);

/* How many bytes the image's data will take.  All are sizes in whole clusters. */
struct estimate {
	uint64_t most_bytes;  /* clusters not known to be zero: no image takes more */
	uint64_t least_bytes; /* it would be a rare accident to need less; 0 unless sampled */
	uint64_t likely_bytes;
	uint64_t sampled_bytes; /* of most_bytes, what was looked at; 0: not sampled */
};

/* Fill in most_bytes from the source's extents; nothing is read. */
int pipeline_measure(const struct pipeline_config *cfg, struct source *src, size_t cluster_size,
		     struct estimate *out, struct err *err);

/* Then run a sample of those clusters through the same workers and fill in the
 * rest.
 */
int pipeline_sample(const struct pipeline_config *cfg, struct source *src, size_t cluster_size,
		    struct estimate *out, struct err *err);

#endif
