/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "process.h"

#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "util/log.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <opaque.h>
#include <pthread.h>
#include <sys/stat.h>

#define MB ((size_t)1 << 20)
#define G FAKE_CUDA_GRANULARITY

static unsigned char uuid0[CUDA_UUID_SIZE], uuid1[CUDA_UUID_SIZE];
static struct fake_cuda_held held_before;
static int fds_before;

static void cuda_test_begin(void)
{
	fake_cuda_reset(2);
	fake_cuda_set_current(NULL);
	fake_cuda_uuid(0, uuid0);
	fake_cuda_uuid(1, uuid1);
	held_before = fake_cuda_held();
	fds_before = process_count_descriptors();
}

static void expect_all_back(void)
{
	struct fake_cuda_held now = fake_cuda_held();

	EXPECT_EQ(now.allocations, held_before.allocations);
	EXPECT_EQ(now.mappings, held_before.mappings);
	EXPECT_EQ(now.handles, held_before.handles);
	EXPECT_EQ(now.reservations, held_before.reservations);
	EXPECT_EQ(now.primaries, held_before.primaries);
	EXPECT_EQ(now.pushed, held_before.pushed);
	EXPECT_EQ(process_count_descriptors(), fds_before);
}

#define CUDA_TEST(id, sentence)    \
	static void in_##id(void); \
	TEST(id, sentence)         \
	{                          \
		cuda_test_begin(); \
		in_##id();         \
		expect_all_back(); \
	}                          \
	static void in_##id(void)

static struct cuda_range cuda_identify_range(uintptr_t addr)
{
	struct cuda_range range;

	EXPECT_EQ(cuda_identify(addr, &range), 0);
	return range;
}

static uintptr_t one_segment(int device, int handle_types)
{
	struct fake_cuda_segment s = { device, G, handle_types };

	return fake_cuda_vmm(&s, 1);
}

/* What a pointer is. */

CUDA_TEST(none, "Memory that is not CUDA's is CUDA_NONE, without an error.")
{
	int local;
	struct cuda_range range = cuda_identify_range((uintptr_t)&local);

	EXPECT_EQ(range.kind, CUDA_NONE);
	EXPECT_EQ(range.device, -1);
	EXPECT_EQ(range.size, 0);
	EXPECT_EQ(cuda_buffer_id((uintptr_t)&local), 0);
	EXPECT_EQ(cuda_identify_range(0).kind, CUDA_NONE);
}

CUDA_TEST(uninitialized, "A process that has not initialized CUDA has no CUDA pointer, and the "
			 "question does not initialize CUDA.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);

	fake_cuda_uninitialize();
	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_NONE);
	EXPECT_EQ(cuda_buffer_id(p), 0);
	EXPECT_EQ(fake_cuda_calls("cuInit"), 0);
	fake_cuda_free(p);
}

CUDA_TEST(device, "cuMemAlloc: a device, its ordinal and uuid, the allocation, its buffer id.")
{
	uintptr_t p = fake_cuda_alloc(1, MB);
	struct cuda_range range = cuda_identify_range(p + 1000);

	EXPECT_EQ(range.kind, CUDA_DEVICE);
	EXPECT_EQ(range.device, 1);
	EXPECT(!memcmp(range.uuid, uuid1, sizeof(uuid1)));
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, MB);
	EXPECT(range.buffer_id);
	EXPECT_EQ(cuda_buffer_id(p + MB - 1), range.buffer_id);
	fake_cuda_free(p);
	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_NONE);
	EXPECT_EQ(cuda_buffer_id(p), 0);
}

CUDA_TEST(managed, "Managed memory is recognised, and never exported.")
{
	uintptr_t p = fake_cuda_managed(0, MB);
	struct cuda_export out;

	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_MANAGED);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -EOPNOTSUPP);
	fixture_expect_log("managed");
	EXPECT_EQ(fixture_export_opaque(p, MB, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("managed");
	EXPECT_EQ(fake_cuda_calls("cuMemGetHandleForAddressRange"), 0);
	fake_cuda_free(p);
}

CUDA_TEST(host, "cuMemHostAlloc: host memory, the whole allocation.")
{
	uintptr_t p = fake_cuda_host(1, MB);
	struct cuda_range range = cuda_identify_range(p + 5);

	EXPECT_EQ(range.kind, CUDA_HOST);
	EXPECT_EQ(range.device, 1);
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, MB);
	fake_cuda_free(p);
}

CUDA_TEST(registered, "cuMemHostRegister: host memory, although it has no address range.")
{
	static char memory[10000];
	uintptr_t p = (uintptr_t)memory;
	struct cuda_range range;

	fake_cuda_host_register(0, memory, sizeof(memory));
	range = cuda_identify_range(p + 5);
	EXPECT_EQ(range.kind, CUDA_HOST);
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, sizeof(memory));
	fake_cuda_free(p);
}

