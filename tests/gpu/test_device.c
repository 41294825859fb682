/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory in CUDA and OpenCL at the same time. */
#include <errno.h>
#include <unistd.h>

#include "cuda.h"
#include "gpu.h"

static struct climport_dmabuf device_export(uint64_t address, size_t size)
{
	struct climport_dmabuf d = { .fd = -1 };

	EXPECT_EQ(climport_export_dmabuf((void *)address, size, 0, &d, sizeof(d)), 0);
	EXPECT(d.fd >= 0);
	EXPECT_EQ(d.size, size);
	return d;
}

/* As a buffer of OpenCL; the dma-buf is closed. */
static cl_mem buffer_of(struct session *s, uint64_t address, size_t size)
{
	struct climport_dmabuf d = device_export(address, size);
	cl_mem mem = gpu_import_dmabuf(s, &d);

	close(d.fd);
	return mem;
}

/* CUDA writes, a kernel adds a native buffer to the memory, and CUDA reads. */
static void round_trip(uint64_t address, size_t size)
{
	const size_t count = size / sizeof(uint32_t);
	uint32_t *a = malloc(size), *b = malloc(size), *out = malloc(size);
	cl_mem mem = buffer_of(&ours, address, size), addend = gpu_create_native(&ours, size);
	const cl_mem args[3] = { mem, mem, addend };

	EXPECT(a && b && out);
	for (int round = 0; round < 3; round++) {
		random_fill(a, size);
		random_fill(b, size);
		memset(out, 0xa5, size);
		cuda_write(address, a, size);
		EXPECT_EQ(clEnqueueWriteBuffer(ours.queue, addend, CL_TRUE, 0, size, b, 0, NULL,
					       NULL),
			  CL_SUCCESS);
		gpu_add(&ours, ours.queue, args, count, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		cuda_read(out, address, size);
		EXPECT(is_sum(out, a, b, count));
	}
	clReleaseMemObject(addend);
	clReleaseMemObject(mem);
	free(a);
	free(b);
	free(out);
}

static const struct size_row {
	const char *name;
	size_t size;
} device_sizes[] = {
	{ "512", 512 },	    { "1536", 1536 },	{ "4096", 4096 },     { "65536", 65536 },
	{ "1mb", 1 << 20 }, { "3mb", 3 << 20 }, { "64mb", 64 << 20 },
};

TEST_EACH(device_climport, struct size_row, device_sizes,
	  "CUDA and kernels see each other's bytes in memory of climport_alloc(CLIMPORT_DEVICE).")
{
	void *address, *before;

	cuda_need();
	gpu_session_open(&ours);
	/* The first allocation makes a small second allocation begin within a page. */
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, 512, 0, gpu.uuid, &before), 0);
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, row->size, 0, gpu.uuid, &address), 0);
	printf("# %zu bytes at %p\n", row->size, address);
	round_trip((uintptr_t)address, row->size);
	climport_free(address);
	climport_free(before);
	gpu_session_close(&ours);
}

#define LARGE_PART ((size_t)64 << 10)

