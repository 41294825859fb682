/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCV's external allocator of UMats: OpenCV maps a dma-buf for the host, and imports the dma-buf
 * for the device.  If the import fails, OpenCV creates an ordinary buffer.
 *
 * And cv::ocl::createUMatFromDmaBuf() with cv::ocl::acquireExternalMemory() and releaseExternalMemory(), by
 * cl_khr_external_memory_dma_buf: pull request 29760.
 */
#include "client.h"

#include <fcntl.h>
#include <unistd.h>

enum { SIZE = 640 * 480, RING = 4, FRAMES = 40 };

static const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						    0 };

/* Imports, or creates a buffer of the driver. */
static cl_mem opencv_allocate(int fd, size_t size)
{
	cl_int err;
	cl_mem mem = client.import(client.context, CL_MEM_READ_WRITE, dma_buf, &fd, size, &err);

	if (!mem)
		mem = clCreateBuffer(client.context, CL_MEM_READ_WRITE, size, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

TEST(opencv_host_and_device, "OpenCV uses a matrix on the host and on the device in turns.")
{
	struct dmabuf matrix;
	cl_mem mem;

	client_open();
	client_dmabuf_create(&matrix, SIZE);
	mem = opencv_allocate(matrix.fd, SIZE);
	for (unsigned char turn = 0; turn < 20; turn++) {
		client_dmabuf_begin(&matrix);
		memset(matrix.at, turn, SIZE);
		client_dmabuf_end(&matrix);
		client_increment(mem, SIZE);
		client_dmabuf_begin(&matrix);
		EXPECT_EQ(matrix.at[0], turn + 1);
		EXPECT_EQ(matrix.at[SIZE - 1], turn + 1);
		client_dmabuf_end(&matrix);
	}
	clReleaseMemObject(mem);
	client_dmabuf_destroy(&matrix);
	client_close();
}

TEST(opencv_falls_back, "If memory is no dma-buf, OpenCV creates a buffer of the driver.")
{
	int ends[2];
	cl_mem mem;

	client_open();
	EXPECT_EQ(pipe(ends), 0);
	mem = opencv_allocate(ends[0], SIZE);
	client_increment(mem, SIZE);
	clReleaseMemObject(mem);
	close(ends[0]);
	close(ends[1]);
	client_close();
}

static client_edge_fn acquire, release;
static __typeof__(&clCreateBufferWithProperties) create;

/* OpenCV's headers are those of OpenCL 1.2, so it finds the function by name, here or in the loader. */
static void opencv_open(void)
{
	client_open();
	client_find_edges(&acquire, &release);
	create = (__typeof__(create))clGetExtensionFunctionAddressForPlatform(
		client.platform, "clCreateBufferWithProperties");
	if (!create)
		create = clCreateBufferWithProperties;
}

/* What OpenCV asks the device before it makes a matrix of a dma-buf. */
static void opencv_ask(void)
{
	cl_external_memory_handle_type_khr types[16];
	size_t size = 0, i = 0;

	EXPECT(client_device_has("cl_khr_external_memory"));
	EXPECT(client_device_has("cl_khr_external_memory_dma_buf"));
	EXPECT_EQ(clGetDeviceInfo(client.device, CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
				  sizeof(types), types, &size),
		  CL_SUCCESS);
	while (i < size / sizeof(types[0]) && types[i] != CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR)
		i++;
	EXPECT(i < size / sizeof(types[0]));
}

static cl_mem opencv_create(int fd, cl_int *err)
{
	const cl_mem_properties properties[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
						 (cl_mem_properties)fd, 0 };

	return create(client.context, properties, CL_MEM_READ_WRITE, SIZE, NULL, err);
}

/* createUMatFromDmaBuf(): convertFromBuffer() asks for type and size, and takes a reference of its own. */
static cl_mem opencv_umat(int fd)
{
	cl_mem_object_type type = 0;
	size_t size = 0;
	cl_int err;
	cl_mem mem = opencv_create(fd, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof(type), &type, NULL), CL_SUCCESS);
	EXPECT_EQ(type, CL_MEM_OBJECT_BUFFER);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof(size), &size, NULL), CL_SUCCESS);
	EXPECT_EQ(size, SIZE);
	EXPECT_EQ(clRetainMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	return mem;
}

static void opencv_acquire(cl_mem mem)
{
	EXPECT_EQ(acquire(client.queue, 1, &mem, 0, NULL, NULL), CL_SUCCESS);
}

