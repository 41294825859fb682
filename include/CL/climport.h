/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclimport: memory for clImportMemoryARM.
 *
 * Functions that return int return 0 or a negative errno, and change *out on success only.
 * All functions may be called from any thread, and block for no longer than the drivers below do.
 * Each error is a sentence: climport_last_error(), and with CLIMPORT_LOG=error standard error.
 * Sizes are bytes.
 *
 * Structs that functions fill may have more members in later versions, at the end.  So the caller
 * passes the size of the struct: sizeof(*out).  A member that the library does not know is set to 0,
 * and a member that the caller does not know is not written.  A size below the struct's of version
 * 0.2.0 is -EINVAL.  Flags that the library does not know are -EINVAL.
 *
 * docs/libclimport.md has the rules for threads, fork(), signals and CUDA's contexts.  In short: a
 * child may call all functions; a signal handler none; memory of climport_alloc() for a device holds
 * the primary context of CUDA's.
 */
#ifndef CL_CLIMPORT_H
#define CL_CLIMPORT_H

#include <stddef.h>
#include <stdint.h>

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <CL/cl_ext.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Versions count as cl_version does: CL_VERSION_MAJOR() and its like take them apart. */
#define CLIMPORT_VERSION_MAJOR 0
#define CLIMPORT_VERSION_MINOR 2
#define CLIMPORT_VERSION_PATCH 0
#define CLIMPORT_MAKE_VERSION(major, minor, patch) (((major) << 22) | ((minor) << 12) | (patch))
#define CLIMPORT_VERSION                                                      \
	CLIMPORT_MAKE_VERSION(CLIMPORT_VERSION_MAJOR, CLIMPORT_VERSION_MINOR, \
			      CLIMPORT_VERSION_PATCH)

/**
 * climport_version - the version of the library
 *
 * The version of the library, which may be newer than CLIMPORT_VERSION of the header.  While the
 * major version is 0, a program needs the minor version that it was compiled for: the dynamic linker
 * refuses others.  A program that calls by dlsym() checks the version itself.
 */
uint32_t climport_version(void);

/**
 * climport_last_error - the sentence of this thread's last error
 *
 * For people, and without a line feed.  The sentence names the cause that the error code leaves
 * open: "mmap of dma-buf 7, 4096 bytes: Permission denied".  "" before the thread's first error.
 *
 * The text is the library's, and stays as it is until another call of the thread's fails.  Calls
 * that succeed, and calls of other threads, leave the text alone.
 */
const char *climport_last_error(void);

/* Memory in a dma-buf: @size bytes from byte @offset on, of the @whole bytes of the dma-buf. */
struct climport_dmabuf {
	int fd;
	size_t offset;
	size_t size;
	size_t whole;
};

/* Flags of climport_export_dmabuf(). */
#define CLIMPORT_READ_ONLY UINT64_C(1) /* the dma-buf cannot be written; host memory only */
#define CLIMPORT_KEEP UINT64_C(2)      /* the range stays registered for later exports */
#define CLIMPORT_MAPPABLE UINT64_C(4) /* CPUs can map the dma-buf; GPU memory: by the module only */

