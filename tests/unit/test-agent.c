// SPDX-License-Identifier: Apache-2.0
//
// What a guest agent answers, and what becomes of it where there is none.  No agent takes part:
// the tests with real and with lying ones need a guest.
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "virt/agent.h"
#include "virt/agent_answer.h"
#include "virt/domain.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

#define COMMAND(name, enabled) "{\"name\":\"" name "\",\"enabled\":" enabled "}"
#define INFO(version, commands)                                                                    \
	"{\"return\":{\"version\":" version ",\"supported_commands\":[" commands "]}}"
#define ALL_COMMANDS                                                                               \
	COMMAND("guest-fsfreeze-freeze", "true")                                                   \
	"," COMMAND("guest-fsfreeze-thaw", "true") "," COMMAND(                                    \
		"guest-fsfreeze-status", "true") "," COMMAND("guest-fstrim", "true")

/* --- guest-info ---------------------------------------------------------------------- */

static struct agent_info info_of(const char *json)
{
	struct agent_info info;

	memset(&info, 0xff, sizeof info);
	if (agent_answer_info(json, &info, &err) < 0)
		fail_msg("%s: %s", json, err.text);
	return info;
}

static void an_agent_tells_its_version_and_what_it_allows(void **state)
{
	struct agent_info info = info_of(INFO("\"7.2.22\"", ALL_COMMANDS));

	(void)state;
	assert_string_equal(info.version, "7.2.22");
	for (size_t i = 0; i < AGENT_COMMANDS; i++)
		assert_int_equal(info.abilities[i], AGENT_ALLOWS);
}

static void a_command_may_be_forbidden_or_missing(void **state)
{
	struct agent_info info =
		info_of(INFO("\"1\"", COMMAND("guest-fsfreeze-freeze", "false") "," COMMAND(
					      "guest-fsfreeze-thaw", "\"true\"")));

	(void)state;
	assert_int_equal(info.abilities[AGENT_FREEZE], AGENT_FORBIDS);
	assert_int_equal(info.abilities[AGENT_THAW], AGENT_FORBIDS); /* that is no true */
	assert_int_equal(info.abilities[AGENT_STATUS], AGENT_LACKS);
	assert_int_equal(info.abilities[AGENT_TRIM], AGENT_LACKS);
}

static void of_two_words_on_one_command_the_worse_counts(void **state)
{
	struct agent_info first = info_of(INFO(
		"\"1\"", COMMAND("guest-fstrim", "true") "," COMMAND("guest-fstrim", "false")));
	struct agent_info last = info_of(INFO(
		"\"1\"", COMMAND("guest-fstrim", "false") "," COMMAND("guest-fstrim", "true")));

	(void)state;
	assert_int_equal(first.abilities[AGENT_TRIM], AGENT_FORBIDS);
	assert_int_equal(last.abilities[AGENT_TRIM], AGENT_FORBIDS);
}

static void a_version_steers_no_terminal_and_fits(void **state)
{
	struct agent_info steering = info_of(INFO("\"7\\u001b[2J\"", ""));
	struct agent_info endless =
		info_of(INFO("\"77777777777777777777777777777777777777777777777777777777\"", ""));

	(void)state;
	assert_string_equal(steering.version, "7\\x1b[2J");
	assert_true(strlen(endless.version) < sizeof endless.version);
}

static void what_stands_among_the_commands_may_be_anything(void **state)
{
	struct agent_info info = info_of(
		INFO("\"1\"", "null,[],7,\"x\",{},{\"name\":null},{\"name\":[]},{\"enabled\":true},"
			      "{\"name\":\"guest-fstrim\"}"));

	(void)state;
	assert_int_equal(info.abilities[AGENT_TRIM], AGENT_FORBIDS);
	assert_int_equal(info.abilities[AGENT_FREEZE], AGENT_LACKS);
}

/* --- guest-fsfreeze-status ----------------------------------------------------------- */

