// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/gdmabuf: ioctls, in the manner of iommufd. */
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"

/* An ioctl: the arguments of user space, and where the results go. */
struct call {
	struct gdmabuf_context *ctx;
	void __user *user;
	u32 user_size;
	void *cmd;
};

/* Inlined, so that copy_to_user() has a constant size to check. */
static __always_inline int gdmabuf_main_respond(const struct call *call, size_t size)
{
	unsigned long left;

	if (call->user_size < size)
		left = copy_to_user(call->user, call->cmd, call->user_size);
	else
		left = copy_to_user(call->user, call->cmd, size);
	return left ? -EFAULT : 0;
}

static int gdmabuf_do_caps(struct call *call)
{
	struct gdmabuf_caps *cmd = call->cmd;
	const struct gdmabuf_provider *provider;

	if (cmd->flags)
		return -EOPNOTSUPP;
	cmd->out_host_page_size = PAGE_SIZE;
	cmd->out_gpu_page_size = 0;
	cmd->out_watches = GDMABUF_WATCHES;
	memset(cmd->out_provider, 0, sizeof(cmd->out_provider));
	provider = gdmabuf_provider_get();
	if (provider) {
		cmd->out_gpu_page_size = provider->page_size;
		strscpy(cmd->out_provider, provider->name, sizeof(cmd->out_provider));
		gdmabuf_provider_put(provider);
	}
	return gdmabuf_main_respond(call, sizeof(*cmd));
}

static int gdmabuf_main_check_export(const struct gdmabuf_export *cmd,
				     const struct gdmabuf_kind *kind)
{
	u64 page_size = kind->page_size();

	if (cmd->flags & ~kind->flags || cmd->reserved || !page_size)
		return -EOPNOTSUPP;
	if (!range_is_valid(cmd->address, cmd->length, page_size))
		return -EINVAL;
	/* Pages are counted in an int elsewhere. */
	return cmd->length >> PAGE_SHIFT > INT_MAX ? -EINVAL : 0;
}

/* Installing the descriptor, which cannot be undone, comes last. */
static int gdmabuf_main_export_as(int fd, struct call *call, const struct gdmabuf_kind *kind)
{
	struct gdmabuf_export *cmd = call->cmd;
	struct dma_buf *dmabuf;
	int err;

	dmabuf = gdmabuf_buffer_export(kind, cmd->address, cmd->length, cmd->flags);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	cmd->out_fd = fd;
	err = gdmabuf_main_respond(call, sizeof(*cmd));
	if (err)
		dma_buf_put(dmabuf);
	else
		fd_install(fd, dmabuf->file);
	return err;
}

static int gdmabuf_main_export(struct call *call, const struct gdmabuf_kind *kind)
{
	int fd, err = gdmabuf_main_check_export(call->cmd, kind);

	if (err)
		return err;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	err = gdmabuf_main_export_as(fd, call, kind);
	if (err)
		put_unused_fd(fd);
	return err;
}

static int gdmabuf_do_export_host(struct call *call)
{
	return gdmabuf_main_export(call, &gdmabuf_host_kind);
}

static int gdmabuf_do_export_gpu(struct call *call)
{
	return gdmabuf_main_export(call, &gdmabuf_gpu_kind);
}

static int gdmabuf_do_watch_host(struct call *call)
{
	struct gdmabuf_watch_host *cmd = call->cmd;
	int err;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!range_is_valid(cmd->address, cmd->length, PAGE_SIZE))
		return -EINVAL;
	err = gdmabuf_context_watch(call->ctx, cmd->address, cmd->length, &cmd->out_slot,
				    &cmd->out_generation);
	if (err)
		return err;
	err = gdmabuf_main_respond(call, sizeof(*cmd));
	if (err)
		gdmabuf_context_unwatch(call->ctx, cmd->out_slot, cmd->out_generation);
	return err;
}

static int gdmabuf_do_unwatch_host(struct call *call)
{
	struct gdmabuf_watch_id *cmd = call->cmd;

	if (cmd->flags)
		return -EOPNOTSUPP;
	return gdmabuf_context_unwatch(call->ctx, cmd->slot, cmd->generation);
}

