// SPDX-License-Identifier: Apache-2.0
#include "cloud-kit.h"

/* What most of the clouds below have. */
#define URL	"auth_url=http://k/v3\n"
#define AUTH	"auth=password\n" URL
#define BASIC	"auth_url: http://k/v3, username: u, password: secret, project_name: p"
#define CLOUD	"clouds: {c: {auth: {" BASIC "}"
#define USER	"user_name=u\n"
#define SECRET	"secret=secret\n"
#define PROJECT "project_name=p\n"
#define PUBLIC	"interface=public\n"
#define PLAIN	AUTH USER SECRET PROJECT

static const struct example {
	const char *clouds; /* clouds.yaml; the cloud's name is c */
	const char *expected;
} examples[] = {
	{ CLOUD "}}", PLAIN PUBLIC },

	/* the auth section, its legacy place, and who wins */
	{ "clouds: {c: {" BASIC "}}", PLAIN PUBLIC },
	{ "clouds: {c: {username: top, project_name: top, auth: {" BASIC "}}}",
	  AUTH "user_name=top\n" SECRET PROJECT PUBLIC },
	{ "clouds: {c: {auth: {auth_url: http://k/v3, username: u, password: secret,\n"
	  " tenant_name: t}}}",
	  AUTH USER SECRET "project_name=t\n" PUBLIC },
	{ "clouds: {c: {auth: {auth-url: http://k/v3, user-name: u, password: secret,\n"
	  " project-id: i}}}",
	  AUTH USER SECRET "project_id=i\n" PUBLIC },

	/* domains */
	{ "clouds: {c: {auth: {" BASIC ", user_domain_name: A, project_domain_id: b}}}",
	  AUTH USER "user_domain_name=A\n" SECRET PROJECT "project_domain_id=b\n" PUBLIC },
	{ "clouds: {c: {domain_id: d, auth: {" BASIC ", user_domain_name: A}}}",
	  AUTH USER "user_domain_name=A\n" SECRET PROJECT "project_domain_id=d\n" PUBLIC },
	{ "clouds: {c: {auth: {auth_url: http://k/v3, username: u, password: secret,\n"
	  " domain_name: D}}}",
	  AUTH USER "user_domain_name=D\n" SECRET "domain_name=D\n" PUBLIC },
	{ "clouds: {c: {default_domain: d, auth: {" BASIC "}}}",
	  AUTH USER "user_domain_id=d\n" SECRET PROJECT "project_domain_id=d\n" PUBLIC },

	/* kinds of log-in */
	{ "clouds: {c: {auth_type: v3password, auth: {" BASIC "}}}", PLAIN PUBLIC },
	{ "clouds: {c: {auth_type: token, auth: {auth_url: http://k/v3, token: abcdef}}}",
	  "auth=token\n" URL "secret=abcdef\n" PUBLIC },
	{ "clouds: {c: {auth_type: v3token, auth: {auth_url: http://k/v3, token: abcdef,\n"
	  " project_id: i}}}",
	  "auth=token\n" URL "secret=abcdef\nproject_id=i\n" PUBLIC },
	{ "clouds: {c: {auth: {auth_url: http://k/v3, auth_token: abcdef}}}",
	  "auth=token\n" URL "secret=abcdef\n" PUBLIC },
	{ "clouds: {c: {auth_type: v3applicationcredential, auth: {auth_url: http://k/v3,\n"
	  " application_credential_id: i, application_credential_secret: secret,\n"
	  " project_name: p}}}",
	  "auth=appcred\n" URL "appcred_id=i\n" SECRET PUBLIC },
	{ "clouds: {c: {auth: {auth_url: http://k/v3, username: u, user_domain_id: d,\n"
	  " application_credential_name: n, application_credential_secret: secret}}}",
	  "auth=appcred\n" URL USER "user_domain_id=d\nappcred_name=n\n" SECRET PUBLIC },

	/* the rest */
	{ CLOUD ", endpoint_type: internalURL, interface: admin}}", PLAIN "interface=internal\n" },
	{ CLOUD ", interface: adminURL}}", PLAIN "interface=admin\n" },
	{ CLOUD ", image_endpoint_override: 'http://g/{region_name}', region_name: R}}",
	  PLAIN "region=R\n" PUBLIC "image_endpoint=http://g/R\n" },
	{ CLOUD ", image_endpoint_override: '{region_name}', region_name: '{region_name}'}}",
	  PLAIN "region={region_name}\n" PUBLIC "image_endpoint={region_name}\n" },
	{ CLOUD ", cacert: /ca, cert: cert.pem, key: ./key}}",
	  PLAIN PUBLIC "cacert=/ca\ncert=cert.pem\nkey=./key\n" },
	{ CLOUD ", cacert: null, region_name: ~, key: }}", PLAIN PUBLIC },
	{ CLOUD ", insecure: yes}}", PLAIN PUBLIC "insecure=yes\n" },
	{ CLOUD ", insecure: False}}", PLAIN PUBLIC },
	{ CLOUD ", verify: off}}", PLAIN PUBLIC "insecure=yes\n" },
	{ CLOUD ", verify: 'true'}}", PLAIN PUBLIC },

	/* regions */
	{ CLOUD ", region_name: 'a,b'}}", PLAIN "region=a,b\n" PUBLIC },
	{ CLOUD ", regions: [a, b], region_name: b}}", PLAIN "region=a\n" PUBLIC },
	{ CLOUD ", regions: [{name: a, values: {interface: admin, auth: {username: v}}}, b]}}",
	  AUTH "user_name=v\n" SECRET PROJECT "region=a\ninterface=admin\n" },
	{ CLOUD ", regions: []}}", PLAIN PUBLIC },

	/* YAML */
	{ "x: &x {" BASIC "}\nclouds: {c: {auth: *x}}", PLAIN PUBLIC },
	{ "x: &x {" BASIC "}\nclouds: {c: {auth: {<<: *x, username: v}}}",
	  AUTH "user_name=v\n" SECRET PROJECT PUBLIC },
	{ "x: &x {" BASIC "}\ny: &y {username: v}\nclouds: {c: {auth: {<<: [*y, *x]}}}",
	  AUTH "user_name=v\n" SECRET PROJECT PUBLIC },
	{ "clouds:\n  c:\n    auth: {" BASIC "}\n  c: {auth: {" BASIC ", username: last}}",
	  AUTH "user_name=last\n" SECRET PROJECT PUBLIC },
	{ "%YAML 1.1\n---\nclouds: !!map {c: {auth: {" BASIC "}}}\n...\n", PLAIN PUBLIC },

	/* others that are broken do no harm */
	{ CLOUD "}, b: oops, d: [1, 2], ~: {auth: 3}, e: {regions: 5, auth: [x]}}", PLAIN PUBLIC },
};

