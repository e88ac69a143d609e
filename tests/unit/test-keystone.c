// SPDX-License-Identifier: Apache-2.0
#include "dest/keystone.h"
#include "service-kit.h"

#include "base/log.h"
#include "dest/session.h"

#define UNSCOPED TOKEN_BODY("\"user\":{\"name\":\"ann\"},", ISSUED, AN_HOUR_MORE, "")
#define LOG_IN(body)                                                                               \
	{                                                                                          \
		"POST", TOKENS, 201, body, "X-Subject-Token", "tok-1", ANSWERED                    \
	}
#define END                                                                                        \
	{                                                                                          \
		NULL, NULL, 0, NULL, NULL, NULL, ANSWERED                                          \
	}

static struct http http;

static int set_up(void **state)
{
	(void)state;
	use_password();
	refreshed = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	forget_asked();
	secret_free(config.secret);
	config.secret = NULL;
	return 0;
}

static struct keystone *opened(void)
{
	struct keystone *k = keystone_open(&config, &http, &err);

	assert_non_null(k);
	return k;
}

static struct keystone *logged_in(const struct exchange *exchanges)
{
	struct keystone *k = opened();

	play(exchanges);
	if (keystone_authenticate(k, KEYSTONE_NORMALLY, &err) < 0)
		fail_msg("%s", err.text);
	assert_played();
	return k;
}

static void assert_no_login(const struct exchange *exchanges, const char *words, enum err_kind kind)
{
	struct keystone *k = opened();

	play(exchanges);
	assert_int_equal(keystone_authenticate(k, KEYSTONE_NORMALLY, &err), -1);
	assert_words(words, kind);
	assert_played();
	keystone_close(k);
}

static const struct exchange plain[] = { LOG_IN(A_TOKEN), END };

/* --- the URL --- */

static void assert_asks_for_token_at(const char *auth_url, const char *tokens)
{
	struct exchange e[] = { LOG_IN(A_TOKEN), END };

	e[0].url = tokens;
	config.auth_url = (char *)auth_url;
	keystone_close(logged_in(e));
}

static void a_url_with_v3_is_not_looked_at_further(void **state)
{
	(void)state;
	assert_asks_for_token_at("https://c.example/v3", "https://c.example/v3/auth/tokens");
	assert_asks_for_token_at("https://c.example/v3//", "https://c.example/v3/auth/tokens");
	assert_asks_for_token_at("https://c.example/identity/v3/?x=1",
				 "https://c.example/identity/v3/auth/tokens");
	assert_asks_for_token_at("https://c.example/v3/auth/tokens/",
				 "https://c.example/v3/auth/tokens");
}

#define V3(href)                                                                                   \
	"{\"id\":\"v3.14\",\"links\":[{\"rel\":\"other\",\"href\":\"https://x/\"},"                \
	"{\"rel\":\"self\",\"href\":\"" href "\"}]}"
#define V2 "{\"id\":\"v2.0\",\"links\":[{\"rel\":\"self\",\"href\":\"https://c.example/v2.0/\"}]}"

static void assert_discovers(const char *auth_url, const char *root, unsigned status,
			     const char *body, const char *tokens)
{
	struct exchange e[] = { { "GET", root, status, body, NULL, NULL, ANSWERED },
				LOG_IN(A_TOKEN),
				END };

	e[1].url = tokens;
	config.auth_url = (char *)auth_url;
	keystone_close(logged_in(e));
	assert_null(asked[0].text);
}

static void a_root_that_lists_versions_is_followed(void **state)
{
	(void)state;
	assert_discovers("https://c.example", "https://c.example/", 300,
			 "{\"versions\":{\"values\":[" V2 "," V3("https://c.example/id/v3/") "]}}",
			 "https://c.example/id/v3/auth/tokens");
	assert_discovers("https://c.example/identity/", "https://c.example/identity/", 200,
			 "{\"versions\":[" V3("https://c.example/identity/v3") "]}",
			 "https://c.example/identity/v3/auth/tokens");
	assert_discovers("https://c.example/v2.0", "https://c.example/", 200,
			 "{\"version\":" V3("/v3/") "}", "https://c.example/v3/auth/tokens");
}

