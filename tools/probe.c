/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport-probe tests a driver for a process that must not: the driver may crash or hang.
 *
 *	climport-probe KEY [images]	makes the record of the platform with the key (icd/facts/facts.h)
 *
 * The answer goes to a pipe.  A worker, climport-probe KEY facts [images], tests one device after the other and appends
 * what it finds to a file without a name.  If a device ends the worker, this process, which calls no driver, says
 * so in the file, and the next worker goes on behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CL/cl.h>

#include "icd/probe/interface.h"

#define MAX_PLATFORMS 64
#define START_LIMIT 60 /* seconds, for a driver to start; the layer sets the limits of tests */
#define PROGRESS_LIMIT_MS 70000 /* more than a driver has to start, or a device to be tested */
#define WORKER "facts"		/* the request of a worker */

static bool with_images;

static cl_uint probe_get_platforms(cl_platform_id platforms[MAX_PLATFORMS])
{
	cl_uint count = 0;

	if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count))
		return 0;
	return count < MAX_PLATFORMS ? count : MAX_PLATFORMS;
}

/* Appends the sections of devices to @file.  A status. */
static int probe_test_devices(const char *key, int file)
{
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_int err = CL_INVALID_PLATFORM;
	cl_uint count;

	alarm(START_LIMIT);
	count = probe_get_platforms(platforms);
	for (cl_uint i = 0; i < count && err == CL_INVALID_PLATFORM; i++) {
		probe_fn make = (probe_fn)clGetExtensionFunctionAddressForPlatform(platforms[i],
										   PROBE_FUNCTION);

		if (make)
			err = make(platforms[i], key, with_images, file);
	}
	if (err == CL_INVALID_PLATFORM)
		return PROBE_STATUS_NO_PLATFORM;
	return err ? PROBE_STATUS_LOST : 0;
}

static int probe_work(const char *key)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the process that started this one is gone */
	fcntl(PROBE_FD, F_SETFD, FD_CLOEXEC);
	return probe_test_devices(key, PROBE_FD);
}

/* 0: the system refuses a process. */
static pid_t probe_start_worker(char *program, char *key, int file)
{
	static char worker[] = WORKER, images[] = PROBE_WITH_IMAGES;
	char *argv[] = { program, key, worker, with_images ? images : NULL, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions))
		return 0;
	if (posix_spawn_file_actions_adddup2(&actions, file, PROBE_FD) ||
	    posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ))
		pid = 0;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static off_t probe_length(int file)
{
	struct stat st;

	return fstat(file, &st) ? 0 : st.st_size;
}

/* The status of a worker.  A driver may handle SIGALRM: a worker that makes no progress is killed. */
static int probe_wait_for_worker(pid_t pid, int file)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	off_t before;
	int status = 0;
	bool is_killed;

	do {
		before = probe_length(file);
		is_killed = end.fd >= 0 && !poll(&end, 1, PROGRESS_LIMIT_MS);
	} while (is_killed && probe_length(file) != before);
	if (is_killed)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (end.fd >= 0)
		close(end.fd);
	return is_killed ? SIGALRM : status;
}

/*
 * Says in the section of a device how a worker has ended.  The next worker goes on with the device; but if each of its
 * tests hung, they would take minutes.
 */
static bool probe_note_death(int file, int status)
{
	if (probe_status_is_lost(status))
		return dprintf(file, "lost the test was ended by others\n") > 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return dprintf(file, "died the driver hangs in the tests of this device\nend\n") >
		       0;
	if (WIFSIGNALED(status))
		return dprintf(file, "died the driver crashes in the tests of this device: %s\n",
			       strsignal(WTERMSIG(status))) > 0;
	return dprintf(file,
		       "died the driver ends the process in the tests of this device, status "
		       "%d\n",
		       WEXITSTATUS(status)) > 0;
}

/* Whether a device has been begun and not ended. */
static bool probe_is_in_section(int file)
{
	char last[5];
	const off_t size = probe_length(file);

	return size &&
	       (size < 5 || pread(file, last, 5, size - 5) != 5 || memcmp(last, "\nend\n", 5) != 0);
}

/* A section that no worker could end is ended: what it says is all that is known. */
static int probe_send(int file)
{
	off_t size, at = 0;

	if (probe_is_in_section(file) && dprintf(file, "end\n") < 0)
		return 1;
	size = probe_length(file);
	while (at < size && sendfile(PROBE_FD, file, &at, (size_t)(size - at)) > 0)
		;
	return at == size && size ? 0 : 1;
}

/* As the driver would have ended this process. */
static int probe_end_as(int status)
{
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Until a worker has found no more devices.  A worker that begins with none shows that the driver does not start. */
static int probe_make_facts(char *program, char *key)
{
	const int file = memfd_create("climport facts", MFD_CLOEXEC);

	if (file < 0 || fcntl(file, F_SETFL, O_APPEND))
		return PROBE_STATUS_LOST;
	for (;;) {
		const off_t before = probe_length(file);
		const pid_t pid = probe_start_worker(program, key, file);
		const int status = pid ? probe_wait_for_worker(pid, file)
				       : probe_test_devices(key, file) << 8;

		if (!status && !probe_is_in_section(file))
			return probe_send(file);
		if (probe_length(file) == before)
			return before ? probe_send(file) : probe_end_as(status);
		if (!pid || (probe_is_in_section(file) && !probe_note_death(file, status)))
			return PROBE_STATUS_LOST;
	}
}

/* A program that may write no files has this process, which writes to memory, restricted as well. */
static void probe_allow_writing(void)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_FSIZE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

int main(int argc, char **argv)
{
	probe_allow_writing();
	with_images = argc > 2 && !strcmp(argv[argc - 1], PROBE_WITH_IMAGES);
	argc -= with_images;
	/* Drivers' handlers at exit have nothing to save. */
	if (argc == 2)
		_exit(probe_make_facts(argv[0], argv[1]));
	if (argc == 3 && !strcmp(argv[2], WORKER))
		_exit(probe_work(argv[1]));
	_exit(2);
}
