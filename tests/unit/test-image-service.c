// SPDX-License-Identifier: Apache-2.0
#include "dest/image_service.h"
#include "service-kit.h"

#include "dest/session.h"

#define ID	"11111111-2222-4333-8444-555555555555"
#define ID2	"aaaaaaaa-2222-4333-8444-555555555555"
#define LIST	IMAGES "/v2/images"
#define ONE	LIST "/" ID
#define PAGE1	LIST "?limit=200&sort=created_at:asc"
#define CREATED ",\"created_at\":\"2026-11-30T22:39:51Z\""

#define IMAGE(id, status, more)                                                                    \
	"{\"id\":\"" id "\",\"status\":\"" status "\"" CREATED ",\"name\":\"night\"" more "}"
#define QUEUED	      IMAGE(ID, "queued", ",\"vm\":\"db-1\"")
#define IMAGES_OF(in) "{\"images\":[" in "]}"

#define DO(method, url, status, body)                                                              \
	{                                                                                          \
		method, url, status, body, NULL, NULL, ANSWERED                                    \
	}
#define GETS(url, status, body) DO("GET", url, status, body)
#define NO_ANSWER(method, url, fate)                                                               \
	{                                                                                          \
		method, url, 0, NULL, NULL, NULL, fate                                             \
	}
#define END DO(NULL, NULL, 0, NULL)

static struct session *session;

static int set_up(void **state)
{
	static const struct exchange login[] = { LOGGED_IN("tok-1"), END };
	struct session_config cfg = { 0 };

	(void)state;
	use_password();
	session = session_open(&cfg, &err);
	config.secret = NULL; /* the session's now */
	play(login);
	return session ? session_start(session, &err) : -1;
}

static int tear_down(void **state)
{
	(void)state;
	session_close(session);
	forget_asked();
	return 0;
}

static void assert_ok(int rc)
{
	if (rc != 0)
		fail_msg("%s", err.text);
	assert_played();
}

static void assert_fails(int rc, const char *words, enum err_kind kind)
{
	assert_int_equal(rc, -1);
	assert_words(words, kind);
	assert_played();
}

/* --- create --- */

static char *two_properties[] = { (char *)"vm=db-1", (char *)"empty=", (char *)"none", NULL };
static char *two_tags[] = { (char *)"a", (char *)"b c", NULL };

static struct service_image wanted(void)
{
	return (struct service_image){ .id = (char *)ID,
				       .name = (char *)"night",
				       .disk_format = (char *)"qcow2",
				       .container_format = (char *)"bare",
				       .properties = two_properties };
}

static enum service_heard heard;

static int create(const struct exchange *exchanges)
{
	struct service_image w = wanted();

	play(exchanges);
	return service_create(session, &w, &heard, &err);
}

static void an_image_is_made_as_wanted(void **state)
{
	static const struct exchange e[] = { DO("POST", LIST, 201, QUEUED), END };
	struct service_image w = wanted();

	(void)state;
	w.min_disk = 8;
	w.is_protected = true;
	w.visibility = (char *)"private";
	w.tags = two_tags;
	play(e);
	assert_ok(service_create(session, &w, &heard, &err));
	assert_json(asked[0].text, "{'id':'" ID "','name':'night','disk_format':'qcow2',"
				   "'container_format':'bare','visibility':'private','min_disk':8,"
				   "'protected':true,'tags':['a','b c'],'vm':'db-1'}");
	assert_string_equal(asked[0].content_type, "application/json");
	assert_string_equal(asked[0].token, "tok-1");
	assert_int_equal(asked[0].tries, 0);
}

static void a_lost_answer_makes_no_second_image(void **state)
{
	static const struct exchange e[] = { NO_ANSWER("POST", LIST, LOST), GETS(ONE, 200, QUEUED),
					     END };

	(void)state;
	assert_ok(create(e));
}

static void a_lost_request_is_made_again(void **state)
{
	static const struct exchange e[] = { NO_ANSWER("POST", LIST, LOST),
					     GETS(ONE, 404, ""),
					     DO("POST", LIST, 503, ""),
					     GETS(ONE, 404, ""),
					     NO_ANSWER("POST", LIST, UNSENT),
					     DO("POST", LIST, 201, QUEUED),
					     END };

	(void)state;
	assert_ok(create(e));
	assert_int_equal(pauses, 3);
}

