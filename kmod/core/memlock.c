// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * RLIMIT_MEMLOCK: host memory that a user has pinned, added up with the pinned memory of io_uring
 * and iommufd.
 *
 * A folio is what the kernel frees, moves and swaps as a whole: a page, or many contiguous pages
 * such as a huge page.  A single pinned page keeps the whole folio.  So folios are charged instead
 * of pages, and a large folio is charged once for a user, however many pins have parts.
 *
 * The charge is on the user, not on the mm_struct (pinned_vm): a dma-buf outlives the process, and
 * pages passed on before an exit would be charged to nobody.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>

#include "core.h"

/*
 * Looked up at load time, because some 6.1 kernels do not export the function.  Without free_uid()
 * the first opener's credentials hold the user, together with a user namespace and keyrings.
 */
static void (*release_user)(struct user_struct *user);

/* noaudit: to lack the capability is no fault. */
bool gdmabuf_memlock_limits_current(void)
{
	return !ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
}

void gdmabuf_memlock_init(struct gdmabuf_memlock *memlock)
{
	memlock->user = current_user();
	if (release_user)
		get_uid(memlock->user);
	else
		memlock->cred = get_current_cred();
	mutex_init(&memlock->lock);
	/*
	 * The nodes of the xarray are not charged to a memory cgroup.  If they were, all processes
	 * of the user, and all processes that close the user's buffers, would wait for a cgroup
	 * over the limit.  The number of nodes is bounded, because folios are limited.
	 */
	xa_init(&memlock->folios);
}

void gdmabuf_memlock_destroy(struct gdmabuf_memlock *memlock)
{
	unsigned long pfn = 0;

	/* Nodes without an entry may be left by a failed xa_store(). */
	WARN_ON(xa_find(&memlock->folios, &pfn, ULONG_MAX, XA_PRESENT));
	xa_destroy(&memlock->folios);
	if (release_user)
		release_user(memlock->user);
	else
		put_cred(memlock->cred);
}

void gdmabuf_memlocks_init(void)
{
	release_user = symbol_get(free_uid);
}

void gdmabuf_memlocks_exit(void)
{
	if (release_user)
		symbol_put(free_uid);
}

struct tally {
	u64 bytes;		/* of the pin, counted so far */
	unsigned long charge;	/* pages of folios in no other pin of the user */
};

/* Adds @by, 1 or -1, to the count of @folio.  -ENOMEM, for 1 only. */
static int gdmabuf_memlock_count_folio_locked(struct gdmabuf_memlock *memlock, struct folio *folio,
					      int by, struct tally *tally)
{
	unsigned long pfn = folio_pfn(folio), old, new;
	int err;

	if (folio_test_large(folio)) {
		old = xa_to_value(xa_load(&memlock->folios, pfn));
		new = old + by;
		err = xa_err(xa_store(&memlock->folios, pfn, new ? xa_mk_value(new) : NULL,
				      GFP_KERNEL));
		if (err)
			return err;
		if (!old || !new)
			tally->charge += folio_nr_pages(folio);
	} else {
		tally->charge++;
	}
	return 0;
}

/* The folio of the pinned page at @at.  @next: the end of the folio, or @end if that is lower. */
static struct folio *gdmabuf_memlock_folio_at(u64 at, u64 end, u64 *next)
{
	struct folio *folio = page_folio(pfn_to_page(PHYS_PFN(at)));

	*next = min_t(u64, PFN_PHYS(folio_pfn(folio)) + folio_size(folio), end);
	return folio;
}

/* As gdmabuf_memlock_count_folio_locked(), for all folios in the first @bytes of @pin. */
static int gdmabuf_memlock_count_folios_locked(struct gdmabuf_memlock *memlock,
					       const struct gdmabuf_pin *pin, u64 bytes, int by,
					       struct tally *tally)
{
	struct gdmabuf_run_iter it;
	u64 at, next;
	int err;

	lockdep_assert_held(&memlock->lock);
	for (run_first(&it, pin->runs, 0, bytes); it.length; run_next(&it)) {
		for (at = it.start; at < it.start + it.length; at = next) {
			struct folio *folio =
				gdmabuf_memlock_folio_at(at, it.start + it.length, &next);

			err = gdmabuf_memlock_count_folio_locked(memlock, folio, by, tally);
			if (err)
				return err;
			tally->bytes += next - at;
		}
		cond_resched();
	}
	return 0;
}

/*
 * -ENOMEM if the limit is reached.  @lacking: the pages, in bytes, that must be uncharged first; 0
 * if @nr pages alone exceed the limit.
 */
