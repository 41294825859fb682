/* SPDX-License-Identifier: Apache-2.0 */
/* Kept results of self-tests of a device: a number for each test. */
#ifndef ICD_RESULT_H
#define ICD_RESULT_H

#include <stdbool.h>

struct device;

/* @test: a name, a number.  False: not known. */
bool result_get(const struct device *device, const char *test, long *result);
void result_set(const struct device *device, const char *test, long result);

#endif /* ICD_RESULT_H */
