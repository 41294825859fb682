/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The objects of gdmabuf, and the functions between its files.
 *
 * A context is an open file of /dev/gdmabuf.  The owner is the process that opened the file.  A pin
 * is a range of the owner's memory, of one kind (host or GPU), with pages that stay where they are.
 * A buffer is a dma-buf on a pin or on a part of a pin.  A slot is a word of the context's status
 * page, by which user space sees whether the address of a pin still means the pages.  A watch of
 * host memory is a slot without a pin.
 *
 *	file ----> context <---- pin <---- buffer <---- dma_buf
 *
 * Arrows are references.  A context lists all its pins, and has a reference to a pin only if the
 * pin is kept (GDMABUF_KEEP).  A kept pin without a buffer is idle; room is made by giving up idle
 * pins.
 *
 * A provider is a module to pin GPU memory.  Its functions take the lock of the GPU driver ("RM").
 * The driver holds RM also when the provider calls back, and the locks of the callback are marked
 * (*).  The core calls no provider with a marked lock held.
 *
 * Locks, outer first:
 *
 *	quota.evicting > others_lock > contexts.lock > context.lock
 *	quota.evicting > the end of a pin that goes
 *	quota.evicting > others_lock > RM
 *	RM > (*) watch.lock > (*) slots.lock
 *	mmu notifiers > notifier.lock > slots.lock
 *	RM > mmap_lock > (*) pin.revoke_sem
 *	RM > (*) pin.lock > (*) pin.revoke_sem
 *	RM > (*) pin.lock > i_mmap_rwsem
 *	mmap_lock > (*) pin.lock
 *	dma_resv > buffer.maps_lock
 */
#ifndef GDMABUF_CORE_H
#define GDMABUF_CORE_H

#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/nospec.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/gdmabuf.h>
#include "gdmabuf_provider.h"
#include "range.h"

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

/* ---- slots.c: the status page ---- */

#define GDMABUF_SLOTS 4096

struct gdmabuf_slots {
	spinlock_t lock;		/* protects the other members */
	u32 *status;			/* mapped by user space; never read; NULL: destroyed */
	u32 *generations;
	DECLARE_BITMAP(used, GDMABUF_SLOTS);
};

int gdmabuf_slots_create(struct gdmabuf_slots *slots);
/* No process has the status page mapped.  Pins may still put their slots afterwards. */
void gdmabuf_slots_destroy(struct gdmabuf_slots *slots);
/* Writes the generation to the word of the slot.  -ENOSPC: no slot is free. */
int gdmabuf_slots_get(struct gdmabuf_slots *slots, u32 *slot, u32 *generation);
void gdmabuf_slots_put(struct gdmabuf_slots *slots, u32 slot);
/* Any context. */
void gdmabuf_slots_live(struct gdmabuf_slots *slots, u32 slot, u32 generation);
void gdmabuf_slots_stale(struct gdmabuf_slots *slots, u32 slot, u32 generation);
int gdmabuf_slots_mmap(struct gdmabuf_slots *slots, struct vm_area_struct *vma);

/* ---- stats.c ---- */

struct gdmabuf_counters {
	atomic64_t pins[2], bytes[2]; /* by gdmabuf_kind_index() */
	atomic64_t exports, hits, evictions, retries, stale, revoked;
	atomic64_t host_watches;
};

extern struct gdmabuf_counters gdmabuf_total;

/* Adds to the context's counter and to the total. */
#define count_add(ctx, counter, n)                         \
	do {                                               \
		atomic64_add(n, &(ctx)->counters.counter); \
		atomic64_add(n, &gdmabuf_total.counter);   \
	} while (0)
#define count(ctx, counter) count_add(ctx, counter, 1)

void gdmabuf_stats_show(struct seq_file *seq, const struct gdmabuf_counters *counters);
void gdmabuf_stats_create(void);
void gdmabuf_stats_destroy(void);

/* ---- owner.c ---- */

/* A process with contexts.  Contexts, watches and calls refer to the owner. */
struct gdmabuf_owner {
	struct kref kref;
	struct list_head link; /* in owners */
	struct pid *tgid;
	spinlock_t lock;	  /* protects orphans, and orphan and freed of watches */
	struct list_head orphans; /* watches for the owner to give back */
	struct xarray calls;	  /* pending calls to threads, by thread number */
	struct delayed_work call_again;
};

