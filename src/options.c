// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "compress/codec.h"
#include "config_file.h"
#include "dest/dest.h"
#include "image/image.h"
#include "option_secret.h"
#include "option_table.h"
#include "plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who said it; the higher one wins. */
enum rank { RANK_NOBODY, RANK_SYSTEM_FILE, RANK_USER_FILE, RANK_COMMAND_LINE };

struct origin {
	enum rank rank;
	char *shown; /* how the option was written there */
};

/* One use of an option on the command line, kept until the files were read. */
struct use {
	const struct option_def *def;
	char *shown;	   /* "--level" or "-s" */
	const char *value; /* in argv, or own; NULL for flags */
	char *own;
};

struct parse {
	struct options *opt;
	bool command_named;
	struct use *uses;
	size_t use_count;
	struct origin *origins; /* one for each row of the table */
	enum rank rank;		/* of what is being stored now */
};

static void parse_free(struct parse *p)
{
	for (size_t i = 0; i < p->use_count; i++) {
		free(p->uses[i].shown);
		free(p->uses[i].own);
	}
	free(p->uses);
	for (size_t i = 0; p->origins && i < option_count; i++)
		free(p->origins[i].shown);
	free(p->origins);
}

/* --- the command line: words to uses and arguments --- */

static const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (str_equal(c->name, name))
			return c;
	return NULL;
}

/* "create, convert and verify" (malloc): who has an option of that name. */
static char *commands_with(const char *name)
{
	autofree char *text = strdup("");
	bool is_last = true;

	for (size_t i = command_count; text && i-- > 0;) {
		const char *link = is_last ? "" : strstr(text, " and ") ? ", " : " and ";
		char *longer;

		if (!option_find(name, strlen(name), commands[i].bit))
			continue;
		longer = str_format("%s%s%s", commands[i].name, link, text);
		free(text);
		text = longer;
		is_last = false;
	}
	return steal(&text);
}

/* elsewhere is an option that only other commands have, near a similar name; or NULL. */
static int unknown(struct parse *p, const char *written, const struct option_def *elsewhere,
		   const char *near, struct err *err)
{
	const char *command = p->opt->command->name;
	int most = option_shown_length(written);
	autofree char *others = elsewhere ? commands_with(elsewhere->name) : NULL;

	if (elsewhere && !others)
		return err_nomem(err);
	if (elsewhere)
		return err_set(err, ERR_USAGE,
			       "%.*s: \"ccsnap %s\" has no such option; it is one of %s", most,
			       written, command, others);
	if (near)
		return err_set(err, ERR_USAGE, "%.*s: unknown option; did you mean --%s?", most,
			       written, near);
	return err_set(err, ERR_USAGE,
		       "%.*s: unknown option; accepted are those that "
		       "\"ccsnap %s --help\" lists",
		       most, written, command);
}

static int add_use(struct parse *p, const struct option_def *def, char *shown, const char *value,
		   struct err *err)
{
	autofree char *mine = shown;
	struct use *grown = reallocarray(p->uses, p->use_count + 1, sizeof *grown);
	char accepted[256];

	if (grown)
		p->uses = grown;
	if (!mine || !grown)
		return err_nomem(err);
	if (def->arg && !value) {
		option_accepted(def, accepted, sizeof accepted);
		return err_set(err, ERR_USAGE, "%s: a value is missing: %s; accepted: %s", shown,
			       def->arg, accepted);
	}
	if (!def->arg && value)
		return err_set(err, ERR_USAGE, "%s: takes no value, but '%.*s' was given", shown,
			       option_shown_length(value), value);
	p->uses[p->use_count++] = (struct use){ .def = def, .shown = steal(&mine), .value = value };
	return 0;
}

