/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of CUDA's memory: dma-bufs and opaque descriptors. */
#include "cuda_fixture.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <unistd.h>

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

CUDA_TEST(dmabuf, "A dma-buf of device memory has its bytes at the offset, and is close-on-exec.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	cuda_fill_memory(p, MB, 1);
	EXPECT_EQ(fixture_export_dmabuf(p + 5000, 3000, &out), 0);
	EXPECT_EQ(out.offset, 5000 - 4096);
	EXPECT_EQ(out.size, 4096);
	expect_data(&out, p + 5000, 3000);
	EXPECT_EQ(fcntl(out.fd, F_GETFD), FD_CLOEXEC);
	close(out.fd);
	fake_cuda_free(p);
}

CUDA_TEST(dmabuf_small, "An allocation inside a page: its pages, and the offset of it.")
{
	uintptr_t p = fake_cuda_alloc(0, 100);
	struct cuda_export out;

	EXPECT(p % 4096);
	cuda_fill_memory(p, 100, 2);
	EXPECT_EQ(fixture_export_dmabuf(p, 100, &out), 0);
	EXPECT_EQ(out.offset, p % 4096);
	EXPECT_EQ(out.size, 4096);
	expect_data(&out, p, 100);
	close(out.fd);
	fake_cuda_free(p);
}

CUDA_TEST(dmabuf_segments, "A range of several segments is one dma-buf.")
{
	struct fake_cuda_segment s[] = { { 1, G, 1 }, { 1, G, 0 }, { 1, 2 * G, 1 } };
	uintptr_t p = fake_cuda_vmm(s, 3);
	struct cuda_export out;

	for (int i = 0; i < 3; i++)
		cuda_fill_memory(p + i * G, G, 3 + i);
	EXPECT_EQ(fixture_export_dmabuf(p + 8, 3 * G, &out), 0);
	EXPECT_EQ(out.size, 3 * G + 4096);
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

CUDA_TEST(dmabuf_part, "-EFAULT if only part of the range is device memory of one device.")
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

CUDA_TEST(dmabuf_not_device, "-EFAULT for memory of the host, CUDA's or not.")
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

CUDA_TEST(no_range, "-EINVAL for no bytes, and for a range that wraps.")
{
	uintptr_t p = one_segment(0, 1);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_dmabuf(p, 0, &out), -EINVAL);
	EXPECT_EQ(fixture_export_dmabuf(p, SIZE_MAX, &out), -EINVAL);
	EXPECT_EQ(fixture_export_opaque(p, 0, uuid0, &out), -EINVAL);
	EXPECT_EQ(fixture_export_opaque(p, SIZE_MAX, uuid0, &out), -EINVAL);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(sync_memops, "SYNC_MEMOPS is set once an allocation: the second export only asks.")
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

CUDA_TEST(pcie_discrete, "The PCIe flag is not tried where no coherent link is.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	struct cuda_export out;

	fake_cuda_set_pcie(true);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	EXPECT_EQ(fake_cuda_range_flags(), 0);
	close(out.fd);
	fake_cuda_free(p);
}

CUDA_TEST(pcie_coherent,
	  "On a coherent link the PCIe flag is tried first, and left out if refused.")
{
	static const int refusals[] = { CUDA_NOT_SUPPORTED, CUDA_INVALID_VALUE };
	uintptr_t p = fake_cuda_alloc(1, MB);
	struct cuda_export out;

	fake_cuda_set_attribute(1, CUDA_DEVICE_HOST_NATIVE_ATOMIC, 1);
	fake_cuda_set_pcie(true);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	EXPECT_EQ(fake_cuda_range_flags(), CUDA_RANGE_FLAG_PCIE);
	close(out.fd);
	for (int i = 0; i < 2; i++) {
		fake_cuda_fail("cuMemGetHandleForAddressRange", 1, refusals[i]);
		EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
		EXPECT_EQ(fake_cuda_range_flags(), 0);
		close(out.fd);
	}
	fake_cuda_fail("cuMemGetHandleForAddressRange", 1, CUDA_OUT_OF_MEMORY);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -ENOMEM);
	fake_cuda_free(p);
}

CUDA_TEST(dmabuf_unsupported, "-EOPNOTSUPP, with its name, if the driver exports no dma-bufs.")
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

CUDA_TEST(dmabuf_freed,
	  "-ENODEV if the memory is freed meanwhile, also if its address is in use again.")
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

CUDA_TEST(opaque, "VMM memory as an opaque descriptor: the segment, and the offset in it.")
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

CUDA_TEST(opaque_host, "VMM memory of the host goes to any device.")
{
	uintptr_t p = one_segment(FAKE_CUDA_HOST_NUMA, 1);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), 0);
	expect_opaque(&out, p);
	EXPECT_EQ(fixture_export_opaque(p, G, uuid1, &out), 0);
	expect_opaque(&out, p);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(opaque_other_device, "-EXDEV for memory of another device.")
{
	uintptr_t p = one_segment(1, 1);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -EXDEV);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(opaque_not_vmm, "-EOPNOTSUPP for memory that is not VMM memory.")
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

CUDA_TEST(opaque_no_posix, "-EOPNOTSUPP for memory that was made without a POSIX descriptor.")
{
	uintptr_t p = one_segment(0, 0);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("without a POSIX");
	fake_cuda_vmm_free(p);
}

CUDA_TEST(opaque_segments, "-EOPNOTSUPP for several segments, -EFAULT where the memory ends.")
{
	struct fake_cuda_segment s[] = { { 0, G, 1 }, { 0, G, 1 } };
	uintptr_t p = fake_cuda_vmm(s, 2);
	struct cuda_export out;

	EXPECT_EQ(fixture_export_opaque(p + 1, G, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("several segments");
	EXPECT_EQ(fixture_export_opaque(p + G, G + 1, uuid0, &out), -EFAULT);
	fake_cuda_vmm_free(p);
}

static uintptr_t other;

static void free_segment(void *p)
{
	struct fake_cuda_segment s = { 0, G, 1 };

	fake_cuda_vmm_free((uintptr_t)p);
	other = fake_cuda_vmm(&s, 1);
}

static void free_only(void *p)
{
	fake_cuda_vmm_free((uintptr_t)p);
}

CUDA_TEST(opaque_freed, "-ENODEV if VMM memory is freed meanwhile, also if it is mapped again.")
{
	uintptr_t p = one_segment(0, 1);
	struct cuda_export out;

	/* The first retain belongs to the question what the memory is. */
	fake_cuda_at("cuMemRetainAllocationHandle", 2, free_only, (void *)p);
	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -ENODEV);
	p = one_segment(0, 1);
	fake_cuda_at("cuMemExportToShareableHandle", 1, free_segment, (void *)p);
	EXPECT_EQ(fixture_export_opaque(p, G, uuid0, &out), -ENODEV);
	fixture_expect_log("freed meanwhile");
	fake_cuda_vmm_free(other);
}