/* NULL: no memory. */
struct gdmabuf_owner *gdmabuf_owner_get_current(void);
struct gdmabuf_owner *gdmabuf_owner_get(struct gdmabuf_owner *owner);
void gdmabuf_owner_put(struct gdmabuf_owner *owner);
void gdmabuf_owner_collect_orphans(struct gdmabuf_owner *owner, unsigned int most);

static inline bool gdmabuf_owner_is_current(const struct gdmabuf_owner *owner)
{
	return owner->tgid == task_tgid(current);
}

/* Gives back up to @most orphans, if the caller is the owner.  Sleeps, and calls the provider. */
static inline void gdmabuf_owner_collect(struct gdmabuf_owner *owner, unsigned int most)
{
	if (!list_empty_careful(&owner->orphans) && gdmabuf_owner_is_current(owner))
		gdmabuf_owner_collect_orphans(owner, most);
}

/*
 * The limit inside calls with a different purpose: NVIDIA's driver takes a millisecond per watch.
 */
#define GDMABUF_COLLECT_SOME 16
/*
 * Hands the core's reference to @watch over to the owner, and calls the owner after @delay.  False
 * if @watch is freed already: the caller keeps the reference.
 */
bool gdmabuf_owner_add_orphan(struct gdmabuf_owner *owner, struct gdmabuf_watch *watch,
			      unsigned long delay);
/* Marks @watch freed.  True if @watch was an orphan: the caller has the reference again. */
bool gdmabuf_owner_forget_orphan(struct gdmabuf_owner *owner, struct gdmabuf_watch *watch);
/* Lists the processes with pending calls. */
void gdmabuf_owners_show(struct seq_file *seq);
void gdmabuf_owners_init(void);
void gdmabuf_owners_exit(void);

/* ---- context.c ---- */

struct gdmabuf_context {
	struct kref kref;
	struct list_head link;		/* in contexts.list */
	struct gdmabuf_owner *owner;
	struct mm_struct *mm;		/* of the owner, mmgrab()ed; NULL once the file is closed */
	const struct cred *cred;	/* of the opener; NULL once the file is closed */
	bool limited;			/* RLIMIT_MEMLOCK applies to the opener */
	kuid_t uid;
	struct gdmabuf_quota *quota;	/* of uid */
	struct mutex lock;		/* protects tree, lru, by_slot, budget */
	struct rb_root_cached tree;	/* pins that exports may share, by address */
	struct list_head lru;		/* the pins of tree, least recently exported first */
	struct gdmabuf_pin **by_slot;	/* all pins; NULL once the file is closed */
	u64 budget[2];
	struct gdmabuf_slots slots;
	struct gdmabuf_counters counters;
	struct xarray host_watches;	/* by slot; with a lock of its own */
	struct gdmabuf_notifier *notifier; /* NULL until host memory is pinned or watched */
	unsigned int watchers;	/* notifier.lock: notices, plus 1 while the file is open */
};

struct gdmabuf_pin;

struct gdmabuf_context *gdmabuf_context_create(void);
void gdmabuf_context_put(struct gdmabuf_context *ctx);
/* -EACCES if the caller is not the owner. */
static inline int gdmabuf_context_check(const struct gdmabuf_context *ctx)
{
	/* execve() keeps the process, and replaces its memory. */
	return gdmabuf_owner_is_current(ctx->owner) && current->mm == ctx->mm ? 0 : -EACCES;
}

/* The file is closed: drops the kept pins, and the tables for ioctls. */
void gdmabuf_context_close(struct gdmabuf_context *ctx);
/* Gives up idle pins of @bytes together; false if no pin was idle. */
bool gdmabuf_context_evict(struct gdmabuf_context *ctx, u32 kind, u64 bytes);
/* As gdmabuf_context_evict(), in the user's contexts other than @ctx. */
bool gdmabuf_contexts_evict_own(struct gdmabuf_context *ctx, u32 kind, u64 bytes);
/* As gdmabuf_context_evict(), in contexts of other users, as far as is fair.  Callers serialize. */
bool gdmabuf_contexts_evict_others(struct gdmabuf_context *ctx, u32 kind, u64 bytes);
/*
 * Gives up idle pins until @pin's user is charged pin->lacking less; nothing at all if the idle
 * pins are too few.  Takes from @pin's context first, and from no process with a higher
 * RLIMIT_MEMLOCK than @pin's.  False if no pin was given up.
 */
