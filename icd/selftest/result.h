/* SPDX-License-Identifier: Apache-2.0 */
/* Kept results of self-tests of a device: a number for each test. */
#ifndef ICD_SELFTEST_RESULT_H
#define ICD_SELFTEST_RESULT_H

#include <stdbool.h>

struct device;

/*
 * @test: a name, a number.  False: not known.  A result of 0 or less is bad news, and is
 * believed for an hour: the next driver, kernel or machine state may do better.
 */
bool result_get(const struct device *device, const char *test, long *result);
void result_set(const struct device *device, const char *test, long result);

/*
 * The driver crashed or hung the process of the test.  Believed for an hour, by processes with the same
 * resource limits and as many seccomp filters: in other limits the driver may live.
 */
bool result_is_fatal(const struct device *device, const char *test);
void result_set_fatal(const struct device *device, const char *test);

#endif /* ICD_SELFTEST_RESULT_H */
