/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the tests of import/nvidia/cuda, on a fake of libcuda. */
#ifndef TESTS_IMPORT_CUDA_FIXTURE_H
#define TESTS_IMPORT_CUDA_FIXTURE_H

#include "fixture.h"
#include "process.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "util/log.h"

#define MB ((size_t)1 << 20)
#define G FAKE_CUDA_GRANULARITY

extern unsigned char uuid0[CUDA_UUID_SIZE], uuid1[CUDA_UUID_SIZE];
extern struct fake_cuda_held held_before;
extern int fds_before;

void cuda_test_begin(void);

/* Fails the test if the code under test holds an object of the driver, or a descriptor. */
void expect_all_back(void);

#define CUDA_TEST(id, sentence)    \
	static void in_##id(void); \
	TEST(id, sentence)         \
	{                          \
		cuda_test_begin(); \
		in_##id();         \
		expect_all_back(); \
	}                          \
	static void in_##id(void)

struct cuda_range cuda_identify_range(uintptr_t addr);

uintptr_t one_segment(int device, int handle_types);

void expect_opaque(const struct cuda_export *e, uintptr_t addr);

#endif
