/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of import/ share. */
#ifndef TESTS_IMPORT_FIXTURE_H
#define TESTS_IMPORT_FIXTURE_H

#include "harness.h"

/* The last line of the log contains @words. */
void fixture_expect_log(const char *words);

#endif
