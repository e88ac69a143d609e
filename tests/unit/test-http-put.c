// SPDX-License-Identifier: Apache-2.0
#include "dest/dest.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/http_private.h"
#include "dest/kinds.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE (3 * MIB + 17)

/* --- a server that follows a script -------------------------------------------
 *
 * It stands in the place of http.c, so that no test waits for real pauses.
 */
enum what { ANSWERS, BREAKS_OFF, IS_INTERRUPTED };

struct exchange {
	const char *method;
	unsigned status;
	const char *field, *value; /* of the answer */
	enum what what;
	uint64_t reads; /* of an upload that does not arrive whole */
};

static const struct exchange *script; /* ends with a NULL method */
static char asked_url[1024], if_none_match[16], range[32];
static bool in_spite_of_signals;
static uint8_t arrived[SIZE];
static unsigned waits;

struct http *http_open(const struct http_config *cfg, struct err *e)
{
	(void)cfg;
	(void)e;
	return (struct http *)(void *)&script; /* nobody looks into it */
}

void http_close(struct http *http)
{
	(void)http;
}

int http_date(const char *text, time_t *out)
{
	(void)text;
	(void)out;
	return -1;
}

int http_wait(struct http_backoff *backoff, const struct http_response *r, struct err *e)
{
	(void)r;
	(void)e;
	waits++;
	return backoff->tries-- > 0 ? 0 : -1;
}

static void keep(char *dst, size_t cap, const struct http_header *headers, const char *name)
{
	*dst = '\0';
	for (; headers && headers->name; headers++)
		if (str_equal(headers->name, name) && headers->value)
			snprintf(dst, cap, "%s", headers->value);
}

static int receive(const struct http_upload *upload, uint64_t size, struct err *e)
{
	memset(arrived, 0, sizeof arrived);
	for (uint64_t at = 0; at < size; at += MIB)
		if (upload->read(upload->ctx, arrived + at, (size_t)MIN(size - at, MIB), at, e) < 0)
			return -1;
	return 0;
}

static void answer(const struct exchange *x, struct http_response *out)
{
	out->status = x->status;
	out->body = strdup("");
	if (!x->field)
		return;
	out->fields = calloc(1, sizeof *out->fields);
	out->fields->name = strdup(x->field);
	out->fields->value = strdup(x->value);
	out->field_count = 1;
}

/* Of one byte that was asked for; all of an image nobody wants. */
static int download(const struct http_download *to, struct http_response *out, struct err *e)
{
	int rc;

	if (!to || out->status / 100 != 2)
		return 0;
	rc = to->begin(to->ctx, out, e);
	assert_int_equal(rc, out->status == 206 ? 0 : -1);
	return rc < 0 ? rc : to->write(to->ctx, "x", 1, e);
}

int http_send(struct http *http, const struct http_request *request, struct http_response *out,
	      struct err *e)
{
	const struct exchange *x = script;

	(void)http;
	memset(out, 0, sizeof *out);
	if (!x->method)
		fail_msg("%s is not in the script", request->method);
	script++;
	assert_string_equal(request->method, x->method);
	snprintf(asked_url, sizeof asked_url, "%s", request->url);
	keep(if_none_match, sizeof if_none_match, request->headers, "If-None-Match");
	keep(range, sizeof range, request->headers, "Range");
	in_spite_of_signals = request->even_if_interrupted;
	if (request->upload &&
	    receive(request->upload, x->what == ANSWERS && x->status < 300 ? SIZE : x->reads, e) <
		    0)
		return -1;
	if (x->what == IS_INTERRUPTED)
		return err_set(e, ERR_INTERRUPTED, "interrupted by SIGTERM");
	out->may_retry = x->what == BREAKS_OFF;
	if (x->what == BREAKS_OFF)
		return err_set(e, ERR_FAILED, "the connection broke off");
	answer(x, out);
	return download(request->download, out, e);
}

/* --- one image for it --- */

static struct err err;
static struct dest *dest;
static struct image_info info;
static uint8_t content[SIZE];
static unsigned warnings;

