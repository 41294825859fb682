/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport-probe tests a driver for a process that must not: the driver may crash or hang.
 *
 *	climport-probe LOADER DRIVER KEY [images]	makes the record of the platform with the key (icd/facts/facts.h)
 *
 * LOADER and DRIVER are files that the program has loaded.  The system's loader may find other drivers, and the
 * program's may find a driver only in that program: the one in PyOpenCL's wheel looks for PyPI's PoCL in the run path
 * of Python's module.  A loader that is part of a program, or whose file is gone, cannot be loaded here, and the
 * system's is taken.
 *
 * The record is written to the file PROBE_FD.  A worker tests one device after the other and writes down what it
 * finds.  If a device ends the worker, this process, which calls no driver, starts the next one, which goes on behind.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CL/cl.h>

#include "icd/probe/interface.h"

#define PROBE_PLATFORMS 64
#define PROBE_LIMIT \
	60 /* seconds of the start of a driver, or of a test: PoCL's compiler took 21 s on a loaded machine */
#define PROBE_DYING 2 /* seconds: of a process with much memory on a loaded machine, rather less */

/*
 * A loader that names the driver without its folder gets the one that is loaded already.  The loader's functions are
 * visible to the layer, as a program's are.
 */
static void *probe_load(const char *loader, const char *driver)
{
	void *library = *loader ? dlopen(loader, RTLD_NOW | RTLD_GLOBAL) : NULL;

	if (*driver)
		dlopen(driver, RTLD_LAZY | RTLD_LOCAL);
	if (!library || !dlsym(library, "clGetPlatformIDs"))
		library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
	return library;
}

/* A worker, after one that has ended with @status.  @files: the loader and the driver.  Its own status. */
static int probe_work(char **files, const char *key, bool with_images, int status)
{
	__typeof__(&clGetExtensionFunctionAddressForPlatform) get_function;
	__typeof__(&clGetPlatformIDs) get_platforms;
	cl_platform_id platforms[PROBE_PLATFORMS];
	cl_int err = CL_INVALID_PLATFORM;
	cl_uint count = 0;
	void *library;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the process that started this one is gone */
	library = probe_load(files[0], files[1]);
	if (!library)
		return PROBE_STATUS_LOST;
	get_platforms = (__typeof__(get_platforms))dlsym(library, "clGetPlatformIDs");
	get_function = (__typeof__(get_function))dlsym(library,
						       "clGetExtensionFunctionAddressForPlatform");
	if (!get_platforms || !get_function)
		return PROBE_STATUS_LOST;
	if (get_platforms(PROBE_PLATFORMS, platforms, &count))
		count = 0;
	for (cl_uint i = 0; i < count && i < PROBE_PLATFORMS && err == CL_INVALID_PLATFORM; i++) {
		probe_fn make = (probe_fn)get_function(platforms[i], PROBE_FUNCTION);

		if (make)
			err = make(platforms[i], key, with_images, PROBE_FD, status);
	}
	return err ? PROBE_STATUS_LOST : 0;
}

static struct probe_progress probe_progress(void)
{
	struct probe_progress progress = { 0, 0 };

	if (pread(PROBE_FD, &progress, sizeof(progress), 0) != sizeof(progress))
		progress.layout = 0;
	return progress;
}

/*
 * The status of a worker.  A driver may block all signals: a worker that makes no progress is killed.  One that the
 * kernel does not let go, for a broken device perhaps, is left alone.
 */
static int probe_wait_for_worker(pid_t pid, const sigset_t *child)
{
	const struct timespec second = { 1, 0 };
	unsigned int steps = probe_progress().steps;
	int status = 0;

	for (int left = PROBE_LIMIT; left; left--) {
		sigtimedwait(child, NULL, &second);
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		if (probe_progress().steps != steps)
			left = PROBE_LIMIT;
		steps = probe_progress().steps;
	}
	kill(pid, SIGKILL);
	for (int left = PROBE_DYING; left && waitpid(pid, &status, WNOHANG) != pid; left--)
		sigtimedwait(child, NULL, &second);
	return PROBE_STATUS_HANGS;
}

/*
 * Until a worker has found no more devices.  A worker that begins no test shows that the driver does not start: the status is
 * the worker's, or as a shell has it; 255: it hangs.
 */
static int probe_make_facts(char **files, const char *key, bool with_images)
{
	sigset_t child, before;
	int status = 0;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	for (;;) {
		const unsigned int steps = probe_progress().steps;
		const pid_t pid = fork();

		if (!pid) {
			sigprocmask(SIG_SETMASK, &before, NULL);
			/* Drivers' handlers at exit have nothing to save. */
			_exit(probe_work(files, key, with_images, status));
		}
		status = pid < 0 ? PROBE_STATUS_LOST << 8 : probe_wait_for_worker(pid, &child);
		if (probe_progress().layout)
			return 0;
		if (probe_progress().steps == steps)
			return WIFSIGNALED(status) ? PROBE_STATUS_SIGNAL + WTERMSIG(status)
						   : WEXITSTATUS(status);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4 && (argc != 5 || strcmp(argv[4], PROBE_WITH_IMAGES) != 0))
		return 2;
	_exit(probe_make_facts(argv + 1, argv[3], argc == 5));
}
