// SPDX-License-Identifier: GPL-2.0 OR MIT
/* How much GPU memory each user may have pinned: a BAR is smaller than what it shows. */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "core.h"

static unsigned long gpu_quota_mb;
module_param(gpu_quota_mb, ulong, 0600);
MODULE_PARM_DESC(gpu_quota_mb,
		 "of GPU memory pinned, for each user without CAP_SYS_RESOURCE; 0: no limit");

struct gdmabuf_quota {
	struct list_head link;
	kuid_t uid;
	u64 bytes;
};

static DEFINE_MUTEX(lock);
static LIST_HEAD(quotas);	/* of users with something pinned */

static struct gdmabuf_quota *find_locked(kuid_t uid)
{
	struct gdmabuf_quota *quota;

	list_for_each_entry(quota, &quotas, link)
		if (uid_eq(quota->uid, uid))
			return quota;
	quota = kzalloc(sizeof(*quota), GFP_KERNEL_ACCOUNT);
	if (quota) {
		quota->uid = uid;
		list_add(&quota->link, &quotas);
	}
	return quota;
}

static void free_unused_locked(struct gdmabuf_quota *quota)
{
	if (quota->bytes)
		return;
	list_del(&quota->link);
	kfree(quota);
}

static bool allowed(const struct gdmabuf_quota *quota, u64 bytes)
{
	u64 limit = (u64)READ_ONCE(gpu_quota_mb) << 20;

	return !limit || (bytes <= limit && quota->bytes <= limit - bytes) ||
	       capable(CAP_SYS_RESOURCE);
}

int gdmabuf_quota_charge(kuid_t uid, u64 bytes, struct gdmabuf_quota **out)
{
	struct gdmabuf_quota *quota;
	int err = 0;

	mutex_lock(&lock);
	quota = find_locked(uid);
	if (!quota) {
		err = -ENOMEM;
	} else if (!allowed(quota, bytes)) {
		err = -EDQUOT;
		free_unused_locked(quota);
	} else {
		quota->bytes += bytes;
		*out = quota;
	}
	mutex_unlock(&lock);
	return err;
}

void gdmabuf_quota_uncharge(struct gdmabuf_quota *quota, u64 bytes)
{
	mutex_lock(&lock);
	quota->bytes -= bytes;
	free_unused_locked(quota);
	mutex_unlock(&lock);
}
