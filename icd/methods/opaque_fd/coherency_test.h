/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test for the coherency of a device and an exporter. */
#ifndef ICD_METHODS_OPAQUE_FD_COHERENCY_TEST_H
#define ICD_METHODS_OPAQUE_FD_COHERENCY_TEST_H

#include <stdbool.h>

#include "icd/methods/opaque_fd/coherency.h"

struct selftest_kept;

/*
 * Sets @found.  False: the test could not run.  @kept: a session of @device, for the tests of all
 * exporters; coherency_drop() ends the session.
 */
bool coherency_test(cl_device_id device, const unsigned char uuid[IMPORT_UUID_SIZE],
		    unsigned int exporter, struct selftest_kept *kept, enum coherency *found);
void coherency_drop(struct selftest_kept *kept);

#endif /* ICD_METHODS_OPAQUE_FD_COHERENCY_TEST_H */
