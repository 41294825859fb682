/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "icd/config.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/device.h"
#include "icd/queries/probe.h"
#include "icd/queries/sandbox.h"
#include "icd/selftest/identity.h"
#include "icd/selftest/result_cache.h"
#include "icd/text.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/thread.h"

#define REVISION 4 /* of the answers */
#define LIMITS_SIZE 160
#define MAX_DEVICES 64
#define NO_ANSWER "no answer: " /* and why: what is kept of a probe that the driver fails */
#define PROBE_LIMIT 10		/* seconds of a probe's tests */
#define PROBE_COMPILE_LIMIT 60

struct takes {
	unsigned int platform;
	unsigned int count; /* of devices, in the order of clGetDeviceIDs() */
	unsigned char device[MAX_DEVICES];
};

/* A platform that was asked for. */
struct asked {
	struct asked *next;
	cl_platform_id platform;
	enum {
		LOOKED, /* for a kept answer, in vain */
		ASKING, /* one thread does */
		ANSWERED,
		UNANSWERED, /* not to be tried again */
	} state;
	struct takes takes;
};

static void asked_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(asked_lock, LOCK_LAST, asked_in_child); /* the two below */
static struct asked *asked GUARDED_BY(asked_lock);
static pthread_cond_t asked_changed = PTHREAD_COND_INITIALIZER;

/* The thread that asked is not in the child. */
static void asked_in_child(struct lock *lock) TSA(no_thread_safety_analysis)
{
	struct asked **link = &asked;

	(void)lock;
	pthread_cond_init(&asked_changed, NULL);
	while (*link) {
		struct asked *gone = *link;

		if (gone->state != ASKING) {
			link = &gone->next;
			continue;
		}
		*link = gone->next;
		free(gone);
	}
}

static unsigned int support_of_record(const struct device *device)
{
	unsigned int takes = 0;

	if (!device)
		return 0;
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (device->method[type].ops)
			takes |= device->method[type].ops->create ? 1u << type : TAKES_NATIVE;
	if (device->method[IMPORT_HOST].ops && device->method[IMPORT_HOST].ops->prove_image &&
	    !device->image2d_from_buffer)
		takes |= TAKES_IMAGE2D;
	return takes;
}

static cl_device_id *devices_of(cl_platform_id platform, cl_uint *count)
{
	cl_device_id *devices;

	*count = 0;
	if (next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, count) || !*count)
		return NULL;
	devices = calloc(*count, sizeof(*devices));
	if (devices && !next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, *count, devices, NULL))
		return devices;
	free(devices);
	return NULL;
}

/* In this process.  False: a result of the moment, not to be kept. */
static bool support_test(cl_platform_id platform, struct takes *t)
{
	cl_device_id *devices = devices_of(platform, &t->count);
	bool conclusive = devices;

	t->platform = 0;
	t->count = devices ? t->count < MAX_DEVICES ? t->count : MAX_DEVICES : 0;
	for (cl_uint i = 0; i < t->count; i++) {
		const struct device *device = device_get(devices[i]);

		t->device[i] = (unsigned char)support_of_record(device);
		t->platform |= t->device[i];
		for (int type = 0; type < IMPORT_TYPES; type++)
			conclusive &= device && !device->method[type].untested;
	}
	free(devices);
	return conclusive;
}

/* "takes PLATFORM COUNT DEVICE ... end" */
static bool support_format(const struct takes *t, char *line, size_t size)
{
	size_t used = (size_t)snprintf(line, size, "takes %u %u", t->platform, t->count);

	for (cl_uint i = 0; i < t->count && used < size; i++)
		used += (size_t)snprintf(line + used, size - used, " %u", t->device[i]);
	if (used < size)
		used += (size_t)snprintf(line + used, size - used, " end");
	return used < size;
}

static bool support_parse(const char *line, struct takes *t)
{
	int n = 0;

	if (sscanf(line, "takes %u %u%n", &t->platform, &t->count, &n) != 2 ||
	    t->count > MAX_DEVICES)
		return false;
	for (cl_uint i = 0; i < t->count; i++) {
		unsigned int takes;
		int length = 0;

		line += n;
		if (sscanf(line, " %u%n", &takes, &length) != 1 || takes > 255)
			return false;
		t->device[i] = (unsigned char)takes;
		n = length;
	}
	return !strcmp(line + n, " end");
}

/* The caller frees it; NULL: the platform is not known.  @lasting: the answer may be kept. */
static char *support_key_of(cl_platform_id platform, bool *lasting)
{
	char *identity = identity_platform(platform, lasting);
	char *key = identity ? text_create("takes %d, %s", REVISION, identity) : NULL;

	free(identity);
	*lasting &= key != NULL;
	return key;
}

static bool support_kept(const char *key, struct takes *t)
{
	char line[PROBE_LINE_SIZE];
	bool is_recent;

	return result_cache_get_recent(key, line, sizeof(line), &is_recent) &&
	       support_parse(line, t) && (t->platform || is_recent);
}

