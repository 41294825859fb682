/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module gdmabuf is unloaded while the kernel still has work of the module to finish.  The
 * tests load the module again, from the file that GDM_MODULE names in the environment.
 */
#include "../harness.h"
#include "gdm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Opens the module's file, before a test unloads the module: without the file, all later tests in
 * the guest would be without gdmabuf.
 */
static int unload_open_module(void)
{
	const char *path = getenv("GDM_MODULE");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (!path)
		printf("# GDM_MODULE is not set: set GDM_MODULE to the path of gdmabuf.ko\n");
	else if (file < 0)
		printf("# GDM_MODULE=%s: %s\n", path, strerror(errno));
	EXPECT(file >= 0);
	return file;
}

/* Tries again as long as the module is in use. */
static void unload_module(void)
{
	long ret;

	do
		ret = syscall(SYS_delete_module, "gdmabuf", O_NONBLOCK);
	while (ret && (errno == EAGAIN || errno == EBUSY));
	EXPECT_EQ(ret ? errno : 0, 0);
}

static void unload_load_again(int file)
{
	EXPECT_EQ(syscall(SYS_finit_module, file, "", 0), 0);
}

enum { ROUNDS = 12, PROCESSES = 8 };

static void unload_run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* Keeps kernel threads off CPU 1 for 50 ms at a time. */
static pid_t unload_start_hog(void)
{
	struct sched_param priority = { 50 };
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	unload_run_on(1);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		_exit(1);
	for (;;) {
		struct timespec now, end;

		/* time: noise, a processor that is busy most of the time */
		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_nsec += 50000000;
		do
			clock_gettime(CLOCK_MONOTONIC, &now); /* time: noise */
		while ((now.tv_sec - end.tv_sec) * 1000000000LL + now.tv_nsec - end.tv_nsec < 0);
		usleep(2000); /* time: noise */
	}
}

struct unload_pipes {
	int ready[2], end[2];
};

/*
 * Starts a process with a watch, and so an MMU notifier.  The process closes the context on CPU 1 when
 * the pipe @end closes.
 */
static pid_t unload_start_process(const struct unload_pipes *pipes, bool exits)
{
	pid_t pid = fork();
	struct gdm_watch watch;
	unsigned char *p;
	char byte = 0;
	int ctx;

	if (pid)
		return pid;
	unload_run_on(1);
	p = pages_new(PAGE, 1);
	ctx = gdm_open();
	if (gdm_watch_host(ctx, p, PAGE, &watch) || write(pipes->ready[1], &byte, 1) != 1)
		_exit(1);
	close(pipes->end[1]);
	(void)!read(pipes->end[0], &byte, 1);
	close(ctx);
	if (!exits)
		pause();
	_exit(0);
}

static void unload_round(int file)
{
	struct unload_pipes pipes;
	pid_t pids[PROCESSES];
	char byte;

	EXPECT_EQ(pipe(pipes.ready), 0);
	EXPECT_EQ(pipe(pipes.end), 0);
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = unload_start_process(&pipes, i % 2);
	close(pipes.ready[1]);
	for (int i = 0; i < PROCESSES; i++)
		EXPECT_EQ(read(pipes.ready[0], &byte, 1), 1);
	close(pipes.end[0]);
	close(pipes.end[1]);
	unload_module();
	/* time: noise, a callback that the unload did not wait for runs now */
	usleep(100000);
	for (int i = 0; i < PROCESSES; i++) {
		kill(pids[i], SIGKILL);
		EXPECT_EQ(waitpid(pids[i], NULL, 0), pids[i]);
	}
	close(pipes.ready[0]);
	unload_load_again(file);
}

TEST(unload_after_processes,
     "Unloading waits for the kernel's callbacks after exits and closes on another processor.")
{
	int file = unload_open_module();
	pid_t hog;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		test_skip("one processor");
	hog = unload_start_hog();
	unload_run_on(0);
	for (int round = 0; round < ROUNDS; round++)
		unload_round(file);
	kill(hog, SIGKILL);
	waitpid(hog, NULL, 0);
	close(file);
}