static void credentials_stay_at_the_host_that_was_named(void **state)
{
	(void)state;
	assert_discovers("https://c.example/id", "https://c.example/id/", 300,
			 "{\"versions\":[" V3("http://c.example/v3/") "]}",
			 "https://c.example/v3/auth/tokens");
	assert_discovers("https://c.example/id", "https://c.example/id/", 300,
			 "{\"versions\":[" V3("https://evil.example/v3/") "]}",
			 "https://c.example/id/v3/auth/tokens");
	assert_discovers("https://c.example/id", "https://c.example/id/", 300,
			 "{\"versions\":[" V3("https://c.example:1/v3/") "]}",
			 "https://c.example/id/v3/auth/tokens");
}

static void a_root_that_says_nothing_is_taken_to_have_v3(void **state)
{
	static const char *const bodies[] = { "<html>", "[]", "{\"versions\":5}", "",
					      "{\"versions\":[" V2 ",{\"id\":\"v3\"}]}" };

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		assert_discovers("https://c.example/x", "https://c.example/x/", 404, bodies[i],
				 "https://c.example/x/v3/auth/tokens");
}

static void no_credentials_go_to_what_has_no_v3(void **state)
{
	struct exchange e[] = { { "GET", "https://c.example/", 300, "{\"versions\":[" V2 "]}", NULL,
				  NULL, ANSWERED },
				END };

	(void)state;
	config.auth_url = (char *)"https://c.example";
	assert_no_login(e, "is no identity service with API v3", ERR_REFUSED);
}

static void what_is_no_url_is_refused(void **state)
{
	(void)state;
	config.auth_url = (char *)"cloud.example:5000/v3";
	assert_null(keystone_open(&config, &http, &err));
	assert_words("cloud lab", ERR_REFUSED);
	config.auth_url = NULL;
	assert_null(keystone_open(&config, &http, &err));
	assert_words("cloud lab has no auth_url (OS_AUTH_URL)", ERR_REFUSED);
}

/* --- what is sent --- */

#define BY_PASSWORD(user, scope)                                                                   \
	"{'auth':{'identity':{'methods':['password'],'password':{'user':{" user                    \
	",'password':'sesame\\\"open'}}}" scope "}}"
#define FOR_LAB ",'scope':{'project':{'name':'lab','domain':{'id':'default'}}}"

static void assert_body(const char *expected)
{
	keystone_close(logged_in(plain));
	assert_json(asked[0].text, expected);
	assert_null(asked[0].token);
	assert_int_equal(asked[0].tries, 5);
}

static void a_name_without_a_domain_is_of_the_default_one(void **state)
{
	(void)state;
	assert_body(BY_PASSWORD("'name':'ann','domain':{'id':'default'}", FOR_LAB));
}

static void domains_are_told_by_id_or_name(void **state)
{
	(void)state;
	config.user_domain_name = (char *)"Users";
	config.project_domain_id = (char *)"d7";
	assert_body(BY_PASSWORD("'name':'ann','domain':{'name':'Users'}",
				",'scope':{'project':{'name':'lab','domain':{'id':'d7'}}}"));
}

static void ids_go_before_names(void **state)
{
	(void)state;
	config.user_id = (char *)"u1";
	config.project_id = (char *)"p1";
	assert_body(BY_PASSWORD("'id':'u1'", ",'scope':{'project':{'id':'p1'}}"));
}

static void a_domain_is_a_scope_too(void **state)
{
	(void)state;
	config.project_name = NULL;
	config.user_id = (char *)"u1";
	config.domain_name = (char *)"D";
	assert_body(BY_PASSWORD("'id':'u1'", ",'scope':{'domain':{'name':'D'}}"));
	config.domain_id = (char *)"d1";
	assert_body(BY_PASSWORD("'id':'u1'", ",'scope':{'domain':{'id':'d1'}}"));
}