static void support_keep(const char *key, const struct takes *t)
{
	char line[PROBE_LINE_SIZE];

	if (support_format(t, line, sizeof(line)))
		result_cache_set(key, line);
}

/* A kept answer; nothing is asked. */
static bool support_recall(cl_platform_id platform, struct takes *t)
{
	bool lasting;
	char *key = support_key_of(platform, &lasting);
	bool known = lasting && support_kept(key, t);

	free(key);
	return known;
}

/*
 * A probe has its parent's limits and filters of system calls, and may fail for them: that is for
 * processes with the same limits, and as many filters.
 */
static char *key_of_limits(const char *key)
{
	static const int kinds[] = { RLIMIT_AS,	   RLIMIT_DATA,	   RLIMIT_STACK, RLIMIT_NOFILE,
				     RLIMIT_NPROC, RLIMIT_MEMLOCK, RLIMIT_CPU,	 RLIMIT_FSIZE };
	char text[LIMITS_SIZE] = "";
	struct rlimit limit;
	int used = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!getrlimit(kinds[i], &limit))
			used += snprintf(text + used, sizeof(text) - (size_t)used, "%llx ",
					 (unsigned long long)limit.rlim_cur);
	return text_create("%slimits, %ld filters, %s", text, sandbox_filters(), key);
}

/* A driver that a probe hangs or crashes with is left alone for a while. */
static bool support_unanswered(const char *key)
{
	char *limited = key_of_limits(key), line[PROBE_LINE_SIZE];
	bool is_recent, known;

	known = limited && result_cache_get_recent(limited, line, sizeof(line), &is_recent);
	free(limited);
	if (!known || !is_recent || strncmp(line, NO_ANSWER, strlen(NO_ANSWER)))
		return false;
	log_debug("the platform's extension names are not reported for an hour: %s",
		  line + strlen(NO_ANSWER));
	return true;
}

static void support_keep_unanswered(const char *key, const char *why)
{
	char *line = text_create(NO_ANSWER "%s", why), *limited = key_of_limits(key);

	if (line && limited)
		result_cache_set(limited, line);
	free(limited);
	free(line);
}

/* A probe is told by a name of fixed length which platform is meant. */
static void name_of_key(const char *key, char name[PROBE_KEY_SIZE])
{
	snprintf(name, PROBE_KEY_SIZE, "%016llx", identity_hash(key));
}

static bool is_name_of(const char *key, const char *wanted)
{
	char name[PROBE_KEY_SIZE];

	name_of_key(key, name);
	return !strcmp(name, wanted);
}

/* A hung driver is not left hanging for ever: SIGALRM ends the probe. */
static void probe_limit(cl_platform_id platform)
{
	unsigned int limit = PROBE_LIMIT;
	cl_device_id *devices;
	cl_uint count;

	alarm(limit);
	devices = devices_of(platform, &count);
	for (cl_uint i = 0; devices && i < count; i++) {
		cl_device_exec_capabilities can = 0;

		next.clGetDeviceInfo(devices[i], CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(can),
				     &can, NULL);
		if (!(can & CL_EXEC_NATIVE_KERNEL))
			limit = PROBE_COMPILE_LIMIT;
	}
	free(devices);
	alarm(limit);
}