/**
 * climport_export_dmabuf - a range of this process's memory as a dma-buf
 * @address: host memory, or a CUDA device pointer
 * @size: bytes
 * @flags: CLIMPORT_*
 * @out: set on success
 * @out_size: sizeof(*out)
 *
 * CUDA exports CUDA memory if CUDA can (cuMemGetHandleForAddressRange, CUDA 11.7).  Otherwise the
 * kernel module gdmabuf_nvidia exports CUDA memory, and CLIMPORT_MAPPABLE needs this module.
 * Host memory needs the kernel module gdmabuf (kmod/).  Where the process may not open /dev/gdmabuf,
 * the kernel's udmabuf exports two kinds of host memory, if the process may open /dev/udmabuf: memory
 * of climport_alloc(), and shared, writable mappings of a memfd that is sealed against shrinking
 * (F_SEAL_SHRINK), as long as the process has a descriptor of the memfd.  udmabuf keeps no
 * registrations, makes no read-only dma-bufs, does not count what it pins, and has a limit for a
 * dma-buf: 64 MiB, the parameter udmabuf.size_limit_mb.
 *
 * A dma-buf covers whole pages; the module's pages of GPU memory have 64 KiB.  So the dma-buf may
 * begin before @address: out->offset is the place of the range in the dma-buf.  With CLIMPORT_KEEP
 * the dma-buf may cover the whole allocation, or more pages that were exported before.  A receiver
 * of the descriptor gets the whole dma-buf.
 *
 * The descriptor is the caller's, with O_CLOEXEC.  The pages stay pinned, and count as locked
 * memory (RLIMIT_MEMLOCK) or against the GPU's BAR, until the last descriptor, mapping and import
 * of the dma-buf is gone, even if the memory is freed before.  After such a free the dma-buf keeps
 * the old contents, and @address is other memory.  Without CLIMPORT_KEEP each export pins and
 * counts anew.
 *
 * With CLIMPORT_KEEP libclimport keeps a descriptor of the dma-buf: a registration.  The next export
 * of the range, or of a part of it, is another descriptor of the same dma-buf, as long as the
 * address means the memory.  For host memory that is a load of a word, which the module writes when
 * the address gets other pages (munmap(), mmap(), mremap(), madvise(), a copy on write); for CUDA
 * memory, a call for the pointer's buffer id.  mprotect() leaves the pages: the dma-buf stays as
 * writable as the memory was when it was registered.
 *
 * A registration keeps its memory.  CUDA memory stays allocated after cuMemFree(), until
 * climport_invalidate(), or until the next export of the address finds the free.  Pages of the host
 * stay pinned and counted after munmap(), until climport_invalidate(), until the next registration of
 * any host memory, or until fork(), which would copy pinned pages.  Of each kind of memory 512
 * registrations and 64 GiB stay without users (climport_set_limits()), but no more registrations
 * than an eighth of the descriptors that the process may have (RLIMIT_NOFILE) at first use.  Where a call of climport finds no descriptor, no
 * memory or no room to pin memory (-EMFILE, -ENFILE, -ENOMEM, -ENOSPC, -EDQUOT), registrations
 * without users are given up, and the call tries again.
 *
 * Not kept: a range of several CUDA allocations, GPU memory that CUDA does not know, exports with
 * CLIMPORT_READ_ONLY, exports by udmabuf, and host memory for which the process has too many watches
 * or too few descriptors, or which gets other pages all the time.
 *
 * Returns 0, or
 *   -ENXIO   no /dev/gdmabuf: the module is not loaded (CUDA memory: and CUDA cannot export; host
 *	      memory: and udmabuf cannot)
 *   -EACCES  /dev/gdmabuf may not be opened; or the range is mapped read-only, and
 *	      CLIMPORT_READ_ONLY is not set
 *   -EINVAL  size is 0, or the range wraps around; an unknown flag; @out_size is too small
 *   -EFAULT  the range, or a part, is no memory of this process, or cannot be pinned
 *   -EOPNOTSUPP  CUDA managed memory, which moves (GPUDirect RDMA, "Changes in CUDA 6.0");
 *	      CUDA memory that neither CUDA nor a loaded module exports; a read-only export of
 *	      CUDA memory
 *   -ENODEV  the memory was freed meanwhile
 *   -EIO     any other error of CUDA, or of the GPU's driver
 *   -ENOMEM  no memory
 *   -ENOSPC  no room left in the GPU's BAR
 *   -EDQUOT  host memory: the limit of locked memory, RLIMIT_MEMLOCK (ulimit -l), is reached by the
 *	      user's processes together.  GPU memory: the user's quota is used up (gpu_quota_mb of
 *	      the module)
 *   -EMFILE  the process has no descriptor left; -ENFILE: the system has no descriptor left
 *   -EBADF   the program closes descriptors of climport at the same time
 *   -EINTR   a fatal signal came
 */
int climport_export_dmabuf(const void *address, size_t size, uint64_t flags,
			   struct climport_dmabuf *out, size_t out_size);

/**
 * climport_invalidate - give up the registrations of memory that is about to be freed
 *
 * To be called before cuMemFree() and the like.  A range without registrations is no error.  A
 * registration of host memory ends, too, although users still hold the registration.
 *
 * Whatever climport keeps of the range goes: registrations with their dma-bufs, and host memory that
 * climport keeps by itself (docs/nvidia.md).  For pins of drivers, a thread of climport's calls the
 * drivers, and the call waits 100 ms at most.  Pins with users go with the last user.
 */
void climport_invalidate(const void *address, size_t size);

/*
 * A registration: an allocation of a GPU's memory, or whole pages of host memory, as a dma-buf.
 * climport_register() fills all fields; the caller reads @base to @id, and may copy the struct.
 */