static void an_application_credential_asks_for_no_scope(void **state)
{
	(void)state;
	config.auth = CLOUD_APPLICATION_CREDENTIAL;
	config.application_credential_id = (char *)"ac1";
	assert_body("{'auth':{'identity':{'methods':['application_credential'],"
		    "'application_credential':{'id':'ac1','secret':'sesame\\\"open'}}}}");
	config.application_credential_id = NULL;
	config.application_credential_name = (char *)"night";
	assert_body("{'auth':{'identity':{'methods':['application_credential'],"
		    "'application_credential':{'name':'night','secret':'sesame\\\"open',"
		    "'user':{'name':'ann','domain':{'id':'default'}}}}}}");
}

static void what_is_no_utf8_is_never_left_out_in_silence(void **state)
{
	(void)state;
	config.project_name = (char *)"l\xff";
	assert_no_login(plain + 1, "not in UTF-8", ERR_REFUSED);
}

static void cleaning_up_goes_on_after_a_signal_but_not_for_long(void **state)
{
	struct keystone *k = opened();

	(void)state;
	play(plain);
	assert_int_equal(keystone_authenticate(k, KEYSTONE_CLEANING_UP, &err), 0);
	assert_true(asked[0].kept_on);
	assert_int_equal(asked[0].total_seconds, 20);
	keystone_close(k);
}

/* --- what comes back --- */

static void a_token_lives_as_long_as_the_service_says(void **state)
{
	struct keystone *k = logged_in(plain);

	(void)state;
	assert_string_equal(keystone_token(k), "tok-1");
	assert_in_range(keystone_seconds_left(k), 3595, 3600);
	assert_true(keystone_can_renew(k));
	assert_string_equal(keystone_project_id(k), "p1");
	keystone_close(k);
}

static void assert_lifetime(const char *body, uint64_t seconds)
{
	struct exchange e[] = { LOG_IN(body), END };
	struct keystone *k = logged_in(e);

	assert_in_range(keystone_seconds_left(k), seconds > 2 ? seconds - 2 : 0, seconds);
	keystone_close(k);
}

static void times_may_have_fractions_or_not(void **state)
{
	(void)state;
	assert_lifetime(TOKEN_BODY(PROJECT, "2026-12-31T23:59:50Z", "2027-01-01T00:00:10.999Z", ""),
			20);
	assert_lifetime(
		TOKEN_BODY(PROJECT, "2024-02-28T00:00:00+00:00", "2024-03-01T00:00:00Z", ""),
		2 * 86400);
}

static void nonsense_is_no_token(void **state)
{
	static const char *const bodies[] = {
		"",
		"[]",
		"{\"token\":5}",
		"{\"token\":{}}",
		TOKEN_BODY(PROJECT, "yesterday", AN_HOUR_MORE, ""),
		TOKEN_BODY(PROJECT, ISSUED, "2026-13-30T22:39:48Z", ""),
		TOKEN_BODY(PROJECT, ISSUED, "2026-11-30T22:39:48.0+02:00", ""),
	};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct exchange e[] = { LOG_IN(bodies[i]), END };

		assert_no_login(e, "the identity service's answer", ERR_FAILED);
	}
}

static void an_answer_without_a_token_is_an_error(void **state)
{
	struct exchange e[] = { { "POST", TOKENS, 201, A_TOKEN, NULL, NULL, ANSWERED }, END };

	(void)state;
	assert_no_login(e, "is the auth URL that of Keystone?", ERR_FAILED);
}

static void a_token_for_nothing_is_refused(void **state)
{
	struct exchange e[] = { LOG_IN(UNSCOPED), END };

	(void)state;
	assert_no_login(e, "cloud lab: the token is for no project", ERR_REFUSED);
}

static void wrong_credentials_are_refused_with_a_hint(void **state)
{
	struct exchange e[] = { { "POST", TOKENS, 401, "no", NULL, NULL, ANSWERED }, END };

	(void)state;
	assert_no_login(e, "logging in at " AUTH " with cloud lab: 401: no; check user name",
			ERR_REFUSED);
}