/* A kernel increments the part, which CUDA has written and reads. */
static void large_part_works(cl_mem mem, uint64_t address, size_t origin)
{
	unsigned char *before = malloc(LARGE_PART), *now = calloc(1, LARGE_PART);
	cl_mem part = gpu_create_part(mem, origin, LARGE_PART);

	EXPECT(before && now);
	random_fill(before, LARGE_PART);
	cuda_write(address + origin, before, LARGE_PART);
	gpu_increment(&ours, ours.queue, part, LARGE_PART, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	cuda_read(now, address + origin, LARGE_PART);
	EXPECT(is_added(now, before, LARGE_PART, 1));
	clReleaseMemObject(part);
	free(before);
	free(now);
}

/* The import of large memory works in place, or the sentence says that the driver dies of it. */
static void works_or_driver_dies(uint64_t address, size_t size)
{
	struct climport_dmabuf d = device_export(address, size);
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	ours.notice[0] = '\0';
	mem = climport_create_buffer(ours.context, CL_MEM_READ_WRITE, NULL, &d, &err);
	close(d.fd);
	printf("# %zu MiB: %s\n", size >> 20, mem ? "imported" : ours.notice);
	if (!mem) {
		EXPECT_EQ(err, CL_INVALID_OPERATION);
		EXPECT(gpu_notice_has("memory of 512 MiB and more is not imported: climport-probe "
				      "did not survive"));
		gpu_import_good();
		return;
	}
	large_part_works(mem, address, 0);
	large_part_works(mem, address, size / 2);
	large_part_works(mem, address, size - LARGE_PART);
	clReleaseMemObject(mem);
}

static const struct size_row large_sizes[] = {
	{ "512mb", (size_t)512 << 20 },
	{ "1gb", (size_t)1 << 30 },
	{ "4gb", (size_t)4 << 30 },
};

TEST_EACH_AS(
	device_climport_large, "device_climport", struct size_row, large_sizes,
	"Memory of climport_alloc(CLIMPORT_DEVICE) of 512 MiB and more is imported, or refused "
	"because the driver dies of it.")
{
	void *address;

	cuda_need();
	gpu_session_open(&ours);
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, row->size, 0, gpu.uuid, &address), 0);
	works_or_driver_dies((uintptr_t)address, row->size);
	climport_free(address);
	gpu_session_close(&ours);
}

TEST_EACH(device_vmm_large, struct size_row, large_sizes,
	  "Memory of cuMemCreate() of 512 MiB and more is imported, whole and in part, or refused "
	  "because the driver dies of it.")
{
	struct vmm vmm;

	cuda_need();
	gpu_session_open(&ours);
	vmm_create_sized(&vmm, LOCATION_DEVICE, 1, row->size);
	works_or_driver_dies(vmm.address, vmm.size);
	works_or_driver_dies(vmm.address, (size_t)1 << 20);
	works_or_driver_dies(vmm.address + vmm.size - ((size_t)1 << 20), (size_t)1 << 20);
	vmm_destroy(&vmm);
	gpu_session_close(&ours);
}

TEST(device_510mb, "Device memory below 512 MiB is imported.")
{
	const size_t size = (size_t)510 << 20;
	cl_mem mem;
	struct vmm vmm;

	cuda_need();
	gpu_session_open(&ours);
	vmm_create_sized(&vmm, LOCATION_DEVICE, 1, size);
	mem = buffer_of(&ours, vmm.address, size);
	large_part_works(mem, vmm.address, 0);
	large_part_works(mem, vmm.address, size - LARGE_PART);
	clReleaseMemObject(mem);
	vmm_destroy(&vmm);
	gpu_session_close(&ours);
}

TEST(device_vmm, "Memory of cuMemCreate() with a POSIX descriptor is imported in place.")
{
	struct vmm vmm;

	cuda_need();
	gpu_session_open(&ours);
	vmm_create(&vmm, LOCATION_DEVICE, 1);
	round_trip(vmm.address, vmm.size);
	round_trip(vmm.address + 3 * 4096, 65536);
	vmm_destroy(&vmm);
	gpu_session_close(&ours);
}

typedef cl_int(CL_API_CALL *edge_function)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
					   const cl_event *, cl_event *);

static edge_function device_find_edge(const char *name)
{
	edge_function edge =
		(edge_function)clGetExtensionFunctionAddressForPlatform(gpu.platform, name);

	EXPECT(edge);
	return edge;
}