static int gdmabuf_memlock_charge_pages(atomic_long_t *locked_vm, unsigned long nr, u64 *lacking)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long locked = atomic_long_read(locked_vm);

	do {
		if (locked > limit || nr > limit - locked) {
			*lacking = nr > limit ? 0 : (u64)(locked + nr - limit) << PAGE_SHIFT;
			return -ENOMEM;
		}
	} while (!atomic_long_try_cmpxchg(locked_vm, &locked, locked + nr));
	return 0;
}

int gdmabuf_memlock_charge(struct gdmabuf_memlock *memlock, struct gdmabuf_pin *pin)
{
	struct tally tally = {}, undone = {};
	int err;

	/*
	 * Held until the charge has succeeded or was undone: no other pin may rely on a folio whose
	 * charge is undone in the end.
	 */
	mutex_lock(&memlock->lock);
	err = gdmabuf_memlock_count_folios_locked(memlock, pin, pin->length, 1, &tally);
	if (!err)
		err = gdmabuf_memlock_charge_pages(&memlock->user->locked_vm, tally.charge,
						   &pin->lacking);
	if (err)
		gdmabuf_memlock_count_folios_locked(memlock, pin, tally.bytes, -1, &undone);
	mutex_unlock(&memlock->lock);
	pin->charged = pin->length;
	pin->limit = rlimit(RLIMIT_MEMLOCK);
	return err;
}

unsigned long gdmabuf_memlock_forget(struct gdmabuf_memlock *memlock, const struct gdmabuf_pin *pin)
{
	struct tally tally = {};

	mutex_lock(&memlock->lock);
	gdmabuf_memlock_count_folios_locked(memlock, pin, pin->length, -1, &tally);
	mutex_unlock(&memlock->lock);
	return tally.charge;
}

void gdmabuf_memlock_uncharge(struct gdmabuf_memlock *memlock, unsigned long nr)
{
	atomic_long_sub(nr, &memlock->user->locked_vm);
}

/* Mark: all places of the folio are in idle pins, so giving up these pins frees the folio. */
#define GAIN_ALL XA_MARK_0

static u64 gdmabuf_memlock_count_folio_gain(struct gdmabuf_memlock *memlock, struct folio *folio,
					    struct xarray *idle)
{
	unsigned long pfn = folio_pfn(folio), places;

	if (!folio_test_large(folio))
		return PAGE_SIZE;
	places = xa_to_value(xa_load(idle, pfn)) + 1;
	if (xa_err(xa_store(idle, pfn, xa_mk_value(places), GFP_NOWAIT | __GFP_NOWARN)))
		return 0;
	if (places != xa_to_value(xa_load(&memlock->folios, pfn)))
		return 0;
	xa_set_mark(idle, pfn, GAIN_ALL);
	return folio_size(folio);
}

u64 gdmabuf_memlock_count_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain)
{
	struct gdmabuf_memlock *memlock = &pin->quota->memlock;
	struct gdmabuf_run_iter it;
	struct folio *folio;
	u64 at, next, freed = 0;

	if (!pin->charged)
		return 0;
	for (run_first(&it, pin->runs, 0, pin->length); it.length; run_next(&it)) {
		for (at = it.start; at < it.start + it.length; at = next) {
			folio = gdmabuf_memlock_folio_at(at, it.start + it.length, &next);
			freed += gdmabuf_memlock_count_folio_gain(memlock, folio, &gain->folios);
		}
		cond_resched();
	}
	return freed;
}

/* False if a pin in use contains the folio, too. */
static bool gdmabuf_memlock_take_folio_gain(struct folio *folio, struct xarray *idle, u64 *freed)
{
	unsigned long pfn = folio_pfn(folio), places;

	if (!folio_test_large(folio)) {
		*freed += PAGE_SIZE;
		return true;
	}
	places = xa_to_value(xa_load(idle, pfn));
	if (!places || !xa_get_mark(idle, pfn, GAIN_ALL))
		return false;
	/* The entry exists, so no memory is needed. */
	xa_store(idle, pfn, xa_mk_value(places - 1), GFP_NOWAIT);
	if (places == 1)
		*freed += folio_size(folio);
	return true;
}

bool gdmabuf_memlock_take_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain, u64 *freed)
{
	struct gdmabuf_run_iter it;
	struct folio *folio;
	bool useful = false;
	u64 at, next;

	if (!pin->charged)
		return false;
	for (run_first(&it, pin->runs, 0, pin->length); it.length; run_next(&it)) {
		for (at = it.start; at < it.start + it.length; at = next) {
			folio = gdmabuf_memlock_folio_at(at, it.start + it.length, &next);
			useful |= gdmabuf_memlock_take_folio_gain(folio, &gain->folios, freed);
		}
		cond_resched();
	}
	return useful;
}
