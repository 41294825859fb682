// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Owners: processes with contexts, and the orphans waiting for an owner.
 *
 * A GPU driver lets only the owner end a watch.  But any process may drop the last reference to a
 * dma-buf.  The watch then becomes an orphan of the owner.
 *
 * The owner gives orphans back in the next ioctl, or when closing a context.  Sooner, if the owner
 * can be called: task_work_add() makes a thread do so on the way back to user mode.  Some kernels
 * do not export task_work_add(), so the function is looked up when the module is loaded.
 */
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "core.h"

static DEFINE_SPINLOCK(owners_lock); /* protects owners */
static LIST_HEAD(owners);

static int (*add_task_work)(struct task_struct *task, struct callback_head *work,
			    enum task_work_notify_mode notify);

static void gdmabuf_owner_call_again(struct work_struct *work);

static struct gdmabuf_owner *gdmabuf_owner_create(void)
{
	struct gdmabuf_owner *owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);

	if (!owner)
		return NULL;
	kref_init(&owner->kref);
	owner->tgid = task_tgid(current);
	spin_lock_init(&owner->lock);
	INIT_LIST_HEAD(&owner->orphans);
	xa_init(&owner->calls);
	INIT_DELAYED_WORK(&owner->call_again, gdmabuf_owner_call_again);
	return owner;
}

static struct gdmabuf_owner *gdmabuf_owner_find_locked(void)
{
	struct gdmabuf_owner *owner;

	list_for_each_entry(owner, &owners, link)
		if (gdmabuf_owner_is_current(owner))
			return gdmabuf_owner_get(owner);
	return NULL;
}

struct gdmabuf_owner *gdmabuf_owner_get_current(void)
{
	struct gdmabuf_owner *fresh = gdmabuf_owner_create(), *owner;

	spin_lock(&owners_lock);
	owner = gdmabuf_owner_find_locked();
	if (!owner && fresh) {
		get_pid(fresh->tgid);
		list_add(&fresh->link, &owners);
		swap(owner, fresh);
	}
	spin_unlock(&owners_lock);
	kfree(fresh);
	return owner;
}

struct gdmabuf_owner *gdmabuf_owner_get(struct gdmabuf_owner *owner)
{
	kref_get(&owner->kref);
	return owner;
}

static void gdmabuf_owner_free(struct kref *kref) __releases(&owners_lock)
{
	struct gdmabuf_owner *owner = container_of(kref, struct gdmabuf_owner, kref);

	list_del(&owner->link);
	spin_unlock(&owners_lock);
	put_pid(owner->tgid);
	/* Frees nodes without an entry, left by a failed xa_insert(). */
	xa_destroy(&owner->calls);
	kfree(owner);
}

void gdmabuf_owner_put(struct gdmabuf_owner *owner)
{
	kref_put_lock(&owner->kref, gdmabuf_owner_free, &owners_lock);
}

static struct gdmabuf_watch *gdmabuf_owner_take_orphan(struct gdmabuf_owner *owner)
{
	struct gdmabuf_watch *watch;

	spin_lock(&owner->lock);
	watch = list_first_entry_or_null(&owner->orphans, struct gdmabuf_watch, orphan);
	if (watch)
		list_del_init(&watch->orphan);
	spin_unlock(&owner->lock);
	return watch;
}

static void gdmabuf_owner_call_later(struct gdmabuf_owner *owner, unsigned long delay);

void gdmabuf_owner_collect_orphans(struct gdmabuf_owner *owner, unsigned int most)
{
	struct gdmabuf_watch *watch;

	while ((watch = gdmabuf_owner_take_orphan(owner))) {
		/* The driver has no memory for the remaining orphans either. */
		if (!gdmabuf_watch_give_back(watch))
			return;
		if (!--most)
			break;
	}
	/* A later call takes the rest, because the thread is on the way to user mode. */
	if (!list_empty_careful(&owner->orphans))
		gdmabuf_owner_call_later(owner, 1);
}

/* A pending call to a thread of the owner.  At most one per thread. */
struct call {
	struct callback_head work;
	struct gdmabuf_owner *owner;
	unsigned long thread; /* index in owner->calls */
};

/*
 * The call holds the module, and drops the module last: gdmabuf_owners_exit() waits for the end of
 * this function.  A later orphan finds no call in owner->calls, and makes a new call.
 */
static void gdmabuf_owner_called(struct callback_head *work)
{
	struct call *call = container_of(work, struct call, work);
	struct gdmabuf_owner *owner = call->owner;

	xa_erase(&owner->calls, call->thread);
	kfree(call);
	gdmabuf_owner_collect(owner, GDMABUF_COLLECT_SOME);
	gdmabuf_owner_put(owner);
	module_put(THIS_MODULE);
}

static void gdmabuf_owner_call_drop(struct call *call)
{
	gdmabuf_owner_put(call->owner);
	module_put(THIS_MODULE);
	kfree(call);
}

