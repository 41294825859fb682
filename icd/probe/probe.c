/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "icd/config.h"
#include "icd/place.h"
#include "icd/preload.h"
#include "icd/probe/between.h"
#include "icd/probe/interface.h"
#include "icd/probe/job.h"
#include "icd/probe/identity.h"
#include "icd/start.h"
#include "icd/text.h"
#include "util/log.h"
#include "util/restricted.h"

#define KEY_SIZE 34

struct probe {
	struct job job;
	char key[KEY_SIZE], program[2 * PATH_MAX], layers[2 * PATH_MAX + 16];
	bool with_images;
	char *preload; /* NULL: no library is preloaded */
	struct between between;
	char text[]; /* the answer */
};

/* In the build's folders, or installed. */
static bool probe_find_beside(struct probe *p, const char *layer)
{
	static const char *const places[] = { "../tools/climport-probe",
					      LIBEXECDIR_FROM_LAYER "/climport/climport-probe" };
	const char *end = strrchr(layer, '/');

	for (int i = 0; end && i < 2; i++) {
		snprintf(p->program, sizeof(p->program), "%.*s/%s", (int)(end - layer), layer,
			 places[i]);
		if (!access(p->program, X_OK))
			return true;
	}
	return false;
}

/* The name of the layer may be a link. */
static bool probe_find_by_link(struct probe *p)
{
	char *layer = realpath(place_of_layer(), NULL);
	bool found = layer && probe_find_beside(p, layer);

	free(layer);
	return found;
}

/* The program gets the caller's rights, so a file of a foreign user is not run. */
static bool probe_find(struct probe *p)
{
	if (!place_is_same() || (!probe_find_beside(p, place_of_layer()) && !probe_find_by_link(p)))
		p->between.error = ENOENT;
	else if (!place_is_as_safe(p->program))
		p->between.error = EPERM;
	return !p->between.error;
}

static bool probe_drops_variable(const char *variable)
{
	return !strncmp(variable, "OPENCL_LAYERS=", 14) ||
	       !strncmp(variable, "CLIMPORT_PROBE=", 15) || !strncmp(variable, "LD_PRELOAD=", 11);
}

/* False: no memory. */
static bool probe_create_preload(struct probe *p)
{
	char *libraries = preload_for_probe();
	const bool is_empty = libraries && !*libraries;

	if (libraries && !is_empty)
		p->preload = text_create("LD_PRELOAD=%s", libraries);
	free(libraries);
	return is_empty || p->preload;
}

/*
 * The environment of the caller's drivers (start.h), without the layers above and without libraries
 * that watch the caller (preload.h), and with the order to test in the process.
 */
static bool probe_create_environment(struct probe *p)
{
	static char here[] = "CLIMPORT_PROBE=here";
	char **given = start_environment();
	size_t count = 0, used = 0;

	while (given[count])
		count++;
	if (!probe_create_preload(p))
		return false;
	p->between.env = calloc(count + 4, sizeof(*p->between.env));
	if (!p->between.env)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!probe_drops_variable(given[i]))
			p->between.env[used++] = given[i];
	snprintf(p->layers, sizeof(p->layers), "OPENCL_LAYERS=%s%s", place_layers_below(),
		 place_of_layer());
	p->between.env[used++] = p->layers;
	if (p->preload)
		p->between.env[used++] = p->preload;
	p->between.env[used] = here;
	return true;
}

/* Nothing but the pipe; no terminal, no signals. */
static bool probe_create_attributes(struct probe *p)
{
	sigset_t all, none;
	bool ready;

	sigfillset(&all);
	sigemptyset(&none);
	ready = !posix_spawn_file_actions_adddup2(&p->between.actions, BETWEEN_PIPE, PROBE_FD);
	for (int fd = 0; fd < PROBE_FD; fd++)
		ready = ready && !posix_spawn_file_actions_addopen(&p->between.actions, fd,
								   "/dev/null", O_RDWR, 0);
	return ready &&
	       !posix_spawn_file_actions_addclosefrom_np(&p->between.actions, PROBE_FD + 1) &&
	       !posix_spawnattr_setsigdefault(&p->between.attr, &all) &&
	       !posix_spawnattr_setsigmask(&p->between.attr, &none) &&
	       !posix_spawnattr_setflags(&p->between.attr, POSIX_SPAWN_SETSIGDEF |
								   POSIX_SPAWN_SETSIGMASK |
								   POSIX_SPAWN_SETSID);
}