struct climport_registration {
	const void *base; /* first byte of the allocation, or of the pages */
	size_t length;	  /* bytes of the allocation or the pages, all of which @fd has */
	int fd;		  /* climport's: not to be closed; a dma-buf until climport_unregister().
			   * -1: host memory that nobody exports, "The promise" below */
	size_t offset;	  /* of @base in @fd */
	uint64_t id;	  /* unique among the registrations of the process, and never 0 */
	void *reserved[2];
};

/**
 * climport_register - the registration that covers a range of memory
 * @address: a CUDA device pointer, or host memory
 * @size: bytes
 * @flags: 0
 * @out: set on success; the caller's until climport_unregister()
 * @out_size: sizeof(*out)
 *
 * For stacks that register for each message (RDMA, NVMe, NCCL).  NVIDIA's GPUDirect RDMA document
 * asks for a cache of pinned memory: "Lazy Unpinning Optimization" and "Registration Cache".  The
 * first call for an allocation makes a dma-buf of the whole allocation.  Later calls for any range
 * of the allocation find the registration, take no lock and make no system call, until the program
 * frees the memory or the cache needs the room.
 *
 * At each call climport checks that the program has not freed the allocation: by the buffer id of the
 * pointer, which takes a call of CUDA's.  CUDA makes the dma-buf where CUDA can, else the kernel
 * module gdmabuf_nvidia.
 * An allocation at an address that was used before has another @id.  So a stack keeps an @id and a
 * memory region (MR) of its own for each allocation:
 *
 *	struct climport_registration now;
 *	uint64_t at;
 *
 *	if (climport_register(address, size, 0, &now, sizeof(now)))
 *		return -1;
 *	if (now.id == mr->registration.id) { // each message but the first
 *		climport_unregister(&now);
 *	} else { // the first, or the memory is new
 *		if (mr->verbs) {
 *			ibv_dereg_mr(mr->verbs);
 *			climport_unregister(&mr->registration);
 *		}
 *		at = (uintptr_t)now.base;
 *		mr->verbs = ibv_reg_dmabuf_mr(pd, now.offset, now.length,
 *					      at, now.fd, access);
 *		mr->registration.id = 0;
 *		if (!mr->verbs) {
 *			climport_unregister(&now);
 *			return -1;
 *		}
 *		mr->registration = now; // kept as long as the MR
 *	}
 *	// the address of the message in the MR is @address
 *
 * A registration of GPU memory keeps the pages, also after cuMemFree(), until the last
 * climport_unregister() and then until climport_invalidate(), until a call for the address finds
 * the memory freed, or until the cache needs the room.  There are at most 512 registrations at once
 * (an eighth of RLIMIT_NOFILE, if less), and 64 GiB of them without users
 * (climport_set_limits(CLIMPORT_DEVICE, ...)).  climport_export_dmabuf() with CLIMPORT_KEEP and
 * climport_register() share registrations.
 *
 * Host memory.  The registration is of the whole pages around the range, or of all pages that an
 * export with CLIMPORT_KEEP has registered there: anonymous memory, shared memory, memfds, tmpfs,
 * huge pages, and private mappings of files.  Later calls for any range of the pages find the
 * registration, take no lock and make no system call, however many registrations are held.
 * Registrations may overlap: a call for a range that no registration covers makes another
 * registration.  The registration ends with the last climport_unregister().
 *
 * While a registration is held, imports of its memory by opaque descriptors (NVIDIA) keep what they
 * have pinned: the first import into a context pins all of the registration for the context's
 * device, later imports into the context, of any part and with any flags, pin nothing.  The pages
 * stay pinned until the registration ends, or the application releases the context, and until the
 * imports are released.  If the device cannot pin all of the registration, or its driver makes no
 * buffer of that size, imports pin their own pages, as without the registration; so do imports into
 * a context that the application has released and that a queue keeps alive.  What a context
 * keeps of a registration takes a descriptor of the process: an eighth of the descriptors that the
 * process may have (RLIMIT_NOFILE) is kept without imports, of all contexts together, and what was
 * imported last stays.
 *
 * If the process may open /dev/gdmabuf, @fd is a dma-buf of the pages, which stay pinned and count
 * as locked memory (RLIMIT_MEMLOCK), and which climport keeps for registrations to come as with
 * CLIMPORT_KEEP.  At each call, and at each import, a word that the module writes tells whether the
 * address still has the pages: if not, the next call makes a registration with another @id.  Each
 * takes a descriptor, and one of the 4096 watches that the module has for a process.
 *
 * The promise.  If the process may not open /dev/gdmabuf, or the device does not exist, @fd is -1,
 * and no pages are pinned.  With the call the program promises that until climport_unregister() or
 * climport_invalidate() every page of the registration stays at its address: no munmap(), mmap()
 * over the pages, mremap(), madvise() that empties pages, and no truncation of the file or hole in
 * the file.  A program that breaks the promise gets old memory: an import of the address may be of
 * the pages that were there at the first import of the registration, so that kernels read the old
 * contents, and the program does not see what kernels write.  The old pages stay pinned until the
 * import ends: neither memory that the program got since, nor memory that the program could not
 * write itself, is read or written.  Writing to the memory, fork(), and mprotect() break no promise
 * on Linux 5.19 and later, and never with shared memory.  Before 5.19, mprotect() and a write after
 * it may give private memory another page; before 5.9 fork() and a write may, too: a program for
 * such kernels invalidates the registration afterwards, and registers again.
 *
 * Any thread may call; any thread may unregister.  A child after fork() has no registrations: the
 * child may unregister the parent's, which does nothing to the parent.  A program that closes
 * descriptors that it did not open calls climport_invalidate(NULL, SIZE_MAX) before the next
 * climport_register(): @fd would be another file.
 *
 * Returns 0, or
 *   -EINVAL  size is 0, or the range wraps around; a flag; @out_size is too small
 *   -EFAULT  the range, or a part, is no memory of this process, is beyond the end of the file that
 *	      it maps (as the file is now: a later truncation breaks the promise), or cannot be pinned
 *   -EOPNOTSUPP  CUDA managed memory; GPU memory without a buffer id, or that neither CUDA nor the
 *	      kernel module can export; host memory that no device pins: shared mappings of files
 *	      on disks, and mappings of devices
 *   -ERANGE  the range reaches beyond one allocation (cuMemMap() puts allocations side by side):
 *	      register each part; with a size of 1, @base and @length say where the first part ends
 *   -ENXIO   CUDA makes no dma-buf of the memory, and /dev/gdmabuf does not exist
 *   -EACCES  CUDA makes no dma-buf of the memory, and /dev/gdmabuf may not be opened; or host
 *	      memory, or a part, is mapped without write access
 *   -ENODEV  the memory was freed meanwhile
 *   -ENOSPC  all registrations of GPU memory are in use; or no room is left in the GPU's BAR
 *   -EDQUOT  as for climport_export_dmabuf(); or the process has too many watches of host memory
 *   -EAGAIN  the address got other pages at each of several attempts
 *   -EINTR   a fatal signal came
 *   -ENOMEM  no memory
 *   -EMFILE  the process has no descriptor left; -ENFILE: the system has no descriptor left
 *   -EIO     any other error of CUDA, or of the GPU's driver
 */
