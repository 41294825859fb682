/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of the tests of host memory. */
#ifndef TESTS_KMOD_HOST_FIXTURE_H
#define TESTS_KMOD_HOST_FIXTURE_H

#include "gdm.h"
#include "harness.h"

enum { LENGTH = 64 * PAGE };

/* Reads a counter once the number has stopped changing: stale pins of earlier tests go later. */
long long total_settled(const char *counter);

/* Raises or lowers CAP_IPC_LOCK in the effective set; the permitted set keeps the capability. */
void raise_ipc_lock(int raised);

/* A context, a range of LENGTH bytes, and an export of the range. */
struct setup {
	int ctx;
	unsigned char *p;
	struct gdm_export e;
};

struct setup host_test_begin(int fill, uint32_t flags);

void host_test_end(struct setup *s);

/*
 * For in_child(): a process of uid 1000 with the RLIMIT_MEMLOCK @limit exports @length bytes and
 * sends the dma-buf.  Exit status 1: ENOMEM.
 */
struct pinner {
	int sockets[2];
	size_t length, limit;
};

void pin_and_pass(void *arg);

struct pinner pinner_new(size_t length, size_t limit);

void pinner_free(struct pinner *pinner);

#endif
