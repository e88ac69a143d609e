/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TABLES_H
#define CCSNAP_TABLES_H

#include <stdint.h>

/* Does all that an image's tables name lie inside the file, to its last byte?
 * QEMU reads what lies behind the end as zeros, so a file that was cut short
 * would be captured without a word.
 */
struct err;
struct reader;

enum layout_kind { LAYOUT_NONE, LAYOUT_QCOW2, LAYOUT_VDI, LAYOUT_VMDK, LAYOUT_VHDX };

/* Where the tables are and what they are about, by the header, which whoever
 * fills this in has checked: unit is not 0, nor is per_table where it is used.
 */
struct layout {
	enum layout_kind kind; /* none: no tables */
	uint64_t size;	       /* of the disk in bytes; 0 for raw, which does not say */
	uint64_t unit;	       /* bytes of a cluster, block, grain */
	uint64_t table;	       /* offset of the table; of two levels, the first */
	uint64_t entries;      /* in it */
	uint64_t per_table;    /* of qcow2 and vmdk: entries of a second-level table;
				* of vhdx: blocks between two bitmap entries */
	uint64_t data;	       /* of vdi: offset of block 0 */
	int extended;	       /* of qcow2: subclusters */
	int external;	       /* of qcow2: data in another file */
	int zero_grains;       /* of vmdk: entry 1 means zeros */
	int markers;	       /* of vmdk: compressed, each grain with its length before it */
};

/* Refused (ERR_REFUSED) when something lies outside; data_size is that of the
 * file which the guest's data is in.  Takes time and reads bytes in proportion
 * to the tables; ends early on a signal.
 */
int tables_check(const struct reader *in, const struct layout *layout, uint64_t data_size,
		 struct err *err);

#endif
