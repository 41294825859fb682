/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imported memory: host pages and dma-bufs, checked and mapped once, held by
 * every OpenCL object made from them.
 *
 * No OpenCL type appears here.  Functions return 0 or a negative errno; the one
 * that finds a fault logs it with its exact cause (util/log.h).  icd/error.c
 * says what each errno becomes.  All functions may be called from any thread.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/kinds/ranges.h"
#include "import/shared.h"
#include "util/descriptor.h"

struct import_ops;
struct opaque;

enum import_type {
	IMPORT_HOST,
	IMPORT_DMABUF,
	IMPORT_TYPES,
};

enum import_access {
	IMPORT_READ = 1 << 0,
	IMPORT_WRITE = 1 << 1,
};

/* How host memory is mapped: drivers treat each kind in their own way. */
enum import_kind {
	IMPORT_ANONYMOUS,     /* private, of no file: malloc(), the stack */
	IMPORT_FILE_PRIVATE,  /* a private mapping of a file; a program's data */
	IMPORT_FILE_SHARED,   /* a shared mapping of a file on a disk */
	IMPORT_SHMEM,	      /* shared memory: memfd_create(), shm_open(), MAP_SHARED of no file */
	IMPORT_SHMEM_PRIVATE, /* a private mapping of the same, or of a file on tmpfs */
	IMPORT_HUGE,	      /* MAP_HUGETLB, private */
	IMPORT_HUGE_SHARED,   /* the same, shared */
	IMPORT_OF_DMABUF,     /* a dma-buf's */
	IMPORT_OTHER,	      /* a device's, what is not known */
	IMPORT_UNWRITABLE,    /* besides its kind: mapped without write permission */
	IMPORT_SEVERAL,	      /* besides their kinds: more than one mapping */
	IMPORT_KINDS,
};

/* What the application asks for.  Borrowed for the duration of import_get(). */
struct import_desc {
	enum import_type type;
	void *memory;	     /* the memory, or the address of an int: its dma-buf descriptor */
	size_t size;	     /* bytes, not 0 */
	unsigned int access; /* what devices will do: enum import_access */
	bool cpu_optional;   /* a dma-buf that the CPU cannot map is taken, too */
};

/* What has to be done before a device uses memory that the host has changed. */
struct import_invalidate {
	int (*invalidate)(struct import_invalidate *invalidate); /* 0 or a negative errno */
	void (*prepare)(
		struct import_invalidate *invalidate); /* the next: takes time, not needed */
	void (*put)(struct import_invalidate *invalidate);
};

/* Memory that is held.  Set by pin() and, but for the count, not changed afterwards. */
struct import_region {
	const struct import_ops *ops;
	atomic_uint refs;
	void *addr;  /* CPU address of the first byte; NULL: a dma-buf without a CPU mapping */
	size_t size; /* bytes that were asked for */
	int fd;	     /* own dma-buf descriptor, or -1 */
	struct descriptor_id id; /* its */
	unsigned int
		access; /* what the memory permits; for a dma-buf it may be less than asked for */
	unsigned int wanted;   /* what devices do: what was asked for, as far as it is permitted */
	bool reduced;	       /* more was asked for */
	unsigned int kinds;    /* a bit for each enum import_kind that is in it */
	struct opaque *opaque; /* set by import_opaque(), once */
	struct import_invalidate *invalidate; /* set by its user before others see the region */
	bool unsynced;	    /* the same: no DMA_BUF_IOCTL_SYNC, its owner does that */
	struct range pages; /* import/kinds/host.c: of an unaligned range */
	bool listed;	    /* there */
};

/**
 * import_get - check memory and hold it
 * @desc: the memory
 * @region: set on success; the caller drops it with import_put()
 *
 * May sleep.  A descriptor stays the caller's: it may be closed at once.
 * Host memory stays the caller's too and must outlive the region.
 *
 * Returns 0, or
 *   -EBADF   not a dma-buf descriptor, or no descriptor can be read at desc->memory
 *   -ERANGE  desc->size exceeds the dma-buf, or the address space
 *   -EFAULT  part of the host range is not mapped
 *   -EACCES  the mapping does not permit desc->access
 *   -EBUSY   shares a page with an unaligned host range of other access
 *   -EOPNOTSUPP  the exporter of the dma-buf gives it no CPU mapping
 *   -ENOMEM, -EMFILE, -EIO
 */
int import_get(const struct import_desc *desc, struct import_region **region);

/* One more reference to a region that the caller holds. */
void import_hold(struct import_region *region);

/*
 * The application has released it; the driver may hold it for some time.  The memory counts no
 * more among the live imports that others may conflict with.
 */
void import_released(struct import_region *region);

/* Drops a reference; the last one unmaps.  @region may be NULL. */
void import_put(struct import_region *region);

#define IMPORT_SAMPLE_PLACES 3
#define IMPORT_SAMPLE_TOUCHED 64 /* bytes from each place */

struct import_sample_want {
	enum import_kind kind;
	size_t offset;	/* of the first byte from a page of an odd number */
	size_t size;	/* bytes */
	bool is_sparse; /* nothing but the places is touched */
	size_t at[IMPORT_SAMPLE_PLACES];
};