int climport_register(const void *address, size_t size, uint64_t flags,
		      struct climport_registration *out, size_t out_size);

/**
 * climport_unregister - give a registration back
 *
 * Gives a registration back, once for each climport_register().  A registration of GPU memory stays
 * for later calls, unless climport_invalidate() has ended the registration.  A registration of host
 * memory ends with the last call: when the call returns, no later call and no later import finds
 * the registration, and nothing but imports that are alive keeps the pages.  (The module's dma-buf,
 * which climport keeps for later registrations, is found as long as the address has the pages.)
 * A thread of climport's gives the pages up, so that the call may be made in a callback of OpenCL's.
 * If that thread has to wait for the driver, the call returns after 100 ms, and the pages go when
 * the driver lets them go.  So does climport_invalidate() of host memory.  A zeroed @registration is
 * none.
 * The call zeroes @id, so that a second call with the struct does nothing; a copy is not protected.
 */
void climport_unregister(struct climport_registration *registration);

/* Kinds of memory. */
#define CLIMPORT_HOST 0u   /* in the host's memory; devices read it in place */
#define CLIMPORT_DEVICE 1u /* in the memory of one device */

/**
 * climport_set_limits - limit the memory that climport keeps without users
 * @kind: CLIMPORT_HOST, or CLIMPORT_DEVICE for all GPUs together
 * @bytes: UINT64_MAX: no limit but climport's own
 * @entries: registrations; UINT64_MAX: no limit but climport's own.  0 keeps nothing
 *
 * Memory beyond the limits is given up at once, recently used memory last.  Memory with users does
 * not count and is not given up: imports, and registrations that the program holds.
 * A dma-buf lives on with its descriptors and consumers.  Registrations for CLIMPORT_MAPPABLE
 * exports of GPU memory count by themselves.  CLIMPORT_HOST also limits host memory that climport
 * keeps by itself (docs/nvidia.md).
 *
 * For this process and its children.  Returns 0, or -EINVAL: no such kind.
 */
