/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test may ask of the libcuda of tests/fake/cuda.c, and do to it.
 *
 * Device addresses are reserved and not accessible: a CPU that touches one faults.  Behind each
 * is memory elsewhere, see fake_cuda_memory().  The fake keeps the rules of the real driver:
 * whole pages, multiples of the granularity, a context that is current.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_DEVICES 4
#define FAKE_CUDA_GRANULARITY ((size_t)2 << 20)

/* Devices of the system, initialized, every control below back to its default, counts to 0. */
void fake_cuda_reset(int devices);
void fake_cuda_uninitialize(void); /* as before cuInit(), or after fork() */
void fake_cuda_uuid(int device, unsigned char uuid[16]);
void fake_cuda_set_attribute(int device, int attribute, int value);
void fake_cuda_set_pcie(bool supported);     /* the PCIe flag of a dma-buf; else NOT_SUPPORTED */
void fake_cuda_set_no_mappings(bool hidden); /* their attributes, which older drivers lack */
void fake_cuda_set_forks(bool each_call);    /* as cuInit() does, to load kernel modules */

/*
 * The @nth call (from 1) of @function returns @result and does nothing.  NULL: of any function,
 * but for those that give something back.
 */
void fake_cuda_fail(const char *function, int nth, int result);
bool fake_cuda_has_failed(void); /* since then */
/* Calls @hook when the @nth call of @function begins. */
void fake_cuda_at(const char *function, int nth, void (*hook)(void *arg), void *arg);
int fake_cuda_calls(const char *function);	/* NULL: of any */
int fake_cuda_retains(int device);		/* of its primary context */
unsigned long long fake_cuda_range_flags(void); /* of the last dma-buf that was made */

/* As an application.  0 on failure. */
uintptr_t fake_cuda_alloc(int device, size_t size); /* cuMemAlloc: under a page, inside of one */
uintptr_t fake_cuda_alloc_at(int device, size_t size, uintptr_t addr); /* an address again */
uintptr_t fake_cuda_managed(int device, size_t size);
uintptr_t fake_cuda_host(int device, size_t size); /* cuMemHostAlloc */
void fake_cuda_host_register(int device, void *memory, size_t size);
void fake_cuda_free(uintptr_t addr); /* any of these */

enum { FAKE_CUDA_HOST_NUMA = -1, FAKE_CUDA_HOLE = -2 };
struct fake_cuda_segment {
	int device; /* or one of the above */
	size_t size;
	int handle_types; /* 1: POSIX descriptors */
};
/* Segments side by side in one reservation, which has a hole at its end. */
uintptr_t fake_cuda_vmm(const struct fake_cuda_segment *segments, size_t count);
void fake_cuda_vmm_free(uintptr_t addr);

void *fake_cuda_memory(uintptr_t addr); /* what the device sees there; NULL: nothing */
bool fake_cuda_syncs(uintptr_t addr);	/* SYNC_MEMOPS */
int fake_cuda_access(uintptr_t addr);	/* locations that a VMM mapping is open to */
int fake_cuda_node(uintptr_t addr);	/* NUMA, of VMM memory */
int fake_cuda_rdma(uintptr_t addr);	/* gpuDirectRDMACapable of VMM memory */

/* Contexts of this thread. */
void *fake_cuda_context_create(int device); /* not current */
void fake_cuda_context_destroy(void *context);
void fake_cuda_set_current(void *context);
void *fake_cuda_current(void);

/* What was not given back. */
struct fake_cuda_held {
	int allocations, handles, mappings, reservations, primaries, pushed;
};
struct fake_cuda_held fake_cuda_held(void);

#endif
