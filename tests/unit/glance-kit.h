/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_GLANCE_KIT_H
#define CCSNAP_TEST_GLANCE_KIT_H

/* A small image service in memory instead of session.h, image_service.h and http.h,
 * which does what a test has written down for it, and a directory for each test: include
 * it once a program.  Time passes only while somebody sleeps, and then at once.
 */
#include "dest/dest.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/image_service.h"
#include "dest/kinds.h"
#include "dest/session.h"
#include "dest/uploads.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- time --- */

static uint64_t slept_ns;
static void (*while_asleep)(void); /* what others do meanwhile; NULL: nothing */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ts);
	uint64_t ns = (uint64_t)ts->tv_nsec + slept_ns % 1000000000;

	ts->tv_sec += (time_t)(slept_ns / 1000000000 + ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return rc;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	slept_ns += (uint64_t)pause->tv_sec * 1000000000 + (uint64_t)pause->tv_nsec;
	if (while_asleep)
		while_asleep();
	return 0;
}

/* --- the directory --- */

static char *dir; /* of one test: notes, work */

/* As uploads.h has it, but in the test's directory whoever runs it. */
char *uploads_default_folder(void)
{
	return str_format("%s/uploads", dir);
}

static inline int count_in(const char *path, const char *suffix)
{
	DIR *entries = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (entries && (entry = readdir(entries)))
		n += *entry->d_name != '.' && str_ends(entry->d_name, suffix);
	if (entries)
		closedir(entries);
	return n;
}

static inline int count_notes(void)
{
	autofree char *folder = uploads_default_folder();

	return count_in(folder, ".json");
}

static inline int count_locks(void)
{
	autofree char *folder = uploads_default_folder();

	return count_in(folder, ".lock");
}

/* --- the service --- */

#define PROJECT	 "0123456789abcdef0123456789abcdef"
#define ENDPOINT "http://127.0.0.1:9292"

/* What a PUT of image data does. */
struct put {
	unsigned status;     /* 0: no answer */
	const char *becomes; /* the image's status then, NULL: "active"; "": it is gone */
	bool cut;	     /* after half of the data */
	bool is_final;	     /* without an answer: it will not get better */
	uint64_t size;	     /* 0: the true one */
	const char *algo;    /* NULL: "sha512"; "": none */
	const char *value;   /* NULL: the true one */
	const char *checksum;
	bool shout; /* digits in capitals */
	const char *format;
};

/* What a download does. */
struct get {
	unsigned status;   /* 0: 200 or 206, as it should be */
	uint64_t bytes;	   /* at most, then the connection breaks; 0: all */
	const char *range; /* Content-Range; NULL: the right one */
	uint64_t extra;	   /* bytes too many */
	uint64_t early;	   /* begins so many bytes before what was asked for */
	bool has_others;   /* bytes that are not the image's */
};

#define IMAGES_MAX 16

static struct {
	struct service_image at[IMAGES_MAX];
	size_t count;
	struct put puts[16]; /* beyond the last: all is well */
	size_t put_at;
	struct get gets[16];
	size_t get_at;
	const char *statuses[16]; /* of the image in turn, at each look; "!": an error */
	size_t status_at;
	char trace[1024]; /* the requests, in words */
	uint8_t *data;	  /* of every image, for downloads */
	uint64_t size;

	/* Answers. */
	bool create_fails, create_unsent, create_answer_lost, hides_newest, delete_fails, set_fails,
		import_fails;
	unsigned create_late; /* looks until the image is there, though nothing was answered */
	bool protect_answer_lost, delete_refused;
	bool signal_at_create, signal_at_put, signal_at_set, signal_at_protect, login_fails,
		no_project, no_format, cannot_import;
	const char *import_failure;
	uint64_t room, token_seconds;
	bool token_is_fixed;
	unsigned logins;
	enum service_when deleted_when;
	int notes_at_create;
} cloud;

static inline void traced(const char *word)
{
	size_t len = strlen(cloud.trace);

	snprintf(cloud.trace + len, sizeof cloud.trace - len, "%s%s", len ? " " : "", word);
}

static inline char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static inline char **copy_list(char *const *list)
{
	char **out = calloc(IMAGES_MAX, sizeof *out);

	for (size_t i = 0; list && list[i]; i++)
		out[i] = strdup(list[i]);
	return out;
}

