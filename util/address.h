/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a pointer, to compare with other addresses and with /proc/self/maps, or to give to
 * the kernel.  A program's pointer goes on to the driver as it is.
 */
#ifndef UTIL_ADDRESS_H
#define UTIL_ADDRESS_H

#include <stdint.h>

static inline uintptr_t address_of(const void *pointer)
{
#ifdef __aarch64__
	/* The processor ignores the top byte, where glibc's tagged memory (MTE) and HWASan have a tag. */
	return (uintptr_t)pointer & UINTPTR_MAX >> 8;
#else
	return (uintptr_t)pointer;
#endif
}

#endif /* UTIL_ADDRESS_H */