static void a_service_that_is_ill_is_no_refusal(void **state)
{
	struct exchange e[] = { { "POST", TOKENS, 503, "ill", NULL, NULL, ANSWERED }, END };
	struct exchange lost[] = { { "POST", TOKENS, 0, NULL, NULL, NULL, LOST }, END };

	(void)state;
	assert_no_login(e, "503", ERR_FAILED);
	assert_no_login(lost, "the identity service: no answer came", ERR_FAILED);
}

static void a_service_that_is_not_there_is_named(void **state)
{
	struct exchange e[] = { { "GET", "https://c.example/", 0, NULL, NULL, NULL, UNSENT }, END };

	(void)state;
	config.auth_url = (char *)"https://c.example";
	assert_no_login(e, "the identity service: no answer came", ERR_FAILED);
}

static void a_redirected_login_says_where_to(void **state)
{
	struct exchange e[] = {
		{ "POST", TOKENS, 301, "", "Location", "https://new.example/v3", ANSWERED }, END
	};

	(void)state;
	assert_no_login(e, "the service is at https://new.example/v3", ERR_FAILED);
}

/* --- tokens that were given --- */

#define LOOK(status, body)                                                                         \
	{                                                                                          \
		"GET", TOKENS, status, body, "Date", "Mon, 30 Nov 2026 23:09:48 GMT", ANSWERED     \
	}

static void use_token_by_hand(void)
{
	config.auth = CLOUD_TOKEN;
	config.user_name = config.project_name = NULL;
	secret_free(config.secret);
	config.secret = secret_new("by-hand");
}

static void a_token_by_hand_lives_for_what_is_left_of_it(void **state)
{
	struct exchange e[] = { LOOK(200, A_TOKEN), END };
	struct keystone *k;

	(void)state;
	use_token_by_hand();
	k = logged_in(e);
	assert_string_equal(keystone_token(k), "by-hand");
	assert_string_equal(asked[0].token, "by-hand");
	assert_string_equal(asked[0].subject, "by-hand");
	assert_in_range(keystone_seconds_left(k), 1795, 1800);
	assert_false(keystone_can_renew(k));
	keystone_close(k);
}

static void a_token_by_hand_that_has_expired_says_so(void **state)
{
	struct exchange unknown[] = { LOOK(401, "no"), END }, gone[] = { LOOK(404, "no"), END };
	struct exchange old[] = {
		LOOK(200, TOKEN_BODY(PROJECT, ISSUED, "2026-11-30T23:09:48Z", "")), END
	};

	(void)state;
	use_token_by_hand();
	assert_no_login(unknown, "the token has expired and cannot be renewed; ", ERR_REFUSED);
	assert_no_login(gone, "the token has expired and cannot be renewed; ", ERR_REFUSED);
	assert_no_login(old, "the token has expired and cannot be renewed; ", ERR_REFUSED);
}

static void a_token_for_another_project_is_exchanged(void **state)
{
	struct exchange e[] = { LOOK(200, UNSCOPED), LOG_IN(A_TOKEN), END };
	struct keystone *k;

	(void)state;
	use_token_by_hand();
	config.project_id = (char *)"p1";
	k = logged_in(e);
	assert_json(asked[1].text, "{'auth':{'identity':{'methods':['token'],'token':"
				   "{'id':'by-hand'}},'scope':{'project':{'id':'p1'}}}}");
	assert_string_equal(keystone_token(k), "tok-1");
	keystone_close(k);
}