static void an_image_that_is_there_already_is_ours_or_not(void **state)
{
	static const char *const others[] = {
		IMAGE(ID, "active", ",\"vm\":\"db-1\""),
		IMAGE(ID, "queued", ",\"vm\":\"db-2\""),
		IMAGE(ID, "queued", ""),
		"{\"id\":\"" ID "\",\"status\":\"queued\",\"vm\":\"db-1\"" CREATED "}",
	};
	static const struct exchange ours[] = { DO("POST", LIST, 409, "there"),
						GETS(ONE, 200, QUEUED), END };

	(void)state;
	assert_ok(create(ours));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const struct exchange e[] = { DO("POST", LIST, 409, "there"),
					      GETS(ONE, 200, others[i]), END };

		assert_fails(create(e), "is not the one that was to be made", ERR_FAILED);
	}
}

static void an_id_that_is_taken_elsewhere_is_a_conflict(void **state)
{
	static const struct exchange e[] = { DO("POST", LIST, 409, "there"), GETS(ONE, 404, ""),
					     END };

	(void)state;
	assert_fails(create(e), "making the image: 409: there", ERR_REFUSED);
}

static void what_is_not_allowed_is_not_asked_for_again(void **state)
{
	static const struct exchange e[] = { DO("POST", LIST, 403, "not you"), END };
	static const struct exchange hopeless[] = { NO_ANSWER("POST", LIST, HOPELESS), END };
	struct service_image w = wanted();

	(void)state;
	assert_fails(create(e), "403: not you", ERR_REFUSED);
	assert_null(strstr(err.text, "role"));
	w.visibility = (char *)"public";
	play(e);
	assert_fails(service_create(session, &w, &heard, &err),
		     "403: not you; publishing an image to all takes a role that you may not have",
		     ERR_REFUSED);
	assert_fails(create(hopeless), "no answer", ERR_FAILED);
}

static void it_is_asked_for_five_times_at_most(void **state)
{
	static const struct exchange e[] = { DO("POST", LIST, 503, "ill"),
					     GETS(ONE, 404, ""),
					     DO("POST", LIST, 503, "ill"),
					     GETS(ONE, 404, ""),
					     DO("POST", LIST, 503, "ill"),
					     GETS(ONE, 404, ""),
					     DO("POST", LIST, 503, "ill"),
					     GETS(ONE, 404, ""),
					     DO("POST", LIST, 503, "ill"),
					     GETS(ONE, 404, ""),
					     END };

	(void)state;
	assert_fails(create(e), "503: ill", ERR_FAILED);
}

static void a_create_that_never_got_there_is_told_from_one_that_may_have(void **state)
{
	static const struct exchange away[] = {
		NO_ANSWER("POST", LIST, UNSENT), NO_ANSWER("POST", LIST, UNSENT),
		NO_ANSWER("POST", LIST, UNSENT), NO_ANSWER("POST", LIST, UNSENT),
		NO_ANSWER("POST", LIST, UNSENT), END
	};
	static const struct exchange lost_once[] = { NO_ANSWER("POST", LIST, UNSENT),
						     NO_ANSWER("POST", LIST, LOST),
						     GETS(ONE, 404, ""),
						     NO_ANSWER("POST", LIST, UNSENT),
						     NO_ANSWER("POST", LIST, UNSENT),
						     NO_ANSWER("POST", LIST, UNSENT),
						     END };
	static const struct exchange hopeless[] = { NO_ANSWER("POST", LIST, HOPELESS), END };

	(void)state;
	assert_fails(create(away), "no answer", ERR_FAILED);
	assert_int_equal(heard, SERVICE_UNHEARD);
	assert_fails(create(lost_once), "no answer", ERR_FAILED);
	assert_int_equal(heard, SERVICE_UNANSWERED);
	assert_fails(create(hopeless), "no answer", ERR_FAILED);
	assert_int_equal(heard, SERVICE_UNANSWERED);
}

static void a_create_that_a_gateway_gave_up_may_still_come(void **state)
{
	static const struct exchange given_up[] = { DO("POST", LIST, 504, ""), END };
	static const struct exchange refused[] = { DO("POST", LIST, 503, ""), GETS(ONE, 404, ""),
						   DO("POST", LIST, 403, "not you"), END };

	(void)state;
	assert_fails(create(given_up), "504", ERR_FAILED);
	assert_int_equal(heard, SERVICE_UNANSWERED);
	assert_fails(create(refused), "403", ERR_REFUSED);
	assert_int_equal(heard, SERVICE_ANSWERED);
}

/* --- one image --- */

static int get(const char *body, struct service_image *out)
{
	const struct exchange e[] = { GETS(ONE, 200, body), END };

	play(e);
	return service_get(session, ID, out, &err);
}

