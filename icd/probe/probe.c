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

#include "icd/place.h"
#include "icd/preload.h"
#include "icd/probe/between.h"
#include "icd/probe/interface.h"
#include "icd/probe/job.h"
#include "icd/start.h"
#include "icd/text.h"
#include "util/log.h"

struct probe {
	struct job job;
	char key[PROBE_KEY_SIZE], request[PROBE_REQUEST_SIZE], program[2 * PATH_MAX],
		layers[2 * PATH_MAX + 16];
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
	struct probe *p = (struct probe *)job;

	if (posix_spawn_file_actions_init(&p->between.actions)) {
		p->between.error = ENOMEM;
		return;
	}
	posix_spawnattr_init(&p->between.attr);
	p->between.program = p->program;
	p->between.argv[0] = p->program;
	p->between.argv[1] = p->key;
	p->between.argv[2] = *p->request ? p->request : NULL;
	if (!probe_create_environment(p) || !probe_create_attributes(p))
		p->between.error = ENOMEM;
	else if (probe_find(p))
		between_run(&p->between);
	posix_spawnattr_destroy(&p->between.attr);
	posix_spawn_file_actions_destroy(&p->between.actions);
	free(p->between.env);
	free(p->preload);
}

/* The reason for a missing answer. */
static enum probe_end probe_judge(const struct probe *p, char *why, size_t size)
{
	int status = p->between.status,
	    signal = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (p->between.error || !p->between.pid || status < 0) {
		snprintf(why, size, "climport-probe cannot be run: %s",
			 log_strerror(p->between.error ? p->between.error : ECHILD));
		return PROBE_NOT_MADE;
	}
	if (signal == SIGALRM) { /* the probe's own limit: tools/probe.c, and some proofs */
		snprintf(why, size, "climport-probe does not answer in time");
		return PROBE_HANGS;
	}
	if (signal)
		snprintf(why, size, "climport-probe was ended by signal %d", signal);
	else
		snprintf(why, size, "climport-probe ended with status %d", WEXITSTATUS(status));
	if (probe_status_is_lost(status))
		return PROBE_LOST;
	return !signal && WEXITSTATUS(status) == PROBE_STATUS_NO_PLATFORM ? PROBE_NO_PLATFORM
									  : PROBE_FAILED;
}

static struct probe *probe_create(const char *key, const char *request, size_t size)
{
	struct probe *p = calloc(1, sizeof(*p) + size);

	if (!p)
		return NULL;
	p->job.run = probe_job;
	p->between.status = -1;
	p->between.text = p->text;
	p->between.size = size;
	p->between.is_line = request && strcmp(request, PROBE_WITH_IMAGES) != 0;
	snprintf(p->key, sizeof(p->key), "%s", key);
	snprintf(p->request, sizeof(p->request), "%s", request ? request : "");
	return p;
}

enum probe_end probe_run(const char *key, const char *request, unsigned int patience_ms, char *text,
			 size_t size)
{
	int saved = errno;
	struct probe *p = probe_create(key, request, size);
	enum probe_end end = PROBE_NOT_MADE;
	enum job_end job;

	snprintf(text, size, "there is no memory or no thread for climport-probe");
	if (!p) {
		errno = saved;
		return PROBE_NOT_MADE;
	}
	job = job_run(&p->job, patience_ms);
	if (job == JOB_ENDED && atomic_load(&p->between.answered)) {
		memcpy(text, p->text, size);
		end = PROBE_ANSWERED;
	} else if (job == JOB_ABANDONED) {
		end = atomic_load(&p->between.started) ? PROBE_HANGS : PROBE_LOST;
		snprintf(text, size, "climport-probe does not %s in %u seconds",
			 end == PROBE_HANGS ? "answer" : "start", patience_ms / 1000);
	} else if (job == JOB_ENDED) {
		end = probe_judge(p, text, size);
	}
	job_put(&p->job);
	errno = saved;
	return end;
}