/* "--name", "--name=value" or "--name value", in which case *next is used up. */
static int parse_long(struct parse *p, const char *word, char ***next, struct err *err)
{
	unsigned bit = p->opt->command->bit;
	const char *name = word + 2, *value = NULL;
	size_t len = strcspn(name, "=");
	const struct option_def *def = option_find(name, len, bit);
	autofree char *written = str_format("%.*s", (int)len + 2, word);

	if (!written)
		return err_nomem(err);
	if (!def)
		return unknown(p, written, option_find(name, len, ~0u),
			       option_suggest(written + 2, bit), err);
	if (name[len] == '=')
		value = name + len + 1;
	else if (def->arg && **next)
		value = *(*next)++;
	return add_use(p, def, steal(&written), value, err);
}

/* "-dv", "-s value", "-svalue". */
static int parse_short(struct parse *p, const char *word, char ***next, struct err *err)
{
	unsigned bit = p->opt->command->bit;

	for (const char *at = word + 1; *at; at++) {
		char written[] = { '-', *at, '\0' };
		const struct option_def *def = option_find_letter(*at, bit);
		const char *value = NULL;

		if (!def)
			return unknown(p, written, option_find_letter(*at, ~0u), NULL, err);
		if (at[1] && (def->arg || at[1] == '='))
			value = at + 1;
		else if (def->arg && **next)
			value = *(*next)++;
		if (add_use(p, def, strdup(written), value, err) < 0)
			return -1;
		if (value)
			break;
	}
	return 0;
}

static int add_argument(struct parse *p, const char *word, struct err *err)
{
	struct options *opt = p->opt;
	const struct command *c = opt->command;

	if (opt->arg_count < c->args_max) {
		opt->args[opt->arg_count++] = word;
		return 0;
	}
	if (!p->command_named && command_suggest(opt->args[0]))
		return err_set(err, ERR_USAGE, "%s: no such command; did you mean %s?",
			       opt->args[0], command_suggest(opt->args[0]));
	return err_set(err, ERR_USAGE, "'%.*s': \"ccsnap %s\" takes %s%s",
		       option_shown_length(word), word, c->name, *c->args ? c->args : "no argument",
		       *c->args ? " and no more" : "");
}

static int parse_words(struct parse *p, char **next, struct err *err)
{
	bool options_over = false;

	while (*next) {
		const char *word = *next++;

		if (options_over || word[0] != '-' || word[1] == '\0') {
			/* "ccsnap -v list": the command or an image's name? */
			if (!options_over && !p->command_named && command_find(word))
				return err_set(
					err, ERR_USAGE,
					"'%s': write a command first (ccsnap %s ...), or for "
					"an image of that name: ccsnap create ... %s",
					word, word, word);
			if (add_argument(p, word, err) < 0)
				return -1;
		} else if (str_equal(word, "--")) {
			options_over = true;
		} else if ((word[1] == '-' ? parse_long : parse_short)(p, word, &next, err) < 0) {
			return -1;
		}
	}
	return 0;
}

static bool is_destination(const struct option_def *def)
{
	return def->offset == offsetof(struct options, to);
}

/* What must not be seen leaves argv as soon as it is known to be there. */
static int hide_secrets(struct parse *p, struct err *err)
{
	for (size_t i = 0; i < p->use_count; i++) {
		struct use *use = &p->uses[i];

		if (!is_destination(use->def))
			continue;
		use->own = strdup(use->value);
		if (!use->own)
			return err_nomem(err);
		option_hide_secrets((char *)use->value);
		use->value = use->own;
		if (option_keep_secrets(use->own, err) < 0)
			return -1;
	}
	return 0;
}

static int check_arguments(const struct options *opt, struct err *err)
{
	for (const struct argument_def *def = argument_table; def->name; def++) {
		const char *word = opt->args[def->index];

		if (def->command != opt->command->bit || def->index >= opt->arg_count)
			continue;
		if (*word == '\0' || (def->check && !def->check(word)))
			return option_refuse(def->name, word, def->accepted, err);
	}
	return 0;
}

/* --- storing: files first, then the command line --- */

static struct origin *origin_of(struct parse *p, const struct option_def *def)
{
	return &p->origins[def - option_table];
}

