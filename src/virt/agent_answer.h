/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_AGENT_ANSWER_H
#define CCSNAP_AGENT_ANSWER_H

#include <stddef.h>

/* What a guest agent's answers mean (QEMU's qga/qapi-schema.json).  They come out of the guest:
 * whatever stands there, time and memory are bounded, and what is no such answer is
 * ERR_FAILED.
 */
struct agent_facts;
struct err;

/* The commands that a capture needs. */
enum agent_command { AGENT_FREEZE, AGENT_THAW, AGENT_STATUS, AGENT_TRIM, AGENT_COMMANDS };
extern const char *const agent_command_names[AGENT_COMMANDS];

enum agent_ability { AGENT_LACKS, AGENT_FORBIDS, AGENT_ALLOWS };

struct agent_info {
	char version[32];
	enum agent_ability abilities[AGENT_COMMANDS];
};

/* To guest-info.  A frozen agent forbids nearly all. */
int agent_answer_info(const char *json, struct agent_info *out, struct err *err);

/* To guest-fsfreeze-status: 1 frozen, 0 thawed, -1. */
int agent_answer_frozen(const char *json, struct err *err);

/* To guest-get-fsinfo: into out->filesystems, with what could steer a terminal masked.  What is
 * too much of it is left out.
 */
int agent_answer_filesystems(const char *json, struct agent_facts *out, struct err *err);

#endif
