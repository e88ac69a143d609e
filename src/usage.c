// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include "base/str.h"
#include "dest/dest.h"
#include "option_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 32, HELP_WIDTH = 96 };

/* The words of text from HELP_COLUMN, where the line stands, to HELP_WIDTH. */
static void print_words(const char *text)
{
	size_t column = HELP_COLUMN;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column + 1 + len > HELP_WIDTH) {
			printf("\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (column > HELP_COLUMN) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len + (text[len] == ' ');
	}
}

static void print_option(const struct option_def *def)
{
	size_t column = 6 + 2 + strlen(def->name);
	char values[1024], text[2048];

	if (def->letter)
		printf("  -%c, --%s", def->letter, def->name);
	else
		printf("      --%s", def->name);
	if (def->arg) {
		printf("=%s", def->arg);
		column += 1 + strlen(def->arg);
	}
	if (column + 2 > HELP_COLUMN) {
		printf("\n");
		column = 0;
	}
	printf("%*s", (int)(HELP_COLUMN - column), "");
	option_accepted(def, values, sizeof values);
	if (def->choice || def->describe)
		snprintf(text, sizeof text, "%s (%s)", def->help, values);
	else
		snprintf(text, sizeof text, "%s", def->help);
	print_words(text);
	printf("\n");
}

static void print_options(unsigned bit)
{
	const char *group = "";

	for (const struct option_def *def = option_table; def->name; def++) {
		if (!(def->commands & bit))
			continue;
		if (!str_equal(group, def->group))
			printf("\n%s:\n", def->group);
		group = def->group;
		print_option(def);
	}
}

static void print_command_help(const struct command *c)
{
	printf("Usage: ccsnap %s%s%s [options]\n\nWhat it does: %s.\n", c->name,
	       *c->args ? " " : "", c->args, c->description);
	print_options(c->bit);
}

static void print_overview(void)
{
	printf("Usage: ccsnap [COMMAND] [arguments] [options]\n\n"
	       "ccsnap captures a running system, a directory tree or a disk into a compressed image\n"
	       "that stands alone and boots.\n\nCommands:\n");
	for (const struct command *c = commands; c->name; c++)
		printf("  %-8s %-12s  %s\n", c->name, c->args, c->description);
	printf("\nExamples:\n"
	       "  sudo ccsnap create mysystem               capture the system you stand on\n"
	       "  ccsnap create -s ./tree -e ./tree/tmp -d  what would come of a directory tree\n"
	       "  ccsnap create --source=/dev/vdb mydisk    capture a disk into the store\n"
	       "  ccsnap create -s disk.img --output=disk.qcow2\n"
	       "  ccsnap list                               what is in the store\n"
	       "  ccsnap verify disk.qcow2 --against=disk.img\n"
	       "\n\"ccsnap COMMAND --help\" lists the options of a command; ccsnap(1) explains them.\n");
}

void options_print_help(const struct command *command)
{
	if (command)
		print_command_help(command);
	else
		print_overview();
}

/* --- completion for bash --- */

/* As arguments; the others are names at a store. */
static bool takes_files(const struct command *c)
{
	return argument_find(c, "IMAGE") || argument_find(c, "IMAGE|ID") || argument_find(c, "IN");
}

static void print_command_options(const struct command *c)
{
	printf("\t%s) options='", c->name);
	for (const struct option_def *def = option_table; def->name; def++) {
		if (!(def->commands & c->bit))
			continue;
		printf("--%s ", def->name);
		if (def->letter)
			printf("-%c ", def->letter);
	}
	printf("'%s ;;\n", takes_files(c) ? " arguments=FILES" : "");
}

static bool completes_files(const struct option_def *def)
{
	static const char *const args[] = { "PATH", "FILE", "DIR", "DISK", "DEVICE" };

	for (size_t i = 0; i < sizeof args / sizeof *args; i++)
		if (str_equal(def->arg, args[i]))
			return true;
	return false;
}

/* What destinations begin with: "folder:", "glance:", "https://". */
static void print_destinations(const struct option_def *def)
{
	for (const struct dest_kind *kind = dest_kinds; kind->scheme; kind++) {
		const char *slashes = strstr(kind->form, "://") ? "//" : "";
		char word[64];

		snprintf(word, sizeof word, "%s:%s", kind->scheme, slashes);
		if (kind->has_list || def->commands & commands[0].bit)
			printf("%s ", word);
	}
}

/* One case of the shell's "case" for each option with a value. */
static void print_command_values(const struct command *c)
{
	for (const struct option_def *def = option_table; def->name; def++) {
		if (!(def->commands & c->bit) || !def->arg)
			continue;
		printf("\t%s:--%s", c->name, def->name);
		if (def->letter)
			printf("|%s:-%c", c->name, def->letter);
		printf(") values='");
		for (size_t i = 0; def->choice && def->choice(i); i++)
			printf("%s ", def->choice(i));
		if (def->offset == offsetof(struct options, to))
			print_destinations(def);
		if (completes_files(def))
			printf("FILES");
		printf("' ;;\n");
	}
}

/* bash cuts words at "=" and ":", so that --to=folder:/x arrives as five. */
static const char bash_begin[] =
	"# bash completion for ccsnap, made by: ccsnap --completion=bash\n"
	"_ccsnap()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tlocal command=create options='' arguments='' values=NONE\n"
	"\n"
	"\tif [[ $cur == '=' ]]; then\n"
	"\t\tcur=''\n"
	"\telif [[ $prev == '=' && $COMP_CWORD -ge 2 ]]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\tfi\n"
	"\tif [[ $cur == ':' ]]; then\n"
	"\t\tcur='' prev=$prev:\n"
	"\telif [[ $prev == ':' && $COMP_CWORD -ge 2 ]]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD-2]}:\n"
	"\tfi\n"
	"\tcase ${COMP_WORDS[1]} in\n";

static const char bash_end[] =
	"\t*:folder:|*:file:) values=FILES ;;\n"
	"\t*:*:) values='' ;;\n"
	"\tesac\n"
	"\tif [[ $values == NONE && $cur == -* ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	"\telif [[ $values == NONE && $COMP_CWORD -eq 1 ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
	"\telif [[ $values == FILES || $values$arguments == NONEFILES ]]; then\n"
	"\t\tcompopt -o filenames\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\telif [[ $values != NONE ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\")\n"
	"\t\t[[ ${COMPREPLY-} == *[:/] ]] && compopt -o nospace\n"
	"\tfi\n"
	"}\n"
	"complete -F _ccsnap ccsnap\n";

static void print_bash(void)
{
	const struct command *c;

	fputs(bash_begin, stdout);
	printf("\t");
	for (c = commands; c->name; c++)
		printf("%s%s", c == commands ? "" : "|", c->name);
	printf(") command=${COMP_WORDS[1]} ;;\n\tesac\n\tlocal commands='");
	for (c = commands; c->name; c++)
		printf("%s ", c->name);
	printf("'\n\tcase $command in\n");
	for (c = commands; c->name; c++)
		print_command_options(c);
	printf("\tesac\n\tcase $command:$prev in\n");
	for (c = commands; c->name; c++)
		print_command_values(c);
	fputs(bash_end, stdout);
}

void options_print_completion(const char *shell)
{
	if (str_equal(shell, "bash"))
		print_bash();
}