/**
 * import_sample_kind - memory of climport's own, of a kind
 *
 * For self-tests.  Zero, readable and writable, and not populated: what is not touched costs
 * nothing, but on a disk, where memory that is shared with a file is allocated before it is
 * stored to.  The memory lives as long as the region.
 *
 * Returns 0, -EOPNOTSUPP if no memory of that kind and size can be made here, or what is wrong at
 * the moment: -ENOMEM, -EMFILE, -EIO, -ENOSPC, -EDQUOT, -EFBIG.
 */
int import_sample_kind(const struct import_sample_want *want, struct import_region **region);

/*
 * Bytes that the process may still take without harm: what the machine has left, or its control
 * groups where that is less.
 */
size_t import_memory_available(void);

#define IMPORT_UUID_SIZE 16

/* Who made an opaque descriptor: devices treat their memory differently. */
enum import_maker { IMPORT_BY_CUDA, IMPORT_BY_VULKAN, IMPORT_EXPORTERS };

/* What users of a descriptor have to know of the code that made the descriptor. */
struct import_exporter {
	const char *name;
	const char *memory;	/* part of a sentence: the memory that the exporter serves */
	bool may_be_coherent;	/* devices may map the exporter's host memory past their caches */
	bool has_device_memory; /* memory without a CPU address is the device's own */
};

const struct import_exporter *import_exporter_get(enum import_maker maker);

/* A descriptor for cl_khr_external_memory_opaque_fd.  It is the region's. */
struct import_opaque {
	int fd;
	size_t offset; /* of the region's first byte in it */
	size_t size;   /* of the whole */
	enum import_maker maker;
	uint64_t kept; /* not 0: names memory of climport_alloc(), until it is forgotten */
};

/*
 * @forget is called before kept memory is freed, on the thread that frees it.  One for the
 * process, of the layer.
 */
void import_on_forget(void (*forget)(uint64_t kept));

/**
 * import_opaque - the region by a descriptor that drivers of one device understand
 * @region: one that no other thread knows yet
 * @uuid: CL_DEVICE_UUID_KHR
 *
 * CUDA's allocations say it themselves (import/nvidia/cuda/cuda.h); for other memory Vulkan makes it
 * (import/nvidia/vulkan/vulkan.h), which takes 0.2 to 0.4 s the first time.  Lives as long as the region.
 *
 * Returns 0, or
 *   -EOPNOTSUPP  no way leads there; logged with the reason
 *   -EXDEV	  memory of another device
 *   -ENODEV	  the memory was freed since it was exported
 *   -EFAULT, -ENOMEM, -EMFILE
 */
int import_opaque(struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_opaque *out);

/**
 * import_sample - a page of host memory that @maker makes an opaque descriptor of
 *
 * For self-tests.  The memory lives as long as the region.  Loads Vulkan or CUDA.
 *
 * Returns 0, or -ENODEV, -EOPNOTSUPP, -ENOMEM, logged.
 */
int import_sample(enum import_maker maker, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_region **region);

/*
 * Whether use has to be bracketed at all: dma-bufs that the CPU has mapped, and memory that
 * has to be refreshed.  The latter needs the beginning alone.
 */
bool import_needs_bracket(const struct import_region *region);
bool import_needs_end(const struct import_region *region);

/* Whether beginning access to one of them does for the other as well. */
bool import_same_bracket(const struct import_region *a, const struct import_region *b);

/*
 * Brackets CPU access to a region that the kernel must keep coherent
 * (DMA_BUF_IOCTL_SYNC; Documentation/driver-api/dma-buf.rst).  begin waits for
 * the fences of the buffer, and then refreshes what the device has of it.  Regions that
 * need neither return 0.
 *
 * -EIO if the program has closed the region's descriptor: there is no way to another one.
 * import_check_access() says so without a bracket, logged.
 */
int import_check_access(const struct import_region *region);
int import_begin_access(struct import_region *region, unsigned int access);
int import_end_access(struct import_region *region, unsigned int access);

/* Lets the next begin take less time.  To be called when the command is on its way. */
void import_prepare(struct import_region *region);

enum import_edge { IMPORT_BEGIN, IMPORT_END };

/**
 * import_bracket_async - begin or end access to several regions, without blocking
 * @regions: @count regions, each with its access in @access; both are borrowed
 *	until @done was called, the caller keeps its references that long
 * @done: called once, before this returns or later on the worker thread, with 0
 *	or the first negative errno; regions that were begun before the error have
 *	been ended again
 *
 * For callbacks of drivers, which may not make calls that block.  A buffer
 * whose fences are not signalled delays no other call.
 *
 * Returns 0, or -ENOMEM, -EAGAIN, -EMFILE if no worker could be started; @done is then not called.
 */
int import_bracket_async(enum import_edge edge, struct import_region *const *regions,
			 const unsigned int *access, size_t count,
			 void (*done)(void *arg, int error), void *arg);

#endif /* IMPORT_IMPORT_H */