static int store(struct parse *p, const struct option_def *def, const char *shown,
		 const char *value, struct err *err)
{
	struct origin *origin = origin_of(p, def);
	char *copy = strdup(shown);

	if (!copy)
		return err_nomem(err);
	free(origin->shown);
	origin->shown = copy;
	if (def->type == OPTION_COUNT && origin->rank < p->rank)
		option_reset(p->opt, def);
	origin->rank = p->rank;
	return option_store(p->opt, def, shown, value, err);
}

/* A key for other commands is checked and forgotten. */
static int store_elsewhere(const struct option_def *def, const char *shown, const char *value,
			   struct err *err)
{
	struct options scratch = { 0 };
	int rc = option_store(&scratch, def, shown, value, err);

	option_reset(&scratch, def);
	return rc;
}

static int store_key(void *ctx, const char *where, const char *key, const char *value,
		     struct err *err)
{
	struct parse *p = ctx;
	const struct option_def *def = option_find(key, strlen(key), p->opt->command->bit);
	const struct option_def *other = NULL;
	autofree char *shown = str_format("%s: %s", where, key);
	const char *near = option_suggest(key, ~0u);

	if (!shown)
		return err_nomem(err);
	for (const struct option_def *d = option_table; d->name && !other; d++)
		if (str_equal(d->name, key) && !d->line_only)
			other = d;
	if (def && is_destination(def) && option_keep_secrets(value, err) < 0)
		return -1;
	if (def && !def->line_only)
		return store(p, def, shown, value, err);
	if (other)
		return store_elsewhere(other, shown, value, err);
	if (def)
		return err_set(err, ERR_USAGE, "%s: this works on the command line only", shown);
	if (near)
		return err_set(err, ERR_USAGE, "%s: unknown key; did you mean %s?", shown, near);
	return err_set(err, ERR_USAGE, "%s: unknown key; keys are long options without the dashes",
		       shown);
}

static const char *config_named(const struct parse *p)
{
	const char *path = NULL;

	for (size_t i = 0; i < p->use_count; i++)
		if (p->uses[i].def->offset == offsetof(struct options, config))
			path = p->uses[i].value;
	return path && *path ? path : NULL;
}

static int read_if_there(struct parse *p, enum rank rank, const char *path, struct err *err)
{
	struct err why = { 0 };

	p->rank = rank;
	if (config_read(path, store_key, p, &why) == 0 || why.sys_errno == ENOENT ||
	    why.sys_errno == ENOTDIR)
		return 0;
	/* a HOME that was kept by su or setpriv is somebody else's */
	if (rank == RANK_USER_FILE && why.sys_errno == EACCES && !config_named(p))
		return 0;
	*err = why;
	return -1;
}

static int read_files(struct parse *p, struct err *err)
{
	const char *only = config_named(p);
	autofree char *users = NULL;

	if (only) {
		p->rank = RANK_USER_FILE;
		if (config_read(only, store_key, p, err) == 0)
			return 0;
		return err->sys_errno ? err_context(err, "--config") : -1;
	}
	if (read_if_there(p, RANK_SYSTEM_FILE, config_system_path(), err) < 0 ||
	    config_user_path(&users, err) < 0)
		return -1;
	return users ? read_if_there(p, RANK_USER_FILE, users, err) : 0;
}

static int note_limits(struct parse *p, struct err *err)
{
	struct options *opt = p->opt;

	opt->limits = calloc(p->use_count + 1, sizeof *opt->limits);
	if (!opt->limits)
		return err_nomem(err);
	for (size_t i = 0; i < p->use_count; i++)
		if (p->uses[i].def->of)
			opt->limits[opt->limit_count++] =
				(struct option_limit){ p->uses[i].def->name, p->uses[i].def->of };
	return 0;
}

static int store_uses(struct parse *p, struct err *err)
{
	p->rank = RANK_COMMAND_LINE;
	for (size_t i = 0; i < p->use_count; i++)
		if (store(p, p->uses[i].def, p->uses[i].shown, p->uses[i].value, err) < 0)
			return -1;
	return note_limits(p, err);
}

