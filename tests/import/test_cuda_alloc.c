/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that cuda_alloc() allocates. */
#include "cuda_fixture.h"

#include <errno.h>
#include <fake_cuda.h>
#include <unistd.h>

CUDA_TEST(alloc_device,
	  "Device memory of cuda_alloc() exports as a dma-buf and as an opaque descriptor.")
{
	struct cuda_memory m;
	struct cuda_export out;
	struct cuda_range range;

	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid1, 1, 0, &m), 0);
	EXPECT_EQ(m.size, G);
	EXPECT_EQ(m.addr % G, 0);
	range = cuda_identify_range(m.addr);
	EXPECT_EQ(range.kind, CUDA_DEVICE);
	EXPECT_EQ(range.device, 1);
	EXPECT_EQ(fake_cuda_access(m.addr), 1);
	EXPECT_EQ(fake_cuda_rdma(m.addr), 1);
	EXPECT_EQ(fixture_export_opaque(m.addr, m.size, uuid1, &out), 0);
	expect_opaque(&out, m.addr);
	EXPECT_EQ(fixture_export_dmabuf(m.addr, m.size, &out), 0);
	close(out.fd);
	cuda_free(&m);
	cuda_free(&m);
	EXPECT_EQ(m.size, 0);
}

CUDA_TEST(alloc_rdma, "If the device has no RDMA for VMM memory, cuda_alloc() asks for none.")
{
	struct cuda_memory m;

	fake_cuda_set_attribute(0, CUDA_DEVICE_RDMA_WITH_VMM, 0);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m), 0);
	EXPECT_EQ(fake_cuda_rdma(m.addr), 0);
	cuda_free(&m);
}

CUDA_TEST(alloc_host,
	  "CPU and device can use host memory of cuda_alloc(), also through the descriptor.")
{
	struct cuda_memory m;
	struct cuda_export out;
	int *cpu;

	EXPECT_EQ(cuda_alloc(CUDA_HOST, uuid0, G + 1, 0, &m), 0);
	EXPECT_EQ(m.size, 2 * G);
	EXPECT_EQ(fake_cuda_access(m.addr), 2);
	cpu = (int *)m.addr;
	cpu[1000] = 42;
	EXPECT_EQ(((int *)fake_cuda_memory(m.addr))[1000], 42);
	EXPECT_EQ(fixture_export_opaque(m.addr, m.size, uuid0, &out), 0);
	expect_opaque(&out, m.addr);
	cuda_free(&m);
}

CUDA_TEST(alloc_host_node,
	  "Host memory is on the NUMA node of the device, or on node 0 without NUMA.")
{
	struct cuda_memory m;

	for (int node = -1; node < 2; node++) {
		fake_cuda_set_attribute(0, CUDA_DEVICE_HOST_NUMA_ID, node);
		EXPECT_EQ(cuda_alloc(CUDA_HOST, uuid0, G, 0, &m), 0);
		EXPECT_EQ(fake_cuda_node(m.addr), node < 0 ? 0 : node);
		cuda_free(&m);
	}
}

CUDA_TEST(alloc_align, "The address is a multiple of the alignment.")
{
	struct cuda_memory m[4];

	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 16 * G, &m[i]), 0);
		EXPECT_EQ(m[i].addr % (16 * G), 0);
	}
	for (int i = 0; i < 4; i++)
		cuda_free(&m[i]);
}

CUDA_TEST(alloc_refused, "A wrong request has an exact error, and no output is written.")
{
	static const unsigned char nobody[CUDA_UUID_SIZE] = { 1 };
	struct cuda_memory m = { .addr = 7 };

	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, nobody, G, 0, &m), -ENODEV);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 0, 0, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 3 * G, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_MANAGED, uuid0, G, 0, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_NONE, uuid0, G, 0, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, SIZE_MAX, 0, &m), -ENOMEM);
	EXPECT_EQ(
		cuda_alloc(CUDA_DEVICE, uuid0, (size_t)1 << (sizeof(size_t) > 4 ? 50 : 30), 0, &m),
		-ENOMEM);
	fake_cuda_fail("cuInit", 1, CUDA_NO_DEVICE);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m), -ENODEV);
	fake_cuda_fail("cuMemCreate", 1, CUDA_INVALID_VALUE);
	EXPECT_EQ(cuda_alloc(CUDA_HOST, uuid0, G, 0, &m), -EOPNOTSUPP);
	fake_cuda_set_attribute(0, CUDA_DEVICE_VMM, 0);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m), -EOPNOTSUPP);
	fixture_expect_log("no virtual memory management");
	EXPECT_EQ(m.addr, 7);
}