static void it_is_frozen_or_thawed(void **state)
{
	(void)state;
	assert_int_equal(agent_answer_frozen("{\"return\":\"frozen\"}", &err), 1);
	assert_int_equal(agent_answer_frozen("{\"return\":\"thawed\"}", &err), 0);
}

static void any_other_word_is_neither(void **state)
{
	static const char *const answers[] = {
		"{\"return\":\"Frozen\"}",
		"{\"return\":\"\"}",
		"{\"return\":\"frozen \"}",
		"{\"return\":0}",
		"{\"return\":false}",
		"{\"return\":[\"thawed\"]}",
		"{\"return\":\"thawed\\u0000\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		assert_int_equal(agent_answer_frozen(answers[i], &err), -1);
		assert_string_equal(err.text,
				    "the guest agent answers nonsense (guest-fsfreeze-status)");
	}
}

/* --- guest-get-fsinfo ---------------------------------------------------------------- */

#define FILESYSTEM(mountpoint, type)                                                               \
	"{\"name\":\"vda1\",\"mountpoint\":" mountpoint ",\"type\":" type ",\"disk\":[]}"

static void filesystems_are_told(void **state)
{
	struct agent_facts facts = { 0 };

	(void)state;
	assert_int_equal(agent_answer_filesystems(
				 "{\"return\":[" FILESYSTEM("\"/\"", "\"ext4\"") "," FILESYSTEM(
					 "\"/boot/efi\"", "\"vfat\"") "]}",
				 &facts, &err),
			 0);
	assert_int_equal(facts.filesystem_count, 2);
	assert_string_equal(facts.filesystems[0].mountpoint, "/");
	assert_string_equal(facts.filesystems[0].type, "ext4");
	assert_string_equal(facts.filesystems[1].mountpoint, "/boot/efi");
	assert_string_equal(facts.filesystems[1].type, "vfat");
	agent_facts_free(&facts);
	assert_int_equal(facts.filesystem_count, 0);
	assert_null(facts.filesystems);
}

static void a_guest_may_have_no_filesystem(void **state)
{
	struct agent_facts facts = { 0 };

	(void)state;
	assert_int_equal(agent_answer_filesystems("{\"return\":[]}", &facts, &err), 0);
	assert_int_equal(facts.filesystem_count, 0);
	agent_facts_free(&facts);
}

static void names_in_the_guest_steer_no_terminal(void **state)
{
	struct agent_facts facts = { 0 };

	(void)state;
	assert_int_equal(agent_answer_filesystems("{\"return\":[" FILESYSTEM("\"/a\\nb\\u009b\"",
									     "\"\\u202eext\"") "]}",
						  &facts, &err),
			 0);
	assert_string_equal(facts.filesystems[0].mountpoint, "/a\\x0ab\\xc2\\x9b");
	assert_string_equal(facts.filesystems[0].type, "\\xe2\\x80\\xaeext");
	agent_facts_free(&facts);
}

/* "{"return":[EACH,EACH,...]}" */
static char *answer_of_many(const char *each, size_t count)
{
	size_t len = strlen(each) + 1;
	char *answer = malloc(len * count + 32), *at = answer;

	assert_non_null(answer);
	at = stpcpy(at, "{\"return\":[");
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s%s", i ? "," : "", each);
	strcpy(at, "]}");
	return answer;
}

static void of_too_many_filesystems_the_first_are_told(void **state)
{
	autofree char *answer = answer_of_many(FILESYSTEM("\"/\"", "\"ext4\""), 3000);
	struct agent_facts facts = { 0 };

	(void)state;
	assert_int_equal(agent_answer_filesystems(answer, &facts, &err), 0);
	assert_int_equal(facts.filesystem_count, 256);
	agent_facts_free(&facts);
}

