/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OPTION_TABLE_H
#define CCSNAP_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What options and arguments there are.  Parsing, --help, completion, configuration keys and
 * scripts/check-docs all walk this one table; a new option is a new row.
 */
struct err;
struct options;

enum option_type {
	OPTION_FLAG,	/* bool */
	OPTION_COUNT,	/* uint64_t: how often it was given */
	OPTION_TEXT,	/* char * */
	OPTION_CHOICE,	/* char *, one of choice() */
	OPTION_NUMBER,	/* uint64_t */
	OPTION_INTEGER, /* int */
	OPTION_SIZE,	/* uint64_t, bytes */
	OPTION_LIST,	/* char **: each use adds one */
};

struct option_def {
	const char *name; /* without the dashes: also the configuration key */
	char letter;	  /* 0: none */
	enum option_type type;
	const char *arg;   /* what the value is called; NULL for flags */
	size_t offset;	   /* of the field in struct options */
	unsigned commands; /* bits of struct command */
	const char *group; /* heading in --help */
	const char *help;  /* one sentence; the choices are added */

	/* The value: one of these words; from min to max (when max is not 0);
	 * what check agrees to.  accepted says it in words where these
	 * cannot.
	 */
	const char *(*choice)(size_t index); /* NULL behind the last */
	uint64_t min, max;
	uint64_t initial; /* of a number that nobody gives */
	bool (*check)(const char *value);
	const char *accepted;
	void (*describe)(char *text, size_t cap); /* accepted, where a table says it */

	unsigned of;	/* enum option_of, or'ed: what it is about; 0: anything */
	bool line_only; /* makes no sense as a configuration key */
	bool prints;	/* something instead of working; implies line_only */
};

extern const struct option_def option_table[]; /* ends with a NULL name */
extern const size_t option_count;

/* What stands on the command line without dashes; none of them may be empty. */
struct argument_def {
	const char *name; /* as in struct command's args */
	unsigned command;
	int index;
	bool (*check)(const char *value); /* NULL: anything else is accepted */
	const char *accepted;
};

extern const struct argument_def argument_table[]; /* ends with a NULL name */

/* NULL when the command has none of that name. */
struct command;
const struct argument_def *argument_find(const struct command *command, const char *name);

/* The option of that name or letter among those of the given commands (bits);
 * NULL when there is none.
 */
const struct option_def *option_find(const char *name, size_t len, unsigned commands);
const struct option_def *option_find_letter(char letter, unsigned commands);

/* The name that a mistyped one is closest to, NULL when none is close. */
const char *option_suggest(const char *name, unsigned commands);

/* The command that a mistyped word is close to; NULL. */
const char *command_suggest(const char *word);

/* How many bytes of a value a message shows, so that the rest of it always has room; no
 * character is cut.
 */
int option_shown_length(const char *value);

/* What values are accepted, in words. */
void option_accepted(const struct option_def *def, char *text, size_t cap);

/* "SHOWN: 'VALUE' is not accepted; accepted: ..." (ERR_USAGE), however long value is. */
int option_refuse(const char *shown, const char *value, const char *accepted, struct err *err);

/* Check value and store it; value is NULL for a flag without one.  shown is
 * how the user wrote the option, for the message (ERR_USAGE).
 */
int option_store(struct options *opt, const struct option_def *def, const char *shown,
		 const char *value, struct err *err);

/* Back to what it is when nobody says anything. */
void option_reset(struct options *opt, const struct option_def *def);

#endif
