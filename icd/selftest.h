/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is CL_MEM_USE_HOST_PTR zero copy on a device?  Judged by data alone: nothing
 * is mapped, read or written through OpenCL.
 *
 * The tests make what they need and leave nothing behind.
 */
#ifndef ICD_SELFTEST_H
#define ICD_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>

#include "cl_compat.h"

/**
 * selftest_host_ptr - run the test for buffers
 * @why: set to a sentence, with the result or the reason
 *
 * Two buffers over the same memory.  A kernel writes through one and reads
 * through the other: a driver that copies around each kernel fails that.  The
 * host changes the memory and looks at it, after the first use as well.
 *
 * Returns the alignment in bytes of pointers and sizes that passed (1, 64 or a
 * page), or 0 if none did.
 */
size_t selftest_host_ptr(cl_device_id device, char *why, size_t size);

/* The same for 2D images; every device of @context must pass. */
bool selftest_image_host_ptr(cl_context context);

/* Whether commands can wait for user events on a device.  Takes milliseconds. */
bool selftest_user_event(cl_device_id device);

#endif /* ICD_SELFTEST_H */
