/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function in a new process, and watches the process.  The watchdog is the calling process, so
 * nothing that a driver does to signals, timers or descriptors stops the watchdog.
 *
 * The process leads a group of processes.  At the end the whole group is killed: what a driver has
 * started holds no pipe and no device.  A driver's process with a session of its own is left alone.
 */
#ifndef TESTS_SPEC_WATCH_H
#define TESTS_SPEC_WATCH_H

#include <stdbool.h>
#include <stddef.h>

struct message;

enum watch_end {
	WATCH_EXITED,  /* with the status @value */
	WATCH_DIED,    /* of the signal @value */
	WATCH_TIMEOUT, /* no end within the seconds @value, counted from the last watch_restart() */
	WATCH_TOTAL,   /* the limit of watch_limit_total() */
	WATCH_FAILED,  /* no process or no pipe; @value is an errno */
};

struct watch_result {
	enum watch_end end;
	int value;
};

struct watch_events {
	/* A message of the process. */
	void (*take_message)(void *arg, const struct message *message);
	/* Some of what the process printed to standard output. */
	void (*take_output)(void *arg, const char *text, size_t length);
	void *arg;
};

/* Once, before the first watch_run(): all processes together have @seconds. */
void watch_limit_total(unsigned int seconds);

/*
 * Runs @body(@arg) in a new process, which exits when @body returns.  Events come until the process
 * has ended.  A signal that ends the calling process (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE) kills the
 * group first.
 */
struct watch_result watch_run(void (*body)(void *arg), void *arg, unsigned int seconds,
			      const struct watch_events *events);

/* For events: the process has all its seconds again. */
void watch_restart(void);

/* Ends the calling process if such a signal has come since the last watch_run(). */
void watch_finish(void);

#endif /* TESTS_SPEC_WATCH_H */
