/* SPDX-License-Identifier: Apache-2.0 */
/* Called by libFuzzer and replay.c for each input.  Aborts on a wrong result. */
#ifndef TESTS_FUZZ_PROPERTIES_H
#define TESTS_FUZZ_PROPERTIES_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
