// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/gdmabuf: ioctls, in the manner of iommufd. */
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"

struct workqueue_struct *gdmabuf_wq;

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
	cmd->out_caps = GDMABUF_CAP_HOST | GDMABUF_CAP_WATCH_HOST;
	cmd->out_host_page_size = PAGE_SIZE;
	cmd->out_gpu_page_size = 0;
	cmd->out_slots = GDMABUF_SLOTS;
	memset(cmd->out_provider, 0, sizeof(cmd->out_provider));
	if (IS_ENABLED(CONFIG_PCI_P2PDMA))
		cmd->out_caps |= GDMABUF_CAP_P2PDMA;
	provider = gdmabuf_provider_get();
	if (provider) {
		cmd->out_caps |= GDMABUF_CAP_GPU;
		cmd->out_gpu_page_size = provider->page_size;
		strscpy(cmd->out_provider, provider->name, sizeof(cmd->out_provider));
		gdmabuf_provider_put(provider);
	}
	return gdmabuf_main_respond(call, sizeof(*cmd));
}

static int gdmabuf_main_check_export(const struct gdmabuf_export *cmd,
				     const struct gdmabuf_pin_ops *ops)
{
	u64 page_size = ops->page_size();

	if (cmd->flags & ~ops->flags || cmd->reserved || !page_size)
		return -EOPNOTSUPP;
	if (!range_is_valid(cmd->address, cmd->length, page_size))
		return -EINVAL;
	/* Pages are counted in an int elsewhere. */
	return cmd->length >> PAGE_SHIFT > INT_MAX ? -EINVAL : 0;
}

/* The two steps that cannot be undone, keeping the pin and installing the descriptor, come last. */
static int gdmabuf_main_export_as(int fd, struct call *call, const struct gdmabuf_pin_ops *ops)
{
	struct gdmabuf_export *cmd = call->cmd;
	struct gdmabuf_pin *pin;
	struct dma_buf *dmabuf;
	bool hit;
	int err;

	err = gdmabuf_pin_get(call->ctx, ops, cmd->address, cmd->length, cmd->flags, &pin, &hit);
	if (err)
		return err;
	cmd->out_fd = fd;
	cmd->out_slot = pin->slot;
	cmd->out_generation = pin->generation;
	dmabuf = gdmabuf_buffer_create(pin, cmd->address - pin->address, cmd->length, cmd->flags);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	err = gdmabuf_main_respond(call, sizeof(*cmd));
	if (err) {
		dma_buf_put(dmabuf);
		return err;
	}
	gdmabuf_pin_exported(pin, cmd->flags & GDMABUF_KEEP, hit);
	fd_install(fd, dmabuf->file);
	return 0;
}

static int gdmabuf_do_export(struct call *call, const struct gdmabuf_pin_ops *ops)
{
	int fd, err = gdmabuf_main_check_export(call->cmd, ops);

	if (err)
		return err;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	err = gdmabuf_main_export_as(fd, call, ops);
	if (err)
		put_unused_fd(fd);
	return err;
}

static int gdmabuf_do_export_gpu(struct call *call)
{
	return gdmabuf_do_export(call, &gdmabuf_gpu_pin_ops);
}

static int gdmabuf_do_export_host(struct call *call)
{
	return gdmabuf_do_export(call, &gdmabuf_host_pin_ops);
}

static int gdmabuf_do_watch_host(struct call *call)
{
	struct gdmabuf_watch_host *cmd = call->cmd;
	int err;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!range_is_valid(cmd->address, cmd->length, PAGE_SIZE))
		return -EINVAL;
	err = gdmabuf_host_watch_create(call->ctx, cmd->address, cmd->length, &cmd->out_slot,
					&cmd->out_generation);
	if (err)
		return err;
	err = gdmabuf_main_respond(call, sizeof(*cmd));
	if (err)
		gdmabuf_host_watch_end(call->ctx, cmd->out_slot, cmd->out_generation);
	return err;
}

