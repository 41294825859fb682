/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of climport info: it prints, and opens no driver. */
#include "info.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "terminal.h"

/* What a process of drivers sent. */
struct info_run {
	struct info_record *records;
	size_t count;
	bool ended;			 /* the last record is there */
	int died;			 /* or 0: the process ended well */
	char how[PART_DEATH_SIZE + 256]; /* "died of SIGABRT (Aborted) in clGetDeviceIDs" */
};

/* All of the command's results. */
struct info_state {
	const struct info_options *options;
	struct drivers drivers;
	struct info_driver *found;  /* for each driver */
	cl_uint platforms, devices; /* platforms there are, and devices that were printed */
	bool failed;
};

static void *info_grow(void *list, size_t count, size_t size)
{
	list = reallocarray(list, count, size);
	if (!list) {
		perror("climport: info");
		exit(1);
	}
	return list;
}

/* The pipe may stay open in what a driver has started, so the last record ends the reading. */
static void info_run_read(struct info_run *run, int from)
{
	FILE *file = fdopen(from, "r");
	struct info_record record;

	while (file && fread(&record, sizeof(record), 1, file) == 1) {
		run->records = info_grow(run->records, run->count + 1, sizeof(*run->records));
		run->records[run->count++] = record;
		if (record.kind == INFO_END)
			break;
	}
	if (file)
		fclose(file);
}

static const struct info_record *info_run_last(const struct info_run *run, enum info_kind kind)
{
	for (size_t i = run->count; i > 0; i--)
		if (run->records[i - 1].kind == kind)
			return &run->records[i - 1];
	return NULL;
}

static void info_run_judge(struct info_run *run, int status)
{
	const struct info_record *step = info_run_last(run, INFO_STEP);
	char death[PART_DEATH_SIZE];

	run->ended = info_run_last(run, INFO_END);
	run->died = status;
	part_describe(status, death);
	snprintf(run->how, sizeof(run->how), "%s%s%s", death, step ? " " : "",
		 step ? step->step : "");
}

/* Starts a process of drivers, and reads what it sends.  False, with a message: it cannot start. */
static bool info_run_start(const struct info_state *state, const struct driver *drivers,
			   size_t count, struct info_run *run)
{
	const struct info_options *o = state->options;
	const char **words = info_grow(NULL, count + 9, sizeof(*words));
	size_t used = 0;
	int ends[2];
	pid_t child;

	words[used++] = "climport";
	words[used++] = "info";
	words[used++] = "--part";
	if (o->platform) {
		words[used++] = "--platform";
		words[used++] = o->platform;
	}
	if (o->device) {
		words[used++] = "--device";
		words[used++] = o->device;
	}
	words[used++] = "--";
	for (size_t i = 0; i < count; i++)
		words[used++] = drivers[i].library;
	words[used] = NULL;
	*run = (struct info_run){ 0 };
	fflush(NULL);
	child = pipe2(ends, O_CLOEXEC) ? -1 : part_start(words, ends[1]);
	free(words);
	if (child < 0) {
		terminal_line(stderr, 4, "climport: info: /proc/self/exe cannot be started: %s",
			      strerror(errno));
		return false;
	}
	close(ends[1]);
	info_run_read(run, ends[0]);
	info_run_judge(run, part_wait(child));
	return true;
}

/* @first: the number of the first driver that the process was told of */
static void info_print_run(struct info_state *state, const struct info_run *run, size_t first)
{
	const struct info_form *form = state->options->form;
	bool in_platform = false;

	for (size_t i = 0; i < run->count; i++) {
		const struct info_record *r = &run->records[i];

		if (in_platform && (r->kind == INFO_PLATFORM || r->kind == INFO_END)) {
			form->platform_end();
			in_platform = false;
		}
		if (r->kind == INFO_DRIVER) {
			memcpy(state->found[first + r->driver.number].why, r->driver.why,
			       sizeof(r->driver.why));
		} else if (r->kind == INFO_PLATFORM) {
			form->platform(&r->platform);
			in_platform = true;
		} else if (r->kind == INFO_DEVICE) {
			form->device(&r->device);
			state->devices++;
		} else if (r->kind == INFO_END) {
			state->platforms += r->end.platforms;
			state->failed |= r->end.failed;
		}
	}
}

