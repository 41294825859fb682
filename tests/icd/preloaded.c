/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for LD_PRELOAD: a part of the stub driver (STUB_PRELOADED), whose behaviour the
 * environment says.  Files are in XDG_CACHE_HOME.
 *
 *	PRELOADED_MEETS=N	a context of device I makes the file met.I, and waits for the files of N
 *				devices
 *	PRELOADED_DIES=BITS	contexts of these devices end a climport-probe,
 *	PRELOADED_SIGNAL=N	by this signal, or by SIGABRT
 *	PRELOADED_REFUSES=BITS	attempts of a climport-probe to start a worker that fail
 *	PRELOADED_ROOM=N	a context ends a climport-probe if more than N of these live that have had
 *				a context,
 *	PRELOADED_ERROR=N	or fails with the error
 *	PRELOADED_LACKS=BITS	contexts of these devices fail in a climport-probe, for want of memory
 *	PRELOADED_HANGS=BITS	contexts of these devices never end in a climport-probe
 *	PRELOADED_LAST=I	a context of device I waits until no more than one other climport-probe
 *				lives that has had a context
 *	PRELOADED_WAITS=N	a context in a climport-probe waits for the file "told", if more than N
 *				of these have had a context
 *	PRELOADED_AHEAD=S	the clock of every climport-probe goes ahead by seconds when a device of
 *				PRELOADED_DIES or PRELOADED_LACKS is tested, who makes the file "ahead"
 *
 * Each context of a device adds a line to the file "tested", and each climport-probe with a context
 * makes a file "worker.PID".  The variant preloaded_ending ends every
 * climport-probe, as the runtime of a sanitizer may.
 */
#include "stub.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 5000 /* times 10 ms */

STUB_API stub_preloaded_fn stub_preloaded;

static bool preloaded_in_probe(void)
{
	return !strcmp(program_invocation_short_name, "climport-probe");
}

static unsigned long preloaded_setting(const char *name)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : 0;
}

static void preloaded_write(unsigned int index)
{
	char path[256], line[16];
	int n = snprintf(line, sizeof(line), "%u\n", index), fd;

	snprintf(path, sizeof(path), "%s/tested", getenv("XDG_CACHE_HOME"));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		abort();
	close(fd);
}

static bool preloaded_has_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", getenv("XDG_CACHE_HOME"), name);
	return !access(path, F_OK);
}

static void preloaded_make_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", getenv("XDG_CACHE_HOME"), name);
	close(creat(path, 0600));
}

static bool preloaded_has_met(unsigned long index)
{
	char name[32];

	snprintf(name, sizeof(name), "met.%lu", index);
	return preloaded_has_file(name);
}

static void preloaded_meet(unsigned int index, unsigned long others)
{
	char name[32];

	snprintf(name, sizeof(name), "met.%u", index);
	preloaded_make_file(name);
	for (int i = 0; i < PATIENCE; i++) {
		unsigned long met = 0;

		for (unsigned long other = 0; other < others; other++)
			met += preloaded_has_met(other);
		if (met == others)
			return;
		usleep(10000); /* time: between two looks */
	}
	abort();
}

static void preloaded_note_worker(void)
{
	char name[32];

	snprintf(name, sizeof(name), "worker.%d", (int)getpid());
	preloaded_make_file(name);
}

/* The processes with a file "worker.PID": all, or those that live. */
static unsigned long preloaded_count_workers(bool all)
{
	DIR *dir = opendir(getenv("XDG_CACHE_HOME"));
	const struct dirent *entry;
	unsigned long count = 0;
	int pid;

	while (dir && (entry = readdir(dir)))
		count += sscanf(entry->d_name, "worker.%d", &pid) == 1 && (all || !kill(pid, 0));
	if (dir)
		closedir(dir);
	return count;
}

static bool preloaded_is_crowded(void)
{
	return preloaded_in_probe() && getenv("PRELOADED_ROOM") &&
	       preloaded_count_workers(false) > preloaded_setting("PRELOADED_ROOM");
}

static void preloaded_be_last(void)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (preloaded_count_workers(false) <= 2)
			return;
		usleep(10000); /* time: between two looks */
	}
	abort();
}

static void preloaded_wait_for_program(void)
{
	if (preloaded_count_workers(true) <= preloaded_setting("PRELOADED_WAITS"))
		return;
	for (int i = 0; i < PATIENCE && !preloaded_has_file("told"); i++)
		usleep(10000); /* time: between two looks */
}

static bool preloaded_is_chosen(const char *devices, unsigned int index)
{
	return preloaded_setting(devices) >> index & 1;
}

_Noreturn static void preloaded_die(int number)
{
	preloaded_make_file("ahead");
	if (!number)
		abort();
	kill(getpid(), number); /* the calling thread may block signals */
	for (;;)
		pause();
}

/* What happens to certain devices in a climport-probe. */
static cl_int preloaded_suffer(unsigned int index)
{
	if (preloaded_is_chosen("PRELOADED_DIES", index))
		preloaded_die((int)preloaded_setting("PRELOADED_SIGNAL"));
	while (preloaded_is_chosen("PRELOADED_HANGS", index))
		pause();
	if (!preloaded_is_chosen("PRELOADED_LACKS", index))
		return CL_SUCCESS;
	preloaded_make_file("ahead");
	return CL_OUT_OF_HOST_MEMORY;
}

cl_int stub_preloaded(unsigned int index)
{
	preloaded_write(index);
	if (preloaded_in_probe())
		preloaded_note_worker();
	preloaded_meet(index, preloaded_setting("PRELOADED_MEETS"));
	if (preloaded_in_probe() && getenv("PRELOADED_WAITS"))
		preloaded_wait_for_program();
	if (preloaded_is_crowded() && preloaded_setting("PRELOADED_ERROR"))
		return (cl_int)preloaded_setting("PRELOADED_ERROR");
	if (preloaded_is_crowded())
		abort();
	if (getenv("PRELOADED_LAST") && index == preloaded_setting("PRELOADED_LAST"))
		preloaded_be_last();
	return preloaded_in_probe() ? preloaded_suffer(index) : CL_SUCCESS;
}

STUB_API int clock_gettime(clockid_t id, struct timespec *now)
{
	const long ret = syscall(SYS_clock_gettime, id, now);

	if (!ret && preloaded_in_probe() && getenv("PRELOADED_AHEAD") &&
	    preloaded_has_file("ahead"))
		now->tv_sec += (time_t)preloaded_setting("PRELOADED_AHEAD");
	return (int)ret;
}

STUB_API int socketpair(int domain, int type, int protocol, int ends[2])
{
	static unsigned int attempts;

	if (preloaded_in_probe() && preloaded_setting("PRELOADED_REFUSES") >> attempts++ & 1) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_socketpair, domain, type, protocol, ends);
}

#ifdef PRELOADED_ENDS_PROBES
__attribute__((constructor)) static void preloaded_end_probe(void)
{
	if (preloaded_in_probe())
		abort();
}
#endif
