/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"
#include "shared.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned char *arena;

static _Thread_local sigjmp_buf jump;
static _Thread_local volatile sig_atomic_t may_fault;

static void fuzz_on_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (!may_fault) {
		/* The process ends here: printf() from a signal handler is the lesser evil. */
		printf("signal %d at address %p\n", number, info->si_addr);
		fflush(stdout);
		signal(number, SIG_DFL);
		raise(number);
	}
	siglongjmp(jump, 1);
}

static void fuzz_touch(volatile unsigned char *p, int write)
{
	if (!sigsetjmp(jump, 0)) {
		may_fault = 1;
		if (write)
			*p = (unsigned char)write;
		else
			(void)*p;
	}
	may_fault = 0;
}

void fuzz_memory_begin(void)
{
	const struct sigaction action = { .sa_sigaction = fuzz_on_fault,
					  .sa_flags = SA_SIGINFO | SA_NODEFER };
	unsigned char *space;

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	space = mmap(NULL, FUZZ_ARENA + 2 * FUZZ_COPY_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	arena = mmap(space + FUZZ_COPY_MAX, FUZZ_ARENA, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (space == MAP_FAILED || arena == MAP_FAILED)
		_exit(2);
}

unsigned char *fuzz_any_range(size_t *length)
{
	uint32_t from = fuzz_any(FUZZ_ARENA_PAGES),
		 pages = 1 + fuzz_any(fuzz_any(8) ? 32 : FUZZ_ARENA_PAGES);

	if (pages > FUZZ_ARENA_PAGES - from)
		pages = FUZZ_ARENA_PAGES - from;
	*length = (size_t)pages * FUZZ_PAGE;
	return arena + (size_t)from * FUZZ_PAGE;
}

void fuzz_remap(void)
{
	static const int advice[] = { MADV_DONTNEED,  MADV_FREE,     MADV_HUGEPAGE, MADV_NOHUGEPAGE,
				      MADV_DONTFORK,  MADV_DOFORK,   MADV_COLD,	    MADV_PAGEOUT,
				      MADV_MERGEABLE, MADV_WILLNEED, MADV_REMOVE };
	size_t length;
	unsigned char *at = fuzz_any_range(&length), *to;
	int fd;

	switch (fuzz_any(8)) {
	case 0:
		munmap(at, length);
		break;
	case 1:
	case 2:
		(void)mmap(at, length, PROT_READ | PROT_WRITE,
			   MAP_FIXED | MAP_ANONYMOUS | (fuzz_any(4) ? MAP_PRIVATE : MAP_SHARED), -1,
			   0);
		break;
	case 3:
		mprotect(at, length, (int)fuzz_any(4));
		break;
	case 4:
		to = arena +
		     (size_t)fuzz_any(FUZZ_ARENA_PAGES - length / FUZZ_PAGE + 1) * FUZZ_PAGE;
		mremap(at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		break;
	case 5:
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		if (fd >= 0 && !ftruncate(fd, (off_t)length / (1 + fuzz_any(2))))
			(void)mmap(at, length, PROT_READ | PROT_WRITE,
				   MAP_FIXED | (fuzz_any(2) ? MAP_PRIVATE : MAP_SHARED), fd, 0);
		close(fd);
		break;
	case 6:
		madvise(at, length, advice[fuzz_any(sizeof(advice) / sizeof(advice[0]))]);
		break;
	default:
		for (size_t i = 0; i < length; i += FUZZ_PAGE)
			fuzz_touch(at + i, (int)fuzz_any(2));
	}
}

static void fuzz_replace_view(_Atomic uint64_t *place, uint64_t view)
{
	uint64_t old = atomic_exchange(place, view);

	if (old)
		munmap((void *)(uintptr_t)(old & -(uint64_t)FUZZ_PAGE),
		       (old & (FUZZ_PAGE - 1)) * FUZZ_PAGE);
}

/*
 * The view enters the table after the last touch here.  Other threads may unmap a view in the
 * table, and a new mapping may have the address by then.
 */
void fuzz_view_map(void)
{
	uint32_t pages = 1 + fuzz_any(fuzz_any(2) ? 16 : 64);
	off_t offset = fuzz_any(3)    ? 0
		       : fuzz_any(10) ? (off_t)(fuzz_any(64) * FUZZ_PAGE)
				      : (off_t)(fuzz_any_edge() & -(uint64_t)FUZZ_PAGE);
	void *p = mmap(NULL, (size_t)pages * FUZZ_PAGE, (int)fuzz_any(4),
		       fuzz_any(8) ? MAP_SHARED : MAP_PRIVATE,
		       fuzz_any(4)   ? ANY_OF(shared.buffers)
		       : fuzz_any(3) ? ANY_OF(shared.importers)
				     : ANY_OF(shared.contexts),
		       offset);

	if (p == MAP_FAILED)
		return;
	for (uint32_t i = fuzz_any(4); i < pages; i += 1 + fuzz_any(8))
		fuzz_touch((unsigned char *)p + (size_t)i * FUZZ_PAGE, (int)fuzz_any(2));
	fuzz_replace_view(PLACE_IN(shared.views), (uintptr_t)p | pages);
}

/* The view leaves the table while in use, for the reason given at fuzz_view_map(). */
void fuzz_view_use(void)
{
	_Atomic uint64_t *place = PLACE_IN(shared.views);
	uint64_t view = atomic_exchange(place, 0), zero = 0;
	unsigned char *p = (unsigned char *)(uintptr_t)(view & -(uint64_t)FUZZ_PAGE);
	size_t pages = view & (FUZZ_PAGE - 1), half = pages / 2 * FUZZ_PAGE;

	if (!view)
		return;
	for (size_t i = fuzz_any(4); i < pages; i += 1 + fuzz_any(8))
		fuzz_touch(p + i * FUZZ_PAGE, (int)fuzz_any(2));
	switch (fuzz_any(8)) {
	case 0:
		if (half) {
			munmap(p + half, pages * FUZZ_PAGE - half);
			pages /= 2;
		}
		break;
	case 1:
		mprotect(p, pages * FUZZ_PAGE, (int)fuzz_any(4));
		break;
	case 2:
		madvise(p, pages * FUZZ_PAGE, (int)fuzz_any(26));
		break;
	case 3: {
		void *moved = mremap(p, pages * FUZZ_PAGE, (pages + fuzz_any(2)) * FUZZ_PAGE,
				     MREMAP_MAYMOVE);

		if (moved != MAP_FAILED)
			p = moved;
		break;
	}
	case 4: {
		/* A length of 0 makes a second mapping of the pages. */
		void *twin = mremap(p, 0, pages * FUZZ_PAGE, MREMAP_MAYMOVE);

		if (twin != MAP_FAILED) {
			fuzz_touch(twin, 0);
			munmap(twin, pages * FUZZ_PAGE);
		}
		break;
	}
	}
	if (!atomic_compare_exchange_strong(place, &zero, (uintptr_t)p | pages))
		munmap(p, pages * FUZZ_PAGE);
}

void fuzz_view_unmap(void)
{
	fuzz_replace_view(PLACE_IN(shared.views), 0);
}

void fuzz_views_unmap(void)
{
	for (size_t i = 0; i < COUNT_OF(shared.views); i++)
		fuzz_replace_view(&shared.views[i], 0);
}

void fuzz_views_forget(void)
{
	for (size_t i = 0; i < COUNT_OF(shared.views); i++)
		atomic_store(&shared.views[i], 0);
}