bool gdmabuf_contexts_evict_charged(const struct gdmabuf_pin *pin);
/* Gives up idle pins beyond the budget.  Returns the bytes of idle pins left. */
u64 gdmabuf_context_trim(struct gdmabuf_context *ctx, u32 kind);
/*
 * Moves idle pins of @bytes to @idle, linked by lru; the caller gets their references.  Only tries
 * locks, so idle pins may be missed.
 */
u64 gdmabuf_contexts_take_idle(u32 kind, u64 bytes, struct list_head *idle);
void gdmabuf_contexts_put_idle(struct list_head *idle);
int gdmabuf_contexts_show(struct seq_file *seq, void *unused);

/* ---- shrinker.c: idle pins are given up when the kernel needs memory ---- */

int gdmabuf_shrinker_create(void);
void gdmabuf_shrinker_destroy(void);
/* @pin has become kept, or has ceased to be. */
void gdmabuf_shrinker_account(const struct gdmabuf_pin *pin, bool kept);

/* ---- pin.c ---- */

/* Counts the gain of a limit if idle pins are given up, for pins with shared folios: memlock.c. */
struct gdmabuf_gain {
	struct xarray folios; /* by frame number: how often the idle pins contain the folio */
};

struct gdmabuf_pin_ops {
	u32 kind;
	u32 flags;			/* of exports; supported by the kind */
	u64 (*page_size)(void);		/* 0: no provider */
	/* The quota for pins made by the caller in @ctx.  NULL: no memory. */
	struct gdmabuf_quota *(*get_quota)(struct gdmabuf_context *ctx);
	/*
	 * Sets runs, nr_runs, cacheable and charged.  The caller evicts and tries again after
	 * -ENOSPC, and after -EDQUOT or -ENOMEM with lacking set.
	 */
	int (*pin)(struct gdmabuf_pin *pin);
	void (*unpin)(struct gdmabuf_pin *pin);
	/*
	 * Called for each idle pin of a user: the bytes that the limit gains from giving up @pin
	 * together with all pins counted before.
	 */
	u64 (*count_gain)(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain);
	/*
	 * Called for counted pins: whether giving up @pin is of use.  If so, adds the bytes gained
	 * together with all pins taken before to @freed.
	 */
	bool (*take_gain)(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain, u64 *freed);
	/* Whether the owner may export the range of a pin, if not stale; may be NULL. */
	int (*check)(struct gdmabuf_pin *pin, u64 address, u64 length, u32 flags);
	const struct dma_buf_ops *(*buffer_ops)(const struct gdmabuf_pin *pin, u64 offset,
						u64 length, u32 flags);
};

extern const struct gdmabuf_pin_ops gdmabuf_gpu_pin_ops, gdmabuf_host_pin_ops;

static inline unsigned int gdmabuf_kind_index(u32 kind)
{
	return kind == GDMABUF_KIND_GPU;
}

/* A range of host memory in a notifier: notifier.c. */
struct gdmabuf_notice {
	struct gdmabuf_context *ctx;
	/*
	 * The address gets other pages, and the notice is not in the notifier any more.  Called
	 * with notifier.lock held.
	 */
	void (*stale_locked)(struct gdmabuf_notice *notice);
	/* Protected by notifier.lock: */
	struct interval_tree_node node;
	bool added;		/* node is in the notifier */
};

enum { PIN_STALE, PIN_REVOKED };

struct gdmabuf_pin {
	struct kref kref;
	const struct gdmabuf_pin_ops *ops;
	struct gdmabuf_context *ctx;
	u64 address, length;
	u32 flags;			/* of all its exports, without GDMABUF_KEEP */
	u32 slot, generation;
	unsigned long state;		/* PIN_* bits */
	bool creating;

	/* Protected by ctx->lock: */
	struct interval_tree_node node;
	struct list_head lru;
	bool listed, kept;		/* kept: the context has a reference */

	struct gdmabuf_run *runs;
	unsigned int nr_runs;
	bool cacheable;
	struct work_struct forget;	/* gdmabuf_pin_forget(), once GPU memory was freed */

	struct gdmabuf_quota *quota;	/* of the user charged for the pin */
	u64 charged;			/* bytes; of host memory: 0 if no limit applies */
	u64 lacking;			/* bytes to uncharge before the pin fits */
	unsigned int tries;		/* calls of ops->pin() */
	long ended;			/* ended pins, of all users, before the last try */
	u64 limit;			/* RLIMIT_MEMLOCK at the charge, or 0 */