static void an_image_is_read_whole(void **state)
{
	struct service_image image;

	(void)state;
	assert_int_equal(
		get(IMAGE(ID, "active",
			  ",\"size\":8589934593,\"virtual_size\":null,\"checksum\":\"c1\","
			  "\"os_hash_algo\":\"sha512\",\"os_hash_value\":\"AB\",\"owner\":\"p1\","
			  "\"disk_format\":\"raw\",\"container_format\":\"bare\","
			  "\"visibility\":\"shared\",\"protected\":true,\"min_disk\":9,"
			  "\"min_ram\":0,\"os_hidden\":false,\"tags\":[\"x\",\"y\"],"
			  "\"self\":\"/v2\",\"file\":\"f\",\"vm\":\"db=1\",\"n\":5,\"o\":{},"
			  "\"a=b\":\"c\",\"e\":\"\""),
		    &image),
		1);
	assert_string_equal(image.id, ID);
	assert_string_equal(image.name, "night");
	assert_string_equal(image.status, "active");
	assert_true(image.has_size);
	assert_int_equal(image.size, 8589934593);
	assert_string_equal(image.checksum, "c1");
	assert_string_equal(image.hash_algo, "sha512");
	assert_string_equal(image.hash_value, "AB");
	assert_string_equal(image.owner, "p1");
	assert_string_equal(image.disk_format, "raw");
	assert_string_equal(image.created_at, "2026-11-30T22:39:51Z");
	assert_true(image.is_protected);
	assert_string_equal(image.tags[1], "y");
	assert_null(image.tags[2]);
	assert_string_equal(image.properties[0], "vm=db=1");
	assert_string_equal(image.properties[1], "e=");
	assert_null(image.properties[2]);
	service_image_free(&image);
}

static void what_is_not_used_is_not_looked_at(void **state)
{
	struct service_image image;

	(void)state;
	assert_int_equal(get(IMAGE(ID, "active",
				   ",\"container_format\":5,\"visibility\":[],"
				   "\"min_disk\":4294967296"),
			     &image),
			 1);
	service_image_free(&image);
}

static void null_is_nothing_yet(void **state)
{
	struct service_image image;

	(void)state;
	assert_int_equal(get("{\"id\":\"" ID "\",\"status\":\"queued\"" CREATED
			     ",\"name\":null,\"size\":null,\"checksum\":null}",
			     &image),
			 1);
	assert_null(image.name);
	assert_null(image.checksum);
	assert_false(image.has_size);
	service_image_free(&image);
}

static void a_name_with_a_nul_spoils_nothing(void **state)
{
	struct service_image image;

	(void)state;
	assert_int_equal(get("{\"id\":\"" ID "\",\"status\":\"queued\"" CREATED
			     ",\"name\":\"a\\u0000b\",\"p\":\"\\u0000\",\"tags\":[\"\\u0000\"]}",
			     &image),
			 1);
	assert_null(image.name);
	assert_null(image.properties[0]);
	assert_null(image.tags[0]);
	service_image_free(&image);
}

static void nonsense_is_not_believed(void **state)
{
	static const char *const bodies[] = {
		"",
		"<html>",
		"[]",
		"{}",
		"{\"id\":\"" ID "\"" CREATED "}",
		"{\"id\":\"x\",\"status\":\"active\"" CREATED "}",
		"{\"id\":5,\"status\":\"active\"" CREATED "}",
		"{\"id\":\"" ID "\",\"status\":\"active\"}",
		"{\"id\":\"" ID "\",\"status\":\"active\",\"created_at\":\"today\"}",
		IMAGE(ID, "", ""),
		IMAGE(ID, "a b", ""),
		IMAGE(ID, "active", ",\"size\":-1"),
		IMAGE(ID, "active", ",\"size\":1.5"),
		IMAGE(ID, "active", ",\"size\":\"7\""),
		IMAGE(ID, "active", ",\"size\":9223372036854775808"),
		IMAGE(ID, "active", ",\"virtual_size\":true"),
		IMAGE(ID, "active", ",\"protected\":\"yes\""),
		IMAGE(ID, "active", ",\"checksum\":5"),
		IMAGE(ID, "active", ",\"tags\":\"a\""),
		IMAGE(ID, "active", ",\"tags\":[5]"),
		IMAGE(ID, "active", "") "x",
	};
	struct service_image image;

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		if (get(bodies[i], &image) != -1)
			fail_msg("%s was believed", bodies[i]);
		assert_words("the image service's answer", ERR_FAILED);
		assert_null(image.id);
	}
}

