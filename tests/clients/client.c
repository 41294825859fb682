/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake_dmabuf.h"
#include "process.h"
#include "text.h"

static const char source[] = "kernel void increment(global uchar *a) { a[get_global_id(0)]++; }\n"
			     "kernel void plane(read_only image2d_t from, global uchar *to)\n"
			     "{ int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
			     "  to[at.y * get_global_size(0) + at.x] =\n"
			     "	convert_uchar_sat_rte(read_imagef(from, at).x * 255.0f); }\n";

struct client client;

/* The first import of a process opens the layer's permanent descriptors. */
static void client_import_first(void)
{
	void *at = aligned_alloc(PAGE, PAGE);
	cl_int err;
	cl_mem mem = client.import(client.context, CL_MEM_READ_WRITE, NULL, at, PAGE, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	clReleaseMemObject(mem);
	free(at);
}

/* The first kernels open the driver's permanent descriptors. */
static void client_warm_up(void)
{
	static unsigned char bytes[2 * PAGE];
	cl_mem mem = clCreateBuffer(client.context, 0, PAGE, NULL, NULL);
	const cl_image_format format = { CL_R, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = 64,
				     .image_height = 64 };
	cl_mem image = clCreateImage(client.context, 0, &format, &desc, NULL, NULL);

	EXPECT(mem);
	client_increment(mem, PAGE);
	client.has_planes = image;
	if (image) {
		client_read_plane(image, bytes, 64, 64);
		clReleaseMemObject(image);
	}
	clReleaseMemObject(mem);
}

static void CL_CALLBACK client_hear(const char *sentence, const void *bytes, size_t size,
				    void *ours)
{
	(void)bytes, (void)size, (void)ours;
	snprintf(client.notice, sizeof(client.notice), "%s", sentence);
}

void client_open(void)
{
	const char *text = source;
	cl_int err;

	EXPECT_EQ(clGetPlatformIDs(1, &client.platform, NULL), CL_SUCCESS);
	EXPECT_EQ(clGetDeviceIDs(client.platform, CL_DEVICE_TYPE_ALL, 1, &client.device, NULL),
		  CL_SUCCESS);
	client.context = clCreateContext(NULL, 1, &client.device, client_hear, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	/* The call that drivers of OpenCL 1.2 have, too. */
	client.queue = clCreateCommandQueue(client.context, client.device, 0, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	client.program = clCreateProgramWithSource(client.context, 1, &text, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clBuildProgram(client.program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
	client.import = (__typeof__(client.import))clGetExtensionFunctionAddressForPlatform(
		client.platform, "clImportMemoryARM");
	EXPECT(client.import);
	client_import_first();
	client_warm_up();
	client.descriptors = process_count_descriptors();
}

/* The driver releases an import's memory on a thread of its own. */
void client_close(void)
{
	EXPECT(process_settles(process_descriptors_at_most, &client.descriptors));
	clReleaseProgram(client.program);
	clReleaseCommandQueue(client.queue);
	clReleaseContext(client.context);
}

size_t client_cache_line(void)
{
	cl_uint line = 0;

	EXPECT_EQ(clGetDeviceInfo(client.device, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, sizeof(line),
				  &line, NULL),
		  CL_SUCCESS);
	return line ? line : 64;
}

size_t client_base_alignment(void)
{
	cl_uint bits = 0;

	EXPECT_EQ(clGetDeviceInfo(client.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits,
				  NULL),
		  CL_SUCCESS);
	return bits / 8;
}

void client_expect_import(cl_int err, const void *at)
{
	const size_t bytes = client_base_alignment();

	if (err == CL_INVALID_OPERATION && (uintptr_t)at % bytes)
		test_skip("the device takes multiples of %zu bytes alone", bytes);
	EXPECT_EQ(err, CL_SUCCESS);
}

bool client_platform_has(const char *extension)
{
	char list[8192];

	EXPECT_EQ(clGetPlatformInfo(client.platform, CL_PLATFORM_EXTENSIONS, sizeof(list), list,
				    NULL),
		  CL_SUCCESS);
	return text_count_word(list, extension);
}

bool client_device_has(const char *extension)
{
	char list[8192];

	EXPECT_EQ(clGetDeviceInfo(client.device, CL_DEVICE_EXTENSIONS, sizeof(list), list, NULL),
		  CL_SUCCESS);
	return text_count_word(list, extension);
}

static client_edge_fn client_find_edge(const char *name)
{
	client_edge_fn edge =
		(client_edge_fn)clGetExtensionFunctionAddressForPlatform(client.platform, name);

	if (!edge)
		printf("# the platform has no %s\n", name);
	EXPECT(edge);
	return edge;
}

void client_find_edges(client_edge_fn *acquire, client_edge_fn *release)
{
	*acquire = client_find_edge("clEnqueueAcquireExternalMemObjectsKHR");
	*release = client_find_edge("clEnqueueReleaseExternalMemObjectsKHR");
}

bool client_has_pairs(void)
{
	cl_image_format formats[256];
	cl_uint count = 0;

	EXPECT_EQ(clGetSupportedImageFormats(client.context, CL_MEM_READ_ONLY,
					     CL_MEM_OBJECT_IMAGE2D, 256, formats, &count),
		  CL_SUCCESS);
	for (cl_uint i = 0; i < count && i < 256; i++)
		if (formats[i].image_channel_order == CL_RG &&
		    formats[i].image_channel_data_type == CL_UNORM_INT8)
			return true;
	return false;
}

static int client_udmabuf_create(size_t size)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memory, fd;
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };

	if (device < 0)
		return -1;
	memory = memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(memory >= 0 && !ftruncate(memory, (off_t)size));
	EXPECT_EQ(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	create.memfd = (uint32_t)memory;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	EXPECT(fd >= 0);
	close(memory);
	close(device);
	return fd;
}

/* Some drivers' devices take host memory alone. */
static void client_need_dma_bufs(int fd)
{
	const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };
	cl_int err;
	cl_mem mem = client.import(client.context, CL_MEM_READ_WRITE, dma_buf, &fd, PAGE, &err);

	if (err == CL_INVALID_PROPERTY)
		test_skip("the device takes no dma-buf");
	if (mem)
		clReleaseMemObject(mem);
}

void client_dmabuf_create(struct dmabuf *dmabuf, size_t size)
{
	static int number;
	char name[32];

	snprintf(name, sizeof(name), "client%d", number++);
	dmabuf->size = (size + PAGE - 1) / PAGE * PAGE;
	dmabuf->fd = client_udmabuf_create(dmabuf->size);
	if (dmabuf->fd < 0)
		dmabuf->fd = fake_dmabuf_create(name, dmabuf->size);
	EXPECT(dmabuf->fd >= 0);
	dmabuf->at = mmap(NULL, dmabuf->size, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf->fd, 0);
	EXPECT(dmabuf->at != MAP_FAILED);
	client_need_dma_bufs(dmabuf->fd);
}

void client_dmabuf_destroy(struct dmabuf *dmabuf)
{
	munmap(dmabuf->at, dmabuf->size);
	close(dmabuf->fd);
}

int client_dmabuf_read_only(const struct dmabuf *dmabuf)
{
	int fd = fake_dmabuf_reopen(dmabuf->fd, O_RDONLY);

	if (fd < 0 && errno == ENXIO)
		test_skip("a real dma-buf cannot be opened again: see tests/vm/test_read_only.c");
	EXPECT(fd >= 0);
	return fd;
}

static void client_dmabuf_sync(const struct dmabuf *dmabuf, uint64_t edge)
{
	const struct dma_buf_sync sync = { DMA_BUF_SYNC_RW | edge };
	int ret;

	do
		ret = ioctl(dmabuf->fd, DMA_BUF_IOCTL_SYNC, &sync);
	while (ret && (errno == EINTR || errno == EAGAIN));
	EXPECT_EQ(ret, 0);
}

void client_dmabuf_begin(const struct dmabuf *dmabuf)
{
	client_dmabuf_sync(dmabuf, DMA_BUF_SYNC_START);
}

void client_dmabuf_end(const struct dmabuf *dmabuf)
{
	client_dmabuf_sync(dmabuf, DMA_BUF_SYNC_END);
}

static cl_kernel client_create_kernel(const char *name, cl_mem argument)
{
	cl_int err;
	cl_kernel kernel = clCreateKernel(client.program, name, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(argument), &argument), CL_SUCCESS);
	return kernel;
}

void client_increment(cl_mem mem, size_t size)
{
	cl_kernel kernel = client_create_kernel("increment", mem);

	EXPECT_EQ(clEnqueueNDRangeKernel(client.queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(client.queue), CL_SUCCESS);
	clReleaseKernel(kernel);
}

void client_read_plane(cl_mem image, unsigned char *to, size_t width, size_t height)
{
	const size_t size[] = { width, height };
	cl_kernel kernel = client_create_kernel("plane", image);
	cl_int err;
	cl_mem out = clCreateBuffer(client.context, CL_MEM_WRITE_ONLY, width * height, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(out), &out), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(client.queue, kernel, 2, NULL, size, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clEnqueueReadBuffer(client.queue, out, CL_TRUE, 0, width * height, to, 0, NULL,
				      NULL),
		  CL_SUCCESS);
	clReleaseMemObject(out);
	clReleaseKernel(kernel);
}

cl_mem client_plane(cl_mem buffer, cl_mem_flags flags, size_t width, size_t height, size_t pitch)
{
	const cl_image_format format = { CL_R, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = width,
				     .image_height = height,
				     .image_row_pitch = pitch,
				     .mem_object = buffer };
	cl_int err;
	cl_mem image;

	if (!client.has_planes)
		test_skip("the driver has no images of one channel of 8 bits");
	image = clCreateImage(client.context, flags, &format, &desc, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(image);
	return image;
}