int climport_set_limits(unsigned int kind, uint64_t bytes, uint64_t entries);

/**
 * climport_drop_all - give up what is kept without users
 *
 * Gives up all memory that climport keeps without users, of all kinds: before a program sleeps,
 * hands a GPU on, or measures.  Later exports and imports register and pin anew.  For memory that
 * drivers hold, a thread of climport's calls the drivers, and climport_drop_all() waits 100 ms at
 * most.  An import that the program has released has a user until the driver ends it.  The pools of climport_torch_alloc() and climport_cupy_alloc() wait for their devices.
 */
void climport_drop_all(void);

#define CLIMPORT_UUID_SIZE 16

/**
 * climport_alloc - memory that OpenCL can import
 * @kind: CLIMPORT_HOST or CLIMPORT_DEVICE
 * @size: bytes
 * @alignment: a power of two, at most 2 MiB; 0 for 512
 * @uuid: of the device that will import the memory: CL_DEVICE_UUID_KHR, which equals CUDA's
 *	UUID; NULL for host pages that any device with method host_ptr imports
 * @address: set to the memory; for CLIMPORT_DEVICE a CUDA device pointer, which the CPU cannot use
 *
 * CLIMPORT_HOST without @uuid is anonymous memory, or the memory of a memfd where udmabuf alone can
 * export host memory (climport_export_dmabuf()).
 *
 * For CUDA devices the memory is CUDA's VMM memory (cuMemCreate), which NVIDIA's OpenCL imports at
 * once and keeps coherent.  Pages of other host memory are pinned by the first import, and by later
 * imports if the registration is not kept (docs/nvidia.md).  An allocation up to 1 MiB is a part of
 * a slab of 2 MiB, at least 512 bytes.  A larger allocation is a multiple of 2 MiB.  Each slab and each
 * larger allocation takes a descriptor of the process.  The first contents are undefined.
 *
 * In a child after fork() CUDA's memory is not mapped, and a memfd's is shared; the child may free
 * the memory.
 *
 * Returns 0, or
 *   -EINVAL  no such kind, a size of 0, or an invalid alignment
 *   -ENODEV  no libcuda, or no CUDA device with this UUID; CLIMPORT_DEVICE without @uuid
 *   -EOPNOTSUPP  the device has no virtual memory management, or has it for device memory only
 *   -ENOMEM
 *   -EMFILE  the process has no descriptor left; -ENFILE: the system has no descriptor left
 *   -EIO     any other error of CUDA
 */
int climport_alloc(unsigned int kind, size_t size, size_t alignment, const unsigned char *uuid,
		   void **address);

/* A GPU, as libraries that move the GPU's memory see the GPU (RDMA, NCCL). */
struct climport_gpu {
	unsigned char uuid[CLIMPORT_UUID_SIZE]; /* as for climport_alloc() */
	uint32_t needs_flush;			/* 1: after another device has written, see below */
};

/**
 * climport_get_current_gpu - the GPU of the calling thread's CUDA context
 * @out: set on success
 * @out_size: sizeof(*out)
 *
 * Some GPUs may give a kernel that runs old data after another device (a NIC) has written to the GPU's
 * memory.  A read of the memory by the device that has written makes the new data visible: the read
 * comes behind the writes on the bus.  GPUs of compute capability 8.x and before need such a flush
 * (NCCL flushes for the same GPUs).
 *
 * Uses libcuda where the process has loaded libcuda.  Makes no context.
 *
 * Returns 0, or
 *   -EINVAL  @out_size is too small
 *   -ENODEV  no libcuda is loaded, or the thread has no CUDA context
 *   -EIO     any other error of CUDA
 */
int climport_get_current_gpu(struct climport_gpu *out, size_t out_size);

/* Flags of climport_alloc_for_device() and climport_alloc_for_context(). */
#define CLIMPORT_NO_CPU UINT64_C(16) /* the CPU does not use the memory */

