/* SPDX-License-Identifier: Apache-2.0 */
#include "watched_fixture.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "util/log.h"

/* Linked with --wrap=pthread_cond_clockwait. */
int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);

_Thread_local bool watched_is_patient;

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until)
{
	struct timespec later = *until;

	later.tv_sec += watched_is_patient ? TEST_HANG_S : 0;
	return __real_pthread_cond_clockwait(cond, mutex, clock, &later);
}

uintptr_t watched_map_large(uintptr_t at, size_t size, int flags)
{
	void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE,
		       flags | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);

	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

uintptr_t watched_map_at(uintptr_t at, int flags)
{
	return watched_map_large(at, SIZE, flags);
}

uintptr_t watched_map(void)
{
	return watched_map_at(0, MAP_PRIVATE);
}

/* The module tells before the pages go. */
void watched_remap(uintptr_t p)
{
	fake_gdmabuf_change((void *)p, SIZE);
	watched_map_at(p, MAP_PRIVATE);
}

void watched_unmap(uintptr_t p)
{
	fake_gdmabuf_change((void *)p, SIZE);
	EXPECT(!munmap((void *)p, SIZE));
}

void watched_reset(void)
{
	fake_gdmabuf_child();
	driver_begin();
}

static void (*watched_body)(void);

static void watched_run_in_child(void)
{
	watched_reset();
	watched_body();
	EXPECT_EQ(fake_rm.misuses, 0);
	EXPECT_EQ(fake_rm.inherited, 0);
	EXPECT(!*log_last());
}

void watched_run(void (*body)(void))
{
	watched_body = body;
	test_in_child(watched_run_in_child);
}

uint64_t watched_register(uintptr_t p, size_t size)
{
	EXPECT_EQ(driver_once(p, size), 0);
	return driver_once(p, size);
}

uint64_t watched_use(uintptr_t p)
{
	uint64_t kept = watched_register(p, SIZE);

	EXPECT(kept);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	return kept;
}