/* Returns when the memory is the producer's again. */
static void opencv_release(cl_mem mem)
{
	EXPECT_EQ(release(client.queue, 1, &mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(client.queue), CL_SUCCESS);
}

static void opencv_fill(struct dmabuf *matrix, int byte)
{
	client_dmabuf_begin(matrix);
	memset(matrix->at, byte, SIZE);
	client_dmabuf_end(matrix);
}

static void opencv_expect(struct dmabuf *matrix, int byte)
{
	client_dmabuf_begin(matrix);
	for (size_t i = 0; i < SIZE; i++)
		if (matrix->at[i] != byte)
			EXPECT_EQ(matrix->at[i], byte);
	client_dmabuf_end(matrix);
}

TEST(opencv_dmabuf_matrix, "OpenCV makes a matrix of a dma-buf, whose descriptor stays the "
			   "caller's, and a kernel changes it in place.")
{
	struct dmabuf matrix;
	cl_mem mem;

	opencv_open();
	client_dmabuf_create(&matrix, SIZE);
	opencv_ask();
	opencv_fill(&matrix, 7);
	mem = opencv_umat(matrix.fd);
	EXPECT(fcntl(matrix.fd, F_GETFD) >= 0);
	opencv_acquire(mem);
	client_increment(mem, SIZE);
	opencv_release(mem);
	opencv_expect(&matrix, 8);
	clReleaseMemObject(mem);
	EXPECT(fcntl(matrix.fd, F_GETFD) >= 0);
	client_dmabuf_destroy(&matrix);
	client_close();
}

TEST(opencv_dmabuf_ring, "OpenCV imports each buffer of a ring once, its descriptors are closed, "
			 "and each frame is acquired and released.")
{
	struct dmabuf ring[RING];
	cl_mem mems[RING];

	opencv_open();
	for (int i = 0; i < RING; i++) {
		int fd;

		client_dmabuf_create(&ring[i], SIZE);
		fd = fcntl(ring[i].fd, F_DUPFD_CLOEXEC, 0);
		mems[i] = opencv_umat(fd);
		close(fd);
	}
	for (int frame = 0; frame < FRAMES; frame++) {
		opencv_fill(&ring[frame % RING], frame);
		opencv_acquire(mems[frame % RING]);
		client_increment(mems[frame % RING], SIZE);
		opencv_release(mems[frame % RING]);
		opencv_expect(&ring[frame % RING], frame + 1);
	}
	for (int i = 0; i < RING; i++) {
		clReleaseMemObject(mems[i]);
		client_dmabuf_destroy(&ring[i]);
	}
	client_close();
}

TEST(opencv_dmabuf_mapped,
     "UMat::getMat() maps an acquired matrix for the host, and copyTo() reads "
     "it.")
{
	static unsigned char bytes[SIZE];
	struct dmabuf matrix;
	unsigned char *map;
	cl_int err;
	cl_mem mem;

	opencv_open();
	client_dmabuf_create(&matrix, SIZE);
	opencv_fill(&matrix, 20);
	mem = opencv_umat(matrix.fd);
	opencv_acquire(mem);
	map = clEnqueueMapBuffer(client.queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, SIZE, 0,
				 NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(map[SIZE - 1], 20);
	memset(map, 30, SIZE);
	EXPECT_EQ(clEnqueueUnmapMemObject(client.queue, mem, map, 0, NULL, NULL), CL_SUCCESS);
	client_increment(mem, SIZE);
	EXPECT_EQ(clEnqueueReadBuffer(client.queue, mem, CL_TRUE, 0, SIZE, bytes, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(bytes[SIZE - 1], 31);
	opencv_release(mem);
	opencv_expect(&matrix, 31);
	clReleaseMemObject(mem);
	client_dmabuf_destroy(&matrix);
	client_close();
}

TEST(opencv_dmabuf_refused,
     "A descriptor of -1, and an acquire or a release of an ordinary buffer, are errors.")
{
	struct dmabuf matrix;
	cl_int err = CL_SUCCESS;
	cl_mem ordinary;

	opencv_open();
	client_dmabuf_create(&matrix, SIZE);
	EXPECT(!opencv_create(-1, &err));
	EXPECT_EQ(err, CL_INVALID_PROPERTY);
	ordinary = clCreateBuffer(client.context, CL_MEM_READ_WRITE, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	/* rusticl (Mesa 26.2) has functions of its own, and says CL_INVALID_OPERATION instead of CL_INVALID_MEM_OBJECT. */
	EXPECT(acquire(client.queue, 1, &ordinary, 0, NULL, NULL) != CL_SUCCESS);
	EXPECT(release(client.queue, 1, &ordinary, 0, NULL, NULL) != CL_SUCCESS);
	EXPECT_EQ(clFinish(client.queue), CL_SUCCESS);
	clReleaseMemObject(ordinary);
	client_dmabuf_destroy(&matrix);
	client_close();
}
