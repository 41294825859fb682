/* SPDX-License-Identifier: Apache-2.0 */
#include "probe_gather.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "icd/probe/interface.h"

#define GATHER_MAX 64	 /* parts */
#define GATHER_MANY 1024 /* threads: below this limit, drivers do not start at once */
#define GATHER_SLACK 3	 /* seconds for the end of a worker whose time is over */
#define GATHER_WORD_SIZE 16

struct worker {
	pid_t pid;		     /* 0: not started, or the end is known */
	int socket, pidfd;	     /* pidfd: negative without Linux 5.3 */
	bool is_running;	     /* no answer yet, and not ended */
	bool is_alone;		     /* no other worker has lived at the same time */
	int status;		     /* of the end */
	char word[GATHER_WORD_SIZE]; /* for the answers of all parts; "": no answer yet */
};

static struct {
	char *program, *key, *request;
	unsigned int parts, running, at_once;
	struct worker worker[GATHER_MAX + 1]; /* of the parts, and behind these of no part */
	struct worker *waiting;		      /* the last that has answered; NULL: none */
	char answer[GATHER_MESSAGE_SIZE];     /* of a worker alone */
} gather = { .parts = 1, .at_once = PROBE_AT_ONCE };

static bool gather_spawn(struct worker *w, char *part, int socket)
{
	char *argv[] = { gather.program, gather.key, gather.request, part, NULL };
	posix_spawn_file_actions_t actions;
	bool is_started;

	if (posix_spawn_file_actions_init(&actions))
		return false;
	is_started = !posix_spawn_file_actions_adddup2(&actions, socket, PROBE_FD) &&
		     !posix_spawn(&w->pid, "/proc/self/exe", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return is_started;
}

/* False: the system refuses. */
static bool gather_start_worker(struct worker *w, char *part)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	if (!gather_spawn(w, part, ends[1])) {
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	close(ends[1]);
	w->socket = ends[0];
	w->pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	alarm(GATHER_LIMIT + GATHER_SLACK);
	return true;
}

static bool gather_start_part(unsigned int number)
{
	struct worker *w = &gather.worker[number];
	char part[12];

	snprintf(part, sizeof(part), "%u", number);
	if (!gather_start_worker(w, part))
		return false;
	w->status = 0;
	w->is_running = true;
	w->is_alone = gather.at_once == 1;
	gather.running++;
	return true;
}

/* The first part without an answer and without a worker; the number of parts: there is none. */
static unsigned int gather_next_part(void)
{
	unsigned int i = 0;

	while (i < gather.parts && (gather.worker[i].is_running || *gather.worker[i].word))
		i++;
	return i;
}

/* False: the system refuses a worker, also without other workers. */
static bool gather_start(void)
{
	unsigned int part;

	while (gather.running < gather.at_once && (part = gather_next_part()) < gather.parts) {
		const bool is_alone = gather.at_once == 1;

		if (is_alone)
			gather_stop();
		if (gather_start_part(part))
			continue;
		if (is_alone)
			return false;
		gather.at_once = 1;
	}
	return true;
}

/* A worker that waits for a request ends. */
static void gather_dismiss(struct worker *w)
{
	close(w->socket);
	w->socket = -1;
}

static void gather_reap(struct worker *w)
{
	if (!w->pid)
		return;
	waitpid(w->pid, &w->status, 0);
	w->pid = 0;
	close(w->pidfd);
	gather_dismiss(w);
}

static void gather_kill(void)
{
	for (unsigned int i = 0; i <= GATHER_MAX; i++)
		if (gather.worker[i].pid)
			kill(gather.worker[i].pid, SIGKILL);
	gather_stop();
}

/*
 * The next message, or -1 if the worker has ended.  A process that the driver has started may have
 * the worker's socket for longer than the worker lives.
 */
static ssize_t gather_receive(struct worker *w, char message[GATHER_MESSAGE_SIZE])
{
	struct pollfd ends[] = { { .fd = w->socket, .events = POLLIN },
				 { .fd = w->pidfd, .events = POLLIN } };
	ssize_t n;

	while (poll(ends, 2, -1) < 0 && errno == EINTR)
		;
	n = recv(w->socket, message, GATHER_MESSAGE_SIZE - 1, MSG_DONTWAIT);
	if (n <= 0)
		return -1;
	message[n] = '\0';
	return n;
}

static void gather_set_parts(const char *number)
{
	const unsigned long parts = strtoul(number, NULL, 10);

	if (gather.parts == 1 && parts > 1 && parts <= GATHER_MAX)
		gather.parts = (unsigned int)parts;
}

/* A worker has ended without an answer. */
static void gather_judge(struct worker *w)
{
	gather_reap(w);
	snprintf(w->word, sizeof(w->word), "%s",
		 probe_status_is_lost(w->status) ? PROBE_LOST_WORD : PROBE_DIED_WORD);
}

/*
 * Whether a worker may have lacked the threads or the memory that other workers had: many drivers abort
 * then.  The time of a driver that hangs is not spent twice.
 */
static bool gather_is_doubtful(const struct worker *w)
{
	if (gather.parts == 1 || w->is_alone ||
	    (WIFSIGNALED(w->status) && WTERMSIG(w->status) == SIGALRM))
		return false;
	return !strcmp(w->word, PROBE_DIED_WORD) || strchr(w->word, PROBE_MOMENT);
}

/* To join the answers of all parts, a single worker is enough. */
static void gather_take_answer(struct worker *w, const char *answer)
{
	snprintf(gather.answer, sizeof(gather.answer), "%s", answer);
	snprintf(w->word, sizeof(w->word), "%.*s", GATHER_WORD_SIZE - 1, answer);
	if (gather.waiting && gather.waiting != w)
		gather_dismiss(gather.waiting);
	gather.waiting = w;
}

/* Something has come from a running worker. */
static void gather_handle(struct worker *w)
{
	char message[GATHER_MESSAGE_SIZE];
	const ssize_t n = gather_receive(w, message);

	if (n > 0 && *message == GATHER_NUMBER) {
		gather_set_parts(message + 1);
		return;
	}
	w->is_running = false;
	gather.running--;
	if (n < 0)
		gather_judge(w);
	else
		gather_take_answer(w, message + 1);
	if (!gather_is_doubtful(w))
		return;
	*w->word = '\0';
	gather.at_once = 1;
}

/* Waits for a running worker, or for the end of a worker. */
static void gather_wait(void)
{
	struct pollfd ends[2 * GATHER_MAX];

	for (size_t i = 0; i < gather.parts; i++) {
		const struct worker *w = &gather.worker[i];

		ends[2 * i] = (struct pollfd){ w->is_running ? w->socket : -1, POLLIN, 0 };
		ends[2 * i + 1] = (struct pollfd){ w->pid ? w->pidfd : -1, POLLIN, 0 };
	}
	if (poll(ends, 2 * (nfds_t)gather.parts, -1) <= 0)
		return;
	for (size_t i = gather.parts; i-- > 0;) {
		struct worker *w = &gather.worker[i];

		if (!ends[2 * i].revents && !ends[2 * i + 1].revents)
			continue;
		if (w->is_running)
			gather_handle(w);
		else
			gather_reap(w);
	}
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
	} while (gather.running || gather_next_part() < gather.parts);
	return true;
}

