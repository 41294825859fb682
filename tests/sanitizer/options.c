/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the sanitizers, for every executable.  Variables as ASAN_OPTIONS add to the options.
 *
 * intercept_tls_get_addr: the sanitizers guess the size of thread-local memory that the dynamic linker
 * allocates at its first use.  Where the memory is 16 bytes behind a page, they take what precedes it
 * for a header of glibc 2.19, and read or unmap whatever follows from that: "Tracer caught signal 11",
 * "ThreadSanitizer failed to allocate".  The memory is the linker's malloc() in any case, which the
 * sanitizers see.
 *
 * atexit_sleep_ms: a process that ends while threads run would wait a second for races.
 */
#define EXPORT __attribute__((visibility("default")))

EXPORT const char *__asan_default_options(void);
EXPORT const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "intercept_tls_get_addr=0";
}

const char *__tsan_default_options(void)
{
	return "intercept_tls_get_addr=0:atexit_sleep_ms=0";
}