CUDA_TEST(vmm, "A VMM address has the segment that is mapped there, not the reservation.")
{
	struct fake_cuda_segment s[] = { { 0, G, 1 }, { 0, 2 * G, 1 } };
	uintptr_t p = fake_cuda_vmm(s, 2);
	struct cuda_range range = cuda_identify_range(p + G + 77);

	EXPECT_EQ(range.kind, CUDA_DEVICE);
	EXPECT_EQ(range.base, p + G);
	EXPECT_EQ(range.size, 2 * G);
	EXPECT(range.buffer_id != cuda_buffer_id(p));
	EXPECT_EQ(cuda_identify_range(p + 3 * G).kind, CUDA_NONE);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(host_vmm,
	  "VMM memory of the host is the host's, whatever the attributes say; of no device.")
{
	uintptr_t p = one_segment(FAKE_CUDA_HOST_NUMA, 1);
	static const unsigned char zero[CUDA_UUID_SIZE];
	struct cuda_range range = cuda_identify_range(p + 1);

	EXPECT_EQ(range.kind, CUDA_HOST);
	EXPECT_EQ(range.device, -1);
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, G);
	EXPECT(!memcmp(range.uuid, zero, sizeof(zero)));
	fake_cuda_vmm_free(p);
}

CUDA_TEST(reuse, "An address that is allocated again has another buffer id.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	uint64_t id = cuda_buffer_id(p);

	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, MB, p), p);
	EXPECT(cuda_buffer_id(p) != id);
	EXPECT(cuda_buffer_id(p));
	fake_cuda_free(p);
}

CUDA_TEST(older_driver,
	  "Where the attributes know no mappings, the range of the address is asked for.")
{
	uintptr_t p = one_segment(1, 1), host = one_segment(FAKE_CUDA_HOST_NUMA, 1);

	fake_cuda_set_no_mappings(true);
	EXPECT_EQ(cuda_identify_range(p + MB).base, p);
	EXPECT_EQ(cuda_identify_range(p + MB).size, G);
	EXPECT_EQ(fake_cuda_retains(0), 0);
	EXPECT_EQ(cuda_identify_range(host + MB).kind, CUDA_HOST);
	EXPECT_EQ(fake_cuda_retains(0), 0);
	fake_cuda_vmm_free(p);
	fake_cuda_vmm_free(host);
}

CUDA_TEST(asks_no_context, "The kind of any pointer is found without a context.")
{
	uintptr_t p[] = { fake_cuda_alloc(1, MB), fake_cuda_managed(1, MB), fake_cuda_host(1, MB),
			  one_segment(1, 1), one_segment(FAKE_CUDA_HOST_NUMA, 1) };

	for (int i = 0; i < 5; i++)
		EXPECT(cuda_identify_range(p[i] + 1).kind != CUDA_NONE);
	EXPECT_EQ(fake_cuda_calls("cuDevicePrimaryCtxRetain"), 0);
	EXPECT_EQ(fake_cuda_calls("cuCtxPushCurrent_v2"), 0);
	for (int i = 0; i < 3; i++)
		fake_cuda_free(p[i]);
	fake_cuda_vmm_free(p[3]);
	fake_cuda_vmm_free(p[4]);
}

/* dma-bufs. */

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

/* Opaque descriptors. */

static void expect_opaque(const struct cuda_export *e, uintptr_t addr)
{
	struct fake_opaque o;

	EXPECT(fake_opaque_read(e->fd, &o));
	EXPECT((char *)o.memory + e->offset == fake_cuda_memory(addr));
	EXPECT_EQ(e->size, o.size);
	EXPECT_EQ(fcntl(e->fd, F_GETFD), FD_CLOEXEC);
	close(e->fd);
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

/* Allocating. */

CUDA_TEST(alloc_device, "cuda_alloc: device memory that can be had by both descriptors.")
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

CUDA_TEST(alloc_rdma, "Device memory is not asked to be for RDMA where the device has none.")
{
	struct cuda_memory m;

	fake_cuda_set_attribute(0, CUDA_DEVICE_RDMA_WITH_VMM, 0);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m), 0);
	EXPECT_EQ(fake_cuda_rdma(m.addr), 0);
	cuda_free(&m);
}

CUDA_TEST(alloc_host,
	  "cuda_alloc: host memory that the CPU and a device use, by its descriptor too.")
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

CUDA_TEST(alloc_host_node, "Host memory is of the node of the device; of node 0 without NUMA.")
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

CUDA_TEST(alloc_refused, "Exact errors for what cannot be allocated; nothing is written.")
{
	static const unsigned char nobody[CUDA_UUID_SIZE] = { 1 };
	struct cuda_memory m = { .addr = 7 };

	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, nobody, G, 0, &m), -ENODEV);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 0, 0, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 3 * G, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_MANAGED, uuid0, G, 0, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_NONE, uuid0, G, 0, &m), -EINVAL);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, SIZE_MAX, 0, &m), -ENOMEM);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, (size_t)1 << 50, 0, &m), -ENOMEM);
	fake_cuda_fail("cuInit", 1, CUDA_NO_DEVICE);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m), -ENODEV);
	fake_cuda_fail("cuMemCreate", 1, CUDA_INVALID_VALUE);
	EXPECT_EQ(cuda_alloc(CUDA_HOST, uuid0, G, 0, &m), -EOPNOTSUPP);
	fake_cuda_set_attribute(0, CUDA_DEVICE_VMM, 0);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m), -EOPNOTSUPP);
	fixture_expect_log("no virtual memory management");
	EXPECT_EQ(m.addr, 7);
}