static void count_warning(void *ctx, const char *warning)
{
	(void)ctx;
	(void)warning;
	warnings++;
}

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		content[i] = (uint8_t)(i * i >> 9);
	memset(&info, 0, sizeof info);
	info.size = SIZE;
	dest = NULL;
	waits = warnings = 0;
	log_set_level(LOG_ERROR);
	log_set_sink(count_warning, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dest_close(dest);
	image_info_free(&info);
	log_set_sink(NULL, NULL);
	return script && script->method; /* all of it was needed */
}

static const struct dest_config plain = { .where = "https://host/dir/",
					  .image_name = "image",
					  .suffix = ".raw" };
static const struct dest_config overwriting = {
	.where = "https://host/dir/", .image_name = "image", .suffix = ".raw", .overwrite = true
};

static void open_dest(const struct dest_config *cfg, const struct exchange *exchanges)
{
	dest = put_open(cfg, strchr(cfg->where, ':') + 1, &err);
	assert_non_null(dest);
	script = exchanges;
}

static int check(const struct dest_config *cfg, const struct exchange *exchanges)
{
	open_dest(cfg, exchanges);
	return dest->ops->check(dest, SIZE, &err);
}

/* As after a capture: the digests are known. */
static int publish(const struct dest_config *cfg, const struct exchange *exchanges)
{
	int fd;

	open_dest(cfg, exchanges);
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(io_pwrite(fd, content, SIZE, 0), 0);
	assert_int_equal(hash_file(fd, "image", SIZE, &info.digests, NULL, NULL, &err), 0);
	return dest->ops->publish(dest, &info, &err);
}

static void assert_failed(int rc, enum err_kind kind, const char *words)
{
	assert_int_equal(rc, -1);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
	assert_int_equal(err.kind, kind);
	assert_null(dest->receipt.verified_by);
}

#define HAS_ALL "Content-Length", "3145745" /* SIZE */
#define TELLS(m, s, ...)                                                                           \
	{                                                                                          \
		m, s, __VA_ARGS__, ANSWERS, 0                                                      \
	}
#define SAYS(m, s) TELLS(m, s, NULL, NULL)
#define FAILS(m, how, at)                                                                          \
	{                                                                                          \
		m, 0, NULL, NULL, how, at                                                          \
	}
#define END                                                                                        \
	{                                                                                          \
		0                                                                                  \
	}

/* --- where it goes --- */

