/* SPDX-License-Identifier: Apache-2.0 */
/* Parts: both sides of a measurement in a process of its own. */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "part.h"

static const struct bench_part {
	const char *name;
	void (*run)(struct bench *b);
	const char *set; /* NULL, or NAME=VALUE for the environment */
} bench_parts[] = {
	{ "queries", bench_queries_part, NULL },
	/* The layer's advice to programs that import nothing is not for the user of bench. */
	{ "query", bench_query_part, "CLIMPORT_LOG=off" },
};

static FILE *bench_part_numbers;

void bench_part_print(double number)
{
	fprintf(bench_part_numbers, "%.9g\n", number);
}

void bench_part_print_figure(const struct bench_figure *figure)
{
	bench_part_print(figure->value);
	bench_part_print(figure->low);
	bench_part_print(figure->high);
	bench_part_print(figure->runs);
}

struct bench_figure bench_part_figure(const double numbers[BENCH_FIGURE_NUMBERS])
{
	return (struct bench_figure){ numbers[0], numbers[1], numbers[2],
				      (unsigned int)numbers[3] };
}

/* Numbers go where the first process reads; what the table would say goes to standard error. */
static void bench_part_divert(void)
{
	bench_part_numbers = part_divert();
	if (!bench_part_numbers)
		bench_fatal("no descriptor for a part's numbers: %m");
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
	part->run(b);
	return ferror(bench_part_numbers) | fclose(bench_part_numbers) ? 1 : 0;
}

/* The signals of @numbers are taken out of @signals. */
static void bench_part_spare(sigset_t *signals, const int *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sigdelset(signals, numbers[i]);
}

const sigset_t *bench_part_ends(void)
{
	static const int harmless[] = { SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN,
					SIGTTOU, SIGURG,  SIGWINCH };
	static sigset_t ends;

	sigfillset(&ends);
	bench_part_spare(&ends, harmless, sizeof(harmless) / sizeof(harmless[0]));
	return &ends;
}

/* A driver that is at fault, or the lack of memory, ends a process by these. */
static const sigset_t *bench_part_stops(void)
{
	static const int faults[] = { SIGABRT, SIGBUS,	SIGFPE, SIGILL,
				      SIGKILL, SIGSEGV, SIGSYS, SIGTRAP };
	static sigset_t stops;

	stops = *bench_part_ends();
	bench_part_spare(&stops, faults, sizeof(faults) / sizeof(faults[0]));
	return &stops;
}

/* The very device that this process measures.  A part which starts a part was told the device. */
static void bench_part_device(struct bench *b, char platform[256], char device[256], size_t *size)
{
	const struct bench_options *o = b->options;

	snprintf(platform, 256, "%s", o->platform ? o->platform : "");
	snprintf(device, 256, "%s", o->device ? o->device : "0");
	*size = o->size;
	if (!b->platform)
		return;
	clGetPlatformInfo(b->platform, CL_PLATFORM_NAME, 256, platform, NULL);
	snprintf(device, 256, "%d", b->number);
	*size = b->largest;
}

static pid_t bench_part_start(struct bench *b, const char *part, const char *set, int to)
{
	const char *quick = b->options->quick ? "--quick" : NULL;
	char platform[256], device[256], size[32];
	const char *const words[] = { "climport", "bench",	"--part", part,	      "--set",
				      set,	  "--platform", platform, "--device", device,
				      "--size",	  size,		quick,	  NULL };
	size_t largest;
	pid_t child;

	bench_part_device(b, platform, device, &largest);
	snprintf(size, sizeof(size), "%zu", largest);
	child = part_start(words, to);
	if (child < 0)
		bench_fatal("/proc/self/exe cannot be started: %m");
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

/*
 * Ends as the part has ended.  A terminal sends the signal to this process as well, where a thread
 * of the driver may be about to handle the signal.  A process that holds signals ends by exit().
 */
static void bench_part_stop(int number)
{
	signal(number, SIG_DFL);
	raise(number);
	exit(1);
}

static bool bench_part_was_stopped(int status)
{
	return WIFSIGNALED(status) && sigismember(bench_part_stops(), WTERMSIG(status)) == 1;
}

static void bench_part_fail(const char *part, const char *set, int status)
{
	char death[PART_DEATH_SIZE];

	part_describe(status, death);
	bench_fatal("the part %s, with %s, %s", part, set, death);
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
	status = part_wait(child);
	if (status < 0)
		bench_fatal("a part's end: %m");
	if (!status)
		return got;
	if (bench_part_was_stopped(status))
		bench_part_stop(WTERMSIG(status));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != BENCH_LEFT_OUT)
		bench_part_fail(part, set, status);
	bench_skip(part, set, "the reason is on standard error");
	return 0;
}