/* --- choices that do not go together --- */

static const struct option_def *def_of(struct parse *p, const char *name)
{
	return option_find(name, strlen(name), p->opt->command->bit);
}

static enum rank rank_of(struct parse *p, const char *name)
{
	const struct option_def *def = def_of(p, name);

	return def ? origin_of(p, def)->rank : RANK_NOBODY;
}

static const char *shown(struct parse *p, const char *name)
{
	return origin_of(p, def_of(p, name))->shown;
}

/* a and b exclude each other.  Of two ranks, the lower gives way; of one rank
 * it is an error, and likewise when it is only a default that a does not fit.
 */
static int settle(struct parse *p, const char *a, const char *b, const char *why, struct err *err)
{
	enum rank rank_a = rank_of(p, a), rank_b = rank_of(p, b);
	const struct option_def *loser = def_of(p, rank_a < rank_b ? a : b);

	if (rank_a == rank_b || rank_b == RANK_NOBODY)
		return err_set(err, ERR_USAGE, "%s: %s", shown(p, a), why);
	option_reset(p->opt, loser);
	origin_of(p, loser)->rank = RANK_NOBODY;
	return 0;
}

/* "convert a.qcow2 b.raw": the names say the formats, which counts as said on
 * the command line, or a file's choice for `create` would get in the way.
 */
static int format_from_name(struct parse *p, const char *option, const char *argument,
			    const char *path, struct err *err)
{
	const char *format = plan_format_of_name(path), *slash = strrchr(path, '/');
	autofree char *where = str_format("%s (%s)", argument, slash ? slash + 1 : path);

	if (!format || rank_of(p, option) == RANK_COMMAND_LINE)
		return 0;
	if (!where)
		return err_nomem(err);
	p->rank = RANK_COMMAND_LINE;
	return store(p, def_of(p, option), where, format, err);
}

static int formats_from_names(struct parse *p, struct err *err)
{
	const struct options *opt = p->opt;

	if (opt->arg_count < 2 || !argument_find(opt->command, "OUT"))
		return 0;
	if (format_from_name(p, "source-format", "IN", opt->args[0], err) < 0)
		return -1;
	return format_from_name(p, "format", "OUT", opt->args[1], err);
}

/* Of the image to be made.  (`verify` has a --format, too: of what it reads.) */
static const struct image_format *format_of(const struct options *opt)
{
	return opt->format ? image_format_find(opt->format) : &image_formats[0];
}

static int check_compression(struct parse *p, struct err *err)
{
	const struct image_format *format = format_of(p->opt);
	const char *const *known = format->compressions;
	autofree char *why = NULL;

	while (p->opt->compression && *known && !str_equal(*known, p->opt->compression))
		known++;
	if (!p->opt->compression || *known)
		return 0;
	why = str_format("'%s' does not go with --format=%s; accepted there: %s",
			 p->opt->compression, format->name, format->compressions[0]);
	return why ? settle(p, "compression", "format", why, err) : err_nomem(err);
}

static int check_cluster_size(struct parse *p, struct err *err)
{
	const struct image_format *format = format_of(p->opt);
	autofree char *why = NULL;

	if (!p->opt->cluster_size || format->cluster_min != format->cluster_max)
		return 0;
	why = str_format("does not go with --format=%s, which has no clusters", format->name);
	return why ? settle(p, "cluster-size", "format", why, err) : err_nomem(err);
}

/* What decides how clusters are packed is --compression or else the format. */
static int check_level(struct parse *p, struct err *err)
{
	const struct options *opt = p->opt;
	const char *decider = opt->compression ? "compression" : "format";
	const char *name = opt->compression ? opt->compression : format_of(opt)->compressions[0];
	const struct codec *codec = codec_find(name);
	autofree char *why = NULL;

	if (opt->level == OPTION_UNSET)
		return 0;
	if (!codec)
		why = str_format(
			"'%d' makes no sense without compression (--%s=%s); give one of them",
			opt->level, decider, opt->compression ? name : format_of(opt)->name);
	else if (opt->level < codec->level_min || opt->level > codec->level_max)
		why = str_format("'%d' is not accepted; accepted with %s: %d to %d", opt->level,
				 name, codec->level_min, codec->level_max);
	else
		return 0;
	if (!why)
		return err_nomem(err);
	return settle(p, "level", decider, why, err) < 0 ? -1 : check_level(p, err);
}

