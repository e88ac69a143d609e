// SPDX-License-Identifier: Apache-2.0
#include "cloud-kit.h"

#define VARIABLES_MAX 10
#define BASIC	      "OS_AUTH_URL=http://k/v3", "OS_USERNAME=u", "OS_PASSWORD=secret"
#define URL	      "auth_url=http://k/v3\n"
#define SHOWN	      "auth=password\n" URL "user_name=u\n"
#define SECRET	      "secret=secret\n"
#define PROJECT	      "project_name=p\n"
#define PUBLIC	      "interface=public\n"

static const struct example {
	const char *set[VARIABLES_MAX];
	const char *expected;
} examples[] = {
	{ { BASIC, "OS_PROJECT_NAME=p" }, SHOWN SECRET PROJECT PUBLIC },
	{ { BASIC, "OS_TENANT_NAME=t", "OS_REGION_NAME=", "OS_CACERT=" },
	  SHOWN SECRET "project_name=t\n" PUBLIC },
	{ { BASIC, "OS_PROJECT_ID=i", "OS_USER_DOMAIN_NAME=D", "OS_PROJECT_DOMAIN_ID=e",
	    "OS_IDENTITY_API_VERSION=3" },
	  SHOWN "user_domain_name=D\n" SECRET "project_id=i\nproject_domain_id=e\n" PUBLIC },
	{ { BASIC, "OS_PROJECT_NAME=p", "OS_DEFAULT_DOMAIN=d" },
	  SHOWN "user_domain_id=d\n" SECRET PROJECT "project_domain_id=d\n" PUBLIC },
	{ { BASIC, "OS_PROJECT_NAME=p", "OS_DEFAULT_DOMAIN_NAME=d" },
	  SHOWN "user_domain_name=d\n" SECRET PROJECT "project_domain_name=d\n" PUBLIC },
	{ { BASIC, "OS_DOMAIN_NAME=d" },
	  SHOWN "user_domain_name=d\n" SECRET "domain_name=d\n" PUBLIC },
	{ { BASIC, "OS_PROJECT_NAME=p", "OS_REGION_NAME=R", "OS_ENDPOINT_TYPE=internalURL",
	    "OS_CACERT=/ca", "OS_CERT=c", "OS_KEY=~/k" },
	  SHOWN SECRET PROJECT "region=R\ninterface=internal\ncacert=/ca\ncert=c\nkey=HOME/k\n" },
	{ { BASIC, "OS_PROJECT_NAME=p", "OS_INTERFACE=admin", "OS_INSECURE=1",
	    "OS_ENDPOINT_OVERRIDE=http://any", "OS_IMAGE_ENDPOINT_OVERRIDE=http://g" },
	  SHOWN SECRET PROJECT "interface=admin\nimage_endpoint=http://g\ninsecure=yes\n" },
	{ { BASIC, "OS_PROJECT_NAME=p", "OS_INSECURE=False", "OS_ENDPOINT_OVERRIDE=http://any" },
	  SHOWN SECRET PROJECT PUBLIC "image_endpoint=http://any\n" },
	{ { "OS_AUTH_URL=http://k/v3", "OS_AUTH_TYPE=v3token", "OS_TOKEN=abcdef", "OS_PASSWORD=x",
	    "OS_PROJECT_ID=i" },
	  "auth=token\n" URL "secret=abcdef\nproject_id=i\n" PUBLIC },
	{ { "OS_AUTH_URL=http://k/v3", "OS_TOKEN=abcdef" },
	  "auth=token\n" URL "secret=abcdef\n" PUBLIC },
	{ { "OS_AUTH_URL=http://k/v3", "OS_AUTH_TYPE=v3applicationcredential",
	    "OS_APPLICATION_CREDENTIAL_ID=i", "OS_APPLICATION_CREDENTIAL_SECRET=secret",
	    "OS_PROJECT_ID=p" },
	  "auth=appcred\n" URL "appcred_id=i\n" SECRET PUBLIC },
	{ { "OS_AUTH_URL=http://k/v3", "OS_USER_ID=u", "OS_APPLICATION_CREDENTIAL_NAME=n",
	    "OS_APPLICATION_CREDENTIAL_SECRET=secret" },
	  "auth=appcred\n" URL "user_id=u\nappcred_name=n\n" SECRET PUBLIC },

	/* what is missing or impossible is named */
	{ { "OS_AUTH_URL=http://k/v3" }, "2: OS_USERNAME is not set" },
	{ { "OS_PASSWORD=secret" }, "2: OS_AUTH_URL is not set" },
	{ { "OS_AUTH_URL=http://k/v3", "OS_USER_ID=u" }, "2: OS_PASSWORD is not set" },
	{ { BASIC }, "2: no project: set OS_PROJECT_NAME or OS_PROJECT_ID" },
	{ { "OS_AUTH_URL=http://k/v3", "OS_APPLICATION_CREDENTIAL_ID=i" },
	  "2: OS_APPLICATION_CREDENTIAL_SECRET is not set" },
	{ { "OS_AUTH_URL=http://k/v3", "OS_APPLICATION_CREDENTIAL_SECRET=secret" },
	  "2: OS_APPLICATION_CREDENTIAL_ID is not set" },
	{ { "OS_AUTH_URL=http://k/v3", "OS_AUTH_TYPE=token" }, "2: OS_TOKEN is not set" },
	{ { BASIC, "OS_PROJECT_NAME=p", "OS_IDENTITY_API_VERSION=2" },
	  "2: OS_IDENTITY_API_VERSION: version 2 of the identity service is not supported, "
	  "only 3" },
	{ { BASIC, "OS_PROJECT_NAME=p", "OS_INSECURE=perhaps" },
	  "2: OS_INSECURE: expected true or false" },
	{ { BASIC, "OS_SYSTEM_SCOPE=all" },
	  "2: OS_SYSTEM_SCOPE: trusts and the system scope are not supported, only projects" },
};

