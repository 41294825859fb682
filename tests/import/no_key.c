/* SPDX-License-Identifier: Apache-2.0 */
/* A process that has used up all keys of thread-specific data; linked with --wrap. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);

int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	(void)key;
	(void)destructor;
	return EAGAIN;
}

/* The key would belong to a foreign library. */
int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
	(void)key;
	(void)value;
	abort();
}