static void probe_job(struct job *job)
{
	static char images[] = PROBE_WITH_IMAGES;
	struct probe *p = (struct probe *)job;

	if (posix_spawn_file_actions_init(&p->between.actions)) {
		p->between.error = ENOMEM;
		return;
	}
	posix_spawnattr_init(&p->between.attr);
	p->between.program = p->program;
	p->between.argv[0] = p->program;
	p->between.argv[1] = p->key;
	p->between.argv[2] = p->with_images ? images : NULL;
	if (!probe_create_environment(p) || !probe_create_attributes(p))
		p->between.error = ENOMEM;
	else if (probe_find(p))
		between_run(&p->between);
	posix_spawnattr_destroy(&p->between.attr);
	posix_spawn_file_actions_destroy(&p->between.actions);
	free(p->between.env);
	free(p->preload);
}

/* The environment's part of keys, and a hash.  False: the platform is unknown. */
static bool probe_get_key(cl_platform_id platform, char key[KEY_SIZE])
{
	bool lasting;
	char *identity = identity_platform(platform, &lasting);

	if (!identity)
		return false;
	snprintf(key, KEY_SIZE, "%016llx.%016llx", identity_environment(), text_hash(identity));
	free(identity);
	return true;
}

bool probe_is_platform(cl_platform_id platform, const char *key)
{
	char own[KEY_SIZE];

	identity_set_environment(strtoull(key, NULL, 16));
	return probe_get_key(platform, own) && !strcmp(own, key);
}

/* A filter of system calls may kill the program for a new process. */
static bool probe_may_start(void)
{
	const enum config_probe asked = config_probe();

	return (asked == PROBE_PROCESS || (asked == PROBE_DEFAULT && !restricted_is_entered())) &&
	       !identity_is_privileged();
}

static void probe_explain(const struct probe *p, char *why, size_t size)
{
	const int status = p->between.status;

	if (p->between.error || !p->between.pid || status < 0)
		snprintf(why, size, "climport-probe cannot be run: %s",
			 log_strerror(p->between.error ? p->between.error : ECHILD));
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) /* its own limit */
		snprintf(why, size, "climport-probe does not answer in time");
	else if (WIFSIGNALED(status))
		snprintf(why, size, "climport-probe was ended by signal %d", WTERMSIG(status));
	else
		snprintf(why, size, "climport-probe ended with status %d", WEXITSTATUS(status));
}

static struct probe *probe_create(const char *key, bool with_images, size_t size)
{
	struct probe *p = calloc(1, sizeof(*p) + size);

	if (!p)
		return NULL;
	p->job.run = probe_job;
	p->between.status = -1;
	p->between.text = p->text;
	p->between.size = size;
	p->with_images = with_images;
	snprintf(p->key, sizeof(p->key), "%s", key);
	return p;
}

static bool probe_run(struct probe *p, unsigned int patience_ms, char *text, size_t size)
{
	const enum job_end end = job_run(&p->job, patience_ms);
	const bool has_answered = end == JOB_ENDED && atomic_load(&p->between.answered);

	if (has_answered)
		memcpy(text, p->text, size);
	else if (end == JOB_ENDED)
		probe_explain(p, text, size);
	else if (end == JOB_ABANDONED)
		snprintf(text, size, "climport-probe does not answer in %u seconds",
			 patience_ms / 1000);
	job_put(&p->job);
	return has_answered;
}

bool probe_ask(cl_platform_id platform, bool with_images, unsigned int patience_ms, char *text,
	       size_t size)
{
	const int saved = errno;
	char key[KEY_SIZE];
	struct probe *p;
	bool has_answered;

	snprintf(text, size, "no process may be started to test the driver");
	if (!probe_may_start() || !probe_get_key(platform, key))
		return false;
	snprintf(text, size, "there is no memory or no thread for climport-probe");
	p = probe_create(key, with_images, size);
	has_answered = p && probe_run(p, patience_ms, text, size);
	errno = saved;
	return has_answered;
}
