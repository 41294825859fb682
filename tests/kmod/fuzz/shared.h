/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and memory in use by all threads of the fuzzer: a thread closes, frees and replaces
 * entries while other threads use the entries.  Children inherit the tables.
 *
 * An entry without a descriptor is -1, an entry without memory is 0.
 */
#ifndef TESTS_KMOD_FUZZ_SHARED_H
#define TESTS_KMOD_FUZZ_SHARED_H

#include "random.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* The value, or the place, of a random entry. */
#define ANY_OF(table) atomic_load(&(table)[fuzz_any(COUNT_OF(table))])
#define PLACE_IN(table) (&(table)[fuzz_any(COUNT_OF(table))])

enum { FUZZ_TABLE = 24 };

struct fuzz_shared {
	atomic_int contexts[4], gpus[2], importers[4];
	atomic_int buffers[FUZZ_TABLE]; /* dma-bufs */
	int sockets[2];			/* carry descriptors between threads and processes */
	_Atomic uint64_t allocations[FUZZ_TABLE]; /* addresses of GPU memory */
	_Atomic uint64_t watches[FUZZ_TABLE];	  /* slot << 32 | generation */
	_Atomic uint64_t views[FUZZ_TABLE];	  /* address | pages, of mappings of dma-bufs */
};
extern struct fuzz_shared shared;

/* Opens the devices and the sockets; exits with 2 on failure.  A missing device is -1. */
void fuzz_shared_open(void);

/* Closes every descriptor.  Mappings stay: fuzz_views_unmap(). */
void fuzz_shared_close(void);

/* Replaces and closes a descriptor. */
void fuzz_replace_fd(atomic_int *place, int fd);

/* Mostly a dma-buf, sometimes a descriptor of another kind, or a bad number. */
int fuzz_any_fd(void);

/* Call: opens, duplicates or closes a descriptor. */
void fuzz_open_close(void);

/* Call: sends a descriptor to other threads and processes, or receives a descriptor. */
void fuzz_pass_on(void);

#endif