static void clouds_are_understood_as_openstacksdk_does_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		put("clouds.yaml", examples[i].clouds);
		if (!str_equal(loaded("c"), examples[i].expected))
			fail_msg("%s\nbecame\n%s", examples[i].clouds, kit_text);
	}
}

static void scalars_stay_what_was_written(void **state)
{
	static const char *const passwords[][2] = {
		{ "0123", "0123" },
		{ "yes", "yes" },
		{ "1e3", "1e3" },
		{ "0x1F", "0x1F" },
		{ "1_000", "1_000" },
		{ "12:30:45", "12:30:45" },
		{ "2026-01-31", "2026-01-31" },
		{ ".inf", ".inf" },
		{ "'~'", "~" },
		{ "\"null\"", "null" },
		{ "'it''s'", "it's" },
		{ "\"a\\tb\\u00e9\"", "a\tb\xc3\xa9" },
		{ "a#b", "a#b" },
		{ "!!str 017", "017" },
		{ "123456789012345678901234567890", "123456789012345678901234567890" },
		{ "|-\n        two\n        lines", "two\nlines" },
	};
	struct cloud_config cfg;
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof passwords / sizeof *passwords; i++) {
		snprintf(text, sizeof text,
			 "clouds:\n  c:\n    auth:\n      password: %s\n"
			 "      auth_url: http://k\n      user_id: 007\n      project_id: 1e5\n",
			 passwords[i][0]);
		put("clouds.yaml", text);
		assert_int_equal(load("c", &cfg), 0);
		assert_string_equal(cfg.secret, passwords[i][1]);
		assert_string_equal(cfg.user_id, "007");
		assert_string_equal(cfg.project_id, "1e5");
		cloud_config_free(&cfg);
	}
}

static void json_is_read_too(void **state)
{
	(void)state;
	put("clouds.json",
	    "{\n\t\"clouds\":{\"c\":{\"verify\":false,\"auth\":{\"auth_url\":"
	    "\"http:\\/\\/k/v3\",\t\"username\":\"u\",\n\"password\":\"sec\\u0072et\","
	    "\"project_name\":\"p\"},\"regions\":[\"a\"]}}}\n");
	assert_string_equal(loaded("c"), PLAIN "region=a\n" PUBLIC "insecure=yes\n");
}

