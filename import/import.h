/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imported memory: host pages and dma-bufs.  A *region* is memory that was checked and mapped once,
 * and is held by every OpenCL object made from the memory.
 *
 * No OpenCL type appears here.  Functions return 0 or a negative errno; the function that finds a
 * fault logs the exact cause (util/log.h).  icd/error.c translates each errno.  All functions may
 * be called from any thread.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/shared.h"
#include "util/descriptor.h"
#include "util/list.h"

enum import_type {
	IMPORT_HOST,
	IMPORT_DMABUF,
	IMPORT_TYPES,
};

enum import_access {
	IMPORT_READ = 1 << 0,
	IMPORT_WRITE = 1 << 1,
};

/* Kinds of mappings of host memory: drivers treat each kind in a different way. */
enum import_kind {
	IMPORT_ANONYMOUS,     /* private, of no file: malloc(), the stack */
	IMPORT_FILE_PRIVATE,  /* a private mapping of a file; a program's data */
	IMPORT_FILE_SHARED,   /* a shared mapping of a file on a disk */
	IMPORT_SHMEM,	      /* shared memory: memfd_create(), shm_open(), MAP_SHARED of no file */
	IMPORT_SHMEM_PRIVATE, /* a private mapping of shared memory, or of a file on tmpfs */
	IMPORT_HUGE,	      /* MAP_HUGETLB, private */
	IMPORT_HUGE_SHARED,   /* MAP_HUGETLB, shared */
	IMPORT_OF_DMABUF,     /* a dma-buf's */
	IMPORT_OTHER,	      /* a device's, or unknown */
	IMPORT_UNWRITABLE,    /* an additional bit: mapped without write permission */
	IMPORT_SEVERAL,	      /* an additional bit: more than one mapping */
	IMPORT_KINDS,
};

/* A request of the application.  Borrowed for the duration of import_get(). */
struct import_desc {
	enum import_type type;
	void *memory;	     /* the memory, or the address of an int: the dma-buf descriptor */
	size_t size;	     /* bytes, not 0 */
	unsigned int access; /* of devices: enum import_access */
	bool cpu_optional;   /* a dma-buf without a CPU mapping is taken, too */
	size_t room;	     /* bytes for the caller, who finds them behind the region */
};

struct import_region;

enum import_edge { IMPORT_BEGIN, IMPORT_END };

/*
 * The operations of a kind of memory.  A new kind is a file with a table of operations, and a row
 * in import.c.  No lock is held around any call.
 */
struct import_ops {
	/* Fills region->addr, fd and access.  Undone by close. */
	int (*open)(const struct import_desc *desc, struct import_region *region);
	void (*close)(struct import_region *region);

	/* Optional: the application has released the import; before close, or not at all. */
	void (*released)(struct import_region *region);

	/*
	 * Optional, all or none: CPU access needs a bracket.  check_access: 0, or a negative errno, logged,
	 * if sync can only fail by now.
	 */
	int (*sync)(struct import_region *region, unsigned int access, enum import_edge edge);
	int (*check_access)(const struct import_region *region);

	/* poll(2) events of region->fd after which IMPORT_BEGIN does not wait. */
	short (*ready_events)(unsigned int access);
};

extern const struct import_ops import_host_ops;
extern const struct import_ops import_dmabuf_ops;

/* What keeps the memory of import_opaque(): the first member of opaque.c's. */
struct opaque {
	void (*put)(struct opaque *opaque);
};

/* Set before other threads see the region; later the counts and @unaligned alone change. */
struct import_region {
	const struct import_ops *ops;
	atomic_uint refs;
	void *addr;  /* CPU address of the first byte; NULL: a dma-buf without a CPU mapping */
	size_t size; /* requested bytes */
	int fd;	     /* own dma-buf descriptor, or -1 */
	struct descriptor_id id; /* of @fd */
	unsigned int access; /* permitted by the memory; for a dma-buf maybe less than requested */
	const char *read_only; /* why a dma-buf permits no writing, a clause; or NULL */
	unsigned int wanted;   /* of devices: the request, of which something is permitted */
	unsigned int kinds;    /* a bit for each enum import_kind in the region */
	struct opaque *opaque; /* for import_opaque(), once; or NULL */
	bool unsynced;	       /* no DMA_BUF_IOCTL_SYNC: no CPU mapping is used */
	struct list unaligned; /* import/kinds/host.c's; next is NULL: in no list */
	atomic_uint begun;     /* STARTs without an END yet: no END is sent for none */
	bool is_borrowed;      /* host memory: the application keeps it, and nothing is held */
	bool is_sample;	       /* climport's own, and gone soon: no registration is kept */
};