union command {
	struct gdmabuf_caps caps;
	struct gdmabuf_export export;
	struct gdmabuf_watch_host watch_host;
	struct gdmabuf_watch_id watch_id;
};

/* @last is the last member of the first version of the struct. */
#define OP(name, type, last, function) \
	[(name) - GDMABUF_CMD_BASE] = { \
		.size = sizeof(struct type), \
		.min = offsetofend(struct type, last), \
		.execute = function, \
	}

static const struct {
	u32 size, min;
	int (*execute)(struct call *call);
} ops[] = {
	OP(GDMABUF_CMD_CAPS, gdmabuf_caps, out_provider, gdmabuf_do_caps),
	OP(GDMABUF_CMD_EXPORT_HOST, gdmabuf_export, reserved, gdmabuf_do_export_host),
	OP(GDMABUF_CMD_EXPORT_GPU, gdmabuf_export, reserved, gdmabuf_do_export_gpu),
	OP(GDMABUF_CMD_WATCH_HOST, gdmabuf_watch_host, out_generation, gdmabuf_do_watch_host),
	OP(GDMABUF_CMD_UNWATCH_HOST, gdmabuf_watch_id, generation, gdmabuf_do_unwatch_host),
};

static long gdmabuf_ioctl(struct file *file, unsigned int request, unsigned long arg)
{
	struct call call = { .ctx = file->private_data, .user = (void __user *)arg };
	unsigned int nr = _IOC_NR(request) - GDMABUF_CMD_BASE;
	union command cmd = {};
	int err;

	if (nr >= ARRAY_SIZE(ops) || request != _IO(GDMABUF_TYPE, _IOC_NR(request)))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(ops));
	err = gdmabuf_context_check(call.ctx);
	if (err)
		return err;
	if (get_user(call.user_size, (u32 __user *)call.user))
		return -EFAULT;
	if (call.user_size < ops[nr].min)
		return -EINVAL;
	if (call.user_size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(&cmd, ops[nr].size, call.user, call.user_size);
	if (err)
		return err;
	call.cmd = &cmd;
	return ops[nr].execute(&call);
}

static int gdmabuf_open(struct inode *inode, struct file *file)
{
	struct gdmabuf_context *ctx = gdmabuf_context_create();

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	file->private_data = ctx;
	return 0;
}

static int gdmabuf_release(struct inode *inode, struct file *file)
{
	gdmabuf_context_close(file->private_data);
	return 0;
}

static int gdmabuf_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct gdmabuf_context *ctx = file->private_data;
	int err = gdmabuf_context_check(ctx);

	return err ? err : gdmabuf_context_mmap(ctx, vma);
}

static void gdmabuf_fdinfo(struct seq_file *seq, struct file *file)
{
	seq_printf(seq, "gdmabuf-watches:\t%lu\n",
		   gdmabuf_context_count_watches(file->private_data));
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = gdmabuf_open,
	.release = gdmabuf_release,
	.unlocked_ioctl = gdmabuf_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = gdmabuf_mmap,
	.show_fdinfo = gdmabuf_fdinfo,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gdmabuf",
	.fops = &fops,
	.mode = 0660,
};

static int __init gdmabuf_init(void)
{
	int err = gdmabuf_gpu_init();

	if (err)
		return err;
	err = misc_register(&device);
	if (err)
		gdmabuf_gpu_exit();
	else
		gdmabuf_totals_create();
	return err;
}

/* All contexts are closed and all dma-bufs released, because both hold the module. */
static void __exit gdmabuf_exit(void)
{
	misc_deregister(&device);
	gdmabuf_totals_destroy();
	gdmabuf_notifiers_exit();
	gdmabuf_gpu_exit();
}

module_init(gdmabuf_init);
module_exit(gdmabuf_exit);
MODULE_DESCRIPTION("GPU memory and host memory as dma-bufs");
MODULE_LICENSE("Dual MIT/GPL");
GDMABUF_IMPORT_NS(DMA_BUF);
