/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of host memory begin and end with. */
#ifndef TESTS_KMOD_HOST_FIXTURE_H
#define TESTS_KMOD_HOST_FIXTURE_H

#include "gdm.h"
#include "harness.h"

enum { LENGTH = 64 * PAGE };

/* Stale pins of tests before go by and by. */
long long total_settled(const char *counter);

/* A range that is exported. */
struct setup {
	int ctx;
	unsigned char *p;
	struct gdm_export e;
};

struct setup host_test_begin(int fill, uint32_t flags);

void host_test_end(struct setup *s);

/* A child of user 1000, whose limit is @limit, exports @length and passes it on. */
struct pinner {
	int sockets[2];
	size_t length, limit;
};

void pin_and_pass(void *arg);

struct pinner pinner_new(size_t length, size_t limit);

void pinner_free(struct pinner *pinner);

#endif
