/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of CUDA's memory: dma-bufs and opaque descriptors. */
#include "cuda_fixture.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static void cuda_fill_memory(uintptr_t addr, size_t size, unsigned int seed)
{
	unsigned char *memory = fake_cuda_memory(addr);

	for (size_t i = 0; i < size; i++)
		memory[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16);
}

static void expect_data(const struct cuda_export *e, uintptr_t addr, size_t size)
{
	char *copy = malloc(size);

	EXPECT_EQ(pread(e->fd, copy, size, (off_t)e->offset), size);
	EXPECT(!memcmp(copy, fake_cuda_memory(addr), size));
	free(copy);
}

CUDA_TEST(dmabuf,
	  "A dma-buf of device memory is close-on-exec and has the memory's bytes at the offset.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	cuda_fill_memory(p, MB, 1);
	EXPECT_EQ(fixture_export_dmabuf(p + PAGE + 904, 3000, &out), 0);
	EXPECT_EQ(out.offset, 904);
	EXPECT_EQ(out.size, PAGE);
	expect_data(&out, p + PAGE + 904, 3000);
	EXPECT_EQ(fcntl(out.fd, F_GETFD), FD_CLOEXEC);
	close(out.fd);
	fake_cuda_free(p);
}

CUDA_TEST(dmabuf_small,
	  "The dma-buf of an allocation inside a page is the page, and has an offset.")
{
	uintptr_t p = fake_cuda_alloc(0, 100);
	struct cuda_export out;

	EXPECT(p % PAGE);
	cuda_fill_memory(p, 100, 2);
	EXPECT_EQ(fixture_export_dmabuf(p, 100, &out), 0);
	EXPECT_EQ(out.offset, p % PAGE);
	EXPECT_EQ(out.size, PAGE);
	expect_data(&out, p, 100);
	close(out.fd);
	fake_cuda_free(p);
}

CUDA_TEST(dmabuf_segments, "A range of several segments is a single dma-buf.")
{
	struct fake_cuda_segment s[] = { { 1, G, 1 }, { 1, G, 0 }, { 1, 2 * G, 1 } };
	uintptr_t p = fake_cuda_vmm(s, 3);
	struct cuda_export out;

	for (int i = 0; i < 3; i++)
		cuda_fill_memory(p + i * G, G, 3 + i);
	EXPECT_EQ(fixture_export_dmabuf(p + 8, 3 * G, &out), 0);
	EXPECT_EQ(out.size, 3 * G + PAGE);
	EXPECT_EQ(out.offset, 8);
	for (int i = 1; i < 3; i++) {
		struct cuda_export part = { out.fd, i * G, 0 };

		expect_data(&part, p + i * G, i < 2 ? G : 8);
	}
	for (int i = 0; i < 3; i++)
		EXPECT(fake_cuda_syncs(p + i * G));
	close(out.fd);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(dmabuf_part, "A range is -EFAULT unless all bytes are memory of the same device.")
{
	struct fake_cuda_segment hole[] = { { 0, G, 1 }, { FAKE_CUDA_HOLE, G, 0 }, { 0, G, 1 } };
	struct fake_cuda_segment other[] = { { 0, G, 1 }, { 1, G, 1 } };
	struct fake_cuda_segment host[] = { { 0, G, 1 }, { FAKE_CUDA_HOST_NUMA, G, 1 } };
	uintptr_t p = fake_cuda_alloc(0, MB), q = fake_cuda_vmm(hole, 3),
		  o = fake_cuda_vmm(other, 2), h = fake_cuda_vmm(host, 2);
	struct cuda_export out = { .fd = -7 };

	EXPECT_EQ(fixture_export_dmabuf(p + 1, MB, &out), -EFAULT);
	EXPECT_EQ(fixture_export_dmabuf(q, 3 * G, &out), -EFAULT);
	EXPECT_EQ(fixture_export_dmabuf(q + 2 * G, G + 1, &out), -EFAULT);
	EXPECT_EQ(fixture_export_dmabuf(o, 2 * G, &out), -EFAULT);
	EXPECT_EQ(fixture_export_dmabuf(h, 2 * G, &out), -EFAULT);
	EXPECT_EQ(fake_cuda_calls("cuMemGetHandleForAddressRange"), 0);
	EXPECT_EQ(out.fd, -7);
	fake_cuda_free(p);
	fake_cuda_vmm_free(q);
	fake_cuda_vmm_free(o);
	fake_cuda_vmm_free(h);
}

CUDA_TEST(dmabuf_not_device, "Host memory is -EFAULT, whether CUDA's or not.")
{
	uintptr_t p = fake_cuda_host(0, MB), q = one_segment(FAKE_CUDA_HOST_NUMA, 1);
	struct cuda_export out;
	int local;

	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -EFAULT);
	EXPECT_EQ(fixture_export_dmabuf(q, G, &out), -EFAULT);
	EXPECT_EQ(fixture_export_dmabuf((uintptr_t)&local, 4, &out), -EFAULT);
	fixture_expect_log("no CUDA device memory");
	fake_cuda_free(p);
	fake_cuda_vmm_free(q);
}

