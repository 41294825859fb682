/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of import/nvidia/rm on the fake of RM.  RM_TEST(name, says) begins without a client, and
 * fails if anything but the process's client and devices is left at the end.
 */
#ifndef TESTS_IMPORT_RM_FIXTURE_H
#define TESTS_IMPORT_RM_FIXTURE_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_rm.h"
#include "harness.h"
#include "import/nvidia/rm/rm.h"
#include "opaque.h"
#include "process.h"
#include "util/log.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define SIZE (16 * PAGE)

extern const unsigned char rm_uuid[FAKE_RM_GPUS][RM_UUID_SIZE];

/* The driver has two GPUs. */
void rm_begin(void);
void rm_end(void);

#define RM_TEST(id, sentence)      \
	static void in_##id(void); \
	TEST(id, sentence)         \
	{                          \
		rm_begin();        \
		in_##id();         \
		rm_end();          \
	}                          \
	static void in_##id(void)

/* Pages of the test's own, until rm_end(). */
char *rm_pages(size_t size);

/* An import on the first GPU: the descriptor, or a negative errno. */
int rm_try(void *memory, size_t size);

/* The same, of a dma-buf of host memory. */
int rm_try_dmabuf(void);

/* An import that has to work, on gpu[@gpu], and is given back. */
void rm_import_works(int gpu);

/* A client with the devices of the first @devices GPUs, and nothing else. */
void rm_expect_kept(int clients, int devices);

/* Closes all open files of a node. */
void rm_close_all(int node);

/*
 * Closes all open files of all nodes, and lets an import find the client closed: a later thread
 * does not look at the numbers, which the thread sanitizer would take for a race with open().
 */
void rm_forget(void);

/* Makes the @nth call of @name give an errno, or a status if @error is 0. */
void rm_fail(const char *name, unsigned int nth, int error, uint32_t status);

#endif