	struct rw_semaphore revoke_sem;	/* read: a CPU mapping is made; write: PIN_REVOKED is set */
	atomic_t buffers;
	struct mutex lock;		/* protects mapped, mapped_bytes */
	struct list_head mapped;	/* revocable buffers that CPUs have mapped */
	u64 mapped_bytes[2];		/* charged for the mappings, by enum gdmabuf_mapper */

	union {
		struct {
			const struct gdmabuf_provider *provider;
			struct gdmabuf_gpu_pages pages;
			struct gdmabuf_watch *watch;
			struct gdmabuf_hold *hold; /* NULL: revocable */
		} gpu;
		struct {
			struct gdmabuf_notice notice;
			struct list_head stale;	/* protected by notifier.lock */
			bool dirty;		/* devices or CPUs may have written */
		} host;
	};
};

/* Finds a pin for an export (@hit), or makes a new pin.  The caller gets a reference. */
int gdmabuf_pin_get(struct gdmabuf_context *ctx, const struct gdmabuf_pin_ops *ops, u64 address,
		    u64 length, u32 flags, struct gdmabuf_pin **out, bool *hit);
/* The export is done.  @keep: the context keeps the pin, unless the pin is stale. */
void gdmabuf_pin_exported(struct gdmabuf_pin *pin, bool keep, bool hit);
/* Sleeps, and may call the provider. */
void gdmabuf_pin_put(struct gdmabuf_pin *pin);
struct gdmabuf_pin *gdmabuf_pin_find_slot(struct gdmabuf_context *ctx, u32 slot, u32 generation);
/*
 * Hides @pin from exports.  True if the context kept @pin: the caller gets the context's reference,
 * and puts @pin with the lock dropped.
 */
bool gdmabuf_pin_unlist_locked(struct gdmabuf_pin *pin);
bool gdmabuf_pin_is_idle_locked(const struct gdmabuf_pin *pin);
/*
 * The context stops keeping @pin, to which the caller has a reference.  True if @pin has buffers.
 */
bool gdmabuf_pin_drop(struct gdmabuf_pin *pin);
/* The address means other pages now.  Any context.  True the first time. */
bool gdmabuf_pin_set_stale(struct gdmabuf_pin *pin);
/*
 * The caller's reference will be put by gdmabuf_pin_put_going() or gdmabuf_pin_forget().  Any
 * context.
 */
void gdmabuf_pin_goes(struct gdmabuf_pin *pin);
void gdmabuf_pin_put_going(struct gdmabuf_pin *pin);
/* Takes a stale pin, which goes, out of the context.  Consumes a reference; sleeps. */
void gdmabuf_pin_forget(struct gdmabuf_pin *pin);
/* The pages are going away: on return they are out of reach of CPUs. */
void gdmabuf_pin_revoke(struct gdmabuf_pin *pin);

/* ---- notifier.c: new pages at an address of host memory ---- */

/*
 * Makes the context's notifier, if ctx->notifier is NULL.  Called by the owner, before notices are
 * added.  -ENOMEM; -ERESTARTNOINTR: a signal came.
 */
int gdmabuf_notifier_get(struct gdmabuf_context *ctx);
/* The file is closed: from now on only notices hold the mm_struct. */
void gdmabuf_notifier_leave(struct gdmabuf_context *ctx);
/* The context is freed. */
void gdmabuf_notifier_put(struct gdmabuf_notifier *notifier);
/*
 * Adds @notice, until the address gets other pages or @notice is removed.  Called by the owner
 * before the pages are looked up.  -EFAULT: no address of a process.
 */
int gdmabuf_notifier_add(struct gdmabuf_notice *notice, u64 address, u64 length);
/*
 * Removes @notice, if still there.  On return nobody calls @notice's function.  Any process; never
 * waits for the owner.
 */
void gdmabuf_notifier_remove(struct gdmabuf_notice *notice);
/* For the function of a pin's notice: the pin is taken out of the context later. */
void gdmabuf_notifier_forget_locked(struct gdmabuf_pin *pin);
/* No context and no notice is left.  Waits until the kernel calls no notifier any more. */
void gdmabuf_notifiers_exit(void);

/* ---- host_watch.c: watches of host memory, without a pin ---- */

/*
 * Called by the owner.  -EFAULT: no address of a process; -ENOSPC: too many watches, or no slot is
 * free; -ENOMEM; -ERESTARTNOINTR.
 */