/* -ENOMEM.  An exiting thread takes no call, and needs no call. */
static int gdmabuf_owner_call_thread_rcu(struct gdmabuf_owner *owner, struct task_struct *thread)
{
	struct call *call = kmalloc(sizeof(*call), GFP_NOWAIT | __GFP_NOWARN);
	int err;

	if (!call)
		return -ENOMEM;
	call->owner = gdmabuf_owner_get(owner);
	call->thread = task_pid_nr(thread);
	__module_get(THIS_MODULE);
	init_task_work(&call->work, gdmabuf_owner_called);
	err = xa_insert(&owner->calls, call->thread, call, GFP_NOWAIT | __GFP_NOWARN);
	if (err) {
		gdmabuf_owner_call_drop(call);
		return err == -EBUSY ? 0 : err;
	}
	if (add_task_work(thread, &call->work, TWA_RESUME)) {
		xa_erase(&owner->calls, call->thread);
		gdmabuf_owner_call_drop(call);
	}
	return 0;
}

/*
 * Calls all threads, because any thread may sleep for good.  The first to return to user mode
 * collects.
 */
static int gdmabuf_owner_call_threads(struct gdmabuf_owner *owner)
{
	struct task_struct *leader, *thread;
	int err = 0;

	rcu_read_lock();
	leader = pid_task(owner->tgid, PIDTYPE_TGID);
	/* Without a leader the process has ended, and the end of the memory ends all watches. */
	if (leader)
		for_each_thread(leader, thread)
			err = gdmabuf_owner_call_thread_rcu(owner, thread) ?: err;
	rcu_read_unlock();
	return err;
}

static void gdmabuf_owner_call(struct gdmabuf_owner *owner);

static void gdmabuf_owner_call_again(struct work_struct *work)
{
	struct gdmabuf_owner *owner = container_of(work, struct gdmabuf_owner, call_again.work);

	if (!list_empty_careful(&owner->orphans))
		gdmabuf_owner_call(owner);
	gdmabuf_owner_put(owner);
	module_put(THIS_MODULE);
}

static void gdmabuf_owner_call_later(struct gdmabuf_owner *owner, unsigned long delay)
{
	if (!add_task_work)
		return;
	gdmabuf_owner_get(owner);
	__module_get(THIS_MODULE);
	if (queue_delayed_work(gdmabuf_wq, &owner->call_again, delay))
		return;
	gdmabuf_owner_put(owner);
	module_put(THIS_MODULE);
}

/* If memory for a call is missing, tries again later. */
static void gdmabuf_owner_call(struct gdmabuf_owner *owner)
{
	if (add_task_work && gdmabuf_owner_call_threads(owner))
		gdmabuf_owner_call_later(owner, HZ);
}

bool gdmabuf_owner_add_orphan(struct gdmabuf_owner *owner, struct gdmabuf_watch *watch,
			      unsigned long delay)
{
	bool freed;

	spin_lock(&owner->lock);
	freed = watch->freed;
	if (!freed)
		list_add_tail(&watch->orphan, &owner->orphans);
	spin_unlock(&owner->lock);
	if (freed)
		return false;
	if (delay)
		gdmabuf_owner_call_later(owner, delay);
	else
		gdmabuf_owner_call(owner);
	return true;
}

bool gdmabuf_owner_forget_orphan(struct gdmabuf_owner *owner, struct gdmabuf_watch *watch)
{
	bool orphan;

	spin_lock(&owner->lock);
	watch->freed = true;
	orphan = !list_empty(&watch->orphan);
	list_del_init(&watch->orphan);
	spin_unlock(&owner->lock);
	return orphan;
}

static unsigned int gdmabuf_owner_calls(struct gdmabuf_owner *owner)
{
	unsigned long thread;
	unsigned int nr = 0;
	struct call *call;

	xa_for_each(&owner->calls, thread, call)
		nr++;
	return nr;
}

void gdmabuf_owners_show(struct seq_file *seq)
{
	struct gdmabuf_owner *owner;
	unsigned int calls;

	spin_lock(&owners_lock);
	list_for_each_entry(owner, &owners, link) {
		calls = gdmabuf_owner_calls(owner);
		if (calls)
			seq_printf(seq, "process %d, calls in threads that sleep: %u\n",
				   pid_nr(owner->tgid), calls);
	}
	spin_unlock(&owners_lock);
}

void gdmabuf_owners_init(void)
{
	add_task_work = symbol_get(task_work_add);
	if (!add_task_work)
		pr_info("without task_work_add(), GPU memory whose last user is another process stays pinned until its owner's next call\n");
}

void gdmabuf_owners_exit(void)
{
	if (!add_task_work)
		return;
	symbol_put(task_work_add);
	synchronize_rcu_tasks();
}