/* Contexts. */

static void cuda_use_all(uintptr_t p, uintptr_t v)
{
	struct cuda_export out;
	struct cuda_memory m;

	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_DEVICE);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	close(out.fd);
	EXPECT_EQ(fixture_export_dmabuf(v, G, &out), 0);
	close(out.fd);
	EXPECT_EQ(fixture_export_opaque(v, G, uuid1, &out), 0);
	close(out.fd);
	EXPECT_EQ(cuda_alloc(CUDA_HOST, uuid1, G, 0, &m), 0);
	EXPECT_EQ(cuda_identify_range(m.addr).kind, CUDA_HOST);
	cuda_free(&m);
}

CUDA_TEST(context, "The thread's current context is as before: none, another device's, the same.")
{
	uintptr_t p = fake_cuda_alloc(1, MB), v = one_segment(1, 1);

	for (int device = -1; device < 2; device++) {
		void *context = device < 0 ? NULL : fake_cuda_context_create(device);

		fake_cuda_set_current(context);
		cuda_use_all(p, v);
		EXPECT(fake_cuda_current() == context);
		fake_cuda_set_current(NULL);
		fake_cuda_context_destroy(context);
	}
	fake_cuda_free(p);
	fake_cuda_vmm_free(v);
}

/* Faults at each call. */

enum operation { IDENTIFY, DMABUF, DMABUF_VMM, OPAQUE, ALLOC_DEVICE, ALLOC_HOST, OPERATIONS };

static int operation_run(enum operation o, uintptr_t p, uintptr_t v)
{
	struct cuda_export out = { .fd = -1 };
	struct cuda_memory m = { 0 };
	struct cuda_range range;
	int err = 0;

	switch (o) {
	case IDENTIFY:
		return cuda_identify(v, &range);
	case DMABUF:
		err = fixture_export_dmabuf(p, MB, &out);
		break;
	case DMABUF_VMM:
		err = fixture_export_dmabuf(v, 2 * G, &out);
		break;
	case OPAQUE:
		err = fixture_export_opaque(v + G, G, uuid0, &out);
		break;
	case ALLOC_DEVICE:
		err = cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m);
		break;
	default:
		err = cuda_alloc(CUDA_HOST, uuid0, G, 0, &m);
	}
	EXPECT_EQ(out.fd >= 0 || m.size, !err && o != IDENTIFY);
	if (out.fd >= 0)
		close(out.fd);
	cuda_free(&m);
	return err;
}

static int fail_each(enum operation o, uintptr_t p, uintptr_t v, int result)
{
	struct fake_cuda_held before = fake_cuda_held(), now;
	int failures = 0, n = 0, fds = process_count_descriptors(), err;

	do {
		fake_cuda_fail(NULL, ++n, result);
		err = operation_run(o, p, v);
		failures += err != 0;
		now = fake_cuda_held();
		EXPECT(!memcmp(&before, &now, sizeof(now)));
		EXPECT_EQ(process_count_descriptors(), fds);
		EXPECT(!fake_cuda_current());
	} while (fake_cuda_has_failed());
	EXPECT_EQ(err, 0);
	return failures;
}

TEST(faults, "A failure of any call of the driver leaks nothing, and is an error or made good.")
{
	static const int results[] = { CUDA_OUT_OF_MEMORY, CUDA_INVALID_VALUE, 999 };
	struct fake_cuda_segment s[] = { { 0, G, 1 }, { 0, G, 1 } };
	uintptr_t p, v;
	int failures;

	for (size_t i = 0; i < 3; i++) {
		for (enum operation o = IDENTIFY; o < OPERATIONS; o++) {
			cuda_test_begin();
			p = fake_cuda_alloc(0, MB);
			v = fake_cuda_vmm(s, 2);
			failures = fail_each(o, p, v, results[i]);
			EXPECT(failures >= (o == IDENTIFY ? 0 : 3));
			fake_cuda_free(p);
			fake_cuda_vmm_free(v);
		}
	}
}

/* Threads. */

static void *cuda_use_in_thread(void *arg)
{
	uintptr_t p = fake_cuda_alloc(1, MB), v = one_segment(1, 1);

	for (int i = 0; i < 20; i++)
		cuda_use_all(p, v);
	fake_cuda_free(p);
	fake_cuda_vmm_free(v);
	return arg;
}

CUDA_TEST(threads, "Any thread may call; none disturbs another.")
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, cuda_use_in_thread, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