int gdmabuf_host_watch_create(struct gdmabuf_context *ctx, u64 address, u64 length, u32 *slot,
			      u32 *generation);
/* Ends a watch, stale or not.  -ENOENT: no such watch. */
int gdmabuf_host_watch_end(struct gdmabuf_context *ctx, u32 slot, u32 generation);
/* The file is closed. */
void gdmabuf_host_watches_end(struct gdmabuf_context *ctx);

/* ---- buffer.c, attach.c, sg.c, mmap.c: the dma-buf ---- */

struct gdmabuf_buffer {
	struct gdmabuf_pin *pin;
	u64 offset, length;		/* the part of the pin */
	u32 flags;
	struct dma_buf *dmabuf;
	struct list_head link;		/* pin->lock: in pin->mapped while there are mappings */
	/* CPU mappings of revocable memory; each holds dmabuf's file.  Protected by pin->lock. */
	unsigned int mappings;
	struct mutex maps_lock;		/* protects maps */
	struct list_head maps;		/* current mappings of host memory for devices */
};

/* Consumes the reference to @pin, also on error. */
struct dma_buf *gdmabuf_buffer_create(struct gdmabuf_pin *pin, u64 offset, u64 length, u32 flags);
/* NULL if the dma-buf is not gdmabuf's. */
struct gdmabuf_buffer *gdmabuf_buffer_of(struct dma_buf *dmabuf);
/* For revocable memory only. */
void gdmabuf_buffer_add_mapping(struct gdmabuf_buffer *buffer);
void gdmabuf_buffer_del_mapping(struct gdmabuf_buffer *buffer);
/* Takes down the CPU mappings, at least one.  The pin is PIN_REVOKED already. */
void gdmabuf_buffer_revoke_locked(struct gdmabuf_buffer *buffer);
void gdmabuf_buffer_release(struct dma_buf *dmabuf);

int gdmabuf_attach_gpu(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment);
int gdmabuf_attach_pin(struct dma_buf_attachment *attachment);
void gdmabuf_attach_unpin(struct dma_buf_attachment *attachment);

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

int gdmabuf_buffer_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma);
int gdmabuf_vmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map);
int gdmabuf_vmap_host(struct dma_buf *dmabuf, struct iosys_map *map);
void gdmabuf_vunmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map);
void gdmabuf_vunmap_host(struct dma_buf *dmabuf, struct iosys_map *map);
bool gdmabuf_vmap_gpu_works(const struct gdmabuf_pin *pin, u64 offset, u64 length);
#define GDMABUF_VMAP_MAX SZ_256M	/* of kernel address space, for a buffer */

/* ---- memlock.c: RLIMIT_MEMLOCK ---- */

struct gdmabuf_memlock {
	struct user_struct *user; /* referenced here, or by cred */
	const struct cred *cred;
	struct mutex lock;	/* protects folios */
	struct xarray folios;	/* large folios, by frame number: how often pins contain one */
};

void gdmabuf_memlocks_init(void);
void gdmabuf_memlocks_exit(void);
/* False if the caller has CAP_IPC_LOCK. */
bool gdmabuf_memlock_limits_current(void);
/* For the user of the caller. */
void gdmabuf_memlock_init(struct gdmabuf_memlock *memlock);
void gdmabuf_memlock_destroy(struct gdmabuf_memlock *memlock);
/* Charges pinned pages.  -ENOMEM: no memory; or, with pin->lacking set, no room. */
int gdmabuf_memlock_charge(struct gdmabuf_memlock *memlock, struct gdmabuf_pin *pin);
/* Removes the folios of @pin, still pinned.  Returns the pages to uncharge after the unpin. */
unsigned long gdmabuf_memlock_forget(struct gdmabuf_memlock *memlock,
				     const struct gdmabuf_pin *pin);
void gdmabuf_memlock_uncharge(struct gdmabuf_memlock *memlock, unsigned long nr);
/* Pin operations of host memory. */
u64 gdmabuf_memlock_count_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain);
bool gdmabuf_memlock_take_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain,
			       u64 *freed);

/* ---- quota.c ---- */

