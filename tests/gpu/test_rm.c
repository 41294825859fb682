/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by way of NVIDIA's resource manager: what import/nvidia/rm relies on. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"
#include "gpu.h"
#include "import/nvidia/rm/rm_abi.h"

#define SIZE ((size_t)1 << 20)
#define ROUNDS 100

static unsigned char *rm_test_map(int flags, int fd)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

/* A kernel increments bytes that the host has just written; returns the rounds that went wrong. */
static int rm_test_rewrite(cl_mem mem, unsigned char *p)
{
	unsigned char *before = malloc(SIZE);
	int wrong = 0;

	EXPECT(before);
	for (int i = 0; i < ROUNDS; i++) {
		memset(p, i * 7, SIZE);
		memset(before, i * 7, SIZE);
		gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		wrong += memcmp(p, before, SIZE) == 0 || p[0] != (unsigned char)(before[0] + 1) ||
			 p[SIZE - 1] != (unsigned char)(before[0] + 1);
	}
	free(before);
	return wrong;
}

/* A client of RM by hand, with an object over @p for the device of number 0. */
static int rm_test_descriptor(void *p, uint32_t flags)
{
	struct rm_allocation client = { .class = RM_CLASS_CLIENT }, device;
	struct rm_device_parameters parameters = { 0 };
	struct rm_host_memory memory;
	static struct rm_export export;
	struct rm_control control;
	int ctl = open(RM_CONTROL_NODE, O_RDWR | O_CLOEXEC), node;

	EXPECT(ctl >= 0);
	node = open("/dev/nvidia0", O_RDWR | O_CLOEXEC);
	if (node < 0)
		test_skip("the GPU is not /dev/nvidia0");
	EXPECT_EQ(ioctl(node, RM_REGISTER_FD, &ctl), 0);
	EXPECT_EQ(ioctl(ctl, RM_ALLOCATE, &client), 0);
	device = (struct rm_allocation){ .client = client.object,
					 .parent = client.object,
					 .class = RM_CLASS_DEVICE,
					 .parameters = (uintptr_t)&parameters };
	EXPECT_EQ(ioctl(ctl, RM_ALLOCATE, &device), 0);
	memory = (struct rm_host_memory){ .client = client.object,
					  .parent = device.object,
					  .object = 1,
					  .class = RM_CLASS_OS_DESCRIPTOR,
					  .flags = RM_HOST_PAGES | RM_HOST_CACHED | RM_HOST_NO_MAP |
						   flags,
					  .address = (uintptr_t)p,
					  .limit = SIZE - 1,
					  .fd = -1 };
	EXPECT_EQ(ioctl(node, RM_ALLOCATE_HOST_MEMORY, &memory), 0);
	EXPECT_EQ(memory.status, RM_OK);
	export = (struct rm_export){ .fd = open(RM_CONTROL_NODE, O_RDWR | O_CLOEXEC),
				     .device = device.object,
				     .max_objects = 1,
				     .objects = { 1 },
				     .object_count = 1 };
	control = (struct rm_control){ .client = client.object,
				       .object = client.object,
				       .command = RM_EXPORT_OBJECTS_TO_FD,
				       .parameters = (uintptr_t) & export,
				       .size = sizeof(export) };
	EXPECT_EQ(ioctl(ctl, RM_CONTROL, &control), 0);
	EXPECT_EQ(control.status, RM_OK);
	close(ctl); /* the client ends, and the descriptor keeps the memory */
	close(node);
	return export.fd;
}

static int rm_test_rewrite_raw(uint32_t flags)
{
	unsigned char *p = rm_test_map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	cl_mem_properties properties[] = { CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, 0, 0 };
	cl_int err;
	cl_mem mem;
	int wrong;

	properties[1] = (cl_mem_properties)rm_test_descriptor(p, flags);
	mem = clCreateBufferWithProperties(ours.context, properties, CL_MEM_READ_WRITE, SIZE, NULL,
					   &err);
	EXPECT_EQ(err, CL_SUCCESS);
	wrong = rm_test_rewrite(mem, p);
	clReleaseMemObject(mem);
	munmap(p, SIZE);
	return wrong;
}

