/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the answer "current" is right.  A thread A changes watched memory; a thread B asks later, in
 * the order of the program: after A's call, or after B's own mmap() got the address that A gave up.
 *
 *	A's system call			reader				B
 *	A1 count the change					B1 the count is 0
 *	A2 change the mappings		R1 turn = odd			B2 the turn is even, or changes
 *	A3 queue the event		R2 take the event		B3 the watch is live
 *	A4 wait for R2			R3 mark the watches
 *	A5 uncount the change		R4 turn = even
 *
 * The kernel does A1 and A2 under the lock of the mappings, so B, which depends on A2, comes after
 * A1.  If B1 reads 0, B1 comes after A5, and so after R2 and R1.  So B2 sees the odd turn of R1, or
 * a later turn; B waits for the next, and R3 comes before B3.
 *
 * B1 is needed as munmap() changes the mappings before the event: another thread can map the same
 * address while the event is still to come.  madvise() is the other way round: the pages go after
 * R2.  A watch that begins in between is refused (watches_removed_lately()).
 *
 * The kernel drops the event of a thread that is killed, after which other processes may still have
 * the memory.  B1 also looks whether the range is still registered: a new mapping never is.
 */
#include "import/monitor/settle.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "import/monitor/reader.h"
#include "import/monitor/uffd.h"

#define SETTLE_YIELDS 64
#define SETTLE_NAPS 200
#define SETTLE_NAP_NS 50000

static atomic_bool settle_is_stuck; /* changes take longer than a caller waits */

/* Raw: no cancellation point. */
static void settle_nap(int turn)
{
	const struct timespec nap = { 0, SETTLE_NAP_NS };

	if (turn < SETTLE_YIELDS)
		sched_yield();
	else
		syscall(SYS_nanosleep, &nap, NULL);
}

/* B1: as uffd_look(), or -EBUSY.  A thread with a change may be slow to run. */
static int settle_count(int fd, uintptr_t start, uintptr_t end)
{
	int ret = 1;

	for (int i = 0; i < SETTLE_YIELDS + SETTLE_NAPS && ret > 0; i++) {
		ret = uffd_look(fd, start, end);
		if (ret > 0 && atomic_load(&settle_is_stuck))
			return -EBUSY;
		if (ret > 0)
			settle_nap(i);
	}
	atomic_store(&settle_is_stuck, ret > 0);
	return ret > 0 ? -EBUSY : ret;
}

/* B2 */
static int settle_reader(void)
{
	uint32_t turn = reader_turn();

	for (int i = 0; turn % 2 && reader_turn() == turn; i++) {
		if (i >= SETTLE_YIELDS + SETTLE_NAPS)
			return -EBUSY;
		settle_nap(i);
	}
	return 0;
}

int settle_changes(int fd, uintptr_t start, uintptr_t end)
{
	int found = settle_count(fd, start, end), ret;

	if (found && found != -ENOENT)
		return found;
	ret = settle_reader();
	return ret ? ret : found;
}
