/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The objects of gdmabuf, and the functions between its files.
 *
 * A buffer is a range of pinned memory, its charge and its dma-buf: all three begin with an export,
 * and end with the release of the dma-buf.  A kind is where the memory comes from: the host or a
 * GPU.  A context is an open file of /dev/gdmabuf, with the watches of a process.  Buffers and
 * contexts do not know each other.
 *
 *	dma_buf ----> buffer ----> kind, provider
 *	file -------> context ---> watches <---- notifier (of an mm_struct)
 *
 * A provider is a module that pins GPU memory.
 *
 * Locks: mmu notifiers > notifier.lock.  dma_resv > buffer.maps_lock.  user.c's lock is alone.  No
 * lock is held while memory is pinned, because a user decides how long that takes: a page fault may
 * ask a user's file system.  Before Linux 6.5 the mmap_lock is held: compat.h.
 */
#ifndef GDMABUF_CORE_H
#define GDMABUF_CORE_H

#include <linux/dma-buf.h>
#include <linux/interval_tree.h>
#include <linux/mutex.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/gdmabuf.h>
#include "gdmabuf_provider.h"
#include "range.h"

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

/* ---- buffer.c: dma-bufs ---- */

struct gdmabuf_buffer {
	const struct gdmabuf_kind *kind;
	u64 length;
	u32 flags;			/* enum gdmabuf_export_flags */
	struct gdmabuf_run *runs;	/* together length, once pinned */
	unsigned int nr_runs;
	bool cacheable;			/* by CPUs; a BAR is not */
	struct mutex maps_lock;		/* protects maps */
	struct list_head maps;		/* current mappings of host memory for devices */
	union {
		struct {
			const struct cred *cred; /* the exporter's; NULL before the charge */
			bool is_limited;	 /* cred's user is charged */
			bool dirty;		 /* devices or CPUs may have written */
		} host;
		struct {
			const struct gdmabuf_provider *provider; /* referenced; NULL: no charge */
			void *handle;				 /* the provider's pin, or NULL */
			kuid_t uid;				 /* charged */
			struct delayed_work put;		 /* if the driver lacked memory */
		} gpu;
	};
};

struct gdmabuf_kind {
	const char *name;		/* the exporter's, in /proc and debugfs */
	u32 flags;			/* of exports; supported by the kind */
	unsigned long vm_flags;		/* of mappings; the others are the same for all */
	u64 (*page_size)(void);		/* 0: no such memory at present */
	/*
	 * Charges, and pins @buffer->length bytes at @address of the calling process.  After an
	 * error the caller destroys @buffer all the same.
	 */
	int (*pin)(struct gdmabuf_buffer *buffer, u64 address);
	/* Takes @buffer over: gives back whatever @pin took, perhaps later, and frees @buffer. */
	void (*destroy)(struct gdmabuf_buffer *buffer);
	const struct dma_buf_ops *(*ops)(const struct gdmabuf_buffer *buffer);
};

extern const struct gdmabuf_kind gdmabuf_gpu_kind, gdmabuf_host_kind;

/* Pins a range that was checked, and makes a dma-buf of it. */
struct dma_buf *gdmabuf_buffer_export(const struct gdmabuf_kind *kind, u64 address, u64 length,
				      u32 flags);
void gdmabuf_buffer_release(struct dma_buf *dmabuf);

/* ---- sg.c: buffers for devices ---- */

int gdmabuf_sg_attach_gpu(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment);
struct sg_table *gdmabuf_sg_map_gpu(struct dma_buf_attachment *attachment,
				    enum dma_data_direction dir);
void gdmabuf_sg_unmap_gpu(struct dma_buf_attachment *attachment, struct sg_table *sgt,
			  enum dma_data_direction dir);
struct sg_table *gdmabuf_sg_map_host(struct dma_buf_attachment *attachment,
				     enum dma_data_direction dir);
void gdmabuf_sg_unmap_host(struct dma_buf_attachment *attachment, struct sg_table *sgt,
			   enum dma_data_direction dir);
int gdmabuf_sg_end_cpu_access_gpu(struct dma_buf *dmabuf, enum dma_data_direction dir);
int gdmabuf_sg_begin_cpu_access_host(struct dma_buf *dmabuf, enum dma_data_direction dir);
int gdmabuf_sg_end_cpu_access_host(struct dma_buf *dmabuf, enum dma_data_direction dir);

