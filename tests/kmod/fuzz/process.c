/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"
#include "calls.h"
#include "memory.h"
#include "shared.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors below LAST_FD pass an exec.  SIGALRM ends a child after CHILD_SECONDS. */
enum { THREADS = 4, CHILD_CALLS = 60, CHILD_SECONDS = 20, LAST_FD = 200 };

static atomic_long calls_made;
static time_t end_time;
static _Thread_local int is_child;

static void fuzz_start_other(void);

/* A call comes @weight times as often as a call of weight 1. */
static const struct {
	void (*run)(void);
	uint32_t weight;
} calls[] = {
	{ fuzz_ioctl_any, 2 },	  { fuzz_export_gpu, 4 }, { fuzz_export_host, 4 },
	{ fuzz_unwatch_host, 3 }, { fuzz_read_caps, 1 },  { fuzz_open_close, 2 },
	{ fuzz_view_map, 3 },	  { fuzz_view_use, 2 },	  { fuzz_view_unmap, 1 },
	{ fuzz_remap, 3 },	  { fuzz_use_gpu, 3 },	  { fuzz_use_importer, 3 },
	{ fuzz_sync, 1 },	  { fuzz_pass_on, 1 },	  { fuzz_start_other, 1 },
	{ fuzz_watch_host, 3 },
};

static uint32_t fuzz_weight_of_all(void)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < COUNT_OF(calls); i++)
		sum += calls[i].weight;
	return sum;
}

static void fuzz_call_any(void)
{
	uint32_t pick = fuzz_any(fuzz_weight_of_all());
	size_t i = 0;

	atomic_fetch_add(&calls_made, 1);
	while (pick >= calls[i].weight)
		pick -= calls[i++].weight;
	calls[i].run();
}

static void fuzz_call_as_child(void)
{
	for (int i = 0; i < CHILD_CALLS; i++)
		fuzz_call_any();
}

static void *fuzz_short_thread(void *arg)
{
	is_child = 1;
	fuzz_seed((uintptr_t)arg);
	fuzz_call_as_child();
	return NULL;
}

/* Starts a short thread and waits for the end. */
static void fuzz_thread_once(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, fuzz_short_thread, (void *)(uintptr_t)fuzz_any64()))
		pthread_join(thread, NULL);
}

/* The first thread ends, and the process goes on in two threads. */
static void fuzz_outlive_leader(void)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		if (!pthread_create(&thread, NULL, fuzz_short_thread,
				    (void *)(uintptr_t)fuzz_any64()))
			pthread_detach(thread);
	syscall(SYS_exit, 0);
}

/* Executes the program again with most descriptors open: see fuzz_after_exec(). */
static _Noreturn void fuzz_exec_again(void)
{
	char seed[24];

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)fuzz_any64());
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	for (int fd = 3; fd < LAST_FD; fd++)
		if (fuzz_any(4))
			fcntl(fd, F_SETFD, 0);
	execl("/proc/self/exe", "fuzz", FUZZ_AFTER_EXEC, seed, NULL);
	_exit(1);
}

/* A child makes a few calls with inherited descriptors; the kernel closes everything at the end. */
static _Noreturn void fuzz_child(uint64_t seed)
{
	is_child = 1;
	fuzz_seed(seed);
	fuzz_views_forget();
	alarm(CHILD_SECONDS); /* time: the end of a child that an interrupted call keeps */
	switch (fuzz_any(6)) {
	case 0:
		fuzz_exec_again();
		break;
	case 1:
		fuzz_outlive_leader();
		break;
	}
	fuzz_call_as_child();
	_exit(0);
}

static void fuzz_fork(void)
{
	uint64_t seed = fuzz_any64();
	pid_t pid = fork();

	if (!pid)
		fuzz_child(seed);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* Call: sometimes starts a child, sometimes a thread.  Children start neither. */
static void fuzz_start_other(void)
{
	if (!is_child && !fuzz_any(16))
		fuzz_fork();
	else if (!is_child && !fuzz_any(16))
		fuzz_thread_once();
}

static void fuzz_begin(void);

/*
 * The descriptors are of the process before the exec.  A context belongs to the memory of the old
 * process, so calls on an inherited context fail.
 */
int fuzz_after_exec(const char *seed)
{
	fuzz_begin();
	is_child = 1;
	fuzz_seed(strtoull(seed, NULL, 0));
	for (int fd = 3; fd < LAST_FD; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			atomic_store(fuzz_any(2)   ? PLACE_IN(shared.buffers)
				     : fuzz_any(2) ? PLACE_IN(shared.contexts)
						   : PLACE_IN(shared.importers),
				     dup(fd));
	alarm(CHILD_SECONDS); /* time: the end of a child that an interrupted call keeps */
	fuzz_call_as_child();
	return 0;
}

static void *fuzz_in_thread(void *arg)
{
	fuzz_seed((uintptr_t)arg);
	while (time(NULL) < end_time)
		fuzz_call_any();
	return NULL;
}

static void fuzz_begin(void)
{
	fuzz_memory_begin();
	fuzz_shared_open();
}

void fuzz_run(uint64_t seed, time_t end)
{
	pthread_t threads[THREADS];

	end_time = end;
	fuzz_begin();
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fuzz_in_thread,
				   (void *)(uintptr_t)(seed * 0x9e3779b97f4a7c15ULL + i * 977)))
			_exit(2);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fuzz_shared_close();
	fuzz_views_unmap();
	printf("%ld calls\n", atomic_load(&calls_made));
	fflush(NULL);
	_exit(0);
}
