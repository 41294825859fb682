/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Controls and counters of the fake libcuda of tests/fake/cuda, for tests.
 *
 * Device addresses are reserved and not accessible: a CPU that touches a device address faults.
 * The bytes behind each device address are elsewhere, see fake_cuda_memory().  The fake keeps the
 * rules of the real driver: whole pages, multiples of the granularity, a current context.
 *
 * The environment of a process, for processes of which a test is not part: FAKE_CUDA_DEVICES is the
 * number of devices at first, FAKE_CUDA_FREE the bytes of the largest memory that can be
 * allocated.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_DEVICES 4
#define FAKE_CUDA_GRANULARITY ((size_t)2 << 20)

/* @devices devices, CUDA initialized, every control below at the default, all counts at 0. */
void fake_cuda_reset(int devices);
void fake_cuda_uninitialize(void); /* the state before cuInit(), or after fork() */
void fake_cuda_uuid(int device, unsigned char uuid[16]);
void fake_cuda_set_attribute(int device, int attribute, int value);
void fake_cuda_set_pcie(bool supported); /* false: a dma-buf with the PCIe flag is NOT_SUPPORTED */
void fake_cuda_set_no_vmm_sync(bool refused); /* SYNC_MEMOPS of VMM memory, as driver 580 does */
void fake_cuda_set_busy(bool is_busy);	      /* the device reaches no event that is recorded */
/* From the beginning of a capture to the end: whether nothing has spoiled the capture. */
void fake_cuda_capture_begin(void *stream);
bool fake_cuda_capture_end(void *stream);
void fake_cuda_set_forks(bool each_call); /* each call forks, as cuInit() to load modules */

/*
 * The @nth call (from 1) of @function returns @result and does nothing.  NULL: of any function
 * that releases nothing.
 */
void fake_cuda_fail(const char *function, int nth, int result);
bool fake_cuda_has_failed(void); /* since fake_cuda_fail() */
/* The system refuses the driver the @nth memory, mapping or memfd; 0: none. */
void fake_cuda_refuse(int nth);
bool fake_cuda_has_refused(void); /* since fake_cuda_refuse() */
/* Calls @hook when the @nth call of @function begins. */
void fake_cuda_at(const char *function, int nth, void (*hook)(void *arg), void *arg);
int fake_cuda_calls(const char *function);	/* NULL: of all functions */
int fake_cuda_retains(int device);		/* of the device's primary context */
unsigned long long fake_cuda_range_flags(void); /* of the newest dma-buf */

/* The application's memory.  0 on failure. */
uintptr_t fake_cuda_alloc(int device, size_t size); /* cuMemAlloc: small ones inside a page */
uintptr_t fake_cuda_alloc_at(int device, size_t size, uintptr_t addr); /* reuses an address */
uintptr_t fake_cuda_managed(int device, size_t size);
uintptr_t fake_cuda_host(int device, size_t size); /* cuMemHostAlloc */
bool fake_cuda_host_register(int device, void *memory, size_t size);
void fake_cuda_free(uintptr_t addr); /* the counterpart of all five */

enum { FAKE_CUDA_HOST_NUMA = -1, FAKE_CUDA_HOLE = -2 };
struct fake_cuda_segment {
	int device; /* a device, FAKE_CUDA_HOST_NUMA or FAKE_CUDA_HOLE */
	size_t size;
	int handle_types; /* 1: POSIX descriptors */
};
/* Segments side by side in a reservation, which ends with a hole. */
uintptr_t fake_cuda_vmm(const struct fake_cuda_segment *segments, size_t count);
void fake_cuda_vmm_replace(uintptr_t addr); /* frees a segment and reuses the address for another */
void fake_cuda_vmm_free(uintptr_t addr);

void *fake_cuda_memory(uintptr_t addr); /* the device's bytes at @addr, or NULL */
bool fake_cuda_syncs(uintptr_t addr);	/* SYNC_MEMOPS */
int fake_cuda_access(uintptr_t addr);	/* how many locations may access a VMM mapping */
int fake_cuda_node(uintptr_t addr);	/* NUMA node of VMM memory */
int fake_cuda_rdma(uintptr_t addr);	/* gpuDirectRDMACapable of VMM memory */

/* Contexts of the calling thread. */
void *fake_cuda_context_create(int device); /* not current; NULL on failure */
void fake_cuda_context_destroy(void *context);
void fake_cuda_set_current(void *context);
void *fake_cuda_current(void);

/* Objects that the program has not released yet. */
struct fake_cuda_held {
	int allocations, handles, mappings, reservations, primaries, pushed;
};
struct fake_cuda_held fake_cuda_held(void);

/* Whether the program holds exactly @expected; prints each difference. */
bool fake_cuda_holds(const struct fake_cuda_held *expected);

#endif