/* ---- mmap.c: buffers for CPUs ---- */

int gdmabuf_mmap_buffer(struct dma_buf *dmabuf, struct vm_area_struct *vma);
bool gdmabuf_vmap_gpu_works(const struct gdmabuf_buffer *buffer);
int gdmabuf_vmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map);
void gdmabuf_vunmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map);
int gdmabuf_vmap_host(struct dma_buf *dmabuf, struct iosys_map *map);
void gdmabuf_vunmap_host(struct dma_buf *dmabuf, struct iosys_map *map);
#define GDMABUF_VMAP_MAX SZ_256M	/* of kernel address space, for a buffer */

/* ---- gpu.c, provider.c, user.c: GPU memory ---- */

/* Takes a reference to the provider's module.  NULL without a provider. */
const struct gdmabuf_provider *gdmabuf_provider_get(void);
void gdmabuf_provider_put(const struct gdmabuf_provider *provider);

/* Charges the user @uid.  -EDQUOT: the limit is reached; -ENOMEM. */
int gdmabuf_user_charge(kuid_t uid, u64 bytes);
void gdmabuf_user_uncharge(kuid_t uid, u64 bytes);
void gdmabuf_users_exit(void);

int gdmabuf_gpu_init(void); /* -ENOMEM */
/* No dma-buf of GPU memory is left. */
void gdmabuf_gpu_exit(void);

/* ---- context.c: open files, watches ---- */

#define GDMABUF_WATCHES 4096 /* of a context; and of an mm_struct, those that are current */

struct gdmabuf_notifier;

struct gdmabuf_context {
	struct mm_struct *mm;		/* of the opener, mmgrab()ed */
	struct gdmabuf_notifier *notifier; /* NULL before the first watch */
	u32 *status;			/* the status page: slot.h; NULL before its first use */
	struct xarray watches;		/* by slot; slots that cannot be used are reserved */
};

/* A range of host memory whose word changes when a page of the range does. */
struct gdmabuf_watch {
	struct interval_tree_node node;
	bool added;			/* notifier.lock: to the notifier; not stale */
	u32 *word;
	u32 slot, generation;
};

struct gdmabuf_context *gdmabuf_context_create(void);
/* The file is closed: no process has the status page mapped.  Any process; waits for nobody. */
void gdmabuf_context_close(struct gdmabuf_context *ctx);
/* -EACCES if the caller has other memory. */
int gdmabuf_context_check(const struct gdmabuf_context *ctx);
int gdmabuf_context_mmap(struct gdmabuf_context *ctx, struct vm_area_struct *vma);
unsigned long gdmabuf_context_count_watches(struct gdmabuf_context *ctx);
/*
 * -EFAULT: no address of a process; -EDQUOT: too many watches; -ENOMEM; -ERESTARTNOINTR: a signal
 * came.
 */
int gdmabuf_context_watch(struct gdmabuf_context *ctx, u64 address, u64 length, u32 *slot,
			  u32 *generation);
/* Ends a watch, stale or not.  -ENOENT: no such watch. */
int gdmabuf_context_unwatch(struct gdmabuf_context *ctx, u32 slot, u32 generation);

/* ---- notifier.c: what the kernel tells of an mm_struct ---- */

/* The notifier of the caller's memory.  -ENOMEM, -ERESTARTNOINTR. */
struct gdmabuf_notifier *gdmabuf_notifier_get(void);
/* Any process; waits for nobody.  No watch of the caller's may be left. */
void gdmabuf_notifier_put(struct gdmabuf_notifier *notifier);
/*
 * From now on a change of a page of @watch->node's range writes the word.  Called before the pages
 * are looked up.  -EDQUOT: too many watches of the mm_struct.
 */
int gdmabuf_notifier_add(struct gdmabuf_notifier *notifier, struct gdmabuf_watch *watch);
/* On return nobody writes @watch's word.  Any process; waits for no invalidation. */
void gdmabuf_notifier_remove(struct gdmabuf_notifier *notifier, struct gdmabuf_watch *watch);
/* No watch is left.  Waits until the kernel calls no notifier any more. */
void gdmabuf_notifiers_exit(void);

/* ---- totals.c: for root, /sys/kernel/debug/gdmabuf ---- */

extern atomic64_t gdmabuf_host_bytes, gdmabuf_gpu_bytes, gdmabuf_watches;

void gdmabuf_totals_create(void);
void gdmabuf_totals_destroy(void);

#endif