static void rm_test_need(void)
{
	if (!gpu.is_nvidia || access(RM_CONTROL_NODE, R_OK | W_OK))
		test_skip("there is no " RM_CONTROL_NODE);
}

TEST(rm_cacheable,
     "Kernels read stale bytes of memory that the GPU may cache; the test is a control.")
{
	rm_test_need();
	gpu_session_open(&ours);
	EXPECT(rm_test_rewrite_raw(1u << 18) > ROUNDS / 2); /* NVOS02_FLAGS_GPU_CACHEABLE_YES */
	gpu_session_close(&ours);
}

TEST(rm_not_cacheable, "Kernels read the host's last bytes of memory that the GPU may not cache.")
{
	rm_test_need();
	gpu_session_open(&ours);
	EXPECT_EQ(rm_test_rewrite_raw(0), 0);
	gpu_session_close(&ours);
}

TEST(rm_with_cuda, "CUDA's copies and OpenCL's kernels work on the same range of host memory.")
{
	unsigned char *before = malloc(SIZE);
	uint64_t on_device;
	void *p;
	cl_mem mem;

	cuda_need();
	EXPECT(before);
	EXPECT_EQ(cuda.alloc_host(&p, SIZE, 0), 0);
	EXPECT_EQ(cuda.alloc(&on_device, SIZE), 0);
	gpu_session_open(&ours);
	mem = gpu_import_host(&ours, p, SIZE);
	for (int i = 0; i < ROUNDS; i++) {
		random_fill(before, SIZE);
		cuda_write(on_device, before, SIZE);
		cuda_read(p, on_device, SIZE);
		gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_added(p, before, SIZE, 1));
		cuda_write(on_device, p, SIZE);
		cuda_read(p, on_device, SIZE);
		EXPECT(is_added(p, before, SIZE, 1));
	}
	clReleaseMemObject(mem);
	gpu_session_close(&ours);
	EXPECT_EQ(cuda.free(on_device), 0);
	EXPECT_EQ(cuda.free_host(p), 0);
	free(before);
}

/* A dma-buf that neither climport nor this test's device made. */
static void rm_test_refuse(int ordinal)
{
	uint64_t address;
	void *context;
	int device, fd = -1;

	EXPECT_EQ(cuda.device_get(&device, ordinal), 0);
	EXPECT_EQ(cuda.primary_retain(&context, device), 0);
	EXPECT_EQ(cuda.push(context), 0);
	EXPECT_EQ(cuda.alloc(&address, VMM_SIZE), 0);
	EXPECT_EQ(cuda.get_handle(&fd, address, VMM_SIZE, 1 /* a dma-buf */, 0), 0);
	gpu_session_open(&ours);
	{
		const cl_import_properties_arm properties[] = { CL_IMPORT_TYPE_ARM,
								CL_IMPORT_TYPE_DMA_BUF_ARM, 0 };

		EXPECT_EQ(gpu_import_error(0, properties, &fd, VMM_SIZE), CL_INVALID_OPERATION);
	}
	EXPECT(gpu_notice_has("is of the exporter nv_dmabuf"));
	gpu_import_good(); /* the context lives on */
	gpu_session_close(&ours);
	close(fd);
	EXPECT_EQ(cuda.free(address), 0);
}

TEST(rm_gpu_memory, "A dma-buf of the GPU's memory that a different library made is refused.")
{
	cuda_need();
	rm_test_need();
	rm_test_refuse(0);
}

TEST(rm_other_gpu, "A dma-buf of a second GPU's memory is refused, and the context stays usable.")
{
	int count = 0;

	cuda_need();
	rm_test_need();
	EXPECT_EQ(cuda.device_count(&count), 0);
	if (count < 2)
		test_skip("the machine has one GPU");
	rm_test_refuse(1);
}
