/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of the tests of host memory. */
#ifndef TESTS_KMOD_HOST_FIXTURE_H
#define TESTS_KMOD_HOST_FIXTURE_H

#include "gdm.h"
#include "harness.h"

enum { PAGES = 64 };
#define LENGTH (PAGES * PAGE)

/* A context, a range of LENGTH bytes, and a dma-buf of the range. */
struct setup {
	int ctx;
	unsigned char *p;
	int fd;
};

struct setup host_test_begin(int fill, uint32_t flags);

void host_test_end(struct setup *s);

/*
 * For in_child(): a process of uid 1000 with the RLIMIT_MEMLOCK @limit exports @length bytes and
 * sends the dma-buf.  Exit status 1: EDQUOT.
 */
struct pinner {
	int sockets[2];
	size_t length, limit;
};

void pin_and_pass(void *arg);

struct pinner pinner_new(size_t length, size_t limit);

void pinner_free(struct pinner *pinner);

/*
 * A process of uid 1000 whose threads remap memory without pause, so the kernel is always inside some
 * invalidation of the process's memory.
 */
struct remapper;

/*
 * @make returns a descriptor, which the process sends and closes before the threads start.  @fd
 * receives the descriptor.
 */
struct remapper *remapper_start(int (*make)(void), int *fd);

/* Waits, a minute at most, for @times remappings from now on; returns whether they came. */
int remapper_goes_on(const struct remapper *remapper, unsigned long times);

void remapper_stop(struct remapper *remapper);

/* Closes @fd, the last descriptor, in a child.  Returns whether the close ended within a minute. */
int close_elsewhere_ends(int fd);

#endif