/**
 * import_get - check memory and hold it
 * @desc: the memory
 * @region: set on success; the caller drops it with import_put()
 *
 * May sleep.  A descriptor stays the caller's, who may close the descriptor at once.
 * Host memory stays the caller's too and must outlive the region.
 *
 * Returns 0, or
 *   -EBADF   not a dma-buf descriptor, or no descriptor can be read at desc->memory
 *   -ERANGE  desc->size exceeds the dma-buf, or the address space
 *   -EFAULT  part of the host range is not mapped
 *   -EACCES  the mapping does not permit desc->access; a dma-buf permits nothing of desc->access
 *   -EBUSY   shares a page with an unaligned host range of other access
 *   -EOPNOTSUPP  the exporter of the dma-buf gives it no CPU mapping
 *   -ENOMEM, -EMFILE, -EIO
 */
int import_get(const struct import_desc *desc, struct import_region **region);

/**
 * import_of_driver - a region without memory, for memory that a driver has imported by itself
 * @room: as in struct import_desc
 *
 * Nothing is checked, held or kept consistent: the driver does.  Returns 0 or -ENOMEM.
 */
int import_of_driver(size_t size, size_t room, struct import_region **region);

/* For import/: a region of readable and writable memory, with one reference. */
void import_region_init(struct import_region *region, const struct import_ops *ops, void *addr,
			size_t size);

/* Takes a further reference to a region of the caller's. */
void import_hold(struct import_region *region);

/*
 * The application releases the import; the driver may hold the memory for some time.  The
 * memory conflicts with no later import from here on.
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
	bool is_sparse; /* only the places are touched */
	size_t at[IMPORT_SAMPLE_PLACES];
};

/**
 * import_sample_kind - memory of climport's own, of a kind
 *
 * For self-tests.  Zero, readable and writable (IMPORT_UNWRITABLE apart), and not populated: untouched
 * memory costs nothing, except on a disk, where the blocks of a shared mapping are allocated before stores.  The memory
 * lives as long as the region.
 *
 * Returns 0; -EOPNOTSUPP if no memory of the kind and size can be made here; or a lack of the
 * moment: -ENOMEM, -EMFILE, -EIO, -ENOSPC, -EDQUOT, -EFBIG.
 */
int import_sample_kind(const struct import_sample_want *want, struct import_region **region);

/*
 * A dma-buf of climport's own, of zeros.  @fd: the caller's.  Returns 0; or, not logged, -EOPNOTSUPP:
 * the process can make no dma-buf; or a lack of the moment: -ENOMEM, -ENOSPC, -EMFILE, -ENFILE.
 */
int import_sample_dmabuf(size_t size, int *fd);

/* The pages of host memory as a dma-buf. */
struct import_pages {
	int fd;	       /* the caller's to close */
	size_t offset; /* of the region's first byte */
};

/**
 * import_pages - the pages around a region of host memory, for drivers that take dma-bufs
 *
 * The dma-buf is of the pages that are there now, and keeps the pages.  The kernel module gdmabuf
 * makes it, or udmabuf of a sealed memfd.
 *
 * Returns 0, -EOPNOTSUPP if nobody makes a dma-buf of such memory, or another negative errno, logged.
 */
int import_pages(const struct import_region *region, struct import_pages *out);

/*
 * Host memory of zeros that import_pages() takes.  The memory lives as long as the region.  0,
 * -EOPNOTSUPP, not logged: import_pages() takes none; or -ENOMEM, -EDQUOT, -EMFILE.
 */
int import_sample_pages(size_t size, struct import_region **region);

/*
 * Bytes that the process may still take without harm: the rest of the machine, or the rest of the
 * control groups if less.
 */
size_t import_memory_available(void);

#define IMPORT_UUID_SIZE 16

/*
 * Exporters make opaque descriptors.  Devices treat memory of each exporter differently.  An
 * exporter has a number below IMPORT_EXPORTERS.
 */
#define IMPORT_EXPORTERS 2

/* The facts about an exporter that users of a descriptor need. */
struct import_exporter {
	const char *name;
	const char *memory; /* part of a sentence: the memory that the exporter serves */
	/* Memory without a CPU address is the device's own.  Another exporter takes pages of all host memory. */
	bool has_device_memory;
};

const struct import_exporter *import_exporter_get(unsigned int exporter);

/*
 * A driver's buffer of a registration has a descriptor of the process.  The program's own descriptors
 * come first: kept buffers have shares of the process's limit, by who has asked to keep the memory.
 */
enum import_share {
	IMPORT_SHARE_UNASKED,	 /* nobody: host memory that is watched */
	IMPORT_SHARE_ALLOCATED,	 /* memory of climport_alloc() */
	IMPORT_SHARE_REGISTERED, /* climport_register() */
	IMPORT_SHARES,
};

/* The most buffers that may be kept without an import, of all devices and contexts together. */
unsigned int import_share_most(enum import_share share);

