// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/gdmabuf_mock: see mock.h. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "nv-p2p.h"
#include "gpu.h"

static int gdmabuf_mock_do_free(u64 va)
{
	struct allocation *a;
	int err;

	mutex_lock(&mock_rm_lock);
	a = gdmabuf_mock_allocation_find_locked(task_tgid(current), va);
	err = a && a->va == va ? 0 : -EINVAL;
	if (!err)
		gdmabuf_mock_allocation_free_locked(a);
	mutex_unlock(&mock_rm_lock);
	return err;
}

static int gdmabuf_mock_copy_granule_locked(u64 va, void __user *user, u64 length, bool to_gpu)
{
	unsigned int granule;
	void *at;
	int err = gdmabuf_mock_granule_find_locked(task_tgid(current), va, &granule);

	if (err)
		return err;
	at = gdmabuf_mock_granule_address(granule) + va % MOCK_PAGE;
	err = to_gpu ? copy_from_user(at, user, length) : copy_to_user(user, at, length);
	return err ? -EFAULT : 0;
}

static int gdmabuf_mock_do_copy(const struct mock_copy *arg)
{
	void __user *user = u64_to_user_ptr(arg->user);
	u64 done, n;
	int err = 0;

	mutex_lock(&mock_rm_lock);
	for (done = 0; !err && done < arg->length; done += n) {
		n = min(arg->length - done, MOCK_PAGE - (arg->va + done) % MOCK_PAGE);
		err = gdmabuf_mock_copy_granule_locked(arg->va + done, user + done, n,
						       arg->to_gpu);
	}
	mutex_unlock(&mock_rm_lock);
	return err;
}

static long gdmabuf_mock_ioctl(struct file *file, unsigned int request, unsigned long address)
{
	void __user *user = (void __user *)address;
	union {
		struct mock_alloc alloc;
		struct mock_free free;
		struct mock_copy copy;
		struct mock_config config;
		struct mock_stats stats;
	} arg = {};
	int err = 0;

	if (_IOC_SIZE(request) > sizeof(arg) || copy_from_user(&arg, user, _IOC_SIZE(request)))
		return -EFAULT;
	switch (request) {
	case MOCK_ALLOC:
		err = gdmabuf_mock_allocation_create(file, arg.alloc.length,
						     arg.alloc.flags & MOCK_SCATTER, &arg.alloc.va);
		break;
	case MOCK_FREE:
		return gdmabuf_mock_do_free(arg.free.va);
	case MOCK_COPY:
		return gdmabuf_mock_do_copy(&arg.copy);
	case MOCK_CONFIG:
		mutex_lock(&mock_rm_lock);
		mock_config = arg.config;
		mutex_unlock(&mock_rm_lock);
		return 0;
	case MOCK_ADD_PAGES:
		return gdmabuf_mock_memory_add_pages();
	case MOCK_STATS:
		mutex_lock(&mock_rm_lock);
		arg.stats = mock_stats;
		arg.stats.version = NVIDIA_P2P_PAGE_TABLE_VERSION;
		mutex_unlock(&mock_rm_lock);
		break;
	default:
		return -ENOTTY;
	}
	if (!err && copy_to_user(user, &arg, _IOC_SIZE(request)))
		err = -EFAULT;
	return err;
}

static int gdmabuf_mock_release(struct inode *inode, struct file *file)
{
	struct allocation *a, *next;

	mutex_lock(&mock_rm_lock);
	list_for_each_entry_safe(a, next, &mock_allocations, link)
		if (a->file == file)
			gdmabuf_mock_allocation_free_locked(a);
	mutex_unlock(&mock_rm_lock);
	return 0;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = gdmabuf_mock_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = gdmabuf_mock_release,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gdmabuf_mock",
	.fops = &fops,
	.mode = 0666,
};

static int __init gdmabuf_mock_init(void)
{
	int err = gdmabuf_mock_memory_init();

	if (err)
		return err;
	err = misc_register(&device);
	if (err)
		gdmabuf_mock_memory_exit();
	return err;
}

static void __exit gdmabuf_mock_exit(void)
{
	misc_deregister(&device);
	WARN_ON(!list_empty(&mock_allocations) || !gdmabuf_mock_pins_are_gone());
	gdmabuf_mock_memory_exit();
}

module_init(gdmabuf_mock_init);
module_exit(gdmabuf_mock_exit);
MODULE_DESCRIPTION("NVIDIA's peer-to-peer interface without a GPU, for tests");
MODULE_LICENSE("Dual MIT/GPL");