/**
 * climport_alloc_for_device - memory of the kind that suits a device
 * @device: of a loader with the layer, or of a driver that has the extension itself
 * @size: bytes
 * @alignment: as for climport_alloc(); the alignment that the device needs at least
 * @flags: 0, or CLIMPORT_NO_CPU
 * @address: set to the memory; climport_free() gives the memory back
 * @kind: set to CLIMPORT_HOST or CLIMPORT_DEVICE; may be NULL without CLIMPORT_NO_CPU
 *
 * Without flags the memory is CLIMPORT_HOST: the CPU uses the memory, and the device imports the
 * address.  With CLIMPORT_NO_CPU the memory is CLIMPORT_DEVICE if the device has memory of its own
 * that climport allocates: the device imports the memory as a dma-buf (climport_export_dmabuf(),
 * climport_create_buffer()).  Other devices get CLIMPORT_HOST.
 *
 * The first call for a device finds out how the device takes memory, as the first import does.
 *
 * Returns 0, or
 *   -EINVAL  no such device, a size of 0, an invalid alignment, an unknown flag; CLIMPORT_NO_CPU
 *	      with a NULL @kind
 *   -ENXIO   the process has no OpenCL loader
 *   -EOPNOTSUPP  the device takes no memory, or none that this process can allocate;
 *	      climport_last_error() has the reason
 *   -ENOMEM, -EMFILE, -ENFILE, -EIO  as for climport_alloc()
 */
int climport_alloc_for_device(cl_device_id device, size_t size, size_t alignment, uint64_t flags,
			      void **address, unsigned int *kind);

/**
 * climport_alloc_for_context - memory of the kind that suits all devices of a context
 *
 * As climport_alloc_for_device(), for all devices of a context.  -EINVAL: no such context.  -EOPNOTSUPP: one of the devices
 * takes no memory; or several devices take memory of their own UUID alone (NVIDIA).
 */
int climport_alloc_for_context(cl_context context, size_t size, size_t alignment, uint64_t flags,
			       void **address, unsigned int *kind);

/* How a device takes a type of memory.  The strings are the library's, and stay. */
struct climport_import_info {
	const char *method; /* the name, as `climport info` has; NULL: imports are refused */
	const char *why;    /* a sentence: the proof of zero copy, or the reason of the refusal */
	const char *kept;   /* how memory stays registered between imports, a clause; NULL: not */
	size_t address_alignment; /* bytes: imports at other addresses, in a dma-buf at other ... */
	size_t size_alignment;	  /* ... offsets, or of other sizes are refused.  1: any */
	uint32_t kinds;		  /* 1 << kind: climport_alloc()'s memory that the type is for */
	uint32_t by_uuid;	  /* climport_alloc() is to have @uuid; 0: to have NULL */
	unsigned char uuid[CLIMPORT_UUID_SIZE]; /* of the device, if by_uuid */
};

/**
 * climport_get_import_info - ask how a device takes a type of memory
 * @device: of a loader with the layer, or of a driver that has the extension itself
 * @type: CL_IMPORT_TYPE_HOST_ARM or CL_IMPORT_TYPE_DMA_BUF_ARM
 * @out: set on success
 * @out_size: sizeof(*out)
 *
 * The first call for a device finds out how the device takes memory, as the first import does.
 * A device that refuses the memory is no error.
 *
 * Returns 0, or
 *   -EINVAL  no such device, no such type, or @out_size is too small
 *   -ENXIO   the process has no OpenCL loader
 *   -ENOMEM
 *   -EIO     any other error of OpenCL
 */
int climport_get_import_info(cl_device_id device, cl_uint type, struct climport_import_info *out,
			     size_t out_size);

/**
 * climport_free - give memory of climport_alloc() back
 *
 * Before the call the program releases all imports of the memory and waits for
 * all commands on the memory.  NULL does nothing.  Aborts if @address is not from climport_alloc(),
 * or was freed.  The last part of a slab gives the slab back to the driver, and the last memory of a
 * device the primary context of CUDA's, which takes long (docs/libclimport.md).
 */
void climport_free(void *address);

/*
 * Pools of a GPU's memory (CUDA).
 *
 * climport_alloc() and climport_free() leave to the program when the device is done with memory.  A
 * pool keeps memory that was freed, and gives the memory out again when that is in the order of the
 * device's work.  For memory managers of Python's and C++'s packages.
 */
struct climport_pool;