static void a_long_name_is_cut(void **state)
{
	autofree char *name = malloc(5001), *answer = NULL;
	struct agent_facts facts = { 0 };

	(void)state;
	memset(name, 'x', 5000);
	name[5000] = '\0';
	answer = str_format("{\"return\":[{\"mountpoint\":\"%s\",\"type\":\"%s\"}]}", name, name);
	assert_int_equal(agent_answer_filesystems(answer, &facts, &err), 0);
	assert_in_range(strlen(facts.filesystems[0].mountpoint), 255, 1023);
	assert_in_range(strlen(facts.filesystems[0].type), 16, 63);
	agent_facts_free(&facts);
}

static void a_filesystem_without_a_name_is_nonsense(void **state)
{
	static const char *const answers[] = {
		"{\"return\":{}}",
		"{\"return\":[7]}",
		"{\"return\":[{\"mountpoint\":\"/\"}]}",
		"{\"return\":[" FILESYSTEM("\"/\"", "\"ext4\"") ",{\"type\":\"ext4\"}]}",
		"{\"return\":[" FILESYSTEM("null", "\"ext4\"") "]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct agent_facts facts = { 0 };

		assert_int_equal(agent_answer_filesystems(answers[i], &facts, &err), -1);
		assert_string_equal(err.text,
				    "the guest agent answers nonsense (guest-get-fsinfo)");
		agent_facts_free(&facts);
	}
}

/* --- no answers at all --------------------------------------------------------------- */

