/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * gdmabuf, inside.  A context belongs to a process; a pin is memory of it that stays where it
 * is, of one of two kinds; a buffer is a dma-buf on (a part of) a pin.
 *
 *	file ----> context <---- pin <---- buffer <---- dma_buf
 *
 * Arrows are references.  A context knows its pins without one, but for those it keeps.
 *
 * Locks, outer first.  A provider's functions take the GPU driver's lock ("RM"), which is
 * also held when the provider calls back; what the callback takes is marked (*), and no
 * provider is called with that held.
 *
 *	quota.evicting > others_lock > contexts.lock > context.lock
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
	spinlock_t lock;		/* protects the rest */
	u32 *status;			/* mapped by user space; never read; NULL: destroyed */
	u32 *generations;
	DECLARE_BITMAP(used, GDMABUF_SLOTS);
};

int gdmabuf_slots_create(struct gdmabuf_slots *slots);
/* Nobody has the status page mapped.  Pins may put their slots afterwards. */
void gdmabuf_slots_destroy(struct gdmabuf_slots *slots);
/* The slot's word is its generation from now on.  -ENOSPC. */
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
};

extern struct gdmabuf_counters gdmabuf_total;

/* In the context's counters, and the total. */
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

/* A process that has contexts.  What is in it lives as long as anything refers to it. */
struct gdmabuf_owner {
	struct kref kref;
	struct list_head link; /* in owners */
	struct pid *tgid;
	spinlock_t lock;	  /* protects orphans, watches' orphan and freed */
	struct list_head orphans; /* watches that only the owner can take back */
	struct xarray calls;	  /* that threads have, by their number */
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

/* Takes @most orphans back, if the owner is who calls.  Sleeps, and calls the provider. */
static inline void gdmabuf_owner_collect(struct gdmabuf_owner *owner, unsigned int most)
{
	if (!list_empty_careful(&owner->orphans) && gdmabuf_owner_is_current(owner))
		gdmabuf_owner_collect_orphans(owner, most);
}

/* In a call that is made for something else: with NVIDIA's driver each takes a millisecond. */
#define GDMABUF_COLLECT_SOME 16
/*
 * The core's reference to @watch is the owner's now, who is called after @delay; false if @watch was
 * freed already.
 */
bool gdmabuf_owner_add_orphan(struct gdmabuf_owner *owner, struct gdmabuf_watch *watch,
			      unsigned long delay);
/* @watch is freed.  True if it was an orphan: its reference is the caller's again. */
bool gdmabuf_owner_forget_orphan(struct gdmabuf_owner *owner, struct gdmabuf_watch *watch);
/* The processes whose threads have calls. */
void gdmabuf_owners_show(struct seq_file *seq);
void gdmabuf_owners_init(void);
void gdmabuf_owners_exit(void);

/* ---- context.c ---- */

struct gdmabuf_context {
	struct kref kref;
	struct list_head link;		/* in contexts.list */
	struct gdmabuf_owner *owner;
	struct mm_struct *mm;		/* of the owner, mmgrab()ed; until the file is closed */
	const struct cred *cred;	/* of who opened the file; until it is closed */
	bool limited;			/* by RLIMIT_MEMLOCK: who has these credentials */
	kuid_t uid;
	struct gdmabuf_quota *quota;	/* of uid */
	struct mutex lock;		/* protects the rest but slots' and counters' own */
	struct rb_root_cached tree;	/* pins that exports can share, by address */
	struct list_head lru;		/* the same, least recently exported first */
	struct gdmabuf_pin **by_slot;	/* all pins; until the file is closed */
	u64 budget[2];
	struct gdmabuf_slots slots;
	struct gdmabuf_counters counters;
	struct gdmabuf_notifier *notifier; /* NULL until host memory is pinned */
	unsigned int watchers;	/* notifier.lock: pins that are watched, and the file if it is open */
};

struct gdmabuf_pin;

struct gdmabuf_context *gdmabuf_context_create(void);
void gdmabuf_context_put(struct gdmabuf_context *ctx);
/* -EACCES for all but the owner. */
static inline int gdmabuf_context_check(const struct gdmabuf_context *ctx)
{
	/* After execve() the process is the same, but its memory is not. */
	return gdmabuf_owner_is_current(ctx->owner) && current->mm == ctx->mm ? 0 : -EACCES;
}

/* The file is closed: keeps nothing any more, but what pins that live on need. */
void gdmabuf_context_close(struct gdmabuf_context *ctx);
/* Gives up idle pins until @bytes are free; false if there were none. */
bool gdmabuf_context_evict(struct gdmabuf_context *ctx, u32 kind, u64 bytes);
/* The same with what the user keeps in other contexts than @ctx. */
bool gdmabuf_contexts_evict_own(struct gdmabuf_context *ctx, u32 kind, u64 bytes);
/*
 * The same with what other users keep, as far as that is fair.  The caller sees to it that nobody
 * does so at the same time.
 */
bool gdmabuf_contexts_evict_others(struct gdmabuf_context *ctx, u32 kind, u64 bytes);
/*
 * Gives up idle pins, of @pin's context first, until the user has pin->lacking less charged: if they
 * are as many, else none.  False if none.  A process whose limit is lower takes nothing from one
 * that may keep more.
 */
bool gdmabuf_contexts_evict_charged(const struct gdmabuf_pin *pin);
/* Keeps to the budget.  Returns what is kept and idle. */
u64 gdmabuf_context_trim(struct gdmabuf_context *ctx, u32 kind);
/*
 * Takes idle pins out of contexts, until they are @bytes, and links them by lru: their references are
 * the caller's.  Waits for no lock, so it may find nothing though there is something.
 */
u64 gdmabuf_contexts_take_idle(u32 kind, u64 bytes, struct list_head *idle);
void gdmabuf_contexts_put_idle(struct list_head *idle);
int gdmabuf_contexts_show(struct seq_file *seq, void *unused);

/* ---- shrinker.c: what is kept, and idle, is given up when the kernel wants memory ---- */

int gdmabuf_shrinker_create(void);
void gdmabuf_shrinker_destroy(void);
/* A pin is kept from now on, or not any more. */
void gdmabuf_shrinker_account(const struct gdmabuf_pin *pin, bool kept);

/* ---- pin.c ---- */

/* What giving up idle pins frees of a limit, where pins share what is charged: memlock.c. */
struct gdmabuf_gain {
	struct xarray folios; /* by frame number: in how many places of these pins */
};

struct gdmabuf_pin_ops {
	u32 kind;
	u32 flags;			/* that exports of the kind know */
	u64 (*page_size)(void);		/* 0: not now */
	/* Whose limit counts pins that the caller makes in @ctx.  NULL: no memory. */
	struct gdmabuf_quota *(*get_quota)(struct gdmabuf_context *ctx);
	/*
	 * Sets runs, nr_runs, cacheable, charged.  -ENOSPC, and -EDQUOT or -ENOMEM with lacking set:
	 * tried again after eviction.
	 */
	int (*pin)(struct gdmabuf_pin *pin);
	void (*unpin)(struct gdmabuf_pin *pin);
	/*
	 * Of idle pins that are charged to one user.  What giving up @pin frees of the limit
	 * together with those counted before.
	 */
	u64 (*count_gain)(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain);
	/*
	 * Of one that was counted, whether giving it up is of use; then adds to @freed what it
	 * frees with those taken before.
	 */
	bool (*take_gain)(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain, u64 *freed);
	/* Whether the owner may still export it so, beside being not stale; may be NULL. */
	int (*check)(struct gdmabuf_pin *pin, u64 address, u64 length, u32 flags);
	const struct dma_buf_ops *(*buffer_ops)(const struct gdmabuf_pin *pin, u64 offset,
						u64 length, u32 flags);
};

extern const struct gdmabuf_pin_ops gdmabuf_gpu_pin_ops, gdmabuf_host_pin_ops;

static inline unsigned int gdmabuf_kind_index(u32 kind)
{
	return kind == GDMABUF_KIND_GPU;
}

enum { PIN_STALE, PIN_REVOKED };

struct gdmabuf_pin {
	struct kref kref;
	const struct gdmabuf_pin_ops *ops;
	struct gdmabuf_context *ctx;
	u64 address, length;
	u32 flags;			/* those that divide pins: not GDMABUF_KEEP */
	u32 slot, generation;
	unsigned long state;		/* PIN_* bits */
	bool creating;