/* CUDA writes, a kernel increments between an acquire and a release, the host reads before the release, CUDA after it. */
static void external_round_trip(cl_command_queue queue, cl_mem mem, const struct vmm *vmm)
{
	edge_function acquire = device_find_edge("clEnqueueAcquireExternalMemObjectsKHR"),
		      release = device_find_edge("clEnqueueReleaseExternalMemObjectsKHR");
	unsigned char *before = malloc(vmm->size), *now = malloc(vmm->size);
	cl_event at[3];

	EXPECT(before && now);
	random_fill(before, vmm->size);
	cuda_write(vmm->address, before, vmm->size);
	EXPECT_EQ(acquire(queue, 1, &mem, 0, NULL, &at[0]), CL_SUCCESS);
	gpu_increment(&ours, queue, mem, vmm->size, (struct after){ 1, &at[0] }, &at[1]);
	EXPECT_EQ(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, vmm->size, now, 1, &at[1], NULL),
		  CL_SUCCESS);
	EXPECT(is_added(now, before, vmm->size, 1));
	EXPECT_EQ(release(queue, 1, &mem, 1, &at[1], &at[2]), CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &at[2]), CL_SUCCESS);
	memset(now, 0, vmm->size);
	cuda_read(now, vmm->address, vmm->size);
	EXPECT(is_added(now, before, vmm->size, 1));
	for (int i = 0; i < 3; i++)
		clReleaseEvent(at[i]);
	free(before);
	free(now);
}

TEST(device_external,
     "Memory of cuMemCreate() is imported in place by cl_khr_external_memory_dma_buf, too.")
{
	cl_mem_properties dma_buf[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, 0, 0 };
	struct climport_dmabuf d;
	cl_command_queue queue;
	struct vmm vmm;
	cl_int err;
	cl_mem mem;

	cuda_need();
	gpu_session_open(&ours);
	queue = gpu_session_queue(&ours, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	vmm_create(&vmm, LOCATION_DEVICE, 1);
	d = device_export(vmm.address, vmm.size);
	EXPECT_EQ(d.offset, 0);
	dma_buf[1] = (cl_mem_properties)d.fd;
	mem = clCreateBufferWithProperties(ours.context, dma_buf, CL_MEM_READ_WRITE, vmm.size, NULL,
					   &err);
	EXPECT_EQ(err, CL_SUCCESS);
	close(d.fd);
	external_round_trip(ours.queue, mem, &vmm);
	external_round_trip(queue, mem, &vmm);
	clReleaseMemObject(mem);
	clReleaseCommandQueue(queue);
	vmm_destroy(&vmm);
	gpu_session_close(&ours);
}

TEST(host_vmm, "Kernels work in place on VMM memory of the host that is imported as host memory.")
{
	unsigned char *before = malloc(VMM_SIZE);
	struct vmm vmm;
	cl_mem mem;

	cuda_need();
	gpu_session_open(&ours);
	vmm_create(&vmm, LOCATION_HOST_NUMA, 1);
	mem = gpu_import_host(&ours, (void *)vmm.address, VMM_SIZE);
	for (int round = 0; round < 20; round++) {
		random_fill((void *)vmm.address, VMM_SIZE);
		memcpy(before, (void *)vmm.address, VMM_SIZE);
		gpu_increment(&ours, ours.queue, mem, VMM_SIZE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_added((void *)vmm.address, before, VMM_SIZE, 1));
	}
	clReleaseMemObject(mem);
	vmm_destroy(&vmm);
	free(before);
	gpu_session_close(&ours);
}

/* The error of OpenCL for an exported dma-buf. */
static cl_int device_export_error(const struct climport_dmabuf *d)
{
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	ours.notice[0] = '\0';
	mem = climport_create_buffer(ours.context, CL_MEM_READ_WRITE, NULL, d, &err);
	printf("# error %d: %s\n", err, ours.notice);
	if (mem)
		clReleaseMemObject(mem);
	return err;
}

static void device_expect_refused(uint64_t address, size_t size, const char *why)
{
	struct climport_dmabuf d = device_export(address, size);
	cl_int err = device_export_error(&d);

	close(d.fd);
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has(why));
	gpu_import_good();
}

