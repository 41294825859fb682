/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into a plugin in front of the C library's allocations: one of the plugin's own fails. */
#include "net_shortage.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_int net_shortage_until; /* allocations until the failing one; 0: none fails */
static void (*_Atomic net_shortage_instead)(void);

/* The linker wants visible wrappers, because a sanitizer's library refers to malloc(). */
#define WRAPPED __attribute__((visibility("default")))

void *__real_malloc(size_t size);
WRAPPED void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
WRAPPED void *__wrap_calloc(size_t count, size_t size);
char *__real_strdup(const char *text);
WRAPPED char *__wrap_strdup(const char *text);

WRAPPED void net_shortage_at(int nth)
{
	net_shortage_call_at(nth, NULL);
}

WRAPPED void net_shortage_call_at(int nth, void (*instead)(void))
{
	atomic_store(&net_shortage_instead, instead);
	atomic_store(&net_shortage_until, nth);
}

WRAPPED int net_shortage_left(void)
{
	return atomic_load(&net_shortage_until);
}

static bool net_shortage_refuses(void)
{
	void (*instead)(void) = atomic_load(&net_shortage_instead);

	if (atomic_load(&net_shortage_until) <= 0 || atomic_fetch_sub(&net_shortage_until, 1) != 1)
		return false;
	if (instead)
		instead();
	return !instead;
}

void *__wrap_malloc(size_t size)
{
	return net_shortage_refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return net_shortage_refuses() ? NULL : __real_calloc(count, size);
}

char *__wrap_strdup(const char *text)
{
	return net_shortage_refuses() ? NULL : __real_strdup(text);
}