/* The request with the answers of all parts.  False: no room. */
static bool gather_join_words(char message[GATHER_MESSAGE_SIZE])
{
	const size_t size = GATHER_MESSAGE_SIZE;
	size_t used = (size_t)snprintf(message, size, "%s " PROBE_PARTS, gather.request);

	for (unsigned int i = 0; i < gather.parts && used < size; i++)
		used += (size_t)snprintf(message + used, size - used, " %s", gather.worker[i].word);
	return used < size;
}

/* False: the worker ends, or has ended. */
static bool gather_ask(struct worker *w, const char *request, char *line)
{
	char answer[GATHER_MESSAGE_SIZE];

	alarm(GATHER_LIMIT);
	if (send(w->socket, request, strlen(request), MSG_NOSIGNAL) < 0 ||
	    gather_receive(w, answer) < 0)
		return false;
	snprintf(line, GATHER_MESSAGE_SIZE, "%s", answer + 1);
	return true;
}

/* The worker that has answered last joins the answers, or else a worker without a part. */
static bool gather_join(char *line)
{
	static char joins[] = PROBE_PARTS;
	struct worker *other = &gather.worker[gather.parts];
	char request[GATHER_MESSAGE_SIZE];

	if (!gather.waiting || !gather_join_words(request))
		return false;
	return gather_ask(gather.waiting, request, line) ||
	       (gather_start_worker(other, joins) && gather_ask(other, request, line));
}

static bool gather_finish(char *line)
{
	if (gather.parts > 1)
		return gather_join(line);
	snprintf(line, GATHER_MESSAGE_SIZE, "%s", gather.answer);
	return *line;
}

int gather_answer(char *program, char *key, char *request, char *line)
{
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
	for (unsigned int i = 0; i <= GATHER_MAX; i++)
		if (gather.worker[i].pid)
			gather_dismiss(&gather.worker[i]);
	for (unsigned int i = 0; i <= GATHER_MAX; i++)
		gather_reap(&gather.worker[i]);
}

void gather_end(void)
{
	const int status = gather.worker[0].status;

	if (gather.waiting) /* the driver has survived the test of a part */
		_exit(PROBE_STATUS_LOST);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	_exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}
