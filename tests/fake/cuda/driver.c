/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "fake_cuda.h"
#include "fork.h"
#include "import/nvidia/cuda/cuda_driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FUNCTIONS = 128 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool initialized, forks;
static struct {
	const char *name;
	int count;
} calls[FUNCTIONS];
static struct {
	const char *name;
	int countdown, result;
	bool hit;
} failure;
static struct {
	const char *name;
	int countdown;
	void (*run)(void *arg);
	void *arg;
} hook;

static atomic_int refusal_countdown; /* 0: none is refused */
static bool refusal_hit;

/* CUDA does not work in the child of a process with CUDA initialized. */
static bool is_child;

void driver_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void driver_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

static void driver_atfork_child(void)
{
	is_child = initialized;
	initialized = false;
	driver_unlock();
}

__attribute__((constructor)) static void driver_register_fork(void)
{
	pthread_atfork(driver_lock, driver_unlock, driver_atfork_child);
}

bool driver_may_take(void)
{
	if (!refusal_countdown || --refusal_countdown)
		return true;
	refusal_hit = true;
	errno = ENOMEM;
	return false;
}

void *driver_malloc(size_t size)
{
	return driver_may_take() ? malloc(size) : NULL;
}

void *driver_map(void *at, size_t size, int prot, int flags, int fd)
{
	return driver_may_take() ? mmap(at, size, prot, flags, fd, 0) : MAP_FAILED;
}

int driver_memfd(const char *name)
{
	return driver_may_take() ? memfd_create(name, MFD_CLOEXEC) : -1;
}

static bool failure_matches(const char *name, const char *function)
{
	return !name || !strcmp(name, function);
}

static void calls_count(const char *function)
{
	size_t i = 0;

	while (calls[i].name && strcmp(calls[i].name, function))
		i++;
	calls[i].name = function;
	calls[i].count++;
}

static bool gives_back(const char *function)
{
	static const char *const names[] = { "cuMemRelease",
					     "cuMemUnmap",
					     "cuMemAddressFree",
					     "cuCtxPopCurrent_v2",
					     "cuDevicePrimaryCtxRelease_v2",
					     "cuMemFree_v2",
					     "cuMemFreeHost",
					     "cuEventDestroy_v2" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], function))
			return true;
	return false;
}

static bool failure_hits(const char *function)
{
	if (!failure.countdown)
		return false;
	if (failure.name ? strcmp(failure.name, function) : gives_back(function))
		return false;
	failure.hit = !--failure.countdown;
	return failure.hit;
}

int driver_enter(const char *function)
{
	void (*run)(void *arg) = NULL;
	void *arg;
	int result = CUDA_SUCCESS;

	if (forks)
		fake_fork();
	driver_lock();
	if (hook.run && failure_matches(hook.name, function) && !--hook.countdown) {
		run = hook.run;
		arg = hook.arg;
		hook.run = NULL;
		driver_unlock();
		run(arg);
		driver_lock();
	}
	calls_count(function);
	if (failure_hits(function))
		result = failure.result;
	else if (!initialized && strcmp(function, "cuInit") && strcmp(function, "cuGetErrorName"))
		result = CUDA_NOT_INITIALIZED;
	if (result)
		driver_unlock();
	return result;
}

int driver_leave(int result)
{
	driver_unlock();
	return result;
}

void driver_reset(void)
{
	initialized = true;
	is_child = forks = false;
	memset(calls, 0, sizeof(calls));
	memset(&failure, 0, sizeof(failure));
	memset(&hook, 0, sizeof(hook));
	refusal_countdown = 0;
}

API int cuInit(unsigned int flags);
API int cuInit(unsigned int flags)
{
	int result = driver_enter("cuInit");

	if (result)
		return result;
	if (is_child)
		return driver_leave(CUDA_NOT_INITIALIZED);
	initialized = true;
	return driver_leave(flags ? CUDA_INVALID_VALUE : CUDA_SUCCESS);
}

API int cuGetErrorName(int error, const char **name);
API int cuGetErrorName(int error, const char **name)
{
	int result = driver_enter("cuGetErrorName");

	if (result)
		return result;
	*name = error == CUDA_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_FAKE";
	return driver_leave(CUDA_SUCCESS);
}

API void fake_cuda_uninitialize(void)
{
	initialized = false;
}

API void fake_cuda_set_forks(bool each_call)
{
	forks = each_call;
}

API void fake_cuda_fail(const char *function, int nth, int result)
{
	failure.name = function;
	failure.countdown = nth;
	failure.result = result;
	failure.hit = false;
}

API void fake_cuda_refuse(int nth)
{
	refusal_countdown = nth;
	refusal_hit = false;
}

API bool fake_cuda_has_refused(void)
{
	return refusal_hit;
}

API bool fake_cuda_has_failed(void)
{
	return failure.hit;
}

API void fake_cuda_at(const char *function, int nth, void (*run)(void *arg), void *arg)
{
	hook.name = function;
	hook.countdown = nth;
	hook.run = run;
	hook.arg = arg;
}

API int fake_cuda_calls(const char *function)
{
	int sum = 0;

	for (size_t i = 0; i < FUNCTIONS && calls[i].name; i++)
		sum += failure_matches(function, calls[i].name) ? calls[i].count : 0;
	return sum;
}

API int cuDriverGetVersion(int *version);
API int cuDriverGetVersion(int *version)
{
	int result = driver_enter("cuDriverGetVersion");

	if (result)
		return result;
	*version = 11080;
	return driver_leave(CUDA_SUCCESS);
}