static void gdmabuf_main_fill_query(struct gdmabuf_query *cmd, const struct gdmabuf_buffer *buffer,
				    bool own)
{
	const struct gdmabuf_pin *pin = buffer->pin;

	cmd->out_kind = pin->ops->kind;
	cmd->out_flags = buffer->flags;
	cmd->out_state = (test_bit(PIN_STALE, &pin->state) ? GDMABUF_STALE : 0) |
			 (test_bit(PIN_REVOKED, &pin->state) ? GDMABUF_REVOKED : 0);
	cmd->out_length = buffer->length;
	cmd->out_address = own ? pin->address + buffer->offset : 0;
	cmd->out_slot = own ? pin->slot : 0;
	cmd->out_generation = own ? pin->generation : 0;
	cmd->out_offset = own ? buffer->offset : 0;
	cmd->out_pin_length = own ? pin->length : 0;
}

static int gdmabuf_do_query(struct call *call)
{
	struct gdmabuf_query *cmd = call->cmd;
	struct gdmabuf_buffer *buffer;
	struct dma_buf *dmabuf;

	if (cmd->flags)
		return -EOPNOTSUPP;
	dmabuf = dma_buf_get(cmd->fd);
	if (IS_ERR(dmabuf))
		return -EBADF;
	buffer = gdmabuf_buffer_of(dmabuf);
	if (buffer)
		gdmabuf_main_fill_query(cmd, buffer, buffer->pin->ctx == call->ctx);
	dma_buf_put(dmabuf);
	return buffer ? gdmabuf_main_respond(call, sizeof(*cmd)) : -EBADF;
}

static int gdmabuf_do_drop(struct call *call)
{
	struct gdmabuf_pin_id *cmd = call->cmd;
	struct gdmabuf_pin *pin;
	bool used;

	if (cmd->flags)
		return -EOPNOTSUPP;
	pin = gdmabuf_pin_find_slot(call->ctx, cmd->slot, cmd->generation);
	if (!pin)
		return gdmabuf_host_watch_end(call->ctx, cmd->slot, cmd->generation);
	used = gdmabuf_pin_drop(pin);
	gdmabuf_pin_put(pin);
	return used ? -EBUSY : 0;
}

static int gdmabuf_do_budget(struct call *call)
{
	struct gdmabuf_budget *cmd = call->cmd;
	struct gdmabuf_context *ctx = call->ctx;

	if (cmd->flags || cmd->reserved)
		return -EOPNOTSUPP;
	if (cmd->kind != GDMABUF_KIND_HOST && cmd->kind != GDMABUF_KIND_GPU)
		return -EOPNOTSUPP;
	mutex_lock(&ctx->lock);
	cmd->out_bytes = ctx->budget[gdmabuf_kind_index(cmd->kind)];
	ctx->budget[gdmabuf_kind_index(cmd->kind)] = cmd->bytes;
	mutex_unlock(&ctx->lock);
	cmd->out_used = gdmabuf_context_trim(ctx, cmd->kind);
	return gdmabuf_main_respond(call, sizeof(*cmd));
}

static int gdmabuf_do_stats(struct call *call)
{
	const struct gdmabuf_counters *c = &call->ctx->counters;
	struct gdmabuf_stats *cmd = call->cmd;

	if (cmd->flags)
		return -EOPNOTSUPP;
	cmd->out_host_pins = atomic64_read(&c->pins[0]);
	cmd->out_host_bytes = atomic64_read(&c->bytes[0]);
	cmd->out_gpu_pins = atomic64_read(&c->pins[1]);
	cmd->out_gpu_bytes = atomic64_read(&c->bytes[1]);
	cmd->out_exports = atomic64_read(&c->exports);
	cmd->out_hits = atomic64_read(&c->hits);
	cmd->out_evictions = atomic64_read(&c->evictions);
	cmd->out_retries = atomic64_read(&c->retries);
	cmd->out_stale = atomic64_read(&c->stale);
	cmd->out_revoked = atomic64_read(&c->revoked);
	cmd->out_host_watches = atomic64_read(&c->host_watches);
	return gdmabuf_main_respond(call, sizeof(*cmd));
}

