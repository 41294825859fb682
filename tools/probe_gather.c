/* SPDX-License-Identifier: Apache-2.0 */
#include "probe_gather.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "icd/probe/interface.h"
#include "probe_worker.h"

#define GATHER_MAX 64	 /* parts */
#define GATHER_MANY 1024 /* threads: below this limit, drivers do not start at once */
#define GATHER_SLACK 13	 /* seconds to join the answers, and for the ends of workers */
#define GATHER_WORD_SIZE 16

struct part {
	struct worker worker;
	bool is_running;		/* no answer yet, and not ended */
	bool is_alone;			/* no other worker has lived at the same time */
	long started;			/* gather_clock() */
	char word[GATHER_WORD_SIZE];	/* the answer; "": none yet */
	char doubted[GATHER_WORD_SIZE]; /* ... beside other workers, if that is in doubt */
};

static struct {
	char *program, *key, *request;
	gather_say_fn *say;
	bool has_said;
	long started, longest; /* gather_clock(), and the most milliseconds for a part */
	unsigned int parts, running, at_once;
	struct part part[GATHER_MAX];
	struct worker other;		  /* of no part */
	struct worker *waiting;		  /* the last that has answered; NULL: none */
	char answer[GATHER_MESSAGE_SIZE]; /* of a worker alone */
} gather = { .parts = 1, .at_once = PROBE_AT_ONCE };

static long gather_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The milliseconds until the time for tests is over. */
static int gather_time_left(void)
{
	const long left = gather.started + GATHER_LIMIT * 1000L - gather_clock();

	return left > 0 ? (int)left : 0;
}

/* @what: a part, or PROBE_PARTS */
static bool gather_start_worker(struct worker *w, char *what)
{
	char *argv[] = { gather.program, gather.key, gather.request, what, NULL };

	return probe_worker_start(w, argv);
}

static bool gather_start_part(unsigned int number)
{
	struct part *p = &gather.part[number];
	char part[12];

	snprintf(part, sizeof(part), "%u", number);
	if (!gather_start_worker(&p->worker, part))
		return false;
	p->started = gather_clock();
	p->is_running = true;
	p->is_alone = gather.at_once == 1;
	gather.running++;
	return true;
}

/* The first part without an answer and without a worker; the number of parts: there is none. */
static unsigned int gather_next_part(void)
{
	unsigned int i = 0;

	while (i < gather.parts && (gather.part[i].is_running || *gather.part[i].word))
		i++;
	return i;
}

static void gather_kill(void)
{
	for (unsigned int i = 0; i < gather.parts; i++)
		if (gather.part[i].worker.pid)
			kill(gather.part[i].worker.pid, SIGKILL);
	gather_stop();
}

static void gather_set_parts(const char *number)
{
	const unsigned long parts = strtoul(number, NULL, 10);

	if (gather.parts == 1 && parts > 1 && parts <= GATHER_MAX)
		gather.parts = (unsigned int)parts;
}

/* A worker has ended without an answer. */
static void gather_judge(struct part *p)
{
	probe_worker_reap(&p->worker);
	snprintf(p->word, sizeof(p->word), "%s",
		 probe_status_is_lost(p->worker.status) ? PROBE_LOST_WORD : PROBE_DIED_WORD);
}

/*
 * Whether a worker may have lacked the threads or the memory that other workers had: many drivers abort
 * then.  The time of a driver that hangs is not spent twice.
 */
static bool gather_is_doubtful(const struct part *p)
{
	if (gather.parts == 1 || p->is_alone ||
	    (WIFSIGNALED(p->worker.status) && WTERMSIG(p->worker.status) == SIGALRM))
		return false;
	return !strcmp(p->word, PROBE_DIED_WORD) || strchr(p->word, PROBE_MOMENT);
}

/* To join the answers of all parts, a single worker is enough. */
static void gather_take_answer(struct part *p, const char *answer)
{
	snprintf(gather.answer, sizeof(gather.answer), "%s", answer);
	snprintf(p->word, sizeof(p->word), "%.*s", GATHER_WORD_SIZE - 1, answer);
	if (gather.waiting && gather.waiting != &p->worker)
		probe_worker_dismiss(gather.waiting);
	gather.waiting = &p->worker;
}

static void gather_note_time(const struct part *p)
{
	const long taken = gather_clock() - p->started;

	if (taken > gather.longest)
		gather.longest = taken;
}

/* Something has come from a running worker. */
static void gather_handle(struct part *p)
{
	char message[GATHER_MESSAGE_SIZE];
	const ssize_t n = probe_worker_receive(&p->worker, message, sizeof(message));

	if (n > 0 && *message == GATHER_NUMBER) {
		gather_set_parts(message + 1);
		return;
	}
	p->is_running = false;
	gather.running--;
	gather_note_time(p);
	if (n < 0)
		gather_judge(p);
	else
		gather_take_answer(p, message + 1);
	if (!gather_is_doubtful(p))
		return;
	snprintf(p->doubted, sizeof(p->doubted), "%s", p->word);
	*p->word = '\0';
	gather.at_once = 1;
}

/* Waits for a running worker, or for the end of a worker. */
static void gather_wait(void)
{
	struct pollfd ends[2 * GATHER_MAX];

	for (size_t i = 0; i < gather.parts; i++) {
		const struct part *p = &gather.part[i];

		ends[2 * i] = (struct pollfd){ p->is_running ? p->worker.socket : -1, POLLIN, 0 };
		ends[2 * i + 1] =
			(struct pollfd){ p->worker.pid ? p->worker.pidfd : -1, POLLIN, 0 };
	}
	if (poll(ends, 2 * (nfds_t)gather.parts, gather_time_left()) <= 0)
		return;
	for (size_t i = gather.parts; i-- > 0;) {
		struct part *p = &gather.part[i];

		if (!ends[2 * i].revents && !ends[2 * i + 1].revents)
			continue;
		if (p->is_running)
			gather_handle(p);
		else
			probe_worker_reap(&p->worker);
	}
}