static inline void free_strings(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

void service_image_free(struct service_image *image)
{
	free(image->id);
	free(image->name);
	free(image->status);
	free(image->disk_format);
	free(image->owner);
	free(image->created_at);
	free(image->checksum);
	free(image->hash_algo);
	free(image->hash_value);
	free_strings(image->tags);
	free_strings(image->properties);
	memset(image, 0, sizeof *image);
}

void service_images_free(struct service_images *list)
{
	for (size_t i = 0; i < list->len; i++)
		service_image_free(&list->at[i]);
	free(list->at);
	memset(list, 0, sizeof *list);
}

static inline struct service_image copy_image(const struct service_image *from)
{
	struct service_image to = *from;

	to.id = copy(from->id);
	to.name = copy(from->name);
	to.status = copy(from->status);
	to.disk_format = copy(from->disk_format);
	to.owner = copy(from->owner);
	to.created_at = copy(from->created_at);
	to.checksum = copy(from->checksum);
	to.hash_algo = copy(from->hash_algo);
	to.hash_value = copy(from->hash_value);
	to.tags = copy_list(from->tags);
	to.properties = copy_list(from->properties);
	return to;
}

static inline struct service_image *image_of(const char *id)
{
	for (size_t i = 0; i < cloud.count; i++)
		if (str_equal(cloud.at[i].id, id))
			return &cloud.at[i];
	return NULL;
}

static inline void set(char **text, const char *value)
{
	free(*text);
	*text = copy(value);
}

/* An image that is there from the beginning. */
static inline struct service_image *put_image(const char *id, const char *name, const char *status)
{
	struct service_image *image = &cloud.at[cloud.count++];

	*image = (struct service_image){
		.id = copy(id),
		.name = copy(name),
		.status = copy(status),
		.disk_format = copy("raw"),
		.owner = copy(PROJECT),
		.created_at = copy("2026-01-31T23:59:59Z"),
		.has_size = true,
		.tags = copy_list(NULL),
		.properties = copy_list(NULL),
	};
	return image;
}

static inline void remove_image(struct service_image *image)
{
	size_t i = (size_t)(image - cloud.at);

	service_image_free(image);
	memmove(image, image + 1, (--cloud.count - i) * sizeof *image);
}

/* --- its session --- */

struct session {
	int unused;
};
static struct session the_session;

struct session *session_open(const struct session_config *cfg, struct err *err)
{
	(void)cfg;
	(void)err;
	return &the_session;
}

void session_close(struct session *s)
{
	(void)s;
}

int session_start(struct session *s, struct err *err)
{
	(void)s;
	cloud.logins++;
	return cloud.login_fails ? err_set(err, ERR_REFUSED, "wrong password") : 0;
}

int session_refresh(struct session *s, uint64_t seconds, struct err *err)
{
	(void)s;
	(void)seconds;
	(void)err;
	return 0;
}

const char *session_endpoint(const struct session *s)
{
	(void)s;
	return ENDPOINT;
}

const char *session_project_id(const struct session *s)
{
	(void)s;
	return cloud.no_project ? NULL : PROJECT;
}

const char *session_origin(const struct session *s)
{
	(void)s;
	return "cloud lab";
}

bool session_can_renew(const struct session *s)
{
	(void)s;
	return !cloud.token_is_fixed;
}

uint64_t session_seconds_left(const struct session *s)
{
	(void)s;
	return cloud.token_seconds;
}

/* --- HTTP, as far as it is used --- */

static char content_range[64];

void http_response_free(struct http_response *r)
{
	memset(r, 0, sizeof *r);
}

const char *http_header_of(const struct http_response *r, const char *name)
{
	return r->status == 206 && strcasecmp(name, "Content-Range") == 0 ? content_range : NULL;
}

bool http_may_get_better(const struct http_response *r)
{
	return r->status == 408 || r->status == 429 || (r->status >= 500 && r->status != 501);
}

int http_error(const struct http_response *r, const char *what, struct err *err)
{
	return err_set(err, r->status / 100 == 4 ? ERR_REFUSED : ERR_FAILED,
		       "%s: %u the service's words", what, r->status);
}

int http_wait(struct http_backoff *backoff, const struct http_response *r, struct err *err)
{
	(void)r;
	if (backoff->tries == 0)
		return -1;
	backoff->tries--;
	traced("wait");
	return interrupt_check(err);
}

struct dest *put_open(const struct dest_config *cfg, const char *rest, struct err *err)
{
	(void)cfg;
	(void)rest;
	err_nomem(err);
	return NULL;
}

/* --- its requests --- */

int service_create(struct session *s, const struct service_image *wanted, enum service_heard *heard,
		   struct err *err)
{
	struct service_image *image;

	(void)s;
	*heard = cloud.create_unsent	    ? SERVICE_UNHEARD
		 : cloud.create_answer_lost ? SERVICE_UNANSWERED
					    : SERVICE_ANSWERED;
	traced("create");
	cloud.notes_at_create = count_notes();
	if (cloud.create_unsent)
		return err_set(err, ERR_FAILED, "create: cannot connect");
	if (cloud.create_fails)
		return err_set(err, ERR_REFUSED, "create: 403 the service's words");
	assert_true(cloud.count < IMAGES_MAX);
	image = &cloud.at[cloud.count++];
	*image = copy_image(wanted);
	set(&image->status, "queued");
	set(&image->owner, PROJECT);
	set(&image->created_at, "2026-02-01T00:00:00Z");
	if (cloud.signal_at_create)
		raise(SIGTERM);
	if (cloud.create_answer_lost && interrupt_check(err) == 0)
		err_set(err, ERR_FAILED, "create: no answer");
	return cloud.create_answer_lost ? -1 : 0;
}

int service_look(struct session *s, const char *id, enum service_when when,
		 struct service_image *out, struct err *err)
{
	struct service_image *image = image_of(id);
	const char *status = cloud.statuses[cloud.status_at];

	(void)s;
	traced("get");
	*out = (struct service_image){ 0 };
	if (when == SERVICE_NORMALLY && interrupt_check(err) < 0)
		return -1;
	if (cloud.create_late > 0) {
		cloud.create_late--;
		return 0;
	}
	if (status)
		cloud.status_at++;
	if (status && str_equal(status, "!"))
		return err_set(err, ERR_FAILED, "get: no answer");
	if (!image)
		return 0;
	if (status)
		set(&image->status, status);
	*out = copy_image(image);
	return 1;
}

int service_get(struct session *s, const char *id, struct service_image *out, struct err *err)
{
	return service_look(s, id, SERVICE_NORMALLY, out, err);
}

static inline void set_hashes(struct service_image *image, const struct put *put,
			      const struct digests *d)
{
	set(&image->hash_algo, !put->algo ? "sha512" : *put->algo ? put->algo : NULL);
	set(&image->hash_value, put->algo && !*put->algo ? NULL
				: put->value		 ? put->value
				: image->hash_algo && str_equal(image->hash_algo, "sha256")
					? d->sha256
					: d->sha512);
	set(&image->checksum, put->checksum ? put->checksum : NULL);
	for (char *p = put->shout ? image->hash_value : NULL; p && *p; p++)
		if (*p >= 'a')
			*p = (char)(*p - 'a' + 'A');
}

/* Takes what is sent, as it would come over a wire. */
static inline int take_data(const struct http_upload *data, uint64_t size, struct digests *d,
			    struct http_response *out, struct err *err)
{
	struct hash *hash = hash_start(HASH_OURS, err);
	char buf[1000];
	int rc = 0;

	while (rc == 0 && out->sent < size) {
		size_t n = (size_t)MIN(size - out->sent, sizeof buf);

		rc = data->read(data->ctx, buf, n, out->sent, err);
		if (rc == 0)
			rc = hash_update(hash, buf, n, err);
		out->sent += n;
	}
	if (rc == 0)
		rc = hash_finish(hash, d, err);
	hash_stop(hash);
	return rc;
}

static inline void apply(const struct put *put, enum service_way way, const struct digests *d,
			 uint64_t size, struct service_image *image)
{
	if (put->becomes && !*put->becomes) {
		remove_image(image);
		return;
	}
	set(&image->status, put->becomes	   ? put->becomes
			    : way == SERVICE_STAGE ? "uploading"
						   : "active");
	image->has_size = true;
	image->size = put->size ? put->size : size;
	if (put->format)
		set(&image->disk_format, put->format);
	set_hashes(image, put, d);
}

int service_put(struct session *s, const char *id, enum service_way way,
		const struct http_upload *data, struct http_response *out, struct err *err)
{
	struct put put = cloud.puts[cloud.put_at++];
	struct service_image *image = image_of(id);
	struct digests d = { 0 };

	(void)s;
	traced(way == SERVICE_STAGE ? "stage" : "put");
	memset(out, 0, sizeof *out);
	assert_non_null(image);
	assert_string_equal(image->status, "queued"); /* nothing else takes data */
	if (take_data(data, put.cut ? data->size / 2 : data->size, &d, out, err) < 0)
		return -1;
	if (cloud.signal_at_put)
		raise(SIGTERM);
	if (interrupt_check(err) < 0)
		return -1;
	if (!put.status && !put.becomes && !put.cut && !put.is_final)
		put.status = 204;
	apply(&put, way, &d, data->size, image);
	out->status = put.status;
	out->may_retry = !put.status && !put.is_final;
	return put.status ? 0 : err_set(err, ERR_FAILED, "put: the connection broke");
}

int service_import(struct session *s, const char *id, struct err *err)
{
	(void)s;
	traced("import");
	if (cloud.import_fails)
		return err_set(err, ERR_REFUSED, "import: 403 the service's words");
	set(&image_of(id)->status, cloud.import_failure ? "importing" : "active");
	return 0;
}

char *service_import_failure(struct session *s, const char *id)
{
	(void)s;
	(void)id;
	return copy(cloud.import_failure);
}

int service_can_import(struct session *s, struct err *err)
{
	(void)s;
	(void)err;
	return !cloud.cannot_import;
}

int service_set_properties(struct session *s, const char *id, char *const *properties,
			   struct err *err)
{
	struct service_image *image = image_of(id);
	size_t n = 0;

	(void)s;
	traced("set");
	if (cloud.signal_at_set)
		raise(SIGTERM);
	if (cloud.set_fails)
		return err_set(err, ERR_FAILED, "set: 500 the service's words");
	while (image->properties[n])
		n++;
	for (; *properties; properties++)
		image->properties[n++] = strdup(*properties);
	return 0;
}

int service_protect(struct session *s, const char *id, struct err *err)
{
	(void)s;
	traced("protect");
	image_of(id)->is_protected = true;
	if (cloud.signal_at_protect)
		raise(SIGTERM);
	if (interrupt_check(err) < 0)
		return -1;
	return cloud.protect_answer_lost ? err_set(err, ERR_FAILED, "protect: no answer") : 0;
}

int service_unprotect(struct session *s, const char *id, enum service_when when, struct err *err)
{
	(void)s;
	traced("unprotect");
	if (when == SERVICE_NORMALLY && interrupt_check(err) < 0)
		return -1;
	image_of(id)->is_protected = false;
	return 0;
}

int service_delete(struct session *s, const char *id, enum service_when when, struct err *err)
{
	struct service_image *image = image_of(id);

	(void)s;
	traced("delete");
	cloud.deleted_when = when;
	if (when == SERVICE_NORMALLY && interrupt_check(err) < 0)
		return -1;
	if (cloud.delete_refused)
		return err_set(err, ERR_REFUSED, "delete: 403 the service's words");
	if (cloud.delete_fails)
		return err_set(err, ERR_FAILED, "delete: 503 the service's words");
	if (image && image->is_protected)
		return err_set(err, ERR_REFUSED, "delete: 403 it is protected");
	if (image)
		remove_image(image);
	return 0;
}

static inline bool is_called(const struct service_image *image, const char *name)
{
	return image->name && str_equal(image->name, name);
}

/* It sorts out nothing but the owner and the name. */
int service_list(struct session *s, const struct service_filter *filter, struct service_images *out,
		 struct err *err)
{
	(void)s;
	traced("list");
	if (filter->when == SERVICE_NORMALLY && interrupt_check(err) < 0)
		return -1;
	memset(out, 0, sizeof *out);
	out->at = calloc(IMAGES_MAX, sizeof *out->at);
	for (size_t i = 0; i < cloud.count - (cloud.hides_newest && cloud.count > 1); i++)
		if ((!filter->owner || str_equal(cloud.at[i].owner, filter->owner)) &&
		    (!filter->name || is_called(&cloud.at[i], filter->name)))
			out->at[out->len++] = copy_image(&cloud.at[i]);
	return 0;
}

/* After at bytes of them the connection breaks, if it is to. */
static inline int give_data(const struct get *get, const struct http_download *to, uint64_t from,
			    struct http_response *out, struct err *err)
{
	uint64_t end = MIN(cloud.size, get->bytes ? from + get->bytes : cloud.size);

	for (uint64_t at = from; at < end + get->extra;) {
		uint8_t piece[16384 + 100] = { 0 };
		size_t n = (size_t)MIN(end + get->extra - at, sizeof piece);

		for (size_t i = 0; i < n && at + i < cloud.size; i++)
			piece[i] = (uint8_t)(cloud.data[at + i] ^ get->has_others);
		if (to->write(to->ctx, piece, n, err) < 0)
			return -1;
		out->received += n;
		at += n;
	}
	return 0;
}

int service_download(struct session *s, const char *id, uint64_t offset,
		     const struct http_download *to, struct http_response *out, struct err *err)
{
	const struct get *get = &cloud.gets[cloud.get_at++];
	uint64_t from = offset - MIN(offset, get->early);
	char word[32];

	(void)s;
	(void)id;
	snprintf(word, sizeof word, "from%llu", (unsigned long long)offset);
	traced(word);
	memset(out, 0, sizeof *out);
	if (interrupt_check(err) < 0)
		return -1;
	out->status = get->status ? get->status : offset ? 206 : 200;
	if (out->status >= 300)
		return 0;
	if (out->status == 200)
		from = 0;
	snprintf(content_range, sizeof content_range, "bytes %llu-%llu/%llu",
		 (unsigned long long)from, (unsigned long long)cloud.size - 1,
		 (unsigned long long)cloud.size);
	if (get->range)
		snprintf(content_range, sizeof content_range, "%s", get->range);
	if (to->begin(to->ctx, out, err) < 0 || give_data(get, to, from, out, err) < 0)
		return -1;
	if (!get->bytes)
		return 0;
	out->may_retry = true;
	return err_set(err, ERR_FAILED, "get: the connection broke");
}

uint64_t service_room(struct session *s)
{
	(void)s;
	traced("room");
	return cloud.room;
}

int service_takes_format(struct session *s, const char *format, struct err *err)
{
	(void)s;
	if (cloud.no_format)
		err_set(err, ERR_REFUSED, "%s is not taken here; raw is", format);
	return !cloud.no_format;
}

int service_check_names(const char *name, char *const *properties, char *const *tags,
			struct err *err)
{
	(void)tags;
	if (properties && *properties && str_starts(*properties, "os_glance_"))
		return err_set(err, ERR_REFUSED, "%s: %s is reserved", name, *properties);
	return 0;
}

/* --- a run --- */

static struct err err;
static char warnings[1024];

static inline void note_warning(void *ctx, const char *warning)
{
	size_t len = strlen(warnings);

	(void)ctx;
	snprintf(warnings + len, sizeof warnings - len, "%s\n", warning);
}

static inline int set_up(void **state)
{
	char template[] = "/tmp/ccsnap-test-glance.XXXXXX";

	(void)state;
	dir = strdup(mkdtemp(template));
	memset(&cloud, 0, sizeof cloud);
	cloud.room = UINT64_MAX;
	cloud.token_seconds = 3600;
	while_asleep = NULL;
	warnings[0] = '\0';
	log_set_level(LOG_ERROR);
	log_set_sink(note_warning, NULL);
	return 0;
}

static inline int tear_down(void **state)
{
	char command[128];

	(void)state;
	while (cloud.count > 0)
		remove_image(&cloud.at[0]);
	free(cloud.data);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	free(dir);
	return system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static inline struct dest_config config_of(void)
{
	return (struct dest_config){
		.where = "glance:lab",
		.image_name = "mine",
		.suffix = ".raw",
		.format = "raw",
		.work_dir = dir,
		.upload_method = "auto",
	};
}

#define CONTENT "what is in the image, and it is long enough to be cut"

/* A run from its beginning to its end, without the capture. */
static inline int run_with(const struct dest_config *cfg, struct dest **out)
{
	struct image_info info = { .format = strdup("raw"), .size = strlen(CONTENT) };
	char *properties[] = { (char *)"k=v", NULL };
	struct dest *dest = dest_open(cfg, &err);
	int fd, rc = -1;

	assert_non_null(dest);
	dest->ops->tidy(dest);
	if (dest->ops->check(dest, info.size, &err) == 0 &&
	    dest->ops->reserve(dest, &fd, &err) == 0) {
		assert_int_equal(io_pwrite(fd, CONTENT, strlen(CONTENT), 0), 0);
		info.virtual_size = GIB + 1;
		info.properties = properties;
		rc = dest->ops->publish(dest, &info, &err);
		info.properties = NULL;
	}
	image_info_free(&info);
	*out = dest;
	return rc;
}

static inline int run(struct dest **out)
{
	const struct dest_config cfg = config_of();

	return run_with(&cfg, out);
}

static inline void assert_words(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, text);
}

static inline void assert_failed(int rc, enum err_kind kind, const char *words)
{
	assert_int_equal(rc, -1);
	assert_words(err.text, words);
	assert_int_equal(err.kind, kind);
}

static inline int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#endif