/* Flags of climport_pool_create(). */
#define CLIMPORT_POOL_IPC UINT64_C(32)	/* memory of cuMemAlloc() */
#define CLIMPORT_POOL_HOST UINT64_C(64) /* pinned memory of the host, of cuMemHostAlloc() */

/* In the place of one stream, for memory that other streams may use. */
#define CLIMPORT_STREAMS_BLOCKING \
	((void *)UINTPTR_MAX) /* all but those of CU_STREAM_NON_BLOCKING */
#define CLIMPORT_STREAMS_ALL ((void *)(UINTPTR_MAX - 1))

/**
 * climport_pool_create - a pool of a device's memory
 * @device: as cudaSetDevice() has the number
 * @flags: 0, CLIMPORT_POOL_IPC or CLIMPORT_POOL_HOST
 * @pool: set to the pool, which is the caller's until climport_pool_destroy()
 *
 * Memory is climport_alloc()'s of CLIMPORT_DEVICE: NVIDIA's OpenCL imports such memory as a dma-buf.
 * CUDA's IPC handles are for memory of cuMemAlloc() alone, which NVIDIA's OpenCL does not import:
 * CLIMPORT_POOL_IPC.  Memory of the host is mapped for all contexts, and registered as by
 * climport_register().  Slabs and sizes are climport_alloc()'s.
 *
 * The pool holds the device's primary context.  Up to a fifth of the device's memory is kept without
 * use (climport_pool_set_limit()).
 *
 * Returns 0, or
 *   -EINVAL  an unknown flag, or both flags
 *   -ENODEV  no libcuda, or no such device
 *   -ENOMEM, -EIO
 */
int climport_pool_create(int device, uint64_t flags, struct climport_pool **pool);

/**
 * climport_pool_destroy - end a pool
 *
 * Waits for the device, and gives all memory back, with what the program has not freed.
 */
void climport_pool_destroy(struct climport_pool *pool);

/**
 * climport_pool_close - end a pool whose memory of the host is in use
 *
 * As climport_pool_destroy(), but memory of the host that the program has not freed stays until the
 * last climport_pool_free(), which also destroys the pool.  The pool makes no allocations any more, and
 * does not hold the device's primary context: CUDA takes the memory with the context.
 */
void climport_pool_close(struct climport_pool *pool);

/**
 * climport_pool_alloc - memory for kernels
 * @size: bytes of each allocation; 0 is as 1
 * @stream: the CUstream whose work uses the memory first, or CLIMPORT_STREAMS_*
 * @addresses: the allocations
 * @count: how many at most, 1 at least
 *
 * Waits for the device and takes memory of the driver if need be, for the first allocation alone; the
 * others are there already, or are left out.
 *
 * Returns the number of allocations, or
 *   -EINVAL  a @count below 1
 *   -EBUSY   @stream captures a CUDA graph, whose replays would use the memory after its free
 *   -ENOMEM  also after the device has finished all work
 *   other errors as for climport_alloc()
 */
int climport_pool_alloc(struct climport_pool *pool, size_t size, void *stream, void **addresses,
			int count);

/**
 * climport_pool_free - give allocations back
 * @stream: the CUstream whose queued work may still use the memory, or CLIMPORT_STREAMS_*
 *
 * The memory goes to the next allocation for the same stream at once, and to others after an event,
 * or after all work of the device (CLIMPORT_STREAMS_ALL).  Calls no driver but for cuStreamGetId(), so
 * that finalizers may call.  Before CUDA 12.0 other streams than the default stream are as
 * CLIMPORT_STREAMS_ALL.
 *
 * Returns 0, or -EINVAL: an address is no allocation of the pool's; the others are freed.
 */
int climport_pool_free(struct climport_pool *pool, void *const *addresses, int count, void *stream);

/**
 * climport_pool_set_limit - limit what a pool keeps without use
 * @bytes: UINT64_MAX gives nothing back
 */
void climport_pool_set_limit(struct climport_pool *pool, uint64_t bytes);

/**
 * climport_pool_trim - give back what a pool keeps without use
 * @bytes: may stay
 *
 * Waits for the device first.
 */
void climport_pool_trim(struct climport_pool *pool, uint64_t bytes);

struct climport_pool_info {
	uint64_t bytes; /* of the pool */
	uint64_t used;	/* of allocations, rounded up to parts of slabs */
	uint64_t limit; /* climport_pool_set_limit()'s */
};