static void a_directory_gets_the_image_under_its_escaped_name(void **state)
{
	static const struct {
		const char *where, *name, *url;
	} cases[] = {
		{ "https://host/dir/", "image", "https://host/dir/image.raw" },
		{ "https://host", "image", "https://host/image.raw" },
		{ "http://host:8080/a%20b/", "ä b?#%",
		  "http://host:8080/a%20b/%c3%a4%20b%3f%23%25.raw" },
		{ "https://host/dir/?v=1", "image", "https://host/dir/image.raw?v=1" },
		{ "https://host/dir/this", "image", "https://host/dir/this" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static const struct exchange absent[] = { SAYS("HEAD", 404), END };
		const struct dest_config cfg = { .where = cases[i].where,
						 .image_name = cases[i].name,
						 .suffix = ".raw" };

		assert_int_equal(check(&cfg, absent), 0);
		assert_string_equal(asked_url, cases[i].url);
		dest_close(dest);
	}
	dest = NULL;
}

static void what_is_no_url_is_refused(void **state)
{
	static const char *const wheres[] = { "http", "http:", "https:relative/x", "https://a b/",
					      "https://host:99999/" };

	(void)state;
	for (size_t i = 0; i < sizeof wheres / sizeof *wheres; i++) {
		const struct dest_config cfg = { .where = wheres[i] };

		if (put_open(&cfg, NULL, &err))
			fail_msg("%s was taken", wheres[i]);
		assert_int_equal(err.kind, ERR_USAGE);
		assert_non_null(strstr(err.text, "--to"));
	}
}

/* Which http.h makes a header of, for that server only. */
static void user_name_and_password_stay_in_the_url_and_are_shown_nowhere(void **state)
{
	static const struct exchange wrong[] = { SAYS("HEAD", 401), END };
	const struct dest_config cfg = { .where = "https://Aladdin:open%20sesame%2b@host/dir/",
					 .image_name = "image",
					 .suffix = ".raw" };

	(void)state;
	assert_failed(check(&cfg, wrong), ERR_REFUSED, "https://host/dir/image.raw: ");
	assert_string_equal(asked_url, "https://Aladdin:open%20sesame%2b@host/dir/image.raw");
	assert_string_equal(dest->name, "https://host/dir/image.raw");
	err_set(&err, ERR_FAILED, "open sesame+, open%%20sesame%%2b, QWxhZGRpbjpvcGVuIHNlc2FtZSs=");
	assert_null(strstr(err.text, "sesame"));
	assert_null(strstr(err.text, "QWxh"));
}

static void a_password_that_is_missing_is_asked_for(void **state)
{
	static const struct exchange wrong[] = { SAYS("HEAD", 401), END };

	(void)state;
	assert_failed(check(&plain, wrong), ERR_REFUSED, "put user name and password into the URL");
}

static void a_signature_in_the_query_is_sent_and_not_shown(void **state)
{
	static const struct exchange forbids[] = { SAYS("HEAD", 500), END };
	const struct dest_config cfg = { .where = "https://host/image?sig=0123456789abcdef",
					 .image_name = "image" };

	(void)state;
	assert_failed(check(&cfg, forbids), ERR_REFUSED, "https://host/image: ");
	assert_string_equal(asked_url, cfg.where);
	assert_null(strstr(err.text, "sig="));
	err_set(&err, ERR_FAILED, "no sig=0123456789abcdef");
	assert_null(strstr(err.text, "0123456789abcdef"));
}

/* --- before --- */

static void options_that_such_a_server_cannot_follow_are_refused(void **state)
{
	static char *const tags[] = { "a", NULL };
	static char *const series[] = { "x=y", "ccsnap_series=nightly", NULL };
	struct dest_config cfgs[4] = { plain, plain, plain, plain };
	static const char *const words[] = { "--tag", "--visibility", "--protected", "--series" };
	static const struct exchange none[] = { END };

	(void)state;
	cfgs[0].tags = tags;
	cfgs[1].visibility = "private";
	cfgs[2].make_protected = true;
	for (int i = 0; i < 4; i++) {
		open_dest(&cfgs[i], none);
		dest->properties = i == 3 ? series : NULL;
		assert_failed(dest->ops->check(dest, SIZE, &err), ERR_USAGE, words[i]);
		dest_close(dest);
	}
	dest = NULL;
}

static void a_users_properties_are_warned_of_once_and_ours_never(void **state)
{
	static char *const ours[] = { "os_distro=debian", "ccsnap_version=1", NULL };
	static char *const users[] = { "os_distro=debian", "owner=me", "x=y", NULL };
	static const struct exchange absent[] = { SAYS("HEAD", 404), SAYS("HEAD", 404),
						  SAYS("HEAD", 404), END };

	(void)state;
	open_dest(&plain, absent);
	dest->properties = ours;
	assert_int_equal(dest->ops->check(dest, SIZE, &err), 0);
	assert_int_equal(warnings, 0);
	dest->properties = users;
	assert_int_equal(dest->ops->check(dest, SIZE, &err), 0);
	assert_int_equal(dest->ops->check(dest, SIZE, &err), 0);
	assert_int_equal(warnings, 1);
}

static void an_existing_image_is_refused_without_overwrite(void **state)
{
	static const struct exchange present[] = { TELLS("HEAD", 200, HAS_ALL), END };

	(void)state;
	assert_failed(check(&plain, present), ERR_REFUSED,
		      "https://host/dir/image.raw exists; use --overwrite");
	dest_close(dest);
	assert_int_equal(check(&overwriting, present), 0);
}

/* Of which no byte can be given. */
static void an_empty_file_exists_too(void **state)
{
	static const struct exchange present[] = { SAYS("HEAD", 405),
						   TELLS("GET", 416, "Content-Range", "bytes */0"),
						   END };

	(void)state;
	assert_failed(check(&plain, present), ERR_REFUSED, "exists; use --overwrite");
}

static void what_nobody_tells_is_left_to_the_put(void **state)
{
	static const struct exchange forbidden[] = { SAYS("HEAD", 403), END };

	(void)state;
	assert_int_equal(check(&plain, forbidden), 0);
}

static void a_server_that_does_not_answer_is_refused_before_the_work(void **state)
{
	static const struct exchange broken[] = { FAILS("HEAD", BREAKS_OFF, 0), END };

	(void)state;
	assert_failed(check(&plain, broken), ERR_REFUSED, "broke off");
}

static void there_is_no_list(void **state)
{
	static const struct exchange none[] = { END };
	const struct dest_config cfg = { .where = "https://host/dir/" };
	const struct image_filter filter = { .name = "image" };
	struct image_list list = { 0 };

	(void)state;
	open_dest(&cfg, none);
	assert_failed(dest->ops->list(dest, &filter, &list, &err), ERR_USAGE, "has no list");
}

/* --- sending --- */

static void an_image_arrives_and_its_size_is_compared(void **state)
{
	static const struct exchange good[] = { SAYS("HEAD", 404), SAYS("PUT", 201),
						TELLS("HEAD", 200, HAS_ALL), END };

	(void)state;
	assert_int_equal(publish(&plain, good), 0);
	assert_memory_equal(arrived, content, SIZE);
	assert_string_equal(info.file, "https://host/dir/image.raw");
	assert_string_equal(dest->receipt.verified_by, "size");
	assert_false(dest->receipt.verified);
	assert_int_equal(dest->receipt.attempts, 1);
	assert_int_equal(dest->receipt.sent_bytes, SIZE);
	assert_int_equal(dest->receipt.cleanup, CLEANUP_NOTHING);
}

static void put_asks_that_nothing_be_there(void **state)
{
	static const struct exchange raced[] = { SAYS("HEAD", 404),
						 { "PUT", 412, NULL, NULL, ANSWERS, MIB },
						 END };
	static const struct exchange over[] = { SAYS("HEAD", 200), SAYS("PUT", 204),
						TELLS("HEAD", 200, HAS_ALL), END };

	(void)state;
	assert_failed(publish(&plain, raced), ERR_REFUSED, "exists; use --overwrite");
	assert_string_equal(if_none_match, "*");
	dest_close(dest);
	image_info_free(&info);
	info.size = SIZE;
	assert_int_equal(publish(&overwriting, over), 0);
	assert_string_equal(if_none_match, "");
}

static void an_image_that_came_into_being_meanwhile_is_not_replaced(void **state)
{
	static const struct exchange present[] = { SAYS("HEAD", 200), END };

	(void)state;
	assert_failed(publish(&plain, present), ERR_REFUSED, "exists; use --overwrite");
	assert_int_equal(dest->receipt.attempts, 0);
}

static void trouble_that_may_pass_is_waited_for(void **state)
{
	static const struct exchange later[] = {
		SAYS("HEAD", 404),	     SAYS("PUT", 503),
		SAYS("HEAD", 404),	     SAYS("PUT", 429),
		SAYS("HEAD", 404),	     FAILS("PUT", BREAKS_OFF, 2 * MIB),
		SAYS("HEAD", 404),	     SAYS("PUT", 201),
		TELLS("HEAD", 200, HAS_ALL), END
	};

	(void)state;
	assert_int_equal(publish(&plain, later), 0);
	assert_memory_equal(arrived, content, SIZE);
	assert_string_equal(if_none_match, "");
	assert_int_equal(dest->receipt.attempts, 4);
	assert_int_equal(dest->receipt.sent_bytes, SIZE + 2 * MIB);
	assert_int_equal(waits, 3);
}

/* The answer to a try that had come to its end was lost, or a part is shown. */
static void what_an_own_try_left_is_replaced(void **state)
{
	static const struct exchange lost[] = { SAYS("HEAD", 404),
						FAILS("PUT", BREAKS_OFF, SIZE),
						TELLS("HEAD", 200, "Content-Length", "1000"),
						SAYS("PUT", 204),
						TELLS("HEAD", 200, "Content-Length", "1"),
						SAYS("DELETE", 204),
						END };

	(void)state;
	assert_failed(publish(&plain, lost), ERR_FAILED, "has 1 bytes of it and not 3145745");
	assert_int_equal(dest->receipt.attempts, 2);
	assert_int_equal(dest->receipt.cleanup, CLEANUP_DONE);
}

static void trouble_that_stays_ends_the_run(void **state)
{
	static const struct exchange broken[] = { SAYS("HEAD", 404),
						  SAYS("PUT", 500),
						  SAYS("HEAD", 404),
						  SAYS("PUT", 502),
						  SAYS("HEAD", 404),
						  SAYS("PUT", 504),
						  SAYS("HEAD", 404),
						  SAYS("PUT", 500),
						  SAYS("HEAD", 404),
						  SAYS("PUT", 500),
						  SAYS("HEAD", 404),
						  SAYS("PUT", 503),
						  END };

	(void)state;
	assert_failed(publish(&plain, broken), ERR_FAILED, "cannot put the image there: 503");
	assert_int_equal(dest->receipt.attempts, 6);
}

static void a_refusal_is_final(void **state)
{
	static const unsigned statuses[] = { 400, 401, 403, 405, 409, 411, 413, 507 };

	(void)state;
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		const struct exchange refused[] = { SAYS("HEAD", 404), SAYS("PUT", statuses[i]),
						    END };
		char words[64];

		snprintf(words, sizeof words, "cannot put the image there: %u", statuses[i]);
		assert_failed(publish(&plain, refused),
			      statuses[i] < 500 ? ERR_REFUSED : ERR_FAILED, words);
		assert_int_equal(dest->receipt.attempts, 1);
		assert_int_equal(waits, 0);
		dest_close(dest);
		image_info_free(&info);
		info.size = SIZE;
	}
	script = NULL; /* it was in the loop */
	dest = NULL;
}

