/* SPDX-License-Identifier: Apache-2.0 */
/* The function that libFuzzer and replay.c call; it aborts on a wrong result. */
#ifndef TESTS_FUZZ_PROPERTIES_H
#define TESTS_FUZZ_PROPERTIES_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
