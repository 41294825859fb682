/* SPDX-License-Identifier: Apache-2.0 */
/* Parts: both sides of a measurement in a process of its own. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct bench_part {
	const char *name;
	void (*run)(struct bench *b);
	bool has_device; /* run() gets an open device */
	const char *set; /* NULL, or NAME=VALUE for the environment */
} bench_parts[] = {
	{ "once", bench_once_part, true, NULL },
	{ "launch", bench_launch_part, true, NULL },
	{ "threads", bench_threads_part, true, NULL },
	{ "threads_rm", bench_threads_part, true, "CLIMPORT_NVIDIA_BY=rm" },
	{ "threads_vulkan", bench_threads_part, true, "CLIMPORT_NVIDIA_BY=vulkan" },
	{ "first", bench_first_part, true, NULL },
	/* The layer's advice to programs that import nothing is not for the user of bench. */
	{ "query", bench_query_part, false, "CLIMPORT_LOG=off" },
};

static FILE *bench_part_numbers;

void bench_part_print(double number)
{
	fprintf(bench_part_numbers, "%.9g\n", number);
}

/* Numbers go where the first process reads; what the table would say goes to standard error. */
static void bench_part_divert(void)
{
	int fd = dup(STDOUT_FILENO);

	bench_part_numbers = fd < 0 ? NULL : fdopen(fd, "w");
	if (!bench_part_numbers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		bench_fatal("no descriptor for a part's numbers: %m");
}

static void bench_part_open(struct bench *b)
{
	bench_choose(b);
	bench_set_limits(b);
	bench_open(b);
}

int bench_part_command(struct bench *b)
{
	const size_t count = sizeof(bench_parts) / sizeof(bench_parts[0]);
	const struct bench_part *part = bench_parts;

	while (part < bench_parts + count && strcmp(part->name, b->options->part))
		part++;
	if (part == bench_parts + count)
		bench_fatal("there is no part %s", b->options->part);
	bench_part_divert();
	if (part->set)
		putenv((char *)part->set);
	if (part->has_device)
		bench_part_open(b);
	part->run(b);
	if (part->has_device)
		bench_close(b);
	return ferror(bench_part_numbers) | fclose(bench_part_numbers) ? 1 : 0;
}

/* Names the very device that this process measures. */
static pid_t bench_part_start(struct bench *b, const char *part, const char *set, int to)
{
	const char *quick = b->options->quick ? "--quick" : NULL;
	char platform[256] = "", device[16], size[32];
	const char *const words[] = { "climport", "bench",	"--part", part,	      "--set",
				      set,	  "--platform", platform, "--device", device,
				      "--size",	  size,		quick,	  NULL };
	posix_spawn_file_actions_t actions;
	pid_t child = -1;

	clGetPlatformInfo(b->platform, CL_PLATFORM_NAME, sizeof(platform), platform, NULL);
	snprintf(device, sizeof(device), "%d", b->number);
	snprintf(size, sizeof(size), "%zu", b->largest);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	errno = posix_spawn(&child, "/proc/self/exe", &actions, NULL, (char **)words, environ);
	if (errno)
		bench_fatal("/proc/self/exe cannot be started: %m");
	posix_spawn_file_actions_destroy(&actions);
	return child;
}

static size_t bench_part_read(int from, double *numbers, size_t count)
{
	FILE *file = fdopen(from, "r");
	size_t got = 0;

	if (!file)
		bench_fatal("a part's numbers cannot be read: %m");
	while (got < count && fscanf(file, "%lf", &numbers[got]) == 1)
		got++;
	while (fgetc(file) != EOF)
		;
	fclose(file);
	return got;
}

static int bench_part_wait(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

size_t bench_part_run(struct bench *b, const char *part, const char *set, double *numbers,
		      size_t count)
{
	int ends[2], status;
	size_t got;
	pid_t child;

	bench_progress("%s, %s", part, set);
	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC))
		bench_fatal("no pipe: %m");
	child = bench_part_start(b, part, set, ends[1]);
	close(ends[1]);
	got = bench_part_read(ends[0], numbers, count);
	status = bench_part_wait(child);
	if (!status)
		return got;
	if (status != BENCH_LEFT_OUT)
		bench_fatal("the part %s, with %s, failed", part, set);
	bench_skip(part, set, "the reason is on standard error");
	return 0;
}
