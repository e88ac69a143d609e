/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ARRAY_H
#define CCSNAP_ARRAY_H

#include <stdlib.h>

/* Arrays that grow by appending: a pointer, and how many elements there is room for
 * (size_t), which doubles.
 */
static inline void *array_grown(void *array, size_t wanted, size_t *cap, size_t size)
{
	size_t next = *cap < 8 ? 16 : *cap * 2;

	if (wanted <= *cap)
		return array;
	next = next < wanted ? wanted : next;
	array = reallocarray(array, next, size);
	if (array)
		*cap = next;
	return array;
}

/* Room for so many elements in all; false without memory, and nothing has changed then. */
#define array_room(array, cap, wanted)                                                             \
	({                                                                                         \
		void *grown_ = array_grown((array), (wanted), &(cap), sizeof *(array));            \
		if (grown_)                                                                        \
			(array) = grown_;                                                          \
		grown_ != NULL;                                                                    \
	})

#endif
