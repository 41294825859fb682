/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork(): the rules for every lock, descriptor and context of climport, in a child.
 *
 * - Locks (util/lock.h).  A child finds every lock free and the data of the lock whole.
 * - Threads.  A child has one thread.  A module whose data is for a thread of climport gives the
 *   lock a function that puts the data right in a child (LOCK_DEFINE_IN_CHILD, lock_init).
 *   fork.c calls all the functions once in each child, outer locks first.
 * - Contexts of kernel modules and drivers belong to one process.  A child inherits memory that
 *   describes the parent's context.  The owner of a context records fork_generation(), and compares
 *   before each use.
 * - Descriptors.  A child inherits the parent's descriptors until exec or exit, and never uses or
 *   closes descriptors for the parent's threads.  A descriptor that belongs to one process is a
 *   struct descriptor_own (util/descriptor.h).
 * - Registrations.  A child's registration caches are empty (import/cache/cache.h).
 *
 * vfork() and posix_spawn() run no handlers, and their children call nothing of climport.
 */
#ifndef UTIL_FORK_H
#define UTIL_FORK_H

#include <stdatomic.h>
#include <stdint.h>

#include "util/shared.h"

/* fork.c's: the number below, or 0: the process has none yet. */
extern _Atomic uint32_t *fork_mark;
uint32_t fork_begin_generation(void);

/*
 * A number that a process shares with none of its ancestors; never 0.  A load.  getpid() is no
 * such number: in two PID namespaces, parent and child may both be process 1.  The number is in a
 * page that the kernel empties in every child (MADV_WIPEONFORK), also without handlers of fork().
 */
static inline uint32_t fork_generation(void)
{
	uint32_t mine = atomic_load_explicit(fork_mark, memory_order_relaxed);

	return mine ? mine : fork_begin_generation();
}

/*
 * @before is called before the program forks, on the thread that forks, while no lock is held and no
 * other thread waits for the fork.  Not in the fork of a signal handler that came inside of climport,
 * nor in a fork handler's own fork.  At most two functions for the process; each counts once.
 */
void fork_on_before(void (*before)(void));

/* A page for the life of the process, of zeros in every child; NULL: there is no such page. */
void *fork_create_wiped_page(void);

#endif