	/* ctx->lock: */
	struct interval_tree_node node;
	struct list_head lru;
	bool listed, kept;		/* kept: the context has a reference */

	struct gdmabuf_run *runs;
	unsigned int nr_runs;
	bool cacheable;
	struct work_struct forget;	/* gdmabuf_pin_forget(), of GPU memory that was freed */

	struct gdmabuf_quota *quota;	/* of whom it is charged to */
	u64 charged;			/* bytes of GPU memory; of host memory, if any is charged */
	u64 lacking;			/* bytes that the limit would have to be freed of */
	unsigned int tries;		/* calls of ops->pin() */
	long ended;			/* pins, of all users, that had ended before the last try */
	u64 limit;			/* RLIMIT_MEMLOCK that it was charged under, or 0 */

	struct rw_semaphore revoke_sem;	/* read: CPU mappings are made; write: PIN_REVOKED is set */
	atomic_t buffers;
	struct mutex lock;		/* protects mapped, mapped_bytes */
	struct list_head mapped;	/* revocable buffers that CPUs have mapped */
	u64 mapped_bytes[2];		/* charged for that, by enum gdmabuf_mapper */

	union {
		struct {
			const struct gdmabuf_provider *provider;
			struct gdmabuf_gpu_pages pages;
			struct gdmabuf_watch *watch;
			struct gdmabuf_hold *hold; /* NULL: revocable */
		} gpu;
		struct {
			/* notifier.lock: */
			struct interval_tree_node node;
			bool watched;	/* node is in the notifier */
			struct list_head stale;

