/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory monitor: is a range of the process still the memory that the range was?
 *
 * Nouns.  A *watch* is on a range of anonymous private memory.  The watch is *current* as long as
 * every page of the range is the page that the program had there when the watch began; afterwards
 * the watch is *stale* for ever.  The *owner* keeps something that depends on the pages: a pin, a
 * driver's registration.
 *
 * The kernel tells the monitor (userfaultfd(2) events: munmap, mmap over the range, mremap, brk,
 * madvise).  The monitor replaces none of the program's functions, needs no privilege, and causes
 * no page fault.  docs/architecture.md, "Keeping host registrations", has the algorithm, the proof
 * of its order, and what the kernel does not tell.
 *
 * An owner
 *
 * 1. begins the watch, *then* pins: a change in between makes the watch stale;
 * 2. asks watch_is_current() before each use of the pin;
 * 3. unpins at the latest when told (monitor_on_stale()), and puts the watch.
 *
 * Sizes are bytes.  Functions return 0 or a negative errno, and may be called from any thread,
 * with locks of rank LOCK_OUTER.  A program may also unmap memory in fork handlers, signal
 * handlers and destructors: nobody waits for the callers of these functions.
 *
 * fork().  The child has no watches: the parent's are stale there, and the child begins its own.
 */
#ifndef IMPORT_MONITOR_MONITOR_H
#define IMPORT_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Smaller ranges are not worth a mapping of their own. */
#define MONITOR_MIN_SIZE ((size_t)64 << 10)

/* Watches at once. */
#define MONITOR_MAX_WATCHES 1024

/* The owner's, to be copied freely; all zeros: no watch. */
struct watch {
	uint64_t number;  /* the monitor's; of no other watch */
	uint32_t slot;	  /* the monitor's */
	uint32_t process; /* fork_generation() */
};

/*
 * Whether the process can have watches.  No if CLIMPORT_KEEP_HOST is neither 1 nor on, if the system
 * refuses userfaultfd(2), if the process has restricted its system calls since climport was
 * loaded, if the program has a userfaultfd of its own, if the program has closed the monitor's
 * descriptor, or if a filter of system calls has ended the reader of events.  The answer is found once, and may become no.  CLIMPORT_LOG=debug shows the cause.
 */
bool monitor_is_available(void);

/* Why there are or are no watches, a clause for `climport info`; never NULL. */
const char *monitor_describe(void);

/*
 * Watches all pages of [@address, @address + @size).  Watches may overlap.  @watch is the caller's
 * until watch_put().  The first watch starts three threads.
 *
 * -EOPNOTSUPP: the monitor is not available; or the range is smaller than MONITOR_MIN_SIZE, not
 * anonymous private writable memory, or the stack of the first thread.  -EBUSY: the program uses
 * userfaultfd(2) on the memory.  -EAGAIN: the memory changed meanwhile, or madvise() emptied pages
 * a moment ago.  -ENOSPC: MONITOR_MAX_WATCHES.  -ENOMEM: no memory, or too many mappings.  -EFAULT:
 * part of the range is not mapped.  -ERANGE: the range leaves the address space.  -EINVAL: @size
 * is 0.  -EMFILE and -ENFILE: no descriptor.  Not logged as a fault: the owner does without.
 */
int monitor_watch(uintptr_t address, size_t size, struct watch *watch);

/*
 * Whether the watch is current: true only if no change came before the call, in the order of the
 * program's threads.  Two system calls, less than a microsecond, and two more for each
 * mapping if the range is in several; while memory under a watch changes, up to some 10 ms, and then false.  Not a cancellation point.
 */
bool watch_is_current(const struct watch *watch);

/* Ends the watch; @watch becomes zeros.  Does not sleep.  A watch of a parent process is left. */
void watch_put(struct watch *watch);

/*
 * @told is called for each watch that becomes stale, soon, with the watch's range: on a thread of
 * the monitor which may sleep, unmap memory and call all functions above.  Watches of a range may
 * be new by then, so @told asks watch_is_current().  One function for the process, set before the
 * first watch.  Not called once the process exits: the exit handler of the first watch waits for a
 * call in progress, a second at most.
 */
typedef void (*monitor_told_fn)(uintptr_t address, size_t size);
void monitor_on_stale(monitor_told_fn told);

#endif /* IMPORT_MONITOR_MONITOR_H */