/* What is about the disk that `verify` compares with. */
static int check_against(struct parse *p, const char *option, struct err *err)
{
	if (!def_of(p, "against") || p->opt->against || rank_of(p, option) != RANK_COMMAND_LINE)
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: is about the disk given with --against, which is missing here",
		       shown(p, option));
}

static int check_packing(struct parse *p, struct err *err)
{
	if (!def_of(p, "compression")) /* this command makes no image */
		return 0;
	if (check_compression(p, err) < 0 || check_cluster_size(p, err) < 0)
		return -1;
	return check_level(p, err);
}

static bool goes_elsewhere(const struct options *opt)
{
	const char *rest;
	const struct dest_kind *kind = opt->to ? dest_kind_find(opt->to, &rest) : NULL;

	return kind && kind->is_remote;
}

/* What is sent elsewhere may stay in a file, too, when both were asked for in one breath;
 * otherwise one of them is instead of the other.
 */
static int check_output(struct parse *p, struct err *err)
{
	const struct options *opt = p->opt;

	if (def_of(p, "to-disk")) /* fetch: --to is where from */
		return opt->to_disk && opt->output
			       ? settle(p, "output", "to-disk",
					"does not go with --to-disk; give one of them", err)
			       : 0;
	if (!opt->to || !opt->output)
		return 0;
	if (goes_elsewhere(opt) && rank_of(p, "to") == rank_of(p, "output"))
		return 0;
	return settle(p, "output", "to", "does not go with --to; give one of them", err);
}

/* A cloud may also be named in --to=glance:CLOUD.  That two of one rank are the same is seen
 * to where they are used.
 */
static void settle_cloud(struct parse *p)
{
	struct options *opt = p->opt;
	const char *cloud;
	const struct dest_kind *kind = opt->to ? dest_kind_find(opt->to, &cloud) : NULL;

	if (!opt->os_cloud || !kind || !str_equal(kind->scheme, "glance") || !cloud)
		return;
	if (rank_of(p, "os-cloud") > rank_of(p, "to"))
		opt->to[strlen(kind->scheme)] = '\0';
	else if (rank_of(p, "os-cloud") < rank_of(p, "to"))
		option_reset(opt, def_of(p, "os-cloud"));
}

static int check_pairs(struct parse *p, struct err *err)
{
	struct options *opt = p->opt;

	if (opt->quiet && opt->verbose &&
	    settle(p, "quiet", "verbose", "does not go with --verbose; give one of them", err) < 0)
		return -1;
	if (opt->domain && opt->source &&
	    settle(p, "domain", "source", "does not go with --source; give one of them", err) < 0)
		return -1;
	settle_cloud(p);
	if (check_output(p, err) < 0)
		return -1;
	if (opt->properties && opt->output && !opt->to &&
	    settle(p, "property", "output",
		   "does not go with --output, which writes no manifest to hold it", err) < 0)
		return -1;
	if (check_against(p, "source-format", err) < 0 ||
	    check_against(p, "allow-backing", err) < 0)
		return -1;
	return check_packing(p, err);
}

static int check_complete(struct parse *p, struct err *err)
{
	const struct options *opt = p->opt;
	const struct command *c = opt->command;

	if (opt->arg_count < c->args_min)
		return err_set(err, ERR_USAGE, "\"ccsnap %s\" needs %s: %d of %d given", c->name,
			       c->args, opt->arg_count, c->args_min);
	return 0;
}

/* --- all of it --- */

static void choose_command(struct parse *p, char ***words)
{
	p->opt->command = **words ? command_find(**words) : NULL;
	p->command_named = p->opt->command;
	if (p->command_named)
		++*words;
	else
		p->opt->command = &commands[0];
}