			bool dirty;		/* may have been written to */
		} host;
	};
};

/* For an export: one that is there (@hit), or a new one.  The caller's reference. */
int gdmabuf_pin_get(struct gdmabuf_context *ctx, const struct gdmabuf_pin_ops *ops, u64 address,
		    u64 length, u32 flags, struct gdmabuf_pin **out, bool *hit);
/* The export is done.  @keep: the context keeps the pin, as long as it serves exports. */
void gdmabuf_pin_exported(struct gdmabuf_pin *pin, bool keep, bool hit);
/* Sleeps, and may call the provider. */
void gdmabuf_pin_put(struct gdmabuf_pin *pin);
struct gdmabuf_pin *gdmabuf_pin_find_slot(struct gdmabuf_context *ctx, u32 slot, u32 generation);
/*
 * No export finds it any more.  True if the context kept it: its reference is now the caller's, to
 * be put with the lock dropped.
 */
bool gdmabuf_pin_unlist_locked(struct gdmabuf_pin *pin);
bool gdmabuf_pin_is_idle_locked(const struct gdmabuf_pin *pin);
/* The context keeps it no more; the caller has a reference.  Whether dma-bufs are on it still. */
bool gdmabuf_pin_drop(struct gdmabuf_pin *pin);
/* The address means something else now.  Any context.  True the first time. */
bool gdmabuf_pin_set_stale(struct gdmabuf_pin *pin);
/* Takes a stale pin out of the context.  Consumes a reference; sleeps. */
void gdmabuf_pin_forget(struct gdmabuf_pin *pin);
/* The pages go away: after it no CPU reaches them. */
void gdmabuf_pin_revoke(struct gdmabuf_pin *pin);

/* ---- notifier.c: when addresses of host memory get other pages ---- */

/*
 * Makes the context's notifier, if it has none: by the owner, before it adds pins.  -ENOMEM;
 * -ERESTARTNOINTR: a signal came.
 */
int gdmabuf_notifier_get(struct gdmabuf_context *ctx);
/* The file is closed: only pins that are watched hold the mm_struct any more. */
void gdmabuf_notifier_leave(struct gdmabuf_context *ctx);
/* The context is freed. */
void gdmabuf_notifier_put(struct gdmabuf_notifier *notifier);
/* @pin is not stale, and is watched until it is, or is removed.  Before its pages are looked up. */
void gdmabuf_notifier_add(struct gdmabuf_pin *pin);
/* @pin may be stale.  By any process; waits for nothing that the owner does. */
void gdmabuf_notifier_remove(struct gdmabuf_pin *pin);
/* No context is there any more, and no pin is watched.  Waits until the kernel calls none of them. */
void gdmabuf_notifiers_exit(void);

/* ---- buffer.c, attach.c, sg.c, mmap.c: the dma-buf ---- */

struct gdmabuf_buffer {
	struct gdmabuf_pin *pin;
	u64 offset, length;		/* of it */
	u32 flags;
	struct dma_buf *dmabuf;
	struct list_head link;		/* pin->lock: in pin->mapped while there are mappings */
	unsigned int mappings;		/* pin->lock: of CPUs, which hold dmabuf's file; if revocable */
	struct mutex maps_lock;		/* protects maps */
	struct list_head maps;		/* of host memory: for devices, as they are now */
};

/* Consumes the reference to @pin in any case. */
struct dma_buf *gdmabuf_buffer_create(struct gdmabuf_pin *pin, u64 offset, u64 length, u32 flags);
/* The buffer of a dma-buf, if it is one of ours. */
struct gdmabuf_buffer *gdmabuf_buffer_of(struct dma_buf *dmabuf);
/* Of revocable memory. */
void gdmabuf_buffer_add_mapping(struct gdmabuf_buffer *buffer);
void gdmabuf_buffer_del_mapping(struct gdmabuf_buffer *buffer);
/* Takes the CPU's mappings, of which there are some; the pin is PIN_REVOKED already. */
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
#define GDMABUF_VMAP_MAX SZ_256M	/* of the kernel's address space for one buffer */

/* ---- memlock.c: RLIMIT_MEMLOCK ---- */

struct gdmabuf_memlock {
	struct user_struct *user; /* referenced, or by cred */
	const struct cred *cred;
	struct mutex lock;	/* protects folios */
	struct xarray folios;	/* by frame number, the large ones: in how many places of pins they are */
};

void gdmabuf_memlocks_init(void);
void gdmabuf_memlocks_exit(void);
/* Whether the caller is limited, who may have the capability not to be. */
bool gdmabuf_memlock_limits_current(void);
/* Of the caller. */
void gdmabuf_memlock_init(struct gdmabuf_memlock *memlock);
void gdmabuf_memlock_destroy(struct gdmabuf_memlock *memlock);
/* Of a pin of host memory, which is pinned.  -ENOMEM: no memory, or, with pin->lacking, no room. */
int gdmabuf_memlock_charge(struct gdmabuf_memlock *memlock, struct gdmabuf_pin *pin);
/* The pages to uncharge when @pin, which is pinned still, is no more. */
unsigned long gdmabuf_memlock_forget(struct gdmabuf_memlock *memlock,
				     const struct gdmabuf_pin *pin);
void gdmabuf_memlock_uncharge(struct gdmabuf_memlock *memlock, unsigned long nr);
/* Pin operations. */
u64 gdmabuf_memlock_count_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain);
bool gdmabuf_memlock_take_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain,
			       u64 *freed);