CUDA_TEST(no_range, "An empty or wrapping range is -EINVAL.")
{
	uintptr_t p = one_segment(0, 1);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_dmabuf(p, 0, &out), -EINVAL);
	EXPECT_EQ(fixture_export_dmabuf(p, SIZE_MAX, &out), -EINVAL);
	EXPECT_EQ(fixture_export_opaque(p, 0, uuid0, &out), -EINVAL);
	EXPECT_EQ(fixture_export_opaque(p, SIZE_MAX, uuid0, &out), -EINVAL);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(sync_memops, "SYNC_MEMOPS is set once for each allocation; the second export only asks.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
		close(out.fd);
		EXPECT(fake_cuda_syncs(p));
	}
	EXPECT_EQ(fake_cuda_calls("cuPointerSetAttribute"), 1);
	fake_cuda_free(p);
	fake_cuda_alloc_at(0, MB, p);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	close(out.fd);
	EXPECT_EQ(fake_cuda_calls("cuPointerSetAttribute"), 2);
	fake_cuda_free(p);
}

CUDA_TEST(sync_memops_refused, "An export succeeds where the driver cannot set SYNC_MEMOPS.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	fake_cuda_fail("cuPointerSetAttribute", 1, CUDA_INVALID_VALUE);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	close(out.fd);
	fake_cuda_free(p);
}

CUDA_TEST(pcie_discrete, "Without a coherent link the PCIe flag is not tried.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	fake_cuda_set_pcie(true);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	EXPECT_EQ(fake_cuda_range_flags(), 0);
	close(out.fd);
	fake_cuda_free(p);
}

static uintptr_t pcie_alloc(void)
{
	fake_cuda_set_attribute(1, CUDA_DEVICE_HOST_NATIVE_ATOMIC, 1);
	fake_cuda_set_pcie(true);
	return fake_cuda_alloc(1, MB);
}

CUDA_TEST(pcie_coherent, "On a coherent link a dma-buf has the PCIe flag.")
{
	uintptr_t p = pcie_alloc();
	struct cuda_export out;

	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	EXPECT_EQ(fake_cuda_range_flags(), CUDA_RANGE_FLAG_PCIE);
	close(out.fd);
	fake_cuda_free(p);
}

static const struct refusal {
	const char *name;
	int result;
} refusals[] = {
	{ "not_supported", CUDA_NOT_SUPPORTED },
	{ "invalid_value", CUDA_INVALID_VALUE },
};

TEST_EACH(pcie_refused, struct refusal, refusals,
	  "If the driver refuses the PCIe flag, the dma-buf is made without the flag.")
{
	struct cuda_export out;
	uintptr_t p;

	cuda_test_begin();
	p = pcie_alloc();
	fake_cuda_fail("cuMemGetHandleForAddressRange", 1, row->result);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	EXPECT_EQ(fake_cuda_range_flags(), 0);
	close(out.fd);
	fake_cuda_free(p);
	expect_all_back();
}

CUDA_TEST(pcie_no_memory, "If the driver has no memory, the PCIe flag is not left out: -ENOMEM.")
{
	uintptr_t p = pcie_alloc();
	struct cuda_export out;

	fake_cuda_fail("cuMemGetHandleForAddressRange", 1, CUDA_OUT_OF_MEMORY);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -ENOMEM);
	fake_cuda_free(p);
}

CUDA_TEST(
	dmabuf_unsupported,
	"If the driver exports no dma-bufs, an export is -EOPNOTSUPP with the driver's error name.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	fake_cuda_set_attribute(0, CUDA_DEVICE_DMA_BUF, 0);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -EOPNOTSUPP);
	fixture_expect_log("no dma-bufs");
	fake_cuda_set_attribute(0, CUDA_DEVICE_DMA_BUF, 1);
	fake_cuda_fail("cuMemGetHandleForAddressRange", 1, CUDA_NOT_SUPPORTED);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -EOPNOTSUPP);
	fake_cuda_fail("cuMemGetHandleForAddressRange", 1, CUDA_INVALID_VALUE);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -EOPNOTSUPP);
	fixture_expect_log("CUDA_ERROR_INVALID_VALUE");
	fake_cuda_free(p);
}

