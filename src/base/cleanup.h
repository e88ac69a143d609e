/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLEANUP_H
#define CCSNAP_CLEANUP_H

/* Cleanup by scope (GNU attribute).  A type declares its own macro in its own
 * header with CLEANUP_TYPE; what outlives the scope leaves it by steal().
 */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define autofree  CLEANUP(cleanup_free)
#define autoclose CLEANUP(cleanup_close)
#define autodir	  CLEANUP(cleanup_dir)

/* A cleanup function NAME_cleanup for pointers that TYPE's CLOSE takes. */
#define CLEANUP_TYPE(type, name, close)                                                            \
	static inline void name##_cleanup(type **p)                                                \
	{                                                                                          \
		close(*p);                                                                         \
	}

#define steal(p)                                                                                   \
	({                                                                                         \
		__typeof__(*(p)) stolen_ = *(p);                                                   \
		*(p) = NULL;                                                                       \
		stolen_;                                                                           \
	})

static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#endif