/* A user.  Contexts refer to their quota, and so do charged watches, holds and pins. */
struct gdmabuf_quota {
	struct kref kref;
	struct list_head link; /* in quotas */
	kuid_t uid;
	atomic64_t bytes;
	atomic64_t leaving;	/* the part of bytes of watches without a pin */
	struct gdmabuf_memlock memlock;
	struct mutex evicting;	/* held by the user's export while giving up idle pins */
	/* By kind: pins that ever began to go, and those of them that are gone. */
	atomic_long_t going[2], gone[2];
	atomic64_t mapped[2];	/* revocable memory mapped by CPUs: enum gdmabuf_mapper */
};

/* For the user of the caller.  NULL: no memory. */
struct gdmabuf_quota *gdmabuf_quota_get_current(void);

static inline struct gdmabuf_quota *gdmabuf_quota_get(struct gdmabuf_quota *quota)
{
	kref_get(&quota->kref);
	return quota;
}

void gdmabuf_quota_put(struct gdmabuf_quota *quota);
/*
 * A pin of @kind goes: exports do not find the pin any more, and a work item or another thread will
 * put a reference.  Until then the pin is charged.  Any context.
 */
void gdmabuf_quota_goes(struct gdmabuf_quota *quota, u32 kind);
/* The reference is put. */
void gdmabuf_quota_gone(struct gdmabuf_quota *quota, u32 kind);
/*
 * Waits for as many pins as are going now.  Killable.  The caller holds no lock that the end of a
 * pin needs.
 */
void gdmabuf_quota_wait_for_going(struct gdmabuf_quota *quota, u32 kind);
/* Forgets the users with permanent charges. */
void gdmabuf_quotas_exit(void);
/* -EDQUOT: the limit is reached. */
int gdmabuf_quota_charge(struct gdmabuf_quota *quota, u64 bytes);
/* Any context. */
void gdmabuf_quota_uncharge(struct gdmabuf_quota *quota, u64 bytes);
u64 gdmabuf_quota_used(const struct gdmabuf_quota *quota);
/* The part of gdmabuf_quota_used() that owners of watches have yet to give back. */
u64 gdmabuf_quota_leaving(const struct gdmabuf_quota *quota);
/* The bytes to uncharge before @bytes fit; 0 if @bytes are more than the limit. */
u64 gdmabuf_quota_lacks(const struct gdmabuf_quota *quota, u64 bytes);
/*
 * Whose processes map the user's revocable memory.  Each mapper has a separate limit: other users
 * cannot use up the user's.
 */
enum gdmabuf_mapper { GDMABUF_MAPPER_USER, GDMABUF_MAPPER_OTHER };
/* The caller's role. */
enum gdmabuf_mapper gdmabuf_quota_mapper(const struct gdmabuf_quota *quota);
/* Charges @bytes of the user's revocable memory, mapped by CPUs.  -ENOMEM: the limit is reached. */
int gdmabuf_quota_charge_mapping(struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper,
				 u64 bytes);
bool gdmabuf_quota_has_room(const struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper,
			    u64 bytes);
/* Any context. */
void gdmabuf_quota_add_mapping(struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper, s64 bytes);

/* ---- provider.c, watch.c, diag.c ---- */

/* Takes a reference to the provider's module.  NULL without a provider. */
const struct gdmabuf_provider *gdmabuf_provider_get(void);
void gdmabuf_provider_put(const struct gdmabuf_provider *provider);

/* Charges @bytes, which the watch will pin.  -EDQUOT, -ENOMEM. */
struct gdmabuf_watch *gdmabuf_watch_create(const struct gdmabuf_provider *provider,
					   struct gdmabuf_pin *pin, u64 bytes);
/* Called by the owner. */
int gdmabuf_watch_start(struct gdmabuf_watch *watch, u64 address, u64 length,
			struct gdmabuf_gpu_pages *pages);
/*
 * Ends a watch, started or not: gdmabuf_watch_freed() touches the pin no more.  If the caller is
 * not the owner, the driver's pin stays until given back by the owner.
 */
void gdmabuf_watch_end(struct gdmabuf_watch *watch);
/*
 * Gives the driver's pin back, and drops the core's reference.  Called by the owner; by any process
 * once the memory was freed.  False if the driver has no memory for the call: @watch becomes an
 * orphan.
 */
bool gdmabuf_watch_give_back(struct gdmabuf_watch *watch);
/*
 * Watches held by providers now, of all contexts, including watches the driver failed to give back.
 */
s64 gdmabuf_watches_count(void);

int gdmabuf_diag_pci(struct gdmabuf_diag *cmd);

extern struct workqueue_struct *gdmabuf_wq;

#endif
