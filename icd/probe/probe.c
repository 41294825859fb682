/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "icd/place.h"
#include "icd/probe/between.h"
#include "icd/probe/identity.h"
#include "icd/probe/interface.h"
#include "icd/start.h"
#include "util/log.h"

struct probe {
	char key[20], program[PATH_MAX], loader[PATH_MAX], driver[PATH_MAX],
		layers[2 * PATH_MAX + 16];
	struct between between;
};

static bool probe_drops_variable(const char *variable)
{
	return !strncmp(variable, "OPENCL_LAYERS=", 14) ||
	       !strncmp(variable, "CLIMPORT_PROBE=", 15) || start_is_watcher(variable);
}

/*
 * The environment, without the layers above and without libraries that watch the caller, and with the order to test
 * in the process.
 */
static bool probe_create_environment(struct probe *p)
{
	static char here[] = "CLIMPORT_PROBE=here";
	size_t count = 0, used = 0;

	while (environ && environ[count])
		count++;
	p->between.env = calloc(count + 3, sizeof(*p->between.env));
	if (!p->between.env)
		return false;
	for (size_t i = 0; i < count && environ[i]; i++)
		if (!probe_drops_variable(environ[i]))
			p->between.env[used++] = environ[i];
	snprintf(p->layers, sizeof(p->layers), "OPENCL_LAYERS=%s%s", place_layers_below(),
		 place_of_layer());
	p->between.env[used++] = p->layers;
	p->between.env[used] = here;
	return true;
}

/* Nothing but the file; no terminal, no signals. */
static bool probe_create_attributes(struct probe *p)
{
	sigset_t all, none;
	bool ready;

	sigfillset(&all);
	sigemptyset(&none);
	ready = !posix_spawn_file_actions_adddup2(&p->between.actions, BETWEEN_FILE, PROBE_FD);
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

static void probe_run(struct probe *p)
{
	if (posix_spawn_file_actions_init(&p->between.actions)) {
		p->between.error = ENOMEM;
		return;
	}
	posix_spawnattr_init(&p->between.attr);
	if (!probe_create_environment(p) || !probe_create_attributes(p))
		p->between.error = ENOMEM;
	else
		between_run(&p->between);
	posix_spawnattr_destroy(&p->between.attr);
	posix_spawn_file_actions_destroy(&p->between.actions);
	free(p->between.env);
}

static void probe_explain(const struct between *b, char *why, size_t size)
{
	if (b->error || !b->pid || b->status < 0)
		snprintf(why, size, "climport-probe cannot be run: %s",
			 log_strerror(b->error ? b->error : ECHILD));
	else if (WIFSIGNALED(b->status))
		snprintf(why, size, "climport-probe was ended by signal %d", WTERMSIG(b->status));
	else if (b->status)
		snprintf(why, size, "climport-probe ended with status %d", WEXITSTATUS(b->status));
	else
		snprintf(why, size, "climport-probe answers nothing");
}

size_t probe_ask(cl_platform_id platform, bool with_images, void *answer, size_t size, char *why,
		 size_t why_size)
{
	static char images[] = PROBE_WITH_IMAGES;
	struct probe *p = calloc(1, sizeof(*p));
	unsigned long long key;
	bool has_library;
	size_t used = 0;

	snprintf(why, why_size, "no process may be started to test the driver");
	if (p && !getauxval(AT_SECURE) && identity_platform(platform, &key, &has_library) &&
	    place_of_probe(p->program, sizeof(p->program))) {
		snprintf(p->key, sizeof(p->key), "%016llx", key);
		strcpy(p->loader, place_of_loader());
		identity_driver(platform, p->driver, sizeof(p->driver));
		p->between.program = p->program;
		p->between.argv[0] = p->program;
		p->between.argv[1] = p->loader;
		p->between.argv[2] = p->driver;
		p->between.argv[3] = p->key;
		p->between.argv[4] = with_images ? images : NULL;
		p->between.answer = answer;
		p->between.size = size;
		p->between.status = -1;
		probe_run(p);
		used = p->between.used;
		if (!used)
			probe_explain(&p->between, why, why_size);
	}
	free(p);
	return used;
}
