/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses no dma-buf. tests/vm/run --host runs this program, to leave compiled kernels in PoCL's
 * cache.
 */
#include "guest_cl.h"
#include "harness.h"
#include "view.h"

enum { WIDTH = 64, HEIGHT = 64, SIZE = WIDTH * HEIGHT * 4 };

TEST(kernels, "The kernels of the tests work on buffers and images of the driver.")
{
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(SIZE);
	cl_mem in = guest_cl_native(SIZE, want), out = guest_cl_native(SIZE, NULL);
	cl_mem image = guest_cl_image(NULL, CL_MEM_READ_WRITE, WIDTH, HEIGHT, 0);

	guest_cl_transform(in, out, SIZE);
	guest_cl_transform_to_image(out, image, WIDTH, HEIGHT);
	guest_cl_transform_from_image(image, out, WIDTH, HEIGHT);
	guest_cl_native_read(out, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	clReleaseMemObject(image);
	free(want);
	free(got);
}
