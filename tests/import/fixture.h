/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the tests of import/. */
#ifndef TESTS_IMPORT_FIXTURE_H
#define TESTS_IMPORT_FIXTURE_H

#include "harness.h"

#include "import/nvidia/cuda/cuda.h"

/* The last line of the log contains @words. */
void fixture_expect_log(const char *words);

/* The memory at @addr, identified and exported. */
int fixture_export_dmabuf(uintptr_t addr, size_t size, struct cuda_export *out);
int fixture_export_opaque(uintptr_t addr, size_t size, const unsigned char uuid[CUDA_UUID_SIZE],
			  struct cuda_export *out);

#endif