static void another_image_is_not_taken_for_it(void **state)
{
	struct service_image image;

	(void)state;
	assert_int_equal(get(IMAGE(ID2, "active", ""), &image), -1);
	assert_words("another image", ERR_FAILED);
}

static void what_is_not_there_is_no_error(void **state)
{
	static const struct exchange e[] = { GETS(ONE, 404, "no"), END };
	struct service_image image;

	(void)state;
	play(e);
	assert_ok(service_get(session, ID, &image, &err));
	assert_int_equal(asked[0].tries, 5);
}

static void an_id_is_one_segment_of_the_path(void **state)
{
	static const struct exchange e[] = { GETS(LIST "/..%2Fx%3Fy", 404, ""), END };
	struct service_image image;

	(void)state;
	play(e);
	assert_ok(service_get(session, "../x?y", &image, &err));
}

static void properties_are_patched(void **state)
{
	static const struct exchange e[] = { DO("PATCH", ONE, 200, QUEUED), END };
	char *more[] = { (char *)"a/b~c=1=2", (char *)"left=out=", (char *)"empty=", NULL };

	(void)state;
	play(e);
	assert_ok(service_set_properties(session, ID, more, &err));
	assert_json(asked[0].text, "[{'op':'add','path':'/a~1b~0c','value':'1=2'},"
				   "{'op':'add','path':'/left','value':'out='}]");
	assert_string_equal(asked[0].content_type, "application/openstack-images-v2.1-json-patch");
}

static void nothing_to_patch_asks_for_nothing(void **state)
{
	static const struct exchange e[] = { END };
	char *none[] = { (char *)"empty=", NULL };

	(void)state;
	play(e);
	assert_ok(service_set_properties(session, ID, none, &err));
}

static void protection_is_patched(void **state)
{
	static const struct exchange e[] = { DO("PATCH", ONE, 200, QUEUED), END };

	(void)state;
	play(e);
	assert_ok(service_protect(session, ID, &err));
	assert_json(asked[0].text, "[{'op':'replace','path':'/protected','value':true}]");
}

static void protection_is_lifted_after_a_signal_too(void **state)
{
	static const struct exchange e[] = { DO("PATCH", ONE, 200, QUEUED), END };

	(void)state;
	play(e);
	assert_ok(service_unprotect(session, ID, SERVICE_KEEP_ON, &err));
	assert_json(asked[0].text, "[{'op':'replace','path':'/protected','value':false}]");
	assert_true(asked[0].kept_on);
}

static void an_image_is_looked_at_after_a_signal_too(void **state)
{
	static const struct exchange e[] = { GETS(ONE, 200, QUEUED), END };
	struct service_image image;

	(void)state;
	play(e);
	assert_int_equal(service_look(session, ID, SERVICE_KEEP_ON, &image, &err), 1);
	assert_true(asked[0].kept_on);
	service_image_free(&image);
}

static int delete_answered(unsigned status, enum service_when when)
{
	static struct exchange e[] = { DO("DELETE", ONE, 0, "words"), END };

	e[0].status = status;
	play(e);
	return service_delete(session, ID, when, &err);
}

static void deleting_what_is_gone_is_fine(void **state)
{
	(void)state;
	assert_ok(delete_answered(204, SERVICE_NORMALLY));
	assert_false(asked[0].kept_on);
	assert_ok(delete_answered(404, SERVICE_KEEP_ON));
	assert_true(asked[0].kept_on);
	assert_int_equal(asked[0].total_seconds, 20);
	assert_fails(delete_answered(403, SERVICE_NORMALLY), "deleting the image: 403: words",
		     ERR_REFUSED);
	assert_fails(delete_answered(503, SERVICE_NORMALLY), "503", ERR_FAILED);
}

/* --- data --- */

static void data_goes_to_file_or_stage(void **state)
{
	static const struct exchange e[] = { DO("PUT", ONE "/file", 204, ""),
					     DO("PUT", ONE "/stage", 409, "no"), END };
	struct http_upload data = { .size = 5 };
	struct http_response r;

	(void)state;
	play(e);
	assert_int_equal(service_put(session, ID, SERVICE_DIRECT, &data, &r, &err), 0);
	http_response_free(&r);
	assert_int_equal(service_put(session, ID, SERVICE_STAGE, &data, &r, &err), 0);
	assert_int_equal(r.status, 409);
	http_response_free(&r);
	assert_string_equal(asked[0].content_type, "application/octet-stream");
	assert_int_equal(asked[0].tries, 0);
	assert_played();
}