/* Without an answer there is the doubtful one, if that is an answer of the moment. */
static const char *gather_word(const struct part *p)
{
	if (*p->word)
		return p->word;
	return strchr(p->doubted, PROBE_MOMENT) ? p->doubted : PROBE_LOST_WORD;
}

/* The request with the answers of all parts.  False: no room. */
static bool gather_join_words(char message[GATHER_MESSAGE_SIZE])
{
	const size_t size = GATHER_MESSAGE_SIZE;
	size_t used = (size_t)snprintf(message, size, "%s " PROBE_PARTS, gather.request);

	for (unsigned int i = 0; i < gather.parts && used < size; i++)
		used += (size_t)snprintf(message + used, size - used, " %s",
					 gather_word(&gather.part[i]));
	return used < size;
}

/* False: the worker ends, or has ended. */
static bool gather_ask(struct worker *w, const char *request, char *line)
{
	char answer[GATHER_MESSAGE_SIZE];

	if (send(w->socket, request, strlen(request), MSG_NOSIGNAL) < 0 ||
	    probe_worker_receive(w, answer, sizeof(answer)) < 0)
		return false;
	snprintf(line, GATHER_MESSAGE_SIZE, "%s", answer + 1);
	return true;
}

/* The worker that has answered last joins the answers, or else a worker without a part. */
static bool gather_join(char *line)
{
	static char joins[] = PROBE_PARTS;
	struct worker *other = &gather.other;
	char request[GATHER_MESSAGE_SIZE];

	if (!gather.waiting || !gather_join_words(request))
		return false;
	return gather_ask(gather.waiting, request, line) ||
	       (gather_start_worker(other, joins) && gather_ask(other, request, line));
}

/* Whether the tests that are left, one after the other, would take longer than the layer waits. */
static bool gather_is_slow(void)
{
	long left = 0;

	for (unsigned int i = 0; i < gather.parts; i++)
		left += !*gather.part[i].word;
	return gather_clock() - gather.started + left * gather.longest > PROBE_PARTS_PATIENCE_MS;
}

/* The layer need not wait for tests one after the other: first it gets what is known. */
static void gather_say_early(void)
{
	char line[GATHER_MESSAGE_SIZE];

	if (gather.has_said || !gather.waiting || !gather_is_slow())
		return;
	gather.has_said = true;
	if (gather_join(line))
		gather.say(line);
}

static void gather_make_alone(void)
{
	gather_say_early();
	gather_stop();
}

/* False: the system refuses a worker, also without other workers. */
static bool gather_start(void)
{
	unsigned int part;

	while (gather.running < gather.at_once && (part = gather_next_part()) < gather.parts) {
		const bool is_alone = gather.at_once == 1;

		if (is_alone)
			gather_make_alone();
		if (gather_start_part(part))
			continue;
		if (is_alone)
			return false;
		gather.at_once = 1;
	}
	return true;
}

/*
 * The time of all tests is over.  What a device did beside others counts now, though in doubt; a device that
 * is tested for the first time hangs.
 */
static void gather_give_up(void)
{
	for (unsigned int i = 0; i < gather.parts; i++) {
		struct part *p = &gather.part[i];
		const char *word = p->is_running ? PROBE_DIED_WORD : PROBE_LOST_WORD;

		if (p->is_running)
			probe_worker_end(&p->worker);
		p->is_running = false;
		if (!*p->word)
			snprintf(p->word, sizeof(p->word), "%s", *p->doubted ? p->doubted : word);
	}
	gather.running = 0;
}

/* False: no worker, or not every worker, can be started. */
static bool gather_run_workers(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NPROC, &limit) && limit.rlim_cur < GATHER_MANY)
		gather.at_once = 1;
	do {
		if (!gather_start())
			return false;
		gather_wait();
		if (!gather_time_left())
			gather_give_up();
	} while (gather.running || gather_next_part() < gather.parts);
	return true;
}

static bool gather_finish(char *line)
{
	if (gather.parts > 1)
		return gather_join(line);
	snprintf(line, GATHER_MESSAGE_SIZE, "%s", gather.answer);
	return *line;
}

int gather_answer(char *program, char *key, char *request, gather_say_fn *say, char *line)
{
	gather.started = gather_clock();
	alarm(GATHER_LIMIT + GATHER_SLACK);
	gather.say = say;
	gather.program = program;
	gather.key = key;
	gather.request = request;
	if (!gather_run_workers()) {
		gather_kill();
		return 1;
	}
	return gather_finish(line) ? 0 : -1;
}

void gather_stop(void)
{
	for (unsigned int i = 0; i < gather.parts; i++)
		if (gather.part[i].worker.pid)
			probe_worker_dismiss(&gather.part[i].worker);
	for (unsigned int i = 0; i < gather.parts; i++)
		probe_worker_reap(&gather.part[i].worker);
	if (gather.other.pid)
		probe_worker_dismiss(&gather.other);
	probe_worker_reap(&gather.other);
}

void gather_end(void)
{
	const int status = gather.part[0].worker.status;

	if (gather.waiting) /* the driver has survived the test of a part */
		_exit(PROBE_STATUS_LOST);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	_exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}
