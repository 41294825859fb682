/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports of host memory by the fake of RM, with a stand-in for the layer and the driver.  A
 * *buffer* is the driver's, of a registration for a device, and keeps a descriptor.  Each import of
 * the registration has a reference to the buffer.  Each import checks that the memory is the
 * import's.
 */
#ifndef TESTS_IMPORT_DRIVER_FIXTURE_H
#define TESTS_IMPORT_DRIVER_FIXTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/opaque_fd/opaque.h"

enum { DRIVER_DEVICES = 2 }; /* fake_rm.gpu's first */

struct driver_import {
	struct opaque *opaque;
	struct import_opaque out;
	int fd; /* the driver's */
};

/*
 * Resets the fake of RM, if no test of the process did, and makes the objects of the process by an
 * import on each device.  No test gets the imported memory.
 */
void driver_begin(void);

/*
 * Memories that RM holds, but for the process's own.  driver_settle() waits for the number: the idle
 * thread may end a registration after the last put.
 */
int driver_memories(void);
void driver_settle(int memories);

/* 0 or a negative errno. */
int driver_try(uintptr_t address, size_t size, int device, struct driver_import *import);

/* An import that has to work, on the first device. */
struct driver_import driver_get(uintptr_t address, size_t size);
void driver_put(struct driver_import *import);

/* An import that is released at once: its name, or 0 for pages that are the import's alone. */
uint64_t driver_once(uintptr_t address, size_t size);

/* The driver's function for import_on_forget(). */
void driver_forget(uint64_t kept);

/* How often the function was called, and the last name. */
extern atomic_uint driver_forgotten;
extern _Atomic uint64_t driver_last_forgotten;

/* Drops all buffers, as the release of a context does. */
void driver_drop_buffers(void);

/* In a child: the parent's buffers are not the child's. */
void driver_in_child(void);

#endif