static void a_download_goes_on_where_it_was(void **state)
{
	static const struct exchange e[] = { GETS(ONE "/file", 200, ""), GETS(ONE "/file", 206, ""),
					     END };
	struct http_download to = { 0 };
	struct http_response r;

	(void)state;
	play(e);
	assert_int_equal(service_download(session, ID, 0, &to, &r, &err), 0);
	http_response_free(&r);
	assert_int_equal(service_download(session, ID, UINT64_C(1) << 40, &to, &r, &err), 0);
	http_response_free(&r);
	assert_null(asked[0].range);
	assert_string_equal(asked[1].range, "bytes=1099511627776-");
	assert_played();
}

static void a_lost_import_is_looked_at_before_it_is_asked_for_again(void **state)
{
	static const struct exchange e[] = { NO_ANSWER("POST", ONE "/import", LOST),
					     GETS(ONE, 200, IMAGE(ID, "uploading", "")),
					     DO("POST", ONE "/import", 409, "no"),
					     GETS(ONE, 200, IMAGE(ID, "importing", "")), END };

	(void)state;
	play(e);
	assert_ok(service_import(session, ID, &err));
	assert_json(asked[0].text, "{'method':{'name':'glance-direct'}}");
}

static void an_import_that_cannot_be_is_refused(void **state)
{
	static const struct exchange e[] = { DO("POST", ONE "/import", 409, "not staged"),
					     GETS(ONE, 200, IMAGE(ID, "queued", "")), END };
	static const struct exchange gone[] = { DO("POST", ONE "/import", 409, "x"),
						GETS(ONE, 404, ""), END };

	(void)state;
	play(e);
	assert_fails(service_import(session, ID, &err), "409: not staged", ERR_REFUSED);
	play(gone);
	assert_fails(service_import(session, ID, &err), "is gone", ERR_FAILED);
}

static char *failure_in(unsigned status, const char *body)
{
	const struct exchange e[] = { GETS(ONE "/tasks", status, body), END };

	play(e);
	return service_import_failure(session, ID);
}

static void a_failed_import_says_why(void **state)
{
	autofree char *told =
		failure_in(200, "{\"tasks\":[{\"status\":\"success\",\"message\":\"\"}"
				",{\"status\":\"failure\",\"message\":\"bad\"}]}");
	autofree char *untold = failure_in(200, "{\"tasks\":[{\"status\":\"failure\"}]}");

	(void)state;
	assert_string_equal(told, "bad");
	assert_non_null(untold);
	assert_null(failure_in(200, "{\"tasks\":[{\"status\":\"processing\"},5]}"));
	assert_null(failure_in(404, ""));
	assert_null(failure_in(200, "nonsense"));
}

/* --- lists --- */

static int list_of(const struct exchange *exchanges, const struct service_filter *filter,
		   struct service_images *out)
{
	static const struct service_filter all = { 0 };

	play(exchanges);
	return service_list(session, filter ? filter : &all, out, &err);
}

static void all_pages_are_read(void **state)
{
	static const struct exchange e[] = {
		GETS(PAGE1, 200,
		     "{\"images\":[" IMAGE(ID, "active",
					   "") "],\"next\":\"/v2/images?marker=m1\"}"),
		GETS(LIST "?marker=m1", 200,
		     "{\"images\":[" IMAGE(ID2, "active",
					   "") "],\"next\":\"https://evil.example/x?marker=m2\"}"),
		GETS(LIST "?marker=m2", 200, IMAGES_OF("")),
		END,
	};
	struct service_images list;

	(void)state;
	assert_ok(list_of(e, NULL, &list));
	assert_int_equal(list.len, 2);
	assert_string_equal(list.at[1].id, ID2);
	service_images_free(&list);
}

static void a_marker_that_is_gone_starts_the_list_anew_once(void **state)
{
	static const struct exchange fine[] = {
		GETS(PAGE1, 200,
		     "{\"images\":[" IMAGE(ID, "active", "") "],\"next\":\"?marker=1\"}"),
		GETS(LIST "?marker=1", 400, "No image found"),
		GETS(PAGE1, 200, IMAGES_OF(IMAGE(ID2, "active", ""))),
		END,
	};
	static const struct exchange bad[] = {
		GETS(PAGE1, 200, "{\"images\":[],\"next\":\"?marker=1\"}"),
		GETS(LIST "?marker=1", 400, "No image found"),
		GETS(PAGE1, 200, "{\"images\":[],\"next\":\"?marker=1\"}"),
		GETS(LIST "?marker=1", 400, "No image found"),
		END,
	};
	static const struct exchange first[] = { GETS(PAGE1, 400, "bad"), END };
	struct service_images list;

	(void)state;
	assert_ok(list_of(fine, NULL, &list));
	assert_int_equal(list.len, 1);
	assert_string_equal(list.at[0].id, ID2);
	service_images_free(&list);
	assert_fails(list_of(bad, NULL, &list), "400: No image found", ERR_REFUSED);
	assert_fails(list_of(first, NULL, &list), "400: bad", ERR_REFUSED);
}