/**
 * climport_pool_get_info - ask how much memory a pool has
 * @out: set on success
 * @out_size: sizeof(*out)
 *
 * Returns 0, or -EINVAL: @out_size is too small.
 */
int climport_pool_get_info(struct climport_pool *pool, struct climport_pool_info *out,
			   size_t out_size);

/**
 * climport_torch_alloc - allocators for PyTorch and CuPy
 *
 * Allocators of PyTorch (torch.cuda.memory.CUDAPluggableAllocator) and CuPy
 * (cupy.cuda.memory.CFunctionAllocator), with the signatures that the two ask for.  The memory is of
 * a pool for each device that lives as long as the process.
 *
 * A size of 0 gives NULL, as does a failure (climport_last_error()); PyTorch and CuPy do not look for
 * NULL.  Freeing NULL does nothing.  An address that is no allocation aborts.
 *
 * In a stream that captures a CUDA graph, climport_torch_alloc() gives NULL, writes the reason to
 * standard error, and makes the capture fail: CUDA's error comes up in PyTorch.
 *
 * climport_torch_record_stream() is for CUDAPluggableAllocator's set_record_stream_fn(): memory that
 * other streams use is reused after all work of the device.  CuPy names no stream, so its memory is
 * always reused thus: put CuPy's MemoryPool on top.
 */
void *climport_torch_alloc(ptrdiff_t size, int device, void *stream);
void climport_torch_free(void *address, ptrdiff_t size, int device, void *stream);
void climport_torch_record_stream(void *address, void *stream);
void *climport_cupy_alloc(void *param, size_t size, int device);
void climport_cupy_free(void *param, void *address, int device);

/**
 * climport_create_buffer - an export as a buffer
 * @context: created with the layer loaded, or of a driver that has the extension itself
 * @flags: as clImportMemoryARM's
 * @properties: as clImportMemoryARM's, or NULL.  CL_IMPORT_TYPE_ARM may be left out
 * @dmabuf: the export; its descriptor may be closed as soon as the function returns.  @fd, @offset
 *	and @size are read
 * @errcode_ret: as clImportMemoryARM's; may be NULL.  CL_MISALIGNED_SUB_BUFFER_OFFSET if
 *	dmabuf->offset is no multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN; CL_INVALID_BUFFER_SIZE
 *	if dmabuf->size is 0; CL_INVALID_PROPERTY if CL_IMPORT_TYPE_ARM is not
 *	CL_IMPORT_TYPE_DMA_BUF_ARM
 *
 * clImportMemoryARM imports from the dma-buf's first byte on; this function returns a buffer of the
 * exported range.  The caller releases the buffer with clReleaseMemObject().
 */
cl_mem climport_create_buffer(cl_context context, cl_mem_flags flags,
			      const cl_import_properties_arm *properties,
			      const struct climport_dmabuf *dmabuf, cl_int *errcode_ret);

/**
 * climport_mark_destroyed - tell an interpreter that an import is gone
 *
 * A callback for clSetMemObjectDestructorCallback(): stores 1 to the uint32_t at @mark.  For
 * languages whose code may run with a lock of the interpreter alone (Python): the thread of a driver
 * must not wait for that lock.  The interpreter reads the mark later, and then frees the imported
 * memory.
 */
void CL_CALLBACK climport_mark_destroyed(cl_mem memory, void *mark);

/*
 * The library also has clImportMemoryARM of <CL/cl_ext.h>, for programs that link to the symbol.
 * The function calls clImportMemoryARM of the context's platform.  CL_INVALID_OPERATION if the
 * platform has no such function, or the process no OpenCL loader; CL_INVALID_CONTEXT if the context
 * is NULL.
 */

/* The registrations of this process, and how often exports found a registration. */
struct climport_stats {
	uint64_t hits, misses;	  /* of all registration caches */
	uint64_t evictions;	  /* given up for room */
	uint64_t stale;		  /* registrations of memory that was freed */
	uint64_t bytes_pinned;	  /* registered now */
	uint64_t bytes_idle;	  /* the part of bytes_pinned without users */
	uint64_t bytes_allocated; /* by climport_alloc(), with the free parts of slabs */
};

/**
 * climport_get_stats - count registrations and memory of this process
 * @out: set on success
 * @out_size: sizeof(*out)
 *
 * Returns 0, or -EINVAL: @out_size is too small.
 */
int climport_get_stats(struct climport_stats *out, size_t out_size);

#ifdef __cplusplus
}
#endif

#endif
