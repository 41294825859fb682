/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each function of the fake libcuda begins and ends.
 *
 * A single lock protects the state of all files of the folder.  driver_enter() takes the lock, counts
 * the call and applies the test's orders: a failure, a hook, a fork.
 */
#ifndef FAKE_CUDA_DRIVER_H
#define FAKE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#define API __attribute__((visibility("default")))

void driver_lock(void);
void driver_unlock(void);

/* 0 and the lock held; or the result for @function to return, and the lock not held. */
int driver_enter(const char *function);

/* Releases the lock and returns @result. */
int driver_leave(int result);

/*
 * malloc(), mmap() and memfd_create() of the fake: NULL, MAP_FAILED or -1 where the system refuses,
 * and where the test has ordered so.
 */
void *driver_malloc(size_t size);
void *driver_map(void *at, size_t size, int prot, int flags, int fd);
int driver_memfd(const char *name);

/* Whether the test has not ordered the next resource of the system to be refused. */
bool driver_may_take(void);

/* The defaults: CUDA is initialized, no call is counted, and no call fails. */
void driver_reset(void);

#endif
