// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Quotas: limits for each user.  Pinned GPU memory is limited because a BAR may be smaller than the
 * GPU's memory.  CPU mappings of revocable memory are limited because a free takes them all down:
 * mmap.c.
 */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/wait_bit.h>

#include "core.h"

static unsigned long gpu_quota_mb;
module_param(gpu_quota_mb, ulong, 0600);
MODULE_PARM_DESC(gpu_quota_mb,
		 "of GPU memory pinned, for each user without CAP_SYS_RESOURCE; 0: no limit");

static unsigned long revocable_map_mb = 4096;
module_param(revocable_map_mb, ulong, 0600);
MODULE_PARM_DESC(revocable_map_mb,
		 "of each user's revocable GPU memory that CPUs may have mapped, for the user itself and again for all others; 0: no limit");

static DEFINE_SPINLOCK(quotas_lock); /* protects quotas */
static LIST_HEAD(quotas);

static struct gdmabuf_quota *gdmabuf_quota_create(void)
{
	struct gdmabuf_quota *quota = kzalloc(sizeof(*quota), GFP_KERNEL_ACCOUNT);

	if (!quota)
		return NULL;
	kref_init(&quota->kref);
	quota->uid = current_uid();
	gdmabuf_memlock_init(&quota->memlock);
	mutex_init(&quota->evicting);
	return quota;
}

static struct gdmabuf_quota *gdmabuf_quota_find_locked(kuid_t uid)
{
	struct gdmabuf_quota *quota;

	list_for_each_entry(quota, &quotas, link)
		if (uid_eq(quota->uid, uid))
			return gdmabuf_quota_get(quota);
	return NULL;
}

static void gdmabuf_quota_destroy(struct gdmabuf_quota *quota)
{
	if (!quota)
		return;
	gdmabuf_memlock_destroy(&quota->memlock);
	kfree(quota);
}

struct gdmabuf_quota *gdmabuf_quota_get_current(void)
{
	struct gdmabuf_quota *fresh = gdmabuf_quota_create(), *quota;

	spin_lock(&quotas_lock);
	quota = gdmabuf_quota_find_locked(current_uid());
	if (!quota && fresh) {
		list_add(&fresh->link, &quotas);
		swap(quota, fresh);
	}
	spin_unlock(&quotas_lock);
	gdmabuf_quota_destroy(fresh);
	return quota;
}

static void gdmabuf_quota_free(struct kref *kref) __releases(&quotas_lock)
{
	struct gdmabuf_quota *quota = container_of(kref, struct gdmabuf_quota, kref);

	list_del(&quota->link);
	spin_unlock(&quotas_lock);
	WARN_ON(atomic64_read(&quota->bytes) || atomic64_read(&quota->mapped[0]) ||
		atomic64_read(&quota->mapped[1]));
	gdmabuf_quota_destroy(quota);
}

void gdmabuf_quota_put(struct gdmabuf_quota *quota)
{
	kref_put_lock(&quota->kref, gdmabuf_quota_free, &quotas_lock);
}

void gdmabuf_quota_goes(struct gdmabuf_quota *quota, u32 kind)
{
	gdmabuf_quota_get(quota);
	atomic_long_inc(&quota->going[gdmabuf_kind_index(kind)]);
}

void gdmabuf_quota_gone(struct gdmabuf_quota *quota, u32 kind)
{
	atomic_long_t *gone = &quota->gone[gdmabuf_kind_index(kind)];

	/* A full barrier, as wake_up_var() requires. */
	atomic_long_inc_return(gone);
	wake_up_var(gone);
	gdmabuf_quota_put(quota);
}

void gdmabuf_quota_wait_for_going(struct gdmabuf_quota *quota, u32 kind)
{
	atomic_long_t *gone = &quota->gone[gdmabuf_kind_index(kind)];
	long going = atomic_long_read(&quota->going[gdmabuf_kind_index(kind)]);

	/* Pins that go later are not waited for: other threads may always make more go. */
	wait_var_event_killable(gone, atomic_long_read(gone) - going >= 0);
}

void gdmabuf_quotas_exit(void)
{
	struct gdmabuf_quota *quota, *next;

	list_for_each_entry_safe(quota, next, &quotas, link)
		gdmabuf_quota_destroy(quota);
}

static u64 gdmabuf_quota_limit(void)
{
	return (u64)READ_ONCE(gpu_quota_mb) << 20;
}

/*
 * Adds @bytes if @sum stays within @limit; 0: no limit.  Refused bytes are never visible to other
 * callers.
 */
static bool gdmabuf_quota_add_within(atomic64_t *sum, u64 bytes, u64 limit)
{
	s64 old = atomic64_read(sum);

	do {
		if (limit && ((u64)old > limit || bytes > limit - old))
			return false;
	} while (!atomic64_try_cmpxchg(sum, &old, old + bytes));
	return true;
}

int gdmabuf_quota_charge(struct gdmabuf_quota *quota, u64 bytes)
{
	if (gdmabuf_quota_add_within(&quota->bytes, bytes, gdmabuf_quota_limit()))
		return 0;
	if (!capable(CAP_SYS_RESOURCE))
		return -EDQUOT;
	atomic64_add(bytes, &quota->bytes);
	return 0;
}

void gdmabuf_quota_uncharge(struct gdmabuf_quota *quota, u64 bytes)
{
	atomic64_sub(bytes, &quota->bytes);
}

u64 gdmabuf_quota_used(const struct gdmabuf_quota *quota)
{
	return atomic64_read(&quota->bytes);
}

u64 gdmabuf_quota_leaving(const struct gdmabuf_quota *quota)
{
	u64 bytes = atomic64_read(&quota->leaving);

	/*
	 * Pairs with gdmabuf_watch_uncharge(): callers read the charged bytes after the leaving
	 * bytes.
	 */
	smp_rmb();
	return bytes;
}

u64 gdmabuf_quota_lacks(const struct gdmabuf_quota *quota, u64 bytes)
{
	u64 limit = gdmabuf_quota_limit(), used = gdmabuf_quota_used(quota);

	if (bytes > limit || used <= limit - bytes)
		return 0;
	return used - (limit - bytes);
}

static u64 gdmabuf_mapping_limit(void)
{
	return (u64)READ_ONCE(revocable_map_mb) << 20;
}

enum gdmabuf_mapper gdmabuf_quota_mapper(const struct gdmabuf_quota *quota)
{
	return uid_eq(quota->uid, current_uid()) ? GDMABUF_MAPPER_USER : GDMABUF_MAPPER_OTHER;
}

int gdmabuf_quota_charge_mapping(struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper, u64 bytes)
{
	return gdmabuf_quota_add_within(&quota->mapped[mapper], bytes, gdmabuf_mapping_limit())
		       ? 0
		       : -ENOMEM;
}

bool gdmabuf_quota_has_room(const struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper,
			    u64 bytes)
{
	u64 limit = gdmabuf_mapping_limit();

	return !limit || atomic64_read(&quota->mapped[mapper]) + bytes <= limit;
}

void gdmabuf_quota_add_mapping(struct gdmabuf_quota *quota, enum gdmabuf_mapper mapper, s64 bytes)
{
	atomic64_add(bytes, &quota->mapped[mapper]);
}