static void free_it(void *p)
{
	fake_cuda_free((uintptr_t)p);
}

static void free_and_allocate(void *p)
{
	fake_cuda_free((uintptr_t)p);
	fake_cuda_alloc_at(0, MB, (uintptr_t)p);
}

CUDA_TEST(dmabuf_freed, "If the memory is freed during the export, the error is -ENODEV, even if "
			"the address is in use again.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	fake_cuda_at("cuMemGetHandleForAddressRange", 1, free_it, (void *)p);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -ENODEV);
	p = fake_cuda_alloc(0, MB);
	fake_cuda_at("cuMemGetHandleForAddressRange", 1, free_and_allocate, (void *)p);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -ENODEV);
	fixture_expect_log("freed meanwhile");
	fake_cuda_free(p);
}

CUDA_TEST(opaque, "The opaque descriptor of VMM memory is the whole segment, and has an offset.")
{
	struct fake_cuda_segment s[] = { { 1, G, 1 }, { 1, 2 * G, 1 } };
	uintptr_t p = fake_cuda_vmm(s, 2);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p + G + 123, 2 * G - 123, uuid1, &out), 0);
	EXPECT_EQ(out.offset, 123);
	EXPECT_EQ(out.size, 2 * G);
	expect_opaque(&out, p + G + 123);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(opaque_host, "Any device can have a descriptor of the host's VMM memory.")
{
	uintptr_t p = one_segment(FAKE_CUDA_HOST_NUMA, 1);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), 0);
	expect_opaque(&out, p);
	EXPECT_EQ(fixture_export_opaque(p, G, uuid1, &out), 0);
	expect_opaque(&out, p);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(opaque_other_device, "Memory of a different device is -EXDEV.")
{
	uintptr_t p = one_segment(1, 1);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -EXDEV);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(opaque_not_vmm, "Memory other than VMM memory has no opaque descriptor: -EOPNOTSUPP.")
{
	uintptr_t p = fake_cuda_alloc(0, MB), q = fake_cuda_host(0, MB);
	struct cuda_export out;
	int local;

	EXPECT_EQ(fixture_export_opaque(p, MB, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("no VMM memory");
	EXPECT_EQ(fixture_export_opaque(q, MB, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("no VMM memory");
	EXPECT_EQ(fixture_export_opaque((uintptr_t)&local, 4, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("no CUDA memory");
	fake_cuda_free(p);
	fake_cuda_free(q);
}

CUDA_TEST(opaque_no_posix, "Memory that was created without a POSIX descriptor is -EOPNOTSUPP.")
{
	uintptr_t p = one_segment(0, 0);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
	fake_cuda_vmm_free(p);
}

CUDA_TEST(opaque_segments,
	  "A range of several segments is -EOPNOTSUPP, and a range beyond the memory is -EFAULT.")
{
	struct fake_cuda_segment s[] = { { 0, G, 1 }, { 0, G, 1 } };
	uintptr_t p = fake_cuda_vmm(s, 2);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p + 1, G, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("several CUDA allocations");
	EXPECT_EQ(fixture_export_opaque(p + G, G + 1, uuid0, &out), -EFAULT);
	fake_cuda_vmm_free(p);
}

static void replace_segment(void *p)
{
	fake_cuda_vmm_replace((uintptr_t)p);
}

static void free_only(void *p)
{
	fake_cuda_vmm_free((uintptr_t)p);
}

CUDA_TEST(opaque_freed, "If VMM memory is freed during the export, the error is -ENODEV, even if "
			"the address is mapped again.")
{
	uintptr_t p = one_segment(0, 1);
	struct cuda_export out;

	/* The first retain is a part of the identification of the memory. */
	fake_cuda_at("cuMemRetainAllocationHandle", 2, free_only, (void *)p);
	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -ENODEV);
	p = one_segment(0, 1);
	fake_cuda_at("cuMemExportToShareableHandle", 1, replace_segment, (void *)p);
	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -ENODEV);
	fixture_expect_log("freed meanwhile");
	fake_cuda_vmm_free(p);
}