/* --- proof, and what follows without it --- */

static void a_wrong_size_is_deleted_if_the_server_says_we_made_it(void **state)
{
	static const struct exchange wrong[] = { SAYS("HEAD", 404), SAYS("PUT", 201),
						 TELLS("HEAD", 200, "Content-Length", "5"),
						 SAYS("DELETE", 204), END };

	(void)state;
	assert_failed(publish(&plain, wrong), ERR_FAILED, "has 5 bytes of it and not 3145745");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_DONE);
	assert_true(in_spite_of_signals);
}

static void what_was_replaced_is_not_deleted(void **state)
{
	static const struct exchange wrong[] = { SAYS("HEAD", 200), SAYS("PUT", 204),
						 TELLS("HEAD", 200, "Content-Length", "5"), END };

	(void)state;
	assert_failed(publish(&overwriting, wrong), ERR_FAILED, "not to be trusted: delete it");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
}

static void an_overwriting_that_breaks_off_says_that_what_was_there_may_be_spoilt(void **state)
{
	static const struct exchange cut[] = { TELLS("HEAD", 200, HAS_ALL),
					       FAILS("PUT", IS_INTERRUPTED, MIB), END };
	static const struct exchange refused[] = { TELLS("HEAD", 200, HAS_ALL), SAYS("PUT", 403),
						   END };

	(void)state;
	assert_failed(publish(&overwriting, cut), ERR_INTERRUPTED,
		      "the image that was there may be replaced in part");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
	dest_close(dest);
	image_info_free(&info);
	info.size = SIZE;
	assert_failed(publish(&overwriting, refused), ERR_REFUSED, "403");
	assert_null(strstr(err.text, "in part"));
	assert_int_equal(dest->receipt.cleanup, CLEANUP_NOTHING);
}