cl_int CL_API_CALL support_probe(cl_platform_id platform, const char *wanted, char *answer,
				 size_t size)
{
	bool lasting, is_wanted;
	char *key = support_key_of(platform, &lasting);
	struct takes t = { .count = 0 };

	is_wanted = key && is_name_of(key, wanted);
	if (is_wanted) {
		probe_limit(platform);
		if (support_test(platform, &t) && lasting)
			support_keep(key, &t);
	}
	free(key);
	if (!is_wanted)
		return CL_INVALID_PLATFORM;
	return support_format(&t, answer, size) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

static bool support_ask(const char *key, bool lasting, struct takes *t)
{
	char name[PROBE_KEY_SIZE], line[PROBE_LINE_SIZE];
	enum probe_end end;

	name_of_key(key, name);
	if (!lasting)
		log_debug("the driver's library is unknown: each process tests the platform again");
	end = probe_run(name, line);
	if (end == PROBE_ANSWERED && support_parse(line, t))
		return true;
	if (lasting && support_kept(key, t)) /* at the last moment */
		return true;
	log_debug(
		"no probe process answers, so the platform's extension names are not reported: %s",
		line);
	if (lasting && end == PROBE_FAILED)
		support_keep_unanswered(key, line);
	return false;
}

/* The answer must do without a file, a thread or a process. */
static bool is_restricted(void)
{
	return config_probe() == PROBE_DEFAULT && sandbox_is_entered();
}

/* @key: NULL for a platform that is not known. */
static bool support_find_by_key(cl_platform_id platform, const char *key, bool lasting,
				struct takes *t)
{
	const bool here = config_probe() == PROBE_HERE;

	if (!key && !here)
		return false;
	if (lasting && support_kept(key, t))
		return true;
	if (identity_is_privileged())
		return false;
	if (!here)
		return !(lasting && support_unanswered(key)) && support_ask(key, lasting, t);
	if (support_test(platform, t) && lasting)
		support_keep(key, t);
	return true;
}

static bool support_find(cl_platform_id platform, struct takes *t)
{
	bool lasting, found;
	char *key;

	if (config_probe() == PROBE_OFF || is_restricted())
		return false;
	key = support_key_of(platform, &lasting);
	found = support_find_by_key(platform, key, lasting, t);
	free(key);
	return found;
}

static struct asked *asked_find(cl_platform_id platform) REQUIRES(asked_lock)
{
	struct asked *a = asked;

	while (a && a->platform != platform)
		a = a->next;
	return a;
}

static struct asked *asked_add(cl_platform_id platform) REQUIRES(asked_lock)
{
	struct asked *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->platform = platform;
	a->next = asked;
	asked = a;
	return a;
}

/* The record of a platform; a new one is the caller's to answer. */
static struct asked *asked_begin(cl_platform_id platform, bool *is_new) REQUIRES(asked_lock)
{
	struct asked *a = asked_find(platform);

	*is_new = !a || a->state == LOOKED;
	if (!a)
		a = asked_add(platform);
	if (a && *is_new)
		a->state = ASKING;
	return a;
}

static void asked_end(struct asked *a, bool answered, const struct takes *t)
{
	lock_acquire(&asked_lock);
	a->state = answered ? ANSWERED : UNANSWERED;
	a->takes = *t;
	pthread_cond_broadcast(&asked_changed);
	lock_release(&asked_lock);
}

/*
 * One thread asks, the others wait for it: for as long as it waits for a probe.  A handler of fork()
 * does not: it has no answer this time.
 */
static bool support_get(cl_platform_id platform, struct takes *t)
{
	bool is_new, answered = false;
	struct asked *a;

	lock_acquire(&asked_lock);
	a = asked_begin(platform, &is_new);
	while (a && !is_new && a->state == ASKING && !lock_wait(&asked_lock, &asked_changed, NULL))
		;
	if (a && !is_new) {
		answered = a->state == ANSWERED;
		*t = a->takes;
	}
	lock_release(&asked_lock);
	if (!a || !is_new)
		return answered;
	memset(t, 0, sizeof(*t));
	answered = support_find(platform, t);
	asked_end(a, answered, t);
	return answered;
}

/* Threads that do this at once find the same. */
void support_prepare(cl_platform_id platform)
{
	struct asked *a;
	struct takes t;
	bool is_known;
	THREAD_NO_CANCEL();

	lock_acquire(&asked_lock);
	is_known = asked_find(platform);
	lock_release(&asked_lock);
	if (is_known || config_probe() == PROBE_HERE || sandbox_is_entered())
		return;
	is_known = support_recall(platform, &t);
	lock_acquire(&asked_lock);
	a = asked_find(platform) ? NULL : asked_add(platform);
	if (a && is_known) {
		a->state = ANSWERED;
		a->takes = t;
	}
	lock_release(&asked_lock);
}

/* What this process has found out itself, by a device query or an import. */
static unsigned int support_found(cl_platform_id platform)
{
	struct handle_cursor cursor = { 0 };
	const struct device *d;
	unsigned int takes = 0;

	while ((d = device_next(&cursor)))
		if (d->platform == platform)
			takes |= support_of_record(d);
	return takes;
}

unsigned int support_of_platform(cl_platform_id platform)
{
	struct takes t;
	THREAD_NO_CANCEL();

	return support_get(platform, &t) ? t.platform : support_found(platform);
}

bool support_nothing(cl_platform_id platform)
{
	const struct asked *a;
	struct takes t;
	bool known;
	THREAD_NO_CANCEL();

	if (config_probe() == PROBE_HERE)
		return !support_of_platform(platform);
	lock_acquire(&asked_lock);
	a = asked_find(platform);
	known = a && a->state == ANSWERED;
	if (known)
		t = a->takes;
	lock_release(&asked_lock);
	if (!known && !is_restricted())
		known = support_recall(platform, &t);
	return known && !t.platform;
}

/* What a probe found out about a device, which it knows by its number. */
static unsigned int support_of_number(cl_device_id id)
{
	cl_device_id root = device_root(id), *devices;
	cl_platform_id platform;
	unsigned int takes = 0;
	struct takes t;
	cl_uint count;

	if (next.clGetDeviceInfo(root, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL) ||
	    !support_get(platform, &t))
		return 0;
	devices = devices_of(platform, &count);
	for (cl_uint i = 0; devices && i < count && i < t.count; i++)
		if (devices[i] == root)
			takes = t.device[i];
	free(devices);
	return takes;
}

unsigned int support_of_device(cl_device_id id)
{
	THREAD_NO_CANCEL();
	const struct device *device = device_known(id);

	if (!device && is_restricted())
		return support_of_number(id);
	device = device_get_quick(id);
	if (device)
		return support_of_record(device);
	if (config_probe() == PROBE_HERE)
		return support_of_record(device_get(id));
	return support_of_number(id);
}
