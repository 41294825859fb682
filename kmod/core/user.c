// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The GPU memory that each user has pinned.  It is limited because a BAR may be smaller than the
 * GPU's memory, and whoever fills it stops all others.
 */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "core.h"

static unsigned long gpu_quota_mb;
module_param(gpu_quota_mb, ulong, 0600);
MODULE_PARM_DESC(gpu_quota_mb,
		 "of GPU memory exported, for each user without CAP_SYS_RESOURCE; 0: no limit");

static DEFINE_MUTEX(lock);	/* from reading a user's sum to writing it */
static DEFINE_XARRAY(pages);	/* by user id: the pages charged, if any */

static unsigned long gdmabuf_user_pages(kuid_t uid)
{
	return xa_to_value(xa_load(&pages, __kuid_val(uid)));
}

/* Storing less than before needs no memory. */
static int gdmabuf_user_set_pages(kuid_t uid, unsigned long nr)
{
	return xa_err(xa_store(&pages, __kuid_val(uid), nr ? xa_mk_value(nr) : NULL, GFP_KERNEL));
}

int gdmabuf_user_charge(kuid_t uid, u64 bytes)
{
	unsigned long limit = READ_ONCE(gpu_quota_mb) << (20 - PAGE_SHIFT), sum;
	int err = -EDQUOT;

	mutex_lock(&lock);
	sum = gdmabuf_user_pages(uid) + (bytes >> PAGE_SHIFT);
	if (!limit || sum <= limit || capable(CAP_SYS_RESOURCE))
		err = gdmabuf_user_set_pages(uid, sum);
	mutex_unlock(&lock);
	if (!err)
		atomic64_add(bytes, &gdmabuf_gpu_bytes);
	return err;
}

void gdmabuf_user_uncharge(kuid_t uid, u64 bytes)
{
	mutex_lock(&lock);
	gdmabuf_user_set_pages(uid, gdmabuf_user_pages(uid) - (bytes >> PAGE_SHIFT));
	mutex_unlock(&lock);
	atomic64_sub(bytes, &gdmabuf_gpu_bytes);
}

/* What a driver never gave back is still charged. */
void gdmabuf_users_exit(void)
{
	xa_destroy(&pages);
}