/* "help" or "help COMMAND", and not what an image is to be called. */
static bool is_call_for_help(struct parse *p, char **words)
{
	if (!words[0] || !str_equal(words[0], "help"))
		return false;
	p->opt->command = words[1] ? command_find(words[1]) : NULL;
	p->opt->help = !words[1] || (p->opt->command && !words[2]);
	return p->opt->help;
}

/* --help and its like: nothing else on the line matters then.  Returns 1 when
 * there was one.
 */
static int store_printing(struct parse *p, struct err *err)
{
	for (size_t i = 0; i < p->use_count; i++) {
		const struct use *use = &p->uses[i];

		if (!use->def->prints)
			continue;
		if (!p->command_named)
			p->opt->command = NULL;
		return option_store(p->opt, use->def, use->shown, use->value, err) < 0 ? -1 : 1;
	}
	return 0;
}

static int parse(struct parse *p, char **words, struct err *err)
{
	int printing;

	p->origins = calloc(option_count, sizeof *p->origins);
	if (!p->origins)
		return err_nomem(err);
	if (is_call_for_help(p, words))
		return 0;
	choose_command(p, &words);
	if (parse_words(p, words, err) < 0 || hide_secrets(p, err) < 0)
		return -1;
	printing = store_printing(p, err);
	if (printing != 0)
		return printing;
	if (check_arguments(p->opt, err) < 0 || read_files(p, err) < 0 || store_uses(p, err) < 0 ||
	    check_complete(p, err) < 0 || formats_from_names(p, err) < 0)
		return -1;
	return check_pairs(p, err);
}

int options_parse(struct options *opt, int argc, char **argv, struct err *err)
{
	struct parse p = { .opt = opt };
	int rc;

	*opt = (struct options){ 0 };
	for (const struct option_def *def = option_table; def->name; def++)
		option_reset(opt, def);
	rc = parse(&p, argv + (argc > 0), err);
	parse_free(&p);
	if (rc < 0)
		options_free(opt);
	return rc < 0 ? -1 : 0;
}

void options_free(struct options *opt)
{
	for (const struct option_def *def = option_table; def->name; def++)
		option_reset(opt, def);
	free(opt->limits);
	opt->limits = NULL;
	opt->limit_count = 0;
}

/* --- what options are about --- */

static const struct {
	enum option_of of;
	const char *name;
} of_names[] = {
	{ OF_TREE, "a directory tree" },
	{ OF_DISK, "a disk" },
	{ OF_DOMAIN, "a domain" },
	{ OF_SERVICE, "an image service or server" },
};

/* "a disk or a domain" */
static void name_kinds(unsigned of, char *text, size_t cap)
{
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < sizeof of_names / sizeof *of_names && len < cap; i++)
		if (of & of_names[i].of)
			len += (size_t)snprintf(text + len, cap - len, "%s%s", len ? " or " : "",
						of_names[i].name);
}

static int say_misfit(const struct option_limit *limit, unsigned of, const char *source,
		      const char *destination, struct err *err)
{
	char wanted[120], there[120];

	name_kinds(limit->of, wanted, sizeof wanted);
	name_kinds(of & ~(unsigned)OF_SERVICE, there, sizeof there);
	if (limit->of & OF_SERVICE)
		return err_set(err, ERR_USAGE, "--%s is for %s, and %s is none", limit->name,
			       wanted, destination);
	if (!source)
		return err_set(err, ERR_USAGE, "--%s is for %s, and none is given", limit->name,
			       wanted);
	return err_set(err, ERR_USAGE, "--%s is for %s, and %s is %s", limit->name, wanted, source,
		       there);
}

int options_check_kinds(const struct options *opt, unsigned of, const char *source,
			const char *destination, struct err *err)
{
	for (size_t i = 0; i < opt->limit_count; i++)
		if (!(opt->limits[i].of & of))
			return say_misfit(&opt->limits[i], of, source, destination, err);
	return 0;
}