/* Where nothing was before, or the server does not tell. */
static void a_part_that_may_be_there_is_not_to_be_trusted(void **state)
{
	static const struct exchange over[] = { SAYS("HEAD", 404),
						FAILS("PUT", IS_INTERRUPTED, MIB),
						SAYS("HEAD", 200), END };
	static const struct exchange untold[] = { SAYS("HEAD", 403),
						  FAILS("PUT", IS_INTERRUPTED, MIB),
						  SAYS("HEAD", 403), END };
	static const struct exchange away[] = { SAYS("HEAD", 404),
						FAILS("PUT", IS_INTERRUPTED, MIB),
						FAILS("HEAD", BREAKS_OFF, 0), END };
	static const struct {
		const struct dest_config *cfg;
		const struct exchange *exchanges;
	} cases[] = { { &overwriting, over }, { &plain, untold }, { &plain, away } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		dest_close(dest);
		image_info_free(&info);
		info.size = SIZE;
		assert_failed(publish(cases[i].cfg, cases[i].exchanges), ERR_INTERRUPTED,
			      "not to be trusted: delete it");
		assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
	}
}

static void a_delete_that_fails_is_told(void **state)
{
	static const struct exchange wrong[] = { SAYS("HEAD", 404), SAYS("PUT", 201),
						 SAYS("HEAD", 404), SAYS("DELETE", 405), END };

	(void)state;
	assert_failed(publish(&plain, wrong), ERR_FAILED, "but has nothing there");
	assert_non_null(strstr(err.text, "405"));
	assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
}