static void the_metadata_services_token_can_be_had_anew(void **state)
{
	struct exchange first[] = { LOOK(200, A_TOKEN), END },
			again[] = { LOOK(200, A_TOKEN), END };
	struct keystone *k;

	(void)state;
	use_token_by_hand();
	config.from_metadata = true;
	fresh_secret = "fresh-one";
	k = logged_in(first);
	assert_true(keystone_can_renew(k));
	assert_int_equal(refreshed, 0);
	play(again);
	assert_int_equal(keystone_authenticate(k, KEYSTONE_NORMALLY, &err), 0);
	assert_int_equal(refreshed, 1);
	assert_false(refresh_kept_on);
	assert_string_equal(keystone_token(k), "fresh-one");
	keystone_close(k);
}

static void after_a_signal_too_it_can_be_had_anew_to_clean_up(void **state)
{
	struct exchange first[] = { LOOK(200, A_TOKEN), END },
			again[] = { LOOK(200, A_TOKEN), END };
	struct keystone *k;

	(void)state;
	use_token_by_hand();
	config.from_metadata = true;
	fresh_secret = "fresh-one";
	k = logged_in(first);
	play(again);
	assert_int_equal(keystone_authenticate(k, KEYSTONE_CLEANING_UP, &err), 0);
	assert_int_equal(refreshed, 1);
	assert_true(refresh_kept_on);
	keystone_close(k);
}

/* --- the catalog --- */

#define CATALOG                                                                                    \
	SERVICE("volume", ENDPOINT("One", "public", "https://v.example"))                          \
	"," SERVICE("image", ENDPOINT("One", "public", "https://one.example") "," ENDPOINT(        \
				     "One", "internal",                                            \
				     "https://inner.example") "," ENDPOINT("Two", "public",        \
									   "https://two.example"))

static char *endpoint_in(const char *services, const char *region, const char *interface)
{
	char *body = str_format(TOKEN_BODY(PROJECT, ISSUED, AN_HOUR_MORE, "%s"), services), *url;
	struct exchange e[] = { LOG_IN(body), END };
	struct keystone *k;

	config.region_name = (char *)region;
	config.interface = (char *)interface;
	k = logged_in(e);
	url = keystone_endpoint(k, "image", &err);
	keystone_close(k);
	free(body);
	return url;
}

static void assert_endpoint(const char *region, const char *interface, const char *expected)
{
	autofree char *url = endpoint_in(CATALOG, region, interface);

	if (!url)
		fail_msg("%s", err.text);
	assert_string_equal(url, expected);
}

static void region_and_interface_are_matched_exactly(void **state)
{
	(void)state;
	assert_endpoint("One", NULL, "https://one.example");
	assert_endpoint("Two", "public", "https://two.example");
	assert_endpoint("One", "internal", "https://inner.example");
	assert_endpoint(NULL, "internal", "https://inner.example");
}

static void assert_no_endpoint(const char *services, const char *region, const char *interface,
			       const char *words)
{
	assert_null(endpoint_in(services, region, interface));
	assert_words(words, ERR_REFUSED);
}

static void a_miss_says_what_there_is(void **state)
{
	(void)state;
	assert_no_endpoint(CATALOG, "one", NULL,
			   "no region \"one\" for the image service; "
			   "it has: One, Two");
	assert_no_endpoint(CATALOG, "Two", "internal",
			   "no interface \"internal\" in region \"Two\"; it has: public");
	assert_no_endpoint(SERVICE("volume", ENDPOINT("One", "public", "https://v.example")), NULL,
			   NULL, "no service of type \"image\"; it has: volume");
	assert_no_endpoint("", NULL, NULL, "the token has no catalog of services");
}

static void two_regions_and_no_name_are_ambiguous(void **state)
{
	(void)state;
	assert_no_endpoint(CATALOG, NULL, NULL, "in several regions: One, Two; name one");
}

static void a_catalog_of_nonsense_is_as_good_as_none(void **state)
{
	(void)state;
	assert_no_endpoint("5,{\"type\":7},{\"type\":\"image\",\"endpoints\":[1,{\"url\":4}]}",
			   NULL, NULL, "no catalog");
	assert_no_endpoint(SERVICE("image", ENDPOINT("One", "public", "file:///etc/passwd")), NULL,
			   NULL, "cloud lab: the cloud's catalog: its scheme");
}