static void put_home(char *text)
{
	char *at = strstr(text, kit_dir);

	if (at) {
		memmove(at + 4, at + strlen(kit_dir), strlen(at + strlen(kit_dir)) + 1);
		memcpy(at, "HOME", 4);
	}
}

static void variables_mean_what_they_mean_to_the_openstack_client(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		kit_forget_variables();
		set_variables(examples[i].set);
		loaded(NULL);
		put_home(kit_text);
		if (!str_equal(kit_text, examples[i].expected))
			fail_msg("example %zu became\n%s", i, kit_text);
	}
}

static void unsupported_log_ins_name_those_that_are(void **state)
{
	static const char *const types[] = { "v3oidcpassword", "v2password", "v3totp", "none" };
	static const char *const basic[] = { BASIC, NULL };

	(void)state;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		set_variables(basic);
		setenv("OS_AUTH_TYPE", types[i], 1);
		loaded(NULL);
		assert_says(kit_text, "2: OS_AUTH_TYPE: cannot log in by \"");
		assert_says(kit_text, types[i]);
		assert_says(kit_text, "v3applicationcredential");
	}
}

static void secrets_leave_the_environment_whatever_is_used(void **state)
{
	static const char *const all[] = { "OS_CLOUD=x",
					   "OS_PASSWORD=hidden1",
					   "OS_TOKEN=hidden2",
					   "OS_APPLICATION_CREDENTIAL_SECRET=hidden3",
					   "OS_CLIENT_SECRET=hidden4",
					   "OS_ACCESS_TOKEN=hidden5",
					   NULL };

	(void)state;
	set_variables(all);
	loaded(NULL);
	for (size_t i = 0; environ[i]; i++)
		assert_null(strstr(environ[i], "hidden"));
	assert_string_equal(getenv("OS_CLOUD"), "x");
}

/* --- with a cloud by name --------------------------------------------------------- */

static void put_named(void)
{
	put("clouds.yaml", "clouds:\n  c: {region_name: R, interface: internal, cacert: /file/ca,\n"
			   "    auth: {auth_url: http://file, username: fu, password: fsecret,\n"
			   "      project_name: fp, user_domain_name: fd}}\n");
}

