/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for LD_PRELOAD: a part of the stub driver (STUB_PRELOADED), whose behaviour in a
 * climport-probe the environment says.  BITS are of devices.
 *
 *	PRELOADED_DIES=BITS	contexts of these devices end the process,
 *	PRELOADED_DIES_ASKED=BITS	queries for the extensions of these devices do,
 *	PRELOADED_SIGNAL=N	by this signal, or by SIGABRT,
 *	PRELOADED_STATUS=N	or by this exit status
 *	PRELOADED_HANGS=BITS	contexts of these devices never end and block all signals; the parent's patience
 *				is over at once
 *	PRELOADED_STAYS=1	such a process does not go when it is killed, as one that the kernel holds
 *	PRELOADED_ORPHANS=BITS	contexts of these devices kill the parent process
 *	PRELOADED_LACKS=BITS	contexts of these devices fail, for want of memory
 *
 * Each context of a device adds a line to the file "tested" in XDG_CACHE_HOME: the device and the process.
 * The variant preloaded_ending ends every climport-probe, as the runtime of a sanitizer may.
 */
#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

STUB_API stub_preloaded_fn stub_preloaded, stub_preloaded_query;

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
	char path[256], line[32];
	int n = snprintf(line, sizeof(line), "%u %d\n", index, (int)getpid()), fd;

	snprintf(path, sizeof(path), "%s/tested", getenv("XDG_CACHE_HOME"));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		abort();
	close(fd);
}

static bool preloaded_is_chosen(const char *devices, unsigned int index)
{
	return preloaded_setting(devices) >> index & 1;
}

/* The file with the process that hangs. */
static FILE *preloaded_open_hung(const char *mode)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/hung", getenv("XDG_CACHE_HOME"));
	return fopen(path, mode);
}

static void preloaded_be_deaf(void)
{
	FILE *file = preloaded_open_hung("we");
	sigset_t all;

	if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file))
		abort();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

/* So often that the parent gives up. */
static bool preloaded_one_hangs(void)
{
	static int before, looks;
	FILE *file = preloaded_open_hung("re");
	int pid = 0;
	const bool hangs = file && fscanf(file, "%d", &pid) == 1 && !kill(pid, 0);

	if (file)
		fclose(file);
	looks = pid == before ? looks + 1 : 0;
	before = pid;
	return hangs && looks < 70;
}

/* Who is traced stays for the tracer. */
static void preloaded_stay(void)
{
	const pid_t probe = getppid(), own = getpid();
	char ready;
	int ends[2];

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (pipe2(ends, O_CLOEXEC))
		abort();
	if (!fork()) {
		ready = !ptrace(PTRACE_SEIZE, own, 0, 0);
		if (write(ends[1], &ready, 1) != 1)
			abort();
		while (!kill(probe, 0))
			usleep(10000); /* time: between two looks */
		_exit(0);
	}
	if (read(ends[0], &ready, 1) != 1 || !ready)
		abort();
}

_Noreturn static void preloaded_hang(void)
{
	if (getenv("PRELOADED_STAYS"))
		preloaded_stay();
	preloaded_be_deaf();
	for (;;)
		pause();
}

_Noreturn static void preloaded_die(void)
{
	const int number = (int)preloaded_setting("PRELOADED_SIGNAL");

	if (getenv("PRELOADED_STATUS"))
		_exit((int)preloaded_setting("PRELOADED_STATUS"));
	if (!number)
		abort();
	kill(getpid(), number); /* the calling thread may block signals */
	for (;;)
		pause();
}

cl_int stub_preloaded(unsigned int index)
{
	preloaded_write(index);
	if (!preloaded_in_probe())
		return CL_SUCCESS;
	if (preloaded_is_chosen("PRELOADED_DIES", index))
		preloaded_die();
	if (preloaded_is_chosen("PRELOADED_ORPHANS", index))
		kill(getppid(), SIGKILL);
	if (preloaded_is_chosen("PRELOADED_HANGS", index))
		preloaded_hang();
	return preloaded_is_chosen("PRELOADED_LACKS", index) ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

cl_int stub_preloaded_query(unsigned int index)
{
	if (preloaded_in_probe() && preloaded_is_chosen("PRELOADED_DIES_ASKED", index))
		preloaded_die();
	return CL_SUCCESS;
}

static int preloaded_wait(const sigset_t *signals, siginfo_t *info, const struct timespec *limit)
{
	return (int)syscall(SYS_rt_sigtimedwait, signals, info, limit, _NSIG / 8);
}

/* climport-probe waits for the end of a worker. */
STUB_API int sigtimedwait(const sigset_t *signals, siginfo_t *info, const struct timespec *limit)
{
	const struct timespec look = { 0, 10000000 }; /* time: between two looks */
	int ready;

	if (!preloaded_in_probe() || !getenv("PRELOADED_HANGS"))
		return preloaded_wait(signals, info, limit);
	do
		ready = preloaded_wait(signals, info, &look);
	while (ready < 0 && !preloaded_one_hangs());
	return ready;
}

#ifdef PRELOADED_ENDS_PROBES
__attribute__((constructor)) static void preloaded_end_probe(void)
{
	if (preloaded_in_probe())
		abort();
}
#endif