/* ---- quota.c ---- */

/* A user.  Referenced by contexts and by what is charged. */
struct gdmabuf_quota {
	struct kref kref;
	struct list_head link; /* in quotas */
	kuid_t uid;
	atomic64_t bytes;
	atomic64_t leaving;	/* of these, what watches of pins that are no more have */
	struct gdmabuf_memlock memlock;
	struct mutex evicting;	/* held by the user's export that gives up idle pins */
	atomic64_t mapped[2];	/* of revocable memory, by CPUs: enum gdmabuf_mapper */
};

/* The caller's.  NULL: no memory. */
struct gdmabuf_quota *gdmabuf_quota_get_current(void);

static inline struct gdmabuf_quota *gdmabuf_quota_get(struct gdmabuf_quota *quota)
{
	kref_get(&quota->kref);
	return quota;
}

void gdmabuf_quota_put(struct gdmabuf_quota *quota);
/* Forgets the users to whom something is charged for good. */
void gdmabuf_quotas_exit(void);
/* -EDQUOT. */
int gdmabuf_quota_charge(struct gdmabuf_quota *quota, u64 bytes);
/* Any context. */
void gdmabuf_quota_uncharge(struct gdmabuf_quota *quota, u64 bytes);
u64 gdmabuf_quota_used(const struct gdmabuf_quota *quota);
/* What of it only waits for its owner to give it back. */
u64 gdmabuf_quota_leaving(const struct gdmabuf_quota *quota);
/* How much less would have to be used for @bytes more; 0 if that would not do. */
u64 gdmabuf_quota_lacks(const struct gdmabuf_quota *quota, u64 bytes);
/* Whose processes map the user's revocable memory.  Others do not use up what the user may map. */
enum gdmabuf_mapper { GDMABUF_MAPPER_USER, GDMABUF_MAPPER_OTHER };
/* What the caller is. */
enum gdmabuf_mapper gdmabuf_quota_mapper(const struct gdmabuf_quota *quota);
/* Bytes that CPUs have mapped of the user's revocable memory.  -ENOMEM. */
int gdmabuf_quota_charge_mapping(struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper,
				 u64 bytes);
bool gdmabuf_quota_has_room(const struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper,
			    u64 bytes);
/* Any context. */
void gdmabuf_quota_add_mapping(struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper, s64 bytes);

/* ---- provider.c, watch.c, diag.c ---- */

/* With a reference on its module; NULL if there is none. */
const struct gdmabuf_provider *gdmabuf_provider_get(void);
void gdmabuf_provider_put(const struct gdmabuf_provider *provider);

/* Charges @bytes, which the watch will pin: -EDQUOT, -ENOMEM. */
struct gdmabuf_watch *gdmabuf_watch_create(const struct gdmabuf_provider *provider,
					   struct gdmabuf_pin *pin, u64 bytes);
/* By the owner. */
int gdmabuf_watch_start(struct gdmabuf_watch *watch, u64 address, u64 length,
			struct gdmabuf_gpu_pages *pages);
/*
 * Started or not.  From now on the pin is not touched any more by gdmabuf_watch_freed().  In
 * another process than the owner the driver's pin stays until the owner takes it back.
 */
void gdmabuf_watch_end(struct gdmabuf_watch *watch);
/*
 * By the owner, or when it was freed: the driver's pin is given back, and the core's reference.
 * False if the driver has no memory for that: @watch is an orphan of its owner.
 */
bool gdmabuf_watch_give_back(struct gdmabuf_watch *watch);
/* Those that providers have now, of all contexts, and those that the driver failed to give back. */
s64 gdmabuf_watches_count(void);

int gdmabuf_diag_pci(struct gdmabuf_diag *cmd);

extern struct workqueue_struct *gdmabuf_wq;

#endif