static void keep_failed_keeps(void **state)
{
	static const struct exchange wrong[] = { SAYS("HEAD", 404), SAYS("PUT", 201),
						 TELLS("HEAD", 200, "Content-Length", "5"), END };
	struct dest_config cfg = plain;

	(void)state;
	cfg.keep_failed = true;
	assert_failed(publish(&cfg, wrong), ERR_FAILED, "kept");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_KEPT);
}

static void a_signal_before_the_proof_undoes(void **state)
{
	static const struct exchange late[] = { SAYS("HEAD", 404), SAYS("PUT", 201),
						FAILS("HEAD", IS_INTERRUPTED, 0),
						SAYS("DELETE", 204), END };

	(void)state;
	assert_failed(publish(&plain, late), ERR_INTERRUPTED, "SIGTERM");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_DONE);
}

static void a_signal_while_sending_deletes_nothing_and_looks_what_is_left(void **state)
{
	static const struct exchange clean[] = { SAYS("HEAD", 404),
						 FAILS("PUT", IS_INTERRUPTED, MIB),
						 SAYS("HEAD", 404), END };
	static const struct exchange part[] = { SAYS("HEAD", 404),
						FAILS("PUT", IS_INTERRUPTED, MIB),
						TELLS("HEAD", 200, "Content-Length", "100"), END };

	(void)state;
	assert_failed(publish(&plain, clean), ERR_INTERRUPTED, "SIGTERM");
	assert_true(in_spite_of_signals);
	assert_int_equal(dest->receipt.cleanup, CLEANUP_NOTHING);
	dest_close(dest);
	image_info_free(&info);
	info.size = SIZE;
	assert_failed(publish(&plain, part), ERR_INTERRUPTED, "not to be trusted");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
}

static void a_size_that_nobody_tells_proves_nothing(void **state)
{
	static const struct exchange silent[] = { SAYS("HEAD", 404), SAYS("PUT", 200),
						  TELLS("HEAD", 200, "Content-Length", "12x"),
						  END };
	static const struct exchange forbids[] = { SAYS("HEAD", 403), SAYS("PUT", 200),
						   SAYS("HEAD", 403), END };

	(void)state;
	assert_int_equal(publish(&plain, silent), 0);
	assert_null(dest->receipt.verified_by);
	assert_int_equal(warnings, 1);
	dest_close(dest);
	image_info_free(&info);
	info.size = SIZE;
	assert_int_equal(publish(&plain, forbids), 0);
	assert_null(dest->receipt.verified_by);
	assert_int_equal(warnings, 2);
}

static void a_server_without_head_is_asked_for_one_byte(void **state)
{
	static const struct exchange ranges[] = { SAYS("HEAD", 405),
						  SAYS("GET", 404),
						  SAYS("PUT", 201),
						  SAYS("HEAD", 501),
						  TELLS("GET", 206, "Content-Range",
							"bytes 0-0/3145745"),
						  END };
	static const struct exchange whole[] = { SAYS("HEAD", 405),	     SAYS("GET", 404),
						 SAYS("PUT", 201),	     SAYS("HEAD", 405),
						 TELLS("GET", 200, HAS_ALL), END };

	(void)state;
	assert_int_equal(publish(&plain, ranges), 0);
	assert_string_equal(range, "bytes=0-0");
	assert_string_equal(dest->receipt.verified_by, "size");
	dest_close(dest);
	image_info_free(&info);
	info.size = SIZE;
	err = (struct err){ 0 };
	assert_int_equal(publish(&plain, whole), 0);
	assert_string_equal(dest->receipt.verified_by, "size");
	assert_int_equal(err.kind, ERR_NONE); /* it is left alone */
}

