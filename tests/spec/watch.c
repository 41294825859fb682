/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"

enum { RESULTS, OUTPUT, PIPES };

/* Seconds in which the kernel has to end a killed process. */
enum { SECONDS_TO_DIE = 20 };

struct watch {
	pid_t pid;
	int fd[PIPES]; /* the ends to read; -1 behind the last byte */
	time_t deadline;
	unsigned int seconds;
	const struct watch_events *events;
	struct watch *outer; /* an event may watch another process */
};

static struct watch *running;
static time_t total_deadline;
static unsigned int total_seconds;
static volatile sig_atomic_t stop_signal;

static const int stop_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

static time_t watch_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void watch_note_signal(int number)
{
	if (number != SIGCHLD)
		stop_signal = number;
}

/* The signals come during ppoll() alone, which has the mask that the process was started with. */
static sigset_t usual_mask;

/* A signal that is ignored stays ignored, also in the process of a test: nohup(1). */
static void watch_set_action(int number, void (*handler)(int))
{
	struct sigaction action;

	sigaction(number, NULL, &action);
	if (action.sa_handler == SIG_IGN)
		return;
	action = (struct sigaction){ .sa_handler = handler };
	sigaction(number, &action, NULL);
}

static void watch_hold_signals(void)
{
	struct sigaction action = { .sa_handler = watch_note_signal };
	sigset_t held;

	if (running)
		return;
	sigemptyset(&held);
	sigaddset(&held, SIGCHLD);
	sigaction(SIGCHLD, &action, NULL);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++) {
		sigaddset(&held, stop_signals[i]);
		watch_set_action(stop_signals[i], watch_note_signal);
	}
	sigprocmask(SIG_BLOCK, &held, &usual_mask);
}

void watch_limit_total(unsigned int seconds)
{
	total_seconds = seconds;
	total_deadline = watch_now() + seconds;
}

void watch_restart(void)
{
	if (running)
		running->deadline = watch_now() + running->seconds;
}