TEST(device_alloc, "Memory of cuMemAlloc() is exported, and an import is refused with the reason.")
{
	uint64_t address;

	cuda_need();
	gpu_session_open(&ours);
	EXPECT_EQ(cuda.alloc(&address, 1 << 20), 0);
	device_expect_refused(address, 1 << 20, "is no VMM memory");
	cuda.free(address);
	gpu_session_close(&ours);
}

TEST(device_no_descriptor, "Memory of cuMemCreate() without a POSIX descriptor is exported, and an "
			   "import is refused with the reason.")
{
	struct vmm vmm;

	cuda_need();
	gpu_session_open(&ours);
	vmm_create(&vmm, LOCATION_DEVICE, 0);
	device_expect_refused(vmm.address, vmm.size, "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
	vmm_destroy(&vmm);
	gpu_session_close(&ours);
}

TEST(device_managed, "Managed memory moves, and is neither exported nor imported.")
{
	struct climport_dmabuf d = { .fd = -7 };
	uint64_t address;

	cuda_need();
	gpu_session_open(&ours);
	EXPECT_EQ(cuda.alloc_managed(&address, 1 << 20, 1), 0);
	EXPECT_EQ(climport_export_dmabuf((void *)address, 1 << 20, 0, &d, sizeof(d)), -EOPNOTSUPP);
	EXPECT_EQ(d.fd, -7);
	EXPECT_EQ(gpu_import_error(0, NULL, (void *)address, 1 << 20), CL_INVALID_OPERATION);
	EXPECT(!gpu.is_nvidia || gpu_notice_has("managed memory"));
	cuda.free(address);
	gpu_import_good();
	gpu_session_close(&ours);
}

TEST(device_pointer_as_host, "A pointer to device memory is no host memory.")
{
	uint64_t address;
	struct vmm vmm;

	cuda_need();
	gpu_session_open(&ours);
	EXPECT_EQ(cuda.alloc(&address, 1 << 20), 0);
	EXPECT_EQ(gpu_import_error(0, NULL, (void *)address, 1 << 20), CL_INVALID_OPERATION);
	cuda.free(address);
	gpu_import_good();
	vmm_create(&vmm, LOCATION_DEVICE, 1);
	EXPECT_EQ(gpu_import_error(0, NULL, (void *)vmm.address, vmm.size), CL_INVALID_OPERATION);
	vmm_destroy(&vmm);
	gpu_import_good();
	gpu_session_close(&ours);
}

TEST(device_freed,
     "If memory is freed between export and import, the import is an error and leaves nothing.")
{
	struct climport_dmabuf d;
	void *address;
	struct vmm vmm;
	int ret;

	cuda_need();
	gpu_session_open(&ours);
	vmm_create(&vmm, LOCATION_DEVICE, 1);
	d = device_export(vmm.address, vmm.size);
	vmm_destroy(&vmm);
	EXPECT_EQ(device_export_error(&d), CL_OUT_OF_RESOURCES);
	EXPECT(gpu_notice_has("freed since it was exported"));
	close(d.fd);
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, 4 << 20, 0, gpu.uuid, &address), 0);
	d = device_export((uintptr_t)address, 4 << 20);
	climport_free(address);
	EXPECT_EQ(device_export_error(&d), CL_OUT_OF_RESOURCES);
	ret = climport_export_dmabuf(address, 4 << 20, 0, &d, sizeof(d));
	EXPECT(ret == -EFAULT || ret == -ENXIO); /* with the kernel module, and without */
	close(d.fd);
	gpu_import_good();
	gpu_session_close(&ours);
}