static void a_list_without_end_is_given_up(void **state)
{
	static struct exchange e[1003];
	struct service_images list;

	(void)state;
	for (size_t i = 0; i < 1002; i++)
		e[i] = (struct exchange)GETS(i ? LIST "?marker=1" : PAGE1, 200,
					     "{\"images\":[],\"next\":\"?marker=1\"}");
	play(e);
	assert_int_equal(service_list(session, &(struct service_filter){ 0 }, &list, &err), -1);
	assert_words("does not end", ERR_FAILED);
}

static void a_list_of_more_than_64_mib_is_given_up(void **state)
{
	static const size_t len = 9 << 20;
	autofree char *body = malloc(len + 1);
	static struct exchange e[9];
	struct service_images list;

	(void)state;
	memset(body, ' ', len);
	strcpy(body + len - 40, "{\"images\":[],\"next\":\"?marker=1\"}");
	for (size_t i = 0; i < 8; i++)
		e[i] = (struct exchange)GETS(i ? LIST "?marker=1" : PAGE1, 200, body);
	play(e);
	assert_int_equal(service_list(session, &(struct service_filter){ 0 }, &list, &err), -1);
	assert_words("does not end", ERR_FAILED);
	assert_played();
}

static void a_bad_page_is_no_list(void **state)
{
	static const char *const bodies[] = {
		"",
		"{}",
		"{\"images\":{}}",
		"{\"images\":[5]}",
		"{\"images\":[" IMAGE(ID, "active", ",\"size\":-1") "]}",
		"{\"images\":[],\"next\":5}",
		"{\"images\":[],\"next\":\"/v2/images\"}",
		"{\"images\":[],\"next\":\"/v2/images?a b\"}",
		"{\"images\":[],\"next\":\"/v2/images?a\\r\\nb\"}",
	};
	struct service_images list;

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		const struct exchange e[] = { GETS(PAGE1, 200, bodies[i]), END };

		if (list_of(e, NULL, &list) != -1)
			fail_msg("%s was believed", bodies[i]);
		assert_words("the image service's answer", ERR_FAILED);
		assert_null(list.at);
	}
}

static void filters_are_asked_for_and_looked_at_again(void **state)
{
	static const struct exchange e[] = {
		GETS(PAGE1 "&vm=db%20%261&name=eq:a%3Ab%2C%22%C3%A9&tag=t%2F1&owner=p1", 200,
		     IMAGES_OF("{\"id\":\"" ID "\",\"status\":\"active\"" CREATED
			       ",\"name\":\"A:b,\\\"\u00e9\",\"tags\":[\"t/1\"],\"owner\":\"p1\","
			       "\"vm\":\"db &1\"}")),
		END,
	};
	char *properties[] = { (char *)"vm=db &1", (char *)"unset=", NULL };
	struct service_filter filter = {
		.name = "a:b,\"\u00e9", .tag = "t/1", .owner = "p1", .properties = properties
	};
	struct service_images list;

	(void)state;
	assert_ok(list_of(e, &filter, &list));
	assert_int_equal(list.len, 0);
	service_images_free(&list);
}

static void a_name_matches_itself_only(void **state)
{
	static const struct exchange e[] = {
		GETS(PAGE1 "&name=night", 200,
		     IMAGES_OF(IMAGE(ID, "active", "") ",{\"id\":\"" ID2
						       "\",\"status\":\"active\"" CREATED
						       ",\"name\":\"Night\"}")),
		END,
	};
	struct service_images list;

	(void)state;
	assert_ok(list_of(e, &(struct service_filter){ .name = "night" }, &list));
	assert_int_equal(list.len, 1);
	assert_string_equal(list.at[0].id, ID);
	service_images_free(&list);
}

static void a_tag_with_blanks_is_looked_for_here(void **state)
{
	static const struct exchange e[] = {
		GETS(PAGE1, 200,
		     IMAGES_OF(IMAGE(ID, "active", ",\"tags\":[\" x\"]") "," IMAGE(
			     ID2, "active", ",\"tags\":[\"x\"]"))),
		END,
	};
	struct service_images list;

	(void)state;
	assert_ok(list_of(e, &(struct service_filter){ .tag = " x" }, &list));
	assert_int_equal(list.len, 1);
	assert_string_equal(list.at[0].id, ID);
	service_images_free(&list);
}

