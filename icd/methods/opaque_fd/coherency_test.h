/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test for the coherency of a device and an exporter. */
#ifndef ICD_METHODS_OPAQUE_FD_COHERENCY_TEST_H
#define ICD_METHODS_OPAQUE_FD_COHERENCY_TEST_H

#include "icd/methods/opaque_fd/coherency.h"
#include "icd/selftest/selftest.h"

/*
 * PASSED: sets @found, whatever was found.  UNTESTED: the test could not run.  HUNG: the test did not
 * end; when the test ends after all, job_late() changes.  @kept: a session of @device, for the tests of all
 * exporters; coherency_drop() ends the session.
 */
enum tested coherency_test(cl_device_id device, const unsigned char uuid[IMPORT_UUID_SIZE],
			   unsigned int exporter, struct selftest_kept *kept,
			   enum coherency *found);
void coherency_drop(struct selftest_kept *kept);

#endif /* ICD_METHODS_OPAQUE_FD_COHERENCY_TEST_H */