static int gdmabuf_do_diag(struct call *call)
{
	struct gdmabuf_diag *cmd = call->cmd;
	int err = cmd->flags ? -EOPNOTSUPP : gdmabuf_diag_pci(cmd);

	return err ? err : gdmabuf_main_respond(call, sizeof(*cmd));
}

union command {
	struct gdmabuf_caps caps;
	struct gdmabuf_export export;
	struct gdmabuf_query query;
	struct gdmabuf_pin_id pin_id;
	struct gdmabuf_budget budget;
	struct gdmabuf_stats stats;
	struct gdmabuf_diag diag;
	struct gdmabuf_watch_host watch_host;
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
	OP(GDMABUF_CMD_EXPORT_GPU, gdmabuf_export, reserved, gdmabuf_do_export_gpu),
	OP(GDMABUF_CMD_EXPORT_HOST, gdmabuf_export, reserved, gdmabuf_do_export_host),
	OP(GDMABUF_CMD_QUERY, gdmabuf_query, out_pin_length, gdmabuf_do_query),
	OP(GDMABUF_CMD_DROP, gdmabuf_pin_id, generation, gdmabuf_do_drop),
	OP(GDMABUF_CMD_BUDGET, gdmabuf_budget, out_used, gdmabuf_do_budget),
	OP(GDMABUF_CMD_STATS, gdmabuf_stats, out_revoked, gdmabuf_do_stats),
	OP(GDMABUF_CMD_DIAG, gdmabuf_diag, out_distance, gdmabuf_do_diag),
	OP(GDMABUF_CMD_WATCH_HOST, gdmabuf_watch_host, out_generation, gdmabuf_do_watch_host),
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
	gdmabuf_owner_collect(call.ctx->owner, GDMABUF_COLLECT_SOME);
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

	return err ? err : gdmabuf_slots_mmap(&ctx->slots, vma);
}

static void gdmabuf_fdinfo(struct seq_file *seq, struct file *file)
{
	struct gdmabuf_context *ctx = file->private_data;

	gdmabuf_stats_show(seq, &ctx->counters);
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
	int err;

	/* WQ_MEM_RECLAIM: work items of the shrinker free memory. */
	gdmabuf_wq = alloc_workqueue("gdmabuf", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!gdmabuf_wq)
		return -ENOMEM;
	err = gdmabuf_shrinker_create();
	if (err)
		goto destroy_wq;
	gdmabuf_owners_init();
	gdmabuf_memlocks_init();
	gdmabuf_stats_create();
	err = misc_register(&device);
	if (err)
		goto destroy_stats;
	return 0;

destroy_stats:
	gdmabuf_stats_destroy();
	gdmabuf_memlocks_exit();
	gdmabuf_owners_exit();
	gdmabuf_shrinker_destroy();
destroy_wq:
	destroy_workqueue(gdmabuf_wq);
	return err;
}

/*
 * All contexts are closed and all dma-bufs released, because both hold the module.  Work items may
 * still be pending.
 */
static void __exit gdmabuf_exit(void)
{
	misc_deregister(&device);
	/* Idle pins taken by the shrinker are still watched.  Afterwards no pin is left. */
	gdmabuf_shrinker_destroy();
	/* Invalidations queue work. */
	gdmabuf_notifiers_exit();
	destroy_workqueue(gdmabuf_wq);
	gdmabuf_stats_destroy();
	gdmabuf_owners_exit();
	gdmabuf_quotas_exit();
	gdmabuf_memlocks_exit();
}

module_init(gdmabuf_init);
module_exit(gdmabuf_exit);
MODULE_DESCRIPTION("GPU memory and host memory as dma-bufs");
MODULE_LICENSE("Dual MIT/GPL");
GDMABUF_IMPORT_NS(DMA_BUF);