/* The process: a group, without input, and with the signals of a new program. */
_Noreturn static void watch_start_body(void (*body)(void *), void *arg, int ends[PIPES][2],
				       pid_t parent)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigaction(SIGCHLD, &usual, NULL);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++)
		watch_set_action(stop_signals[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(ends[OUTPUT][1], STDOUT_FILENO);
	channel_use(ends[RESULTS][1]);
	body(arg);
	exit(0);
}

static bool watch_make_pipes(int ends[PIPES][2])
{
	if (pipe2(ends[RESULTS], O_CLOEXEC))
		return false;
	if (!pipe2(ends[OUTPUT], O_CLOEXEC))
		return true;
	close(ends[RESULTS][0]);
	close(ends[RESULTS][1]);
	return false;
}

/* False, with errno, if there is no process. */
static bool watch_start(struct watch *w, void (*body)(void *), void *arg)
{
	pid_t parent = getpid();
	int ends[PIPES][2];

	if (!watch_make_pipes(ends))
		return false;
	fflush(NULL);
	w->pid = fork();
	if (!w->pid)
		watch_start_body(body, arg, ends, parent);
	for (int i = 0; i < PIPES; i++) {
		close(ends[i][1]);
		w->fd[i] = ends[i][0];
		fcntl(w->fd[i], F_SETFL, O_NONBLOCK);
	}
	if (w->pid > 0)
		setpgid(w->pid, w->pid);
	return w->pid > 0;
}

static void watch_take_results(const struct watch *w, const char *bytes, size_t length)
{
	struct message message;

	for (; length >= sizeof(message); bytes += sizeof(message), length -= sizeof(message)) {
		memcpy(&message, bytes, sizeof(message));
		if (channel_is_message(&message))
			w->events->take_message(w->events->arg, &message);
	}
}

/* Whether there was something. */
static bool watch_read_pipe(struct watch *w, int i)
{
	char bytes[8 * sizeof(struct message)];
	ssize_t length;

	if (w->fd[i] < 0)
		return false;
	length = read(w->fd[i], bytes, sizeof(bytes));
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (length <= 0) {
		close(w->fd[i]);
		w->fd[i] = -1;
		return false;
	}
	if (i == RESULTS)
		watch_take_results(w, bytes, length);
	else
		w->events->take_output(w->events->arg, bytes, length);
	return true;
}

/*
 * What was printed before a message is taken before the message.  Nothing more than a pipe's worth
 * is taken at once: a driver may print without end.
 */
static void watch_read_pipes(struct watch *w)
{
	for (int i = 0; i < 16 && watch_read_pipe(w, OUTPUT); i++)
		;
	for (int i = 0; i < 16 && watch_read_pipe(w, RESULTS); i++)
		;
}

/* Until a pipe has something, a signal came, or a second has passed. */
static void watch_wait(struct watch *w)
{
	struct pollfd fds[PIPES] = {
		{ .fd = w->fd[RESULTS], .events = POLLIN },
		{ .fd = w->fd[OUTPUT], .events = POLLIN },
	};

	ppoll(fds, PIPES, &(struct timespec){ 1, 0 }, &usual_mask);
}

/* The process stays a zombie, which keeps the number of the group. */
static bool watch_has_ended(const struct watch *w)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, w->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

void watch_finish(void)
{
	if (!stop_signal)
		return;
	signal(stop_signal, SIG_DFL);
	raise(stop_signal);
}

_Noreturn static void watch_stop(void)
{
	sigset_t signals;

	for (struct watch *w = running; w; w = w->outer)
		kill(-w->pid, SIGKILL);
	printf("Bail out! %s\n", strsignal(stop_signal));
	fflush(stdout);
	signal(stop_signal, SIG_DFL);
	raise(stop_signal);
	sigfillset(&signals);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
	_exit(1);
}

/* The group is killed; a process that the kernel does not end is left behind. */
static bool watch_bury(struct watch *w, int *status)
{
	time_t deadline = watch_now() + SECONDS_TO_DIE;

	kill(-w->pid, SIGKILL);
	while (!watch_has_ended(w) && watch_now() < deadline) {
		watch_wait(w);
		watch_read_pipes(w);
	}
	watch_read_pipes(w);
	for (int i = 0; i < PIPES; i++)
		if (w->fd[i] >= 0)
			close(w->fd[i]);
	return waitpid(w->pid, status, WNOHANG) == w->pid;
}

static struct watch_result watch_until_end(struct watch *w)
{
	struct watch_result result = { WATCH_EXITED, 0 };
	bool has_ended = false;
	int status = 0;

	while (result.end == WATCH_EXITED && !has_ended) {
		watch_wait(w);
		has_ended = watch_has_ended(w);
		watch_read_pipes(w);
		if (stop_signal)
			watch_stop();
		if (!has_ended && total_seconds && watch_now() >= total_deadline)
			result = (struct watch_result){ WATCH_TOTAL, (int)total_seconds };
		else if (!has_ended && watch_now() >= w->deadline)
			result = (struct watch_result){ WATCH_TIMEOUT, (int)w->seconds };
	}
	if (!watch_bury(w, &status) || !has_ended)
		return result;
	if (WIFSIGNALED(status))
		return (struct watch_result){ WATCH_DIED, WTERMSIG(status) };
	return (struct watch_result){ WATCH_EXITED, WEXITSTATUS(status) };
}

struct watch_result watch_run(void (*body)(void *arg), void *arg, unsigned int seconds,
			      const struct watch_events *events)
{
	struct watch w = { .seconds = seconds, .events = events, .outer = running };
	struct watch_result result = { WATCH_FAILED, 0 };

	watch_hold_signals();
	if (!watch_start(&w, body, arg)) {
		result.value = errno;
	} else {
		running = &w;
		watch_restart();
		result = watch_until_end(&w);
		running = w.outer;
	}
	watch_restart();
	if (!running) {
		sigprocmask(SIG_SETMASK, &usual_mask, NULL);
		if (stop_signal)
			watch_stop();
	}
	return result;
}