/* As `openstack` (python-openstackclient 6.0) does it. */
static void variables_go_before_a_named_cloud_where_openstack_lets_them(void **state)
{
	static const char *const set[] = { "OS_CLOUD=c",
					   "OS_AUTH_URL=http://env",
					   "OS_USERNAME=eu",
					   "OS_PASSWORD=esecret",
					   "OS_PROJECT_NAME=ep",
					   "OS_PROJECT_DOMAIN_NAME=epd",
					   "OS_USER_DOMAIN_NAME=ed",
					   "OS_INTERFACE=admin",
					   "OS_ENDPOINT_TYPE=publicURL",
					   "OS_CACERT=/env/ca",
					   "OS_INSECURE=true",
					   "OS_IMAGE_ENDPOINT_OVERRIDE=http://env",
					   NULL };

	(void)state;
	put_named();
	set_variables(set);
	assert_string_equal(loaded(NULL), "auth=password\nauth_url=http://env\nuser_name=eu\n"
					  "user_domain_name=fd\nsecret=esecret\nproject_name=fp\n"
					  "project_domain_name=epd\nregion=R\ninterface=admin\n"
					  "cacert=/env/ca\n");
	assert_says(kit_said, "OS_AUTH_URL, OS_USERNAME, OS_PASSWORD of the environment replaces "
			      "what cloud c in ./clouds.yaml says");
}

static void what_is_not_set_stays_the_files(void **state)
{
	(void)state;
	put_named();
	assert_string_equal(loaded("c"),
			    "auth=password\nauth_url=http://file\nuser_name=fu\n"
			    "user_domain_name=fd\nsecret=fsecret\nproject_name=fp\nregion=R\n"
			    "interface=internal\ncacert=/file/ca\n");
	assert_null(strstr(kit_said, "replaces"));
}

static void a_password_may_come_from_the_environment_alone(void **state)
{
	(void)state;
	put("clouds.yaml", "clouds: {c: {auth: {auth_url: http://k/v3, username: u,\n"
			   " project_name: p}}}");
	setenv("OS_PASSWORD", "secret", 1);
	assert_string_equal(loaded("c"), SHOWN SECRET PROJECT PUBLIC);
	assert_null(strstr(kit_said, "replaces"));
}

static void a_token_in_the_file_goes_before_its_variable(void **state)
{
	(void)state;
	put("clouds.yaml", "clouds: {c: {auth: {auth_url: http://k/v3, token: filetoken}}}");
	setenv("OS_TOKEN", "envtoken", 1);
	assert_string_equal(loaded("c"), "auth=token\n" URL "secret=filetoken\n" PUBLIC);
	assert_null(strstr(kit_said, "replaces"));
}

static void credentials_in_variables_go_before_a_single_cloud(void **state)
{
	static const char *const set[] = { BASIC, "OS_PROJECT_NAME=p", NULL };

	(void)state;
	put_named();
	set_variables(set);
	assert_string_equal(loaded(NULL), SHOWN SECRET PROJECT PUBLIC);
}

static void a_single_cloud_needs_no_name(void **state)
{
	(void)state;
	put_named();
	setenv("OS_REGION_NAME", "R", 1);
	assert_says(loaded(NULL), "secret=fsecret\n");
	setenv("OS_REGION_NAME", "S", 1);
	assert_says(loaded(NULL), "2: cloud \"c\" has no region \"S\": ./clouds.yaml:2 has R");
}

static void a_name_on_the_command_line_goes_before_os_cloud(void **state)
{
	(void)state;
	put_named();
	setenv("OS_CLOUD", "other", 1);
	assert_says(loaded("c"), "secret=fsecret\n");
	assert_says(loaded(NULL), "2: there is no cloud \"other\": ./clouds.yaml has c");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(variables_mean_what_they_mean_to_the_openstack_client),
		TEST(unsupported_log_ins_name_those_that_are),
		TEST(secrets_leave_the_environment_whatever_is_used),
		TEST(variables_go_before_a_named_cloud_where_openstack_lets_them),
		TEST(what_is_not_set_stays_the_files),
		TEST(a_password_may_come_from_the_environment_alone),
		TEST(a_token_in_the_file_goes_before_its_variable),
		TEST(credentials_in_variables_go_before_a_single_cloud),
		TEST(a_single_cloud_needs_no_name),
		TEST(a_name_on_the_command_line_goes_before_os_cloud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
