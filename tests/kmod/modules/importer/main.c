// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/gdmabuf_importer: imports dma-bufs in all the ways of drivers, for tests. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "commands.h"
#include "compat.h"
#include "devices.h"
#include "importer.h"

union command {
	struct gdmabuf_importer_attach attach;
	struct gdmabuf_importer_map map;
	struct gdmabuf_importer_copy copy;
	struct gdmabuf_importer_access access;
	struct gdmabuf_importer_cpu cpu;
};

#define OP(request_, execute_) \
	[_IOC_NR(request_) - _IOC_NR(GDMABUF_IMPORTER_ATTACH)] = { \
		.request = request_, \
		.execute = execute_, \
	}

static const struct {
	unsigned int request;
	int (*execute)(struct importer *imp, void *arg);
} ops[] = {
	OP(GDMABUF_IMPORTER_ATTACH, gdmabuf_importer_attach),
	OP(GDMABUF_IMPORTER_DETACH, gdmabuf_importer_detach),
	OP(GDMABUF_IMPORTER_MAP, gdmabuf_importer_map),
	OP(GDMABUF_IMPORTER_UNMAP, gdmabuf_importer_unmap),
	OP(GDMABUF_IMPORTER_COPY, gdmabuf_importer_copy),
	OP(GDMABUF_IMPORTER_READ, gdmabuf_importer_read),
	OP(GDMABUF_IMPORTER_WRITE, gdmabuf_importer_write),
	OP(GDMABUF_IMPORTER_VMAP, gdmabuf_importer_vmap),
	OP(GDMABUF_IMPORTER_VUNMAP, gdmabuf_importer_vunmap),
	OP(GDMABUF_IMPORTER_VREAD, gdmabuf_importer_vread),
	OP(GDMABUF_IMPORTER_VWRITE, gdmabuf_importer_vwrite),
	OP(GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, gdmabuf_importer_begin_cpu_access),
	OP(GDMABUF_IMPORTER_END_CPU_ACCESS, gdmabuf_importer_end_cpu_access),
};

static int gdmabuf_importer_execute(struct importer *imp, unsigned int nr, union command *cmd)
{
	int err;

	if (mutex_lock_interruptible(&imp->lock))
		return -EINTR;
	err = ops[nr].execute(imp, cmd);
	mutex_unlock(&imp->lock);
	return err;
}

static long gdmabuf_importer_ioctl(struct file *file, unsigned int request, unsigned long arg)
{
	unsigned int nr = _IOC_NR(request) - _IOC_NR(GDMABUF_IMPORTER_ATTACH);
	void __user *user = (void __user *)arg;
	union command cmd = {};
	int err;

	if (nr >= ARRAY_SIZE(ops))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(ops));
	if (ops[nr].request != request)
		return -ENOTTY;
	if (_IOC_DIR(request) & _IOC_WRITE && copy_from_user(&cmd, user, _IOC_SIZE(request)))
		return -EFAULT;
	err = gdmabuf_importer_execute(file->private_data, nr, &cmd);
	if (!err && _IOC_DIR(request) & _IOC_READ && copy_to_user(user, &cmd, _IOC_SIZE(request)))
		err = -EFAULT;
	return err;
}

static int gdmabuf_importer_open(struct inode *inode, struct file *file)
{
	struct importer *imp = kzalloc(sizeof(*imp), GFP_KERNEL);

	if (!imp)
		return -ENOMEM;
	mutex_init(&imp->lock);
	file->private_data = imp;
	return 0;
}

static int gdmabuf_importer_release(struct inode *inode, struct file *file)
{
	struct importer *imp = file->private_data;

	gdmabuf_importer_detach(imp, NULL);
	kfree(imp);
	return 0;
}

/* Tries the lock only: calls that hold the lock copy to user space, which takes the mmap_lock. */
static int gdmabuf_importer_mmap_file(struct file *file, struct vm_area_struct *vma)
{
	struct importer *imp = file->private_data;
	int err;

	if (!mutex_trylock(&imp->lock))
		return -EBUSY;
	err = gdmabuf_importer_mmap(imp, vma);
	mutex_unlock(&imp->lock);
	return err;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = gdmabuf_importer_open,
	.release = gdmabuf_importer_release,
	.unlocked_ioctl = gdmabuf_importer_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = gdmabuf_importer_mmap_file,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &fops,
	.mode = 0600,
};

static int __init gdmabuf_importer_init(void)
{
	int err = gdmabuf_importer_platform_register();

	if (err)
		return err;
	err = gdmabuf_importer_edu_register();
	if (err)
		goto unregister_platform;
	err = misc_register(&device);
	if (err)
		goto unregister_edu;
	return 0;

unregister_edu:
	gdmabuf_importer_edu_unregister();
unregister_platform:
	gdmabuf_importer_platform_unregister();
	return err;
}

static void __exit gdmabuf_importer_exit(void)
{
	misc_deregister(&device);
	gdmabuf_importer_edu_unregister();
	gdmabuf_importer_platform_unregister();
}

module_init(gdmabuf_importer_init);
module_exit(gdmabuf_importer_exit);
MODULE_DESCRIPTION("a device that imports dma-bufs, for tests");
MODULE_LICENSE("Dual MIT/GPL");
IMPORT_DMA_BUF;