/* --- refused ---------------------------------------------------------------------- */

static void what_does_not_do_is_refused_with_its_place(void **state)
{
	static const char *const refused[][2] = {
		{ "clouds:\n  c: [\n", "4: ./clouds.yaml:3: " },
		{ "clouds:\n\tc: 1\n", "4: ./clouds.yaml:2: " },
		{ "clouds: {c: {auth: \"\xff\"}}", "4: ./clouds.yaml: invalid" },
		{ "clouds:\n  c: *nowhere", "4: ./clouds.yaml:2: an alias without" },
		{ "clouds: &a\n  c: {b: *a}", "4: ./clouds.yaml:2: an alias to what it" },
		{ "clouds: {<<: x}", "<< takes a map" },
		{ "clouds: {? [a] : b}", "4: ./clouds.yaml:1: a key that" },
		{ "clouds: {c: !!binary eHg=}", "a tag" },
		{ "clouds: {c: \"a\\0b\"}", "a NUL" },
		{ "a: 1\n---\nb: 2\n", "4: ./clouds.yaml:2: a second document" },
		{ "just text", "4: ./clouds.yaml:1: expected a map" },
		{ "clouds: [c]", "4: ./clouds.yaml:1: clouds must be a map" },
		{ "clouds:\n  c: text", "4: ./clouds.yaml:2: cloud \"c\" must be a map" },
		{ "clouds:\n  c:\n    auth: [a]", "4: ./clouds.yaml:3: auth must be a map" },
		{ "clouds: {c: {auth: {password: [a]}}}", "4: ./clouds.yaml:1: expected a text" },
		{ CLOUD ", auth_type: v3oidcpassword}}",
		  "\"v3oidcpassword\"; password, v3password" },
		{ CLOUD ", insecure: maybe}}", "expected true or false" },
		{ CLOUD ", verify: /etc/ca.pem}}", "expected true or false" },
		{ CLOUD ", interface: private}}", "must be public, internal or admin" },
		{ CLOUD ", identity_api_version: 2.0}}", "version 2 of the identity service" },
		{ CLOUD ", regions: [[x]]}}", "a region must be a name" },
		{ CLOUD ", regions: [{name: a, interface: admin}]}}", "a region must be a name" },
		{ "clouds: {c: {auth: {" BASIC ", trust_id: t}}}", "trusts" },
		{ "clouds: {c: {auth: {auth_url: http://k, token: \"a\\nb\"}}}", "no blanks" },
		{ "clouds: {c: {}}", "cloud c in ./clouds.yaml has no auth_url" },
		{ "clouds: {c: {auth: {auth_url: http://k}}}", "has no username" },
		{ "clouds: {c: {auth: {auth_url: http://k, username: u, password: ~}}}",
		  "has no password (in quotes, if it is a null or ~), and OS_PASSWORD is not set" },
		{ "clouds: {c: {auth: {auth_url: http://k, username: u, password: xyzzy}}}",
		  "no project: cloud c in ./clouds.yaml has neither" },
		{ "clouds: {c: {auth: {auth_url: http://k, application_credential_name: n,\n"
		  " application_credential_secret: xyzzy}}}",
		  "has no username" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		put("clouds.yaml", refused[i][0]);
		if (!strstr(loaded("c"), refused[i][1]))
			fail_msg("%s\nbecame\n%s", refused[i][0], kit_text);
		assert_null(strstr(kit_text, "xyzzy"));
	}
}

static void put_repeated(const char *front, const char *part, size_t count, const char *back)
{
	FILE *out = fopen("clouds.yaml", "w");

	fputs(front, out);
	for (size_t i = 0; i < count; i++)
		fputs(part, out);
	fputs(back, out);
	fclose(out);
}

/* Each is as large as a file may be, or would be when it is unfolded. */
static void hostile_files_end_soon(void **state)
{
	FILE *out;

	(void)state;
	put_repeated("clouds: ", "[", 100000, "");
	assert_says(loaded("c"), "nested too deeply");
	put_repeated("clouds: ", "{a: ", 40, "");
	assert_says(loaded("c"), "nested too deeply");
	put_repeated("clouds: [", "x,", 400000, "]");
	assert_says(loaded("c"), "values are too many");
	put_repeated("", "#", 2 << 20, "");
	assert_says(loaded("c"), "is longer than 1048576 bytes");
	put_repeated("clouds: {c: {a: ", "x", 1000000, "}}");
	assert_says(loaded("c"), "has no auth_url");

	out = fopen("clouds.yaml", "w");
	fprintf(out, "a0: &a0 {x: 1, y: 2}\n");
	for (int i = 1; i < 30; i++)
		fprintf(out, "a%d: &a%d {x: *a%d, y: *a%d}\n", i, i, i - 1, i - 1);
	fprintf(out, "clouds: {c: *a29}\n");
	fclose(out);
	assert_says(loaded("c"), "has no auth_url");
	assert_int_equal(rename("clouds.yaml", "secure.yaml"), 0);
	assert_int_equal(link("secure.yaml", "clouds.yaml"), 0);
	assert_says(loaded("c"), "values are too many");
	unlink("secure.yaml");

	out = fopen("clouds.yaml", "w");
	fprintf(out, "m0: &m0 {a: 1}\n");
	for (int i = 1; i < 25; i++)
		fprintf(out, "m%d: &m%d {<<: [*m%d, *m%d], k%d: 1}\n", i, i, i - 1, i - 1, i);
	fprintf(out, "clouds: {c: *m24}\n");
	fclose(out);
	assert_says(loaded("c"), "has no auth_url");
}

/* --- which file ------------------------------------------------------------------- */

#define ENTRY(user)                                                                                \
	"clouds: {c: {auth: {auth_url: http://k/v3, username: " user                               \
	", password: secret, project_name: p}}}"

static void assert_user(const char *user)
{
	struct cloud_config cfg;

	if (load("c", &cfg) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(cfg.user_name, user);
	cloud_config_free(&cfg);
}

static void the_first_file_of_the_search_path_counts(void **state)
{
	(void)state;
	put("xdg/openstack/clouds.yaml", ENTRY("site"));
	assert_user("site");
	put(".config/openstack/clouds.json",
	    "{\"clouds\": {\"c\": {\"auth\": {\"auth_url\": "
	    "\"http://k/v3\", \"username\": \"json\", \"password\":"
	    " \"secret\", \"project_name\": \"p\"}}}}");
	assert_user("json");
	put(".config/openstack/clouds.yml", ENTRY("yml"));
	assert_user("yml");
	put(".config/openstack/clouds.yaml", ENTRY("home"));
	assert_user("home");
	setenv("XDG_CONFIG_HOME", "elsewhere", 1);
	assert_user("home");
	put("elsewhere/openstack/clouds.yaml", ENTRY("xdg"));
	assert_user("xdg");
	put("clouds.yaml", ENTRY("here"));
	assert_user("here");
	put("named", ENTRY("named"));
	setenv("OS_CLIENT_CONFIG_FILE", "named", 1);
	assert_user("named");
}

static void files_that_cannot_be_read_are_passed_over(void **state)
{
	(void)state;
	put(".config/openstack/clouds.yaml", ENTRY("home"));
	mkdir("clouds.yaml", 0700);
	assert_int_equal(symlink("clouds.yml", "clouds.yml"), 0);
	setenv("OS_CLIENT_CONFIG_FILE", "/nonexistent/file", 1);
	assert_user("home");
	assert_says(kit_said, "debug: cannot read ./clouds.yaml: Is a directory");
	assert_says(kit_said, "ccsnap: OS_CLIENT_CONFIG_FILE is passed over: cannot read "
			      "/nonexistent/file: No such file");
}

static void an_empty_file_ends_the_search(void **state)
{
	(void)state;
	put(".config/openstack/clouds.yaml", ENTRY("home"));
	put("clouds.yaml", "# nothing\n");
	assert_says(loaded("c"), "2: there is no cloud \"c\": ./clouds.yaml has none");
}

static void secure_yaml_goes_on_top(void **state)
{
	(void)state;
	put("clouds.yaml", "clouds: {c: {auth: {auth_url: http://k/v3, username: u, password: no,\n"
			   " project_name: p}, region_name: R}, d: {}}");
	put("secure.yaml", "clouds: {c: {auth: {password: secret}}, d: ~, e: {auth: 1}}");
	assert_string_equal(loaded("c"), PLAIN "region=R\n" PUBLIC);
	assert_says(loaded("d"), "cloud d in ./clouds.yaml and ./secure.yaml has no auth_url");
	put("sec", "clouds: {c: {auth: {password: other}}}");
	setenv("OS_CLIENT_SECURE_FILE", "sec", 1);
	assert_says(loaded("c"), "secret=other\n");
	put("sec", "clouds: {c: {auth: {password: other}");
	assert_says(loaded("c"), "4: sec:");
}

static void an_unknown_cloud_says_which_there_are(void **state)
{
	(void)state;
	assert_says(loaded("x"),
		    "2: there is no cloud \"x\": no clouds.yaml was found in ., /tmp/");
	put("clouds.yaml", "clouds: {b: {}, a: {}}");
	assert_says(loaded("x"), "2: there is no cloud \"x\": ./clouds.yaml has b, a");
	assert_string_equal(strstr(kit_text, "has"), "has b, a");
}

static void a_secret_that_all_can_read_is_noted(void **state)
{
	static const char note[] = "everybody can read the secret in ./clouds.yaml";

	(void)state;
	put("clouds.yaml", CLOUD "}}");
	loaded("c");
	assert_null(strstr(kit_said, note));
	assert_int_equal(chmod("clouds.yaml", 0644), 0);
	loaded("c");
	assert_says(kit_said, note);
	put("secure.yaml", "clouds: {c: {auth: {password: secret}}}");
	loaded("c");
	assert_null(strstr(kit_said, note));
}

/* --- profiles and regions --------------------------------------------------------- */

static void a_profile_lies_below_the_entry(void **state)
{
	(void)state;
	put("clouds.yaml", "clouds: {c: {profile: v, auth: {username: u, password: secret,\n"
			   " project_name: p}, interface: internal}}");
	put("clouds-public.yaml",
	    "public-clouds: {v: {auth: {auth_url: 'http://{region_name}/v3',\n"
	    " username: vendor}, interface: admin, regions: [k, l]}}");
	assert_string_equal(loaded("c"), PLAIN "region=k\ninterface=internal\n");
	setenv("OS_REGION_NAME", "l", 1);
	assert_says(loaded("c"), "auth_url=http://l/v3\n");
	setenv("OS_REGION_NAME", "m", 1);
	assert_says(loaded("c"), "2: cloud \"c\" has no region \"m\": "
				 "./clouds-public.yaml:2 has k, l");
}

static void a_missing_profile_matters_where_it_is_needed(void **state)
{
	(void)state;
	put("clouds.yaml", CLOUD ", profile: ovh}}");
	assert_string_equal(loaded("c"), PLAIN PUBLIC);
	assert_says(kit_said, "./clouds.yaml:1: there is no profile \"ovh\"");
	put("clouds.yaml", "clouds: {c: {cloud: ovh}}");
	assert_says(loaded("c"), "4: ./clouds.yaml:1: there is no profile \"ovh\"; "
				 "there is no clouds-public.yaml, and ccsnap has none built in");
	put("clouds-public.yaml", "public-clouds: {a: {}, b: {}}");
	assert_says(loaded("c"), "./clouds-public.yaml has a, b, and ccsnap has none");
}

static void the_region_is_chosen_by_name(void **state)
{
	(void)state;
	put("clouds.yaml", CLOUD ", regions: [a, {name: b, values: {interface: admin}}, c]}}");
	setenv("OS_REGION_NAME", "b", 1);
	assert_string_equal(loaded("c"), PLAIN "region=b\ninterface=admin\n");
	put("clouds.yaml", CLOUD ", regions: [{name: [a]}, b]}}");
	assert_string_equal(loaded("c"), PLAIN "region=b\n" PUBLIC);
	put("clouds.yaml", CLOUD ", regions: [a, {name: b, values: {interface: admin}}, c]}}");
	setenv("OS_REGION_NAME", "B", 1);
	assert_says(loaded("c"), "no region \"B\": ./clouds.yaml:1 has a, b, c");
	put("clouds.yaml", CLOUD "}}");
	assert_string_equal(loaded("c"), PLAIN "region=B\n" PUBLIC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(clouds_are_understood_as_openstacksdk_does_it),
		TEST(scalars_stay_what_was_written),
		TEST(json_is_read_too),
		TEST(what_does_not_do_is_refused_with_its_place),
		TEST(hostile_files_end_soon),
		TEST(the_first_file_of_the_search_path_counts),
		TEST(files_that_cannot_be_read_are_passed_over),
		TEST(an_empty_file_ends_the_search),
		TEST(secure_yaml_goes_on_top),
		TEST(an_unknown_cloud_says_which_there_are),
		TEST(a_secret_that_all_can_read_is_noted),
		TEST(a_profile_lies_below_the_entry),
		TEST(a_missing_profile_matters_where_it_is_needed),
		TEST(the_region_is_chosen_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