/* --- sessions --- */

static struct session *session(void)
{
	struct session_config cfg = { 0 };
	struct session *s = session_open(&cfg, &err);

	assert_non_null(s);
	config.secret = NULL; /* the session's now */
	return s;
}

static int get(struct session *s, const char *url, struct http_response *r)
{
	struct http_request request = { .method = "GET", .url = url };

	return session_send(s, &request, r, &err);
}

static void assert_endpoint_becomes(const char *override, const char *expected)
{
	struct session *s;

	use_password();
	config.image_endpoint = (char *) override;
	s = session();
	play(plain);
	assert_int_equal(session_start(s, &err), 0);
	assert_string_equal(session_endpoint(s), expected);
	session_close(s);
}

static void endpoints_lose_their_version(void **state)
{
	(void)state;
	secret_free(config.secret);
	assert_endpoint_becomes(NULL, IMAGES);
	assert_endpoint_becomes("https://i.example/image/v2", "https://i.example/image");
	assert_endpoint_becomes("https://i.example/image//", "https://i.example/image");
	assert_endpoint_becomes("https://i.example/v1/?x#y", "https://i.example");
	assert_endpoint_becomes("https://i.example/v2.15/", "https://i.example");
	assert_endpoint_becomes("https://i.example/vm", "https://i.example/vm");
}

static unsigned warnings;

static void count(void *ctx, const char *warning)
{
	(void)ctx;
	assert_non_null(strstr(warning, "certificates are not checked, as cloud lab asks for"));
	warnings++;
}

static void lack_of_verification_is_warned_of_once(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR);
	log_set_sink(count, NULL);
	session_close(session());
	assert_int_equal(warnings, 0);
	use_password();
	config.insecure = true;
	session_close(session());
	log_set_sink(NULL, NULL);
	assert_int_equal(warnings, 1);
}

static void a_refused_token_is_renewed_once(void **state)
{
	static const struct exchange e[] = {
		LOGGED_IN("tok-1"),
		{ "GET", IMAGES "/v2/x", 401, "", NULL, NULL, ANSWERED },
		LOGGED_IN("tok-2"),
		{ "GET", IMAGES "/v2/x", 401, "still", NULL, NULL, ANSWERED },
		END,
	};
	struct session *s = session();
	struct http_response r;

	(void)state;
	play(e);
	assert_int_equal(get(s, "/v2/x", &r), 0);
	assert_played();
	assert_int_equal(r.status, 401);
	assert_string_equal(asked[1].token, "tok-1");
	assert_string_equal(asked[3].token, "tok-2");
	http_response_free(&r);
	session_close(s);
}

static void a_large_body_is_not_sent_again_unasked(void **state)
{
	static const struct exchange e[] = {
		LOGGED_IN("tok-1"),
		{ "PUT", IMAGES "/v2/x", 401, "", NULL, NULL, ANSWERED },
		LOGGED_IN("tok-2"),
		END,
	};
	struct http_request request = { .method = "PUT", .url = "/v2/x" };
	struct session *s = session();
	struct http_response r;

	(void)state;
	play(e);
	assert_int_equal(session_send_once(s, &request, &r, &err), 0);
	assert_played();
	assert_int_equal(r.status, 401);
	http_response_free(&r);
	session_close(s);
}

static void what_the_identity_service_says_is_the_cause(void **state)
{
	static const struct exchange e[] = {
		LOGGED_IN("tok-1"),
		{ "GET", IMAGES "/v2/x", 401, "", NULL, NULL, ANSWERED },
		{ "POST", TOKENS, 0, NULL, NULL, NULL, LOST },
		END,
	};
	struct session *s = session();
	struct http_response r;

	(void)state;
	play(e);
	assert_int_equal(get(s, "/v2/x", &r), -1);
	assert_words("no answer came", ERR_FAILED);
	assert_played();
	http_response_free(&r);
	session_close(s);
}

