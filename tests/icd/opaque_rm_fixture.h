/* SPDX-License-Identifier: Apache-2.0 */
/* What imports of pages keep, and what RM holds; with a fake of the kernel module gdmabuf. */
#ifndef TESTS_ICD_OPAQUE_RM_FIXTURE_H
#define TESTS_ICD_OPAQUE_RM_FIXTURE_H

#include "opaque_fixture.h"

#include "tests/import/fake_gdmabuf.h"

/* The controls are at their defaults, no layer is loaded, and no kernel module gdmabuf. */
void opaque_rm_reset(void);

/* Closes the nodes as a program may: the next import makes a client, a device and an anchor. */
void opaque_rm_close_nodes(void);

void opaque_rm_close(void);

/* Five times a kernel sees what the host wrote, and the host what the kernel wrote. */
void opaque_rm_expect_coherent(cl_mem mem, volatile unsigned char *p);

/*
 * Waits until the driver has so many buffers: the stub's queue drops a command's references a moment
 * after clFinish().
 */
void opaque_rm_settle(long objects);

#endif
