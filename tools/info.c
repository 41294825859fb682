/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of climport info, which opens no driver. */
#include "info.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"
#include "terminal.h"

struct info_state {
	const struct info_options *options;
	struct drivers drivers;
	struct info_shared *shared;
	int died;      /* the last child; 0: it ended well */
	char how[320]; /* "died of SIGABRT (Aborted) in clGetDeviceIDs" */
};

static void info_wait(struct info_state *state, pid_t child)
{
	const char *step = state->shared->step;
	int status, number;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	state->died = status;
	number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (number)
		snprintf(state->how, sizeof(state->how), "died of SIG%s (%s) %s",
			 sigabbrev_np(number), sigdescr_np(number), step);
	else
		snprintf(state->how, sizeof(state->how), "exited with status %d %s",
			 WEXITSTATUS(status), step);
}

/* False, with a message: no process can be started. */
static bool info_run(struct info_state *state, size_t first, size_t count)
{
	struct info_shared *shared = state->shared;
	const size_t platforms = shared->platform_count, devices = shared->device_count;
	pid_t child;

	shared->ended = false;
	fflush(NULL);
	child = fork();
	if (!child) {
		info_part(state->options, &state->drivers, first, count, shared);
		exit(0);
	}
	if (child < 0) {
		terminal_line(stderr, 4, "climport: info: no process for the drivers: %s",
			      strerror(errno));
		return false;
	}
	info_wait(state, child);
	/* All results are there, but programs end as this process did. */
	if (shared->ended && state->died) {
		shared->failed = true;
		terminal_line(stderr, 4, "climport: info: the drivers' process %s", state->how);
	} else if (!shared->ended) { /* half of a platform is not printed */
		shared->platform_count = platforms;
		shared->device_count = devices;
	}
	return true;
}

static void info_note_death(const struct info_state *state, size_t number)
{
	snprintf(state->shared->why[number], DRIVER_WHY_SIZE,
		 "it %s, as in every program that uses it", state->how);
}

/* A driver by itself, after all together have died. */
static bool info_run_alone(struct info_state *state, size_t number)
{
	const struct driver *driver = &state->drivers.list[number];

	if (!*driver->library) {
		driver_check(driver->library, state->shared->why[number]);
		return true;
	}
	driver_choose(driver);
	if (!info_run(state, number, 1))
		return false;
	if (!state->shared->ended)
		info_note_death(state, number);
	return true;
}

static bool info_run_all(struct info_state *state)
{
	struct info_shared *shared = state->shared;
	const size_t count = state->drivers.count;
	bool started = info_run(state, 0, count);

	if (!started || shared->ended)
		return started;
	shared->failed = true;
	if (count == 1) {
		info_note_death(state, 0);
		return true;
	}
	snprintf(shared->alone, sizeof(shared->alone), "%s", state->how);
	for (size_t i = 0; i < count && started; i++)
		started = info_run_alone(state, i);
	return started;
}

static int info_parse(int argc, char **argv, struct info_options *options)
{
	struct arguments a = { "info", argc, argv, 1, NULL };

	while (option_next(&a)) {
		const char **value = option_is(&a, "--platform") ? &options->platform
				     : option_is(&a, "--device") ? &options->device
								 : NULL;

		if (option_is(&a, "--json"))
			options->print = info_json;
		else if (option_is(&a, "--env"))
			return fail_usage("info: --env stands alone");
		else if (!value)
			return fail_option(&a);
		else if (!(*value = option_value(&a)))
			return WRONG_USAGE;
	}
	return a.next == argc ? 0 : fail_usage("info takes no argument %s", argv[a.next]);
}

/* Why nothing was printed of any device, unless something was, or was said. */
static void info_explain(const struct info_state *state)
{
	const struct info_options *o = state->options;
	const char *place = state->drivers.place;

	if (state->shared->device_count || state->shared->failed)
		return;
	if (!state->shared->any && state->drivers.count)
		terminal_line(stderr, 4, "climport: info: no driver of %s gives a platform", place);
	else if (!state->shared->any)
		terminal_line(stderr, 4,
			      "climport: no OpenCL platform is installed, as %s names none; "
			      "Debian's package pocl-opencl-icd is one for any CPU",
			      place);
	else if (!o->platform && !o->device)
		terminal_line(stderr, 4, "climport: info: no platform has a device");
	else
		terminal_line(
			stderr, 4,
			"climport: info: no device matches%s%s%s%s; without options, it prints "
			"all",
			o->platform ? " --platform " : "", o->platform ? o->platform : "",
			o->device ? " --device " : "", o->device ? o->device : "");
}

int info_command(int argc, char **argv)
{
	struct info_options options = { .print = info_text };
	struct info_state state = { .options = &options };
	int status = info_parse(argc, argv, &options);
	size_t size;

	if (status)
		return status;
	drivers_find(&state.drivers);
	size = sizeof(*state.shared) + state.drivers.count * DRIVER_WHY_SIZE;
	state.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (state.shared == MAP_FAILED) {
		terminal_line(stderr, 4, "climport: info: %s", strerror(errno));
		return 1;
	}
	state.shared->failed |= !info_run_all(&state);
	options.print(state.shared, &state.drivers);
	info_explain(&state);
	status = state.shared->failed || !state.shared->device_count;
	drivers_free(&state.drivers);
	munmap(state.shared, size);
	return status;
}