static void the_token_goes_to_no_other_host(void **state)
{
	static const struct exchange e[] = {
		LOGGED_IN("tok-1"),
		{ "GET", IMAGES "/https://evil.example/v2", 404, "", NULL, NULL, ANSWERED },
		END,
	};
	struct session *s = session();
	struct http_response r;

	(void)state;
	play(e);
	assert_int_equal(get(s, "https://evil.example/v2", &r), 0);
	assert_played();
	http_response_free(&r);
	session_close(s);
}

static void a_refresh_renews_what_would_not_last(void **state)
{
	static const struct exchange e[] = { LOGGED_IN("tok-1"), LOGGED_IN("tok-2"), END };
	struct session *s = session();

	(void)state;
	play(e);
	assert_int_equal(session_refresh(s, 3000, &err), 0);
	assert_int_equal(asked_count, 1);
	assert_int_equal(session_refresh(s, 4000, &err), 0);
	assert_int_equal(asked_count, 2);
	assert_played();
	session_close(s);
}

static void a_token_that_ran_out_is_renewed_before_it_is_used(void **state)
{
	static const struct exchange e[] = {
		LOG_IN(TOKEN_BODY(PROJECT, ISSUED, ISSUED, ONE_SERVICE)),
		LOGGED_IN("tok-2"),
		{ "GET", IMAGES "/v2/x", 200, "", NULL, NULL, ANSWERED },
		END,
	};
	struct session *s = session();
	struct http_response r;

	(void)state;
	play(e);
	assert_int_equal(session_start(s, &err), 0);
	assert_int_equal(get(s, "/v2/x", &r), 0);
	assert_string_equal(asked[2].token, "tok-2");
	assert_played();
	http_response_free(&r);
	session_close(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_url_with_v3_is_not_looked_at_further),
		TEST(a_root_that_lists_versions_is_followed),
		TEST(credentials_stay_at_the_host_that_was_named),
		TEST(a_root_that_says_nothing_is_taken_to_have_v3),
		TEST(no_credentials_go_to_what_has_no_v3),
		TEST(what_is_no_url_is_refused),
		TEST(a_name_without_a_domain_is_of_the_default_one),
		TEST(domains_are_told_by_id_or_name),
		TEST(ids_go_before_names),
		TEST(a_domain_is_a_scope_too),
		TEST(an_application_credential_asks_for_no_scope),
		TEST(what_is_no_utf8_is_never_left_out_in_silence),
		TEST(cleaning_up_goes_on_after_a_signal_but_not_for_long),
		TEST(a_token_lives_as_long_as_the_service_says),
		TEST(times_may_have_fractions_or_not),
		TEST(nonsense_is_no_token),
		TEST(an_answer_without_a_token_is_an_error),
		TEST(a_token_for_nothing_is_refused),
		TEST(wrong_credentials_are_refused_with_a_hint),
		TEST(a_service_that_is_ill_is_no_refusal),
		TEST(a_service_that_is_not_there_is_named),
		TEST(a_redirected_login_says_where_to),
		TEST(a_token_by_hand_lives_for_what_is_left_of_it),
		TEST(a_token_by_hand_that_has_expired_says_so),
		TEST(a_token_for_another_project_is_exchanged),
		TEST(the_metadata_services_token_can_be_had_anew),
		TEST(after_a_signal_too_it_can_be_had_anew_to_clean_up),
		TEST(region_and_interface_are_matched_exactly),
		TEST(a_miss_says_what_there_is),
		TEST(two_regions_and_no_name_are_ambiguous),
		TEST(a_catalog_of_nonsense_is_as_good_as_none),
		TEST(endpoints_lose_their_version),
		TEST(lack_of_verification_is_warned_of_once),
		TEST(a_refused_token_is_renewed_once),
		TEST(a_large_body_is_not_sent_again_unasked),
		TEST(what_the_identity_service_says_is_the_cause),
		TEST(the_token_goes_to_no_other_host),
		TEST(a_refresh_renews_what_would_not_last),
		TEST(a_token_that_ran_out_is_renewed_before_it_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