TEST(device_outlives, "A buffer keeps the memory alive after a free of the memory.")
{
	uint32_t *before = malloc(VMM_SIZE), *zero = calloc(1, VMM_SIZE), *now = malloc(VMM_SIZE);
	struct vmm vmm;
	cl_mem mem[3]; /* now = before + zero */

	EXPECT(before && zero && now);
	if (!gpu.is_nvidia)
		test_skip("a fake's descriptor keeps no memory");
	cuda_need();
	gpu_session_open(&ours);
	vmm_create(&vmm, LOCATION_DEVICE, 1);
	random_fill(before, VMM_SIZE);
	cuda_write(vmm.address, before, VMM_SIZE);
	mem[0] = gpu_create_native(&ours, VMM_SIZE);
	mem[1] = buffer_of(&ours, vmm.address, VMM_SIZE);
	mem[2] = gpu_create_native(&ours, VMM_SIZE);
	vmm_destroy(&vmm);
	EXPECT_EQ(
		clEnqueueWriteBuffer(ours.queue, mem[2], CL_TRUE, 0, VMM_SIZE, zero, 0, NULL, NULL),
		CL_SUCCESS);
	gpu_add(&ours, ours.queue, mem, VMM_SIZE / 4, AT_ONCE, NULL);
	EXPECT_EQ(clEnqueueReadBuffer(ours.queue, mem[0], CL_TRUE, 0, VMM_SIZE, now, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT(is_sum(now, before, zero, VMM_SIZE / 4));
	for (int i = 0; i < 3; i++)
		clReleaseMemObject(mem[i]);
	free(before);
	free(zero);
	free(now);
	gpu_session_close(&ours);
}

/* Three parts at once: a kernel of each context, and CUDA; twenty times. */
static void at_once(struct session *const s[2], const cl_mem quarter[2], uint64_t address,
		    size_t size)
{
	unsigned char *before = malloc(4 * size), *now = malloc(4 * size);

	for (int round = 0; round < 20; round++) {
		random_fill(before, 4 * size);
		cuda_write(address, before, 4 * size);
		for (int i = 0; i < 2; i++) {
			gpu_increment(s[i], s[i]->queue, quarter[i], size, AT_ONCE, NULL);
			EXPECT_EQ(clFlush(s[i]->queue), CL_SUCCESS);
		}
		cuda_write(address + 2 * size, before, size);
		for (int i = 0; i < 2; i++)
			EXPECT_EQ(clFinish(s[i]->queue), CL_SUCCESS);
		cuda_read(now, address, 4 * size);
		EXPECT(is_added(now, before, 2 * size, 1));
		EXPECT(is_added(now + 2 * size, before, size, 0));
		EXPECT(is_added(now + 3 * size, before + 3 * size, size, 0));
	}
	free(before);
	free(now);
}

TEST(two_contexts, "Two OpenCL contexts and CUDA use the same memory at the same time.")
{
	const size_t size = 512 << 10;
	static struct session theirs;
	struct session *const s[2] = { &ours, &theirs };
	unsigned char *before = malloc(4 * size), *now = malloc(4 * size);
	cl_mem mem[2], quarter[2];
	struct vmm vmm;

	cuda_need();
	vmm_create(&vmm, LOCATION_DEVICE, 1);
	for (int i = 0; i < 2; i++) {
		gpu_session_open(s[i]);
		mem[i] = buffer_of(s[i], vmm.address, 4 * size);
		quarter[i] = gpu_create_part(mem[i], (size_t)i * size, size);
	}
	random_fill(before, 4 * size);
	cuda_write(vmm.address, before, 4 * size);
	for (int i = 0; i < 40; i++) {
		gpu_increment(s[i % 2], s[i % 2]->queue, mem[i % 2], 4 * size, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(s[i % 2]->queue), CL_SUCCESS);
	}
	cuda_read(now, vmm.address, 4 * size);
	EXPECT(is_added(now, before, 4 * size, 40));
	at_once(s, quarter, vmm.address, size);
	for (int i = 0; i < 2; i++) {
		clReleaseMemObject(quarter[i]);
		clReleaseMemObject(mem[i]);
	}
	vmm_destroy(&vmm);
	for (int i = 0; i < 2; i++)
		gpu_session_close(s[i]);
	free(before);
	free(now);
}
