/* SPDX-License-Identifier: Apache-2.0 */
/* No dma-buf: for tests/vm/run --host, which leaves the compiled kernels in PoCL's cache. */
#include "guest_cl.h"
#include "harness.h"
#include "view.h"

enum { WIDTH = 64, HEIGHT = 64, SIZE = WIDTH * HEIGHT * 4 };

TEST(kernels, "The kernels of these tests work on the driver's own buffers.")
{
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(SIZE);
	cl_mem in = guest_cl_native(SIZE, want), middle = guest_cl_native(SIZE, NULL);

	guest_cl_transform(in, middle, SIZE);
	guest_cl_native_read(middle, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(middle);
	free(want);
	free(got);
}