/* Memory for cl_khr_external_memory_opaque_fd: a descriptor, or a registration. */
struct import_opaque {
	int fd;	       /* the caller's to close; -1: a registration */
	size_t offset; /* of the region's first byte */
	size_t size;   /* of the whole */
	unsigned int exporter;
	bool is_on_device;	 /* the memory is the device's own */
	uint64_t kept;		 /* not 0: names a registration that stays, until the forget call */
	enum import_share share; /* of a registration */
};

/*
 * @forget is called before a registration ends, on any thread, but not once the process exits: the
 * call that gives @forget comes after the driver's start, so that the driver ends later.  The process
 * has one @forget, the layer's.
 */
void import_on_forget(void (*forget)(uint64_t kept));

/* @give_up drops buffers of registrations in a shortage (util/shortage.h), when @forget may. */
void import_on_shortage(bool (*give_up)(uint32_t count));

/**
 * import_opaque - the region as memory for the drivers of one device
 * @opaque: set on success, to what the memory is kept by: region->opaque, for import_put() to drop
 * @uuid: CL_DEVICE_UUID_KHR
 *
 * The memory decides which exporter makes the descriptor (import/opaque_fd/opaque.c).
 *
 * The memory stays in place while the caller has the descriptor, and while a driver's buffer of the
 * descriptor and the region live.  climport keeps no descriptor.
 *
 * A registration has no descriptor: the caller uses a buffer made of the registration before, or
 * calls import_opaque_open().
 *
 * Returns 0, or
 *   -EOPNOTSUPP  nobody makes a descriptor; logged with the reason
 *   -EXDEV	  memory of a different device
 *   -ENODEV	  the memory was freed since the export
 *   -EFAULT, -ENOMEM, -EMFILE
 */
int import_opaque(const struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct opaque **opaque, struct import_opaque *out);

/**
 * import_opaque_open - a descriptor of a registration
 * @opaque: import_opaque()'s, with a registration
 * @may_keep: whether the caller can keep a driver's buffer of the registration
 * @out: what import_opaque() has set.  Set on success: a descriptor of all of the registration; or,
 *	 for the import alone, with @kept 0: if the registration as a whole cannot be pinned, or the
 *	 buffer cannot be kept.
 *
 * Returns 0, or an error of import_opaque().
 */
int import_opaque_open(struct opaque *opaque, const unsigned char uuid[IMPORT_UUID_SIZE],
		       bool may_keep, struct import_opaque *out);

/*
 * The region's own pages alone, for a driver that makes no buffer of all of the registration: @out
 * is set on success.  -EOPNOTSUPP, not logged: the region's pages are all that there are, or the
 * exporter makes no descriptors of pages.
 */
int import_opaque_open_part(struct opaque *opaque, const unsigned char uuid[IMPORT_UUID_SIZE],
			    struct import_opaque *out);

/* How pages of the host stay registered between imports: a clause for people.  NULL: not at all. */
const char *import_describe_kept(void);

/**
 * import_sample - a page of host memory for opaque descriptors of @exporter
 *
 * For self-tests.  The memory lives as long as the region.  May load a library of the exporter's.
 *
 * Returns 0, or -ENODEV, -EOPNOTSUPP, -ENOMEM, logged.
 */
int import_sample(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_region **region);

/**
 * import_sample_on_device - @size bytes of a device's own memory for opaque descriptors of @exporter
 *
 * For self-tests.  The region's address is the device's: the CPU cannot access the memory.
 *
 * Returns 0; -EOPNOTSUPP, logged, too if the exporter has no such memory; or -ENODEV, -ENOMEM, logged.
 */
int import_sample_on_device(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
			    size_t size, struct import_region **region);

/* Whether use needs a bracket: a dma-buf with a CPU mapping does. */
bool import_needs_bracket(const struct import_region *region);

/*
 * Brackets CPU access to a region that the kernel must keep coherent
 * (DMA_BUF_IOCTL_SYNC; Documentation/driver-api/dma-buf.rst).  IMPORT_BEGIN writes back what the CPU has written, and waits
 * for the fences of the buffer.  Regions that need no bracket return 0.
 *
 * -EIO if the program has closed the region's descriptor, which cannot be replaced.
 * import_check_access() returns the error without a bracket, logged.
 */
int import_check_access(const struct import_region *region);
int import_sync(struct import_region *region, unsigned int access, enum import_edge edge);

/**
 * import_begin_async - begin access to several regions, without blocking
 * @regions: @count regions, each with an access in @access; both are borrowed
 *	until @done was called, and the caller keeps references until then
 * @done: called once, before this returns or later on a thread of its own, with 0
 *	or the first negative errno; regions begun before the error have
 *	been ended again
 *
 * For callbacks of drivers, which may not block.  A buffer with unsignalled fences delays no other
 * call.
 *
 * Returns 0, or -ENOMEM, -EAGAIN if no thread could be started; @done is then not called.
 */
int import_begin_async(struct import_region *const *regions, const unsigned int *access,
		       size_t count, void (*done)(void *arg, int error), void *arg);

#endif /* IMPORT_IMPORT_H */