static void assert_nonsense(const char *json)
{
	struct agent_info info;
	struct agent_facts facts = { 0 };

	assert_int_equal(agent_answer_info(json, &info, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_string_equal(err.text, "the guest agent answers nonsense (guest-info)");
	assert_int_equal(agent_answer_frozen(json, &err), -1);
	assert_int_equal(agent_answer_filesystems(json, &facts, &err), -1);
	agent_facts_free(&facts);
}

static void what_is_no_answer_is_nonsense(void **state)
{
	static const char *const answers[] = {
		"",
		" ",
		"{",
		"[]",
		"null",
		"\"frozen\"",
		"{}",
		"{\"return\":",
		"{\"return\":null}",
		"{\"return\":\"\xff\xfe\"}",
		"{\"return\":1e99999}",
		"{\"return\":99999999999999999999999}",
		"{\"Return\":\"frozen\"}",
		"{\"return\":\"frozen\"}}",
		"{\"error\":{\"class\":\"GenericError\",\"desc\":\"no\"}}",
		"{\"return\":{\"version\":7,\"supported_commands\":[]}}",
		"{\"return\":{\"version\":\"7\",\"supported_commands\":{}}}",
		"{\"return\":{\"version\":\"7\"}}",
		"{\"return\":{\"supported_commands\":[]}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
		assert_nonsense(answers[i]);
}

static void endless_nesting_is_nonsense(void **state)
{
	autofree char *answer = malloc(MIB);

	(void)state;
	memset(answer, '[', MIB - 1);
	answer[MIB - 1] = '\0';
	assert_nonsense(answer);
	memcpy(answer, "{\"return\":", 10);
	assert_nonsense(answer);
}

static void more_than_a_mebibyte_is_not_looked_at(void **state)
{
	autofree char *fits = malloc(MIB + 1), *longer = malloc(MIB + 2);

	(void)state;
	memset(fits, ' ', MIB);
	fits[MIB] = '\0';
	memcpy(fits, "{\"return\":\"frozen\"}", 19);
	assert_int_equal(agent_answer_frozen(fits, &err), 1);
	memcpy(longer, fits, MIB);
	strcpy(longer + MIB, " ");
	assert_nonsense(longer);
}

/* --- where there is no agent ----------------------------------------------------------- */

static struct virt *virt;
static struct domain *domain;

static int begin(void **state)
{
	(void)state;
	virt = virt_open("test:///default", VIRT_MANAGE, &err);
	domain = virt ? domain_find(virt, "test", &err) : NULL;
	if (!domain)
		print_error("%s\n", err.text);
	return domain ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	domain_close(domain);
	virt_close(virt);
	return 0;
}

static void that_there_is_no_agent_is_no_error(void **state)
{
	struct agent_facts facts;

	(void)state;
	memset(&facts, 0xff, sizeof facts);
	assert_int_equal(agent_probe(domain, &facts, &err), 0);
	assert_false(facts.answers);
	assert_false(facts.can_freeze);
	assert_false(facts.can_trim);
	assert_false(facts.is_frozen);
	assert_string_equal(facts.version, "");
	assert_int_equal(facts.filesystem_count, 0);
	assert_non_null(strstr(facts.why_not, "not supported"));
	agent_facts_free(&facts);
}

static void whether_it_is_frozen_cannot_be_told_then(void **state)
{
	(void)state;
	assert_int_equal(agent_is_frozen(domain, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_true(str_starts(err.text, "domain test: cannot ask its guest agent whether"));
}

static void freezing_and_thawing_tell_how_many(void **state)
{
	unsigned frozen = 99, thawed = 99;

	(void)state;
	assert_int_equal(agent_freeze(domain, &frozen, &err), 0);
	assert_int_equal(agent_thaw(domain, &thawed, &err), 0);
	assert_int_equal(frozen, thawed);
	assert_in_range(frozen, 1, 10);
	assert_int_equal(agent_thaw(domain, &thawed, &err), 0);
	assert_int_equal(thawed, 0);
	assert_int_equal(agent_thaw(domain, NULL, &err), 0);
	assert_int_equal(agent_trim(domain, &err), 0);
}

static void what_does_not_run_can_do_nothing(void **state)
{
	unsigned count = 99;

	(void)state;
	assert_int_equal(virDomainDestroy(domain->dom), 0);
	assert_int_equal(agent_freeze(domain, &count, &err), -1);
	assert_string_equal(err.text,
			    "domain test: cannot freeze its filesystems: domain is not running");
	assert_int_equal(agent_thaw(domain, &count, &err), -1);
	assert_string_equal(err.text,
			    "domain test: cannot thaw its filesystems: domain is not running");
	assert_int_equal(agent_trim(domain, &err), -1);
	assert_int_equal(count, 99);
	assert_int_equal(virDomainCreate(domain->dom), 0);
}

static void patience_that_cannot_be_set_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(agent_set_patience(domain, 5, &err), -1);
	assert_int_equal(agent_reset_patience(domain, &err), -1);
	assert_non_null(strstr(err.text, "the hypervisor there, or its libvirt, cannot do that"));
}

#define WITH_DOMAIN(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_tells_its_version_and_what_it_allows),
		cmocka_unit_test(a_command_may_be_forbidden_or_missing),
		cmocka_unit_test(of_two_words_on_one_command_the_worse_counts),
		cmocka_unit_test(a_version_steers_no_terminal_and_fits),
		cmocka_unit_test(what_stands_among_the_commands_may_be_anything),
		cmocka_unit_test(it_is_frozen_or_thawed),
		cmocka_unit_test(any_other_word_is_neither),
		cmocka_unit_test(filesystems_are_told),
		cmocka_unit_test(a_guest_may_have_no_filesystem),
		cmocka_unit_test(names_in_the_guest_steer_no_terminal),
		cmocka_unit_test(of_too_many_filesystems_the_first_are_told),
		cmocka_unit_test(a_long_name_is_cut),
		cmocka_unit_test(a_filesystem_without_a_name_is_nonsense),
		cmocka_unit_test(what_is_no_answer_is_nonsense),
		cmocka_unit_test(endless_nesting_is_nonsense),
		cmocka_unit_test(more_than_a_mebibyte_is_not_looked_at),
		WITH_DOMAIN(that_there_is_no_agent_is_no_error),
		WITH_DOMAIN(whether_it_is_frozen_cannot_be_told_then),
		WITH_DOMAIN(freezing_and_thawing_tell_how_many),
		WITH_DOMAIN(what_does_not_run_can_do_nothing),
		WITH_DOMAIN(patience_that_cannot_be_set_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