/* All results are there; programs end as this process did. */
static void info_print_ended(struct info_state *state, const struct info_run *run, size_t first)
{
	info_print_run(state, run, first);
	if (!run->died)
		return;
	state->failed = true;
	terminal_line(stderr, 4, "climport: info: the drivers' process %s", run->how);
}

static void info_note_death(struct info_state *state, size_t number, const struct info_run *run)
{
	snprintf(state->found[number].why, sizeof(state->found[number].why),
		 "it %s, as in every program that uses it", run->how);
}

/* A driver by itself, after all together have died. */
static bool info_print_alone(struct info_state *state, size_t number)
{
	const struct driver *driver = &state->drivers.list[number];
	struct info_run run;

	if (!*driver->library) {
		driver_check(driver->library, state->found[number].why);
		return true;
	}
	driver_choose(driver);
	if (!info_run_start(state, driver, 1, &run))
		return false;
	if (run.ended)
		info_print_ended(state, &run, number);
	else
		info_note_death(state, number, &run);
	free(run.records);
	return true;
}

static bool info_print(struct info_state *state)
{
	const struct info_form *form = state->options->form;
	const struct drivers *drivers = &state->drivers;
	struct info_run run;
	bool started = info_run_start(state, drivers->list, drivers->count, &run);

	if (!started)
		return false;
	form->begin();
	state->failed = !run.ended;
	if (run.ended) {
		info_print_ended(state, &run, 0);
	} else if (drivers->count == 1) {
		info_note_death(state, 0, &run);
	} else {
		form->alone(run.how);
		for (size_t i = 0; i < drivers->count && started; i++)
			started = info_print_alone(state, i);
	}
	free(run.records);
	form->drivers(state->found, drivers->count);
	form->end();
	return started;
}

static int info_parse(int argc, char **argv, struct info_options *options, int *next)
{
	struct arguments a = { "info", argc, argv, 1, NULL };

	while (option_next(&a)) {
		const char **value = option_is(&a, "--platform") ? &options->platform
				     : option_is(&a, "--device") ? &options->device
								 : NULL;

		if (option_is(&a, "--json"))
			options->form = &info_json;
		else if (option_is(&a, "--part"))
			options->part = true;
		else if (option_is(&a, "--env"))
			return fail_usage("info: --env stands alone");
		else if (!value)
			return fail_option(&a);
		else if (!(*value = option_value(&a)))
			return WRONG_USAGE;
	}
	*next = a.next;
	return a.next == argc || options->part
		       ? 0
		       : fail_usage("info takes no argument %s", argv[a.next]);
}

/* Why nothing was printed of any device; NULL: something was, or was said. */
static void info_explain(const struct info_state *state)
{
	const struct info_options *o = state->options;

	if (state->devices || state->failed)
		return;
	if (!state->platforms && state->drivers.count)
		terminal_line(stderr, 4, "climport: info: no driver of %s gives a platform",
			      state->drivers.place);
	else if (!state->platforms)
		terminal_line(stderr, 4,
			      "climport: no OpenCL platform is installed, as %s names none; "
			      "Debian's package pocl-opencl-icd is one for any CPU",
			      state->drivers.place);
	else
		terminal_line(stderr, 4, "climport: info: %s",
			      o->platform || o->device
				      ? "no device is the one that --platform and --device name"
				      : "no platform has a device");
}

static void info_free(struct info_state *state)
{
	for (size_t i = 0; i < state->drivers.count; i++) {
		free(state->drivers.list[i].file);
		free(state->drivers.list[i].library);
	}
	free(state->drivers.list);
	free(state->found);
}

int info_command(int argc, char **argv)
{
	struct info_options options = { .form = &info_text };
	struct info_state state = { .options = &options };
	int next = 1, status = info_parse(argc, argv, &options, &next);

	if (status)
		return status;
	if (options.part)
		return info_part(&options, argv + next);
	drivers_find(&state.drivers);
	state.found = info_grow(NULL, state.drivers.count + 1, sizeof(*state.found));
	for (size_t i = 0; i < state.drivers.count; i++)
		state.found[i] = (struct info_driver){ .driver = &state.drivers.list[i] };
	state.failed |= !info_print(&state);
	info_explain(&state);
	status = state.failed || !state.devices;
	info_free(&state);
	return status;
}
