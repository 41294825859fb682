// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Owners: processes that have contexts, and the watches that wait for them.
 *
 * A GPU driver takes a watch back from the process only that made it.  The last reference to a
 * dma-buf may be dropped by any process, so the watch then becomes an orphan of its owner.  The
 * owner ends its orphans when it next calls an ioctl or closes a context, and at once if it can
 * be called: task_work_add() has it do so on its way back to user mode.  That function is not
 * exported by every kernel, so it is looked up when the module is loaded.
 */
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core.h"

static DEFINE_SPINLOCK(owners_lock); /* protects owners */
static LIST_HEAD(owners);

static typeof(task_work_add) *add_task_work;

static struct gdmabuf_owner *owner_create(void)
{
	struct gdmabuf_owner *owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);

	if (!owner)
		return NULL;
	kref_init(&owner->kref);
	owner->tgid = task_tgid(current);
	spin_lock_init(&owner->lock);
	INIT_LIST_HEAD(&owner->orphans);
	return owner;
}

static struct gdmabuf_owner *owner_find_locked(void)
{
	struct gdmabuf_owner *owner;

	list_for_each_entry(
		owner, &owners,
		link) if (gdmabuf_owner_is_current(owner)) return gdmabuf_owner_get(owner);
	return NULL;
}

struct gdmabuf_owner *gdmabuf_owner_get_current(void)
{
	struct gdmabuf_owner *fresh = owner_create(), *owner;

	spin_lock(&owners_lock);
	owner = owner_find_locked();
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

static void owner_free(struct kref *kref)
{
	struct gdmabuf_owner *owner = container_of(kref, struct gdmabuf_owner, kref);

	list_del(&owner->link);
	spin_unlock(&owners_lock);
	put_pid(owner->tgid);
	kfree(owner);
}

void gdmabuf_owner_put(struct gdmabuf_owner *owner)
{
	kref_put_lock(&owner->kref, owner_free, &owners_lock);
}

bool gdmabuf_owner_is_current(const struct gdmabuf_owner *owner)
{
	return owner->tgid == task_tgid(current);
}

static struct gdmabuf_watch *owner_take_orphan(struct gdmabuf_owner *owner)
{
	struct gdmabuf_watch *watch;

	spin_lock(&owner->lock);
	watch = list_first_entry_or_null(&owner->orphans, struct gdmabuf_watch, orphan);
	if (watch)
		list_del_init(&watch->orphan);
	spin_unlock(&owner->lock);
	return watch;
}

void gdmabuf_owner_collect(struct gdmabuf_owner *owner)
{
	struct gdmabuf_watch *watch;

	if (list_empty_careful(&owner->orphans) || !gdmabuf_owner_is_current(owner))
		return;
	while ((watch = owner_take_orphan(owner)))
		gdmabuf_watch_unwatch(watch);
}

/*
 * The work holds the module, and drops that last: gdmabuf_owners_exit() waits for what is then
 * still to run of this function.
 */
static void owner_called(struct callback_head *work)
{
	struct gdmabuf_owner *owner = container_of(work, struct gdmabuf_owner, work);

	spin_lock(&owner->lock);
	owner->called = false;
	spin_unlock(&owner->lock);
	gdmabuf_owner_collect(owner);
	gdmabuf_owner_put(owner);
	module_put(THIS_MODULE);
}

/* A thread that runs comes back to user mode soon; one that sleeps, when it wakes up. */
static bool owner_add_work_rcu(struct gdmabuf_owner *owner, bool running)
{
	struct task_struct *leader = pid_task(owner->tgid, PIDTYPE_TGID), *thread;

	if (!leader)
		return false;
	for_each_thread(leader,
			thread) if ((!running || task_is_running(thread)) &&
				    !add_task_work(thread, &owner->work, TWA_RESUME)) return true;
	return false;
}

static void owner_call(struct gdmabuf_owner *owner)
{
	bool added;

	gdmabuf_owner_get(owner);
	__module_get(THIS_MODULE);
	init_task_work(&owner->work, owner_called);
	rcu_read_lock();
	added = owner_add_work_rcu(owner, true) || owner_add_work_rcu(owner, false);
	rcu_read_unlock();
	if (added)
		return;
	/* The process has ended, or is about to: that frees its memory, and ends its watches. */
	gdmabuf_owner_put(owner);
	module_put(THIS_MODULE);
}

bool gdmabuf_owner_add_orphan(struct gdmabuf_owner *owner, struct gdmabuf_watch *watch)
{
	bool freed, call;

	spin_lock(&owner->lock);
	freed = watch->freed;
	call = !freed && !owner->called && add_task_work;
	if (!freed)
		list_add_tail(&watch->orphan, &owner->orphans);
	if (call)
		owner->called = true;
	spin_unlock(&owner->lock);
	if (call)
		owner_call(owner);
	return !freed;
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

void gdmabuf_owners_init(void)
{
	add_task_work = symbol_get(task_work_add);
	if (!add_task_work)
		pr_info("without task_work_add(), GPU memory whose last user is another process "
			"stays pinned until its owner's next call\n");
}

void gdmabuf_owners_exit(void)
{
	if (!add_task_work)
		return;
	symbol_put(task_work_add);
	synchronize_rcu_tasks();
}