static void an_image_that_changed_after_it_was_made_does_not_stay(void **state)
{
	static const struct exchange good[] = { SAYS("HEAD", 404), SAYS("PUT", 201),
						SAYS("DELETE", 204), END };
	int fd;

	(void)state;
	open_dest(&plain, good);
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(io_pwrite(fd, content, SIZE, 0), 0);
	assert_int_equal(hash_file(fd, "image", SIZE, &info.digests, NULL, NULL, &err), 0);
	assert_int_equal(io_pwrite(fd, "x", 1, MIB), 0);
	assert_failed(dest->ops->publish(dest, &info, &err), ERR_FAILED, "has changed");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_DONE);
}

static void an_adopted_file_needs_no_room_and_gets_its_digests(void **state)
{
	static const struct exchange good[] = { SAYS("HEAD", 404), SAYS("HEAD", 404),
						SAYS("PUT", 201), TELLS("HEAD", 200, HAS_ALL),
						END };
	struct dest_config cfg = plain;
	FILE *file = tmpfile();
	struct digests digests;

	(void)state;
	cfg.work_dir = "/nonexistent";
	assert_int_equal(io_pwrite(fileno(file), content, SIZE, 0), 0);
	assert_int_equal(hash_file(fileno(file), "x", SIZE, &digests, NULL, NULL, &err), 0);
	open_dest(&cfg, good);
	dest->ops->adopt(dest, fileno(file));
	dest->ops->tidy(dest);
	assert_int_equal(dest->ops->check(dest, SIZE, &err), 0);
	assert_int_equal(dest->ops->publish(dest, &info, &err), 0);
	assert_true(digests_equal(&info.digests, &digests));
	fclose(file);
}

static void a_kept_file_is_whole_also_when_the_sending_fails(void **state)
{
	static const struct exchange refused[] = { SAYS("HEAD", 404), SAYS("PUT", 403), END };
	char dir[] = "/tmp/ccsnap-test-http-put.XXXXXX", path[64];
	struct dest_config cfg = plain;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/kept.raw", dir);
	cfg.keep_path = path;
	assert_failed(publish(&cfg, refused), ERR_REFUSED, path);
	assert_true(dest->receipt.is_kept);
	assert_string_equal(dest->path, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	assert_int_equal(remove(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_directory_gets_the_image_under_its_escaped_name),
		TEST(what_is_no_url_is_refused),
		TEST(user_name_and_password_stay_in_the_url_and_are_shown_nowhere),
		TEST(a_password_that_is_missing_is_asked_for),
		TEST(a_signature_in_the_query_is_sent_and_not_shown),
		TEST(options_that_such_a_server_cannot_follow_are_refused),
		TEST(a_users_properties_are_warned_of_once_and_ours_never),
		TEST(an_existing_image_is_refused_without_overwrite),
		TEST(an_empty_file_exists_too),
		TEST(what_nobody_tells_is_left_to_the_put),
		TEST(a_server_that_does_not_answer_is_refused_before_the_work),
		TEST(there_is_no_list),
		TEST(an_image_arrives_and_its_size_is_compared),
		TEST(put_asks_that_nothing_be_there),
		TEST(an_image_that_came_into_being_meanwhile_is_not_replaced),
		TEST(trouble_that_may_pass_is_waited_for),
		TEST(what_an_own_try_left_is_replaced),
		TEST(trouble_that_stays_ends_the_run),
		TEST(a_refusal_is_final),
		TEST(a_wrong_size_is_deleted_if_the_server_says_we_made_it),
		TEST(what_was_replaced_is_not_deleted),
		TEST(an_overwriting_that_breaks_off_says_that_what_was_there_may_be_spoilt),
		TEST(a_part_that_may_be_there_is_not_to_be_trusted),
		TEST(a_delete_that_fails_is_told),
		TEST(keep_failed_keeps),
		TEST(a_signal_before_the_proof_undoes),
		TEST(a_signal_while_sending_deletes_nothing_and_looks_what_is_left),
		TEST(a_size_that_nobody_tells_proves_nothing),
		TEST(a_server_without_head_is_asked_for_one_byte),
		TEST(an_image_that_changed_after_it_was_made_does_not_stay),
		TEST(an_adopted_file_needs_no_room_and_gets_its_digests),
		TEST(a_kept_file_is_whole_also_when_the_sending_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
