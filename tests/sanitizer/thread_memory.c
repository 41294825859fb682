/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with threads that use thread-local memory of a late library ends, wherever the memory is
 * (options.c).  The leak sanitizer looks at the memory of all threads at the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 300 }; /* one in some 64 has its memory 16 bytes behind a page */

static long *(*late_memory)(void);
static pthread_barrier_t barrier;

static void *thread_memory_use(void *arg)
{
	*late_memory() = 1;
	pthread_barrier_wait(&barrier);
	pause();
	return arg;
}

int main(void)
{
	void *library = dlopen(LATE_LIBRARY, RTLD_NOW);
	pthread_t thread;

	*(void **)&late_memory = library ? dlsym(library, "late_memory") : NULL;
	if (!late_memory) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, thread_memory_use, NULL))
			return 1;
	pthread_barrier_wait(&barrier);
	return 0;
}