/* --- the service --- */

static uint64_t room_in(unsigned status, const char *body)
{
	const struct exchange e[] = { GETS(IMAGES "/v2/info/usage", status, body), END };

	play(e);
	return service_room(session);
}

#define USAGE(what, usage, limit)                                                                  \
	"{\"usage\":{\"" what "\":{\"usage\":" usage ",\"limit\":" limit "}}}"

static void room_is_what_the_quota_leaves(void **state)
{
	(void)state;
	assert_int_equal(room_in(200, USAGE("image_size_total", "3", "10")), 7 << 20);
	assert_int_equal(room_in(200, USAGE("image_size_total", "12", "10")), 0);
	assert_int_equal(room_in(200, USAGE("image_count_total", "5", "5")), 0);
}

static void unknown_room_is_no_limit(void **state)
{
	static const char *const bodies[] = {
		"{\"usage\":{}}",
		USAGE("image_size_total", "3", "-1"),
		USAGE("image_size_total", "0", "9223372036854775807"),
		USAGE("image_size_total", "3", "\"x\""),
		USAGE("image_count_total", "5", "6"),
		"nonsense",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		assert_true(room_in(200, bodies[i]) == UINT64_MAX);
	assert_true(room_in(404, "") == UINT64_MAX);
}

static int takes(const char *format, const char *body)
{
	const struct exchange e[] = { GETS(IMAGES "/v2/schemas/image", 200, body), END };

	play(e);
	return service_takes_format(session, format, &err);
}

static void formats_are_those_of_the_schema(void **state)
{
	static const char schema[] =
		"{\"properties\":{\"disk_format\":{\"enum\":[null,\"raw\",\"vmdk\"]}}}";

	(void)state;
	assert_int_equal(takes("raw", schema), 1);
	assert_int_equal(takes("qcow2", schema), 0);
	assert_words("the image service takes no qcow2; it takes: raw, vmdk", ERR_REFUSED);
	assert_int_equal(takes("qcow2", "{}"), 1);
}

static int can_import(unsigned status, const char *body)
{
	const struct exchange e[] = { GETS(IMAGES "/v2/info/import", status, body), END };

	play(e);
	return service_can_import(session, &err);
}

static void import_is_there_when_it_is_offered(void **state)
{
	(void)state;
	assert_int_equal(
		can_import(200, "{\"import-methods\":{\"value\":[\"copy\",\"glance-direct\"]}}"),
		1);
	assert_int_equal(can_import(200, "{\"import-methods\":{\"value\":[\"copy\"]}}"), 0);
	assert_int_equal(can_import(200, "{\"import-methods\":5}"), 0);
	assert_int_equal(can_import(404, ""), 0);
	assert_int_equal(can_import(403, ""), -1);
}

/* --- names --- */

static char *repeated(const char *text, size_t times)
{
	char *out = calloc(times, strlen(text) + 1);

	for (size_t i = 0; i < times; i++)
		strcat(out, text);
	return out;
}

static void assert_name(const char *name, const char *words)
{
	int rc = service_check_names(name, NULL, NULL, &err);

	if (!words)
		assert_int_equal(rc, 0);
	else
		assert_fails(rc, words, ERR_REFUSED);
}

static void names_are_255_characters_of_three_bytes_at_most(void **state)
{
	autofree char *longest = repeated("\u00e9", 255), *longer = repeated("x", 256);

	(void)state;
	assert_name("with spaces, \"quotes\", \u20ac and a/b", NULL);
	assert_name("", NULL);
	assert_name(longest, NULL);
	assert_name(longer, "xxx...\": it is longer than 255 characters");
	assert_name("smile \U0001F600", "takes no characters of 4 bytes");
	assert_name("x\xff", "not valid UTF-8");
}

static void assert_property(const char *property, const char *words)
{
	char *list[] = { (char *)property, NULL };
	int rc = service_check_names(NULL, list, NULL, &err);

	if (!words)
		assert_int_equal(rc, 0);
	else
		assert_fails(rc, words, ERR_REFUSED);
}

static void properties_are_checked_as_the_service_does(void **state)
{
	autofree char *key = repeated("k", 255), *value = repeated("v", 65535);
	autofree char *good = str_format("%s=%s", key, value), *bad = str_format("k%s=1", key);
	autofree char *fat = str_format("k=%sv", value);

	(void)state;
	assert_property("os_distro=debian", NULL);
	assert_property(good, NULL);
	assert_property(bad, "longer than 255 characters");
	assert_property(fat, "property \"k\": its value is longer than 65535 bytes");
	assert_property("id=1", "property \"id\": the image service keeps this name for itself");
	assert_property("visibility_updated_at=1", NULL);
	assert_property("os_glance_x=1", "keeps this name");
	assert_property("stores=1", "keeps this name");
	assert_property("=1", "it has no name");
	assert_property(" k=1", "begins or ends with a blank");
	assert_property("k\t=1", "begins or ends with a blank");
	assert_property("\U0001F600=1", "4 bytes");
	assert_property("k=\U0001F600", "property k: value");
	assert_property("k=\xc3", "not valid UTF-8");
}

static void properties_without_a_value_are_left_out(void **state)
{
	(void)state;
	assert_property("id=", NULL);
	assert_property("status", NULL);
}

static int check_count(size_t properties, size_t tags)
{
	static char property[] = "k=v", tag[] = "t", empty[] = "k=";
	char *p[140] = { empty, empty }, *t[140] = { 0 };

	for (size_t i = 0; i < properties; i++)
		p[i + 2] = property;
	for (size_t i = 0; i < tags; i++)
		t[i] = tag;
	return service_check_names(NULL, p, t, &err);
}

static void there_are_at_most_128_of_each(void **state)
{
	(void)state;
	assert_int_equal(check_count(128, 128), 0);
	assert_fails(check_count(129, 0), "129 properties are more than the 128", ERR_REFUSED);
	assert_fails(check_count(0, 129), "129 tags are more than the 128", ERR_REFUSED);
}

static void tags_are_like_names(void **state)
{
	autofree char *longer = repeated("x", 256);
	char *smile[] = { (char *)"\U0001F600", NULL }, *fat[] = { longer, NULL };

	(void)state;
	assert_fails(service_check_names(NULL, NULL, smile, &err), "tag \"", ERR_REFUSED);
	assert_fails(service_check_names(NULL, NULL, fat, &err), "255", ERR_REFUSED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_is_made_as_wanted),
		TEST(a_lost_answer_makes_no_second_image),
		TEST(a_lost_request_is_made_again),
		TEST(an_image_that_is_there_already_is_ours_or_not),
		TEST(an_id_that_is_taken_elsewhere_is_a_conflict),
		TEST(what_is_not_allowed_is_not_asked_for_again),
		TEST(it_is_asked_for_five_times_at_most),
		TEST(a_create_that_never_got_there_is_told_from_one_that_may_have),
		TEST(a_create_that_a_gateway_gave_up_may_still_come),
		TEST(an_image_is_read_whole),
		TEST(what_is_not_used_is_not_looked_at),
		TEST(null_is_nothing_yet),
		TEST(a_name_with_a_nul_spoils_nothing),
		TEST(nonsense_is_not_believed),
		TEST(another_image_is_not_taken_for_it),
		TEST(what_is_not_there_is_no_error),
		TEST(an_id_is_one_segment_of_the_path),
		TEST(properties_are_patched),
		TEST(nothing_to_patch_asks_for_nothing),
		TEST(protection_is_patched),
		TEST(protection_is_lifted_after_a_signal_too),
		TEST(an_image_is_looked_at_after_a_signal_too),
		TEST(deleting_what_is_gone_is_fine),
		TEST(data_goes_to_file_or_stage),
		TEST(a_download_goes_on_where_it_was),
		TEST(a_lost_import_is_looked_at_before_it_is_asked_for_again),
		TEST(an_import_that_cannot_be_is_refused),
		TEST(a_failed_import_says_why),
		TEST(all_pages_are_read),
		TEST(a_marker_that_is_gone_starts_the_list_anew_once),
		TEST(a_list_without_end_is_given_up),
		TEST(a_list_of_more_than_64_mib_is_given_up),
		TEST(a_bad_page_is_no_list),
		TEST(filters_are_asked_for_and_looked_at_again),
		TEST(a_name_matches_itself_only),
		TEST(a_tag_with_blanks_is_looked_for_here),
		TEST(room_is_what_the_quota_leaves),
		TEST(unknown_room_is_no_limit),
		TEST(formats_are_those_of_the_schema),
		TEST(import_is_there_when_it_is_offered),
		TEST(names_are_255_characters_of_three_bytes_at_most),
		TEST(properties_are_checked_as_the_service_does),
		TEST(properties_without_a_value_are_left_out),
		TEST(there_are_at_most_128_of_each),
		TEST(tags_are_like_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
