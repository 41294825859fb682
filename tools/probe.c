/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport-probe KEY REQUEST: runs a proof on the platform with the key KEY, for a process that must
 * not (icd/probe/proof.h).  The answer, a line, goes to a pipe.  Workers (probe_gather.h) run the proof, as
 * climport-probe KEY REQUEST PART, or join the answers of all parts, as climport-probe KEY REQUEST parts.
 * Each ends within a minute, and all together do.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CL/cl.h>

#include "icd/probe/interface.h"
#include "probe_gather.h"

#define MAX_PLATFORMS 64
#define REQUEST_SIZE 1024
#define JOIN_LIMIT 10 /* seconds, to join the answers of all parts */

/* A platform with the key. */
struct candidate {
	cl_platform_id platform;
	probe_fn run;
	cl_uint parts;
};

static cl_uint probe_find_candidates(const char *key, const char *request,
				     struct candidate found[MAX_PLATFORMS])
{
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_uint count = 0, used = 0;

	if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count))
		return 0;
	for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++) {
		probe_fn run = (probe_fn)clGetExtensionFunctionAddressForPlatform(platforms[i],
										  PROBE_FUNCTION);
		probe_parts_fn parts = (probe_parts_fn)clGetExtensionFunctionAddressForPlatform(
			platforms[i], PROBE_PARTS_FUNCTION);
		const cl_uint number = run && parts ? parts(platforms[i], key, request) : 0;

		if (number)
			found[used++] = (struct candidate){ platforms[i], run, number };
	}
	return used;
}

/* Not divided: the first platform with an answer. */
static bool probe_run_whole(const struct candidate *c, cl_uint count, const char *key,
			    const char *request, char *line)
{
	for (cl_uint i = 0; i < count; i++)
		if (!c[i].run(c[i].platform, key, request, line, REQUEST_SIZE))
			return true;
	return false;
}

static bool probe_worker_send(char kind, const char *text)
{
	char message[GATHER_MESSAGE_SIZE];
	const int n = snprintf(message, sizeof(message), "%c%s", kind, text);

	return send(PROBE_FD, message, (size_t)n, MSG_NOSIGNAL) == n;
}

/* The answers of all parts, which the worker keeps.  A status. */
static int probe_worker_join(const struct candidate *c, const char *key)
{
	char request[GATHER_MESSAGE_SIZE], line[REQUEST_SIZE];
	ssize_t n;

	alarm(0); /* other workers have their own time */
	n = recv(PROBE_FD, request, sizeof(request) - 1, 0);
	if (n <= 0)
		return 0;
	alarm(JOIN_LIMIT);
	request[n] = '\0';
	/* The platform may have other parts now. */
	if (c->run(c->platform, key, request, line, sizeof(line)))
		return PROBE_STATUS_LOST;
	return !probe_worker_send(GATHER_ANSWER, line);
}

static int probe_worker_run_part(const struct candidate *c, const char *key, const char *request,
				 unsigned int part)
{
	char text[REQUEST_SIZE], line[REQUEST_SIZE];

	snprintf(text, sizeof(text), "%u", c->parts);
	if (!part && !probe_worker_send(GATHER_NUMBER, text))
		return 1;
	snprintf(text, sizeof(text), "%s " PROBE_PART " %u", request, part);
	if (c->run(c->platform, key, text, line, sizeof(line)))
		return PROBE_STATUS_LOST;
	if (!probe_worker_send(GATHER_ANSWER, line))
		return 1;
	return probe_worker_join(c, key);
}

static int probe_worker_main(const char *key, const char *request, const char *what)
{
	const unsigned int part = (unsigned int)strtoul(what, NULL, 10);
	struct candidate found[MAX_PLATFORMS];
	char line[REQUEST_SIZE];
	cl_uint count;

	alarm(GATHER_LIMIT);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* who gathers is gone */
	fcntl(PROBE_FD, F_SETFD, FD_CLOEXEC);
	count = probe_find_candidates(key, request, found);
	if (count && !strcmp(what, PROBE_PARTS))
		return probe_worker_join(found, key);
	if (count && (part || found->parts > 1))
		return probe_worker_run_part(found, key, request, part);
	if (!probe_run_whole(found, count, key, request, line))
		return PROBE_STATUS_NO_PLATFORM;
	return !probe_worker_send(GATHER_ANSWER, line);
}

static bool probe_has_answered; /* early */

/* To the layer, which reads a single line. */
static int probe_answer(const char *line)
{
	char text[GATHER_MESSAGE_SIZE + 1];
	int n = snprintf(text, sizeof(text), "%s\n", line);

	return probe_has_answered || write(PROBE_FD, text, (size_t)n) == n ? 0 : 1;
}

/* The tests go on, also if the program has gone. */
static void probe_answer_early(const char *line)
{
	char text[GATHER_MESSAGE_SIZE];

	snprintf(text, sizeof(text), "%c%.*s", PROBE_EARLY, GATHER_MESSAGE_SIZE - 2, line);
	signal(SIGPIPE, SIG_IGN);
	probe_answer(text);
	signal(SIGPIPE, SIG_DFL);
	probe_has_answered = true;
}

/* Without workers. */
static int probe_main_alone(const char *key, const char *request)
{
	struct candidate found[MAX_PLATFORMS];
	char line[REQUEST_SIZE];
	cl_uint count;

	alarm(GATHER_LIMIT);
	count = probe_find_candidates(key, request, found);
	return probe_run_whole(found, count, key, request, line) ? probe_answer(line)
								 : PROBE_STATUS_NO_PLATFORM;
}

static int probe_main(char *program, char *key, char *request)
{
	char line[GATHER_MESSAGE_SIZE];
	const int result = gather_answer(program, key, request, probe_answer_early, line);
	int status;

	if (result > 0)
		return probe_main_alone(key, request);
	/* The answer comes first: the layer need not wait for the ends of workers. */
	status = result ? 0 : probe_answer(line);
	gather_stop();
	if (result)
		gather_end();
	return status;
}

int main(int argc, char **argv)
{
	/* Drivers' handlers at exit have nothing to save. */
	if (argc == 4)
		_exit(probe_worker_main(argv[1], argv[2], argv[3]));
	_exit(argc == 3 ? probe_main(argv[0], argv[1], argv[2]) : 2);
}
