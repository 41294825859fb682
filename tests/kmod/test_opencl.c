/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: GPU memory in a real PCI BAR and the process's own memory are exported by
 * libclimport, imported with clImportMemoryARM, and accessed by kernels and by the V4L2 test
 * driver.
 */
#include "camera.h"
#include "gdm.h"
#include "guest_cl.h"
#include "harness.h"
#include "mockgpu.h"
#include "view.h"

#include <CL/climport.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 4 * GPU_PAGE, WIDTH = 320, HEIGHT = 180, FRAMES = 4, TIMEOUT_MS = 10000 };

static void need_module(void)
{
	close(gdm_open());
}

static struct climport_dmabuf opencl_export(const void *address, size_t size, unsigned int flags)
{
	struct climport_dmabuf d;

	EXPECT_EQ(climport_export_dmabuf(address, size, flags, &d, sizeof(d)), 0);
	EXPECT_EQ(d.size, size);
	return d;
}

static const void *device_pointer(uint64_t va)
{
	return (const void *)(uintptr_t)va;
}

/* Run on the host, this test compiles the kernels for the guest. */
TEST(kernels, "The kernels of the tests compile.")
{
	unsigned char *zero = bytes_zero(LENGTH);
	cl_mem a = guest_cl_native(LENGTH, zero), b = guest_cl_native(LENGTH, NULL);

	guest_cl_transform(a, b, LENGTH);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void gpu_through_kernel(uint32_t flags)
{
	unsigned char *want = bytes_random(LENGTH), *got = bytes_zero(LENGTH);
	int gpu = mockgpu_open();
	uint64_t from = mockgpu_alloc(gpu, LENGTH, flags), to = mockgpu_alloc(gpu, LENGTH, flags);
	struct climport_dmabuf a, b;
	cl_mem in, out;

	need_module();
	mockgpu_write(gpu, from, want, LENGTH);
	mockgpu_write(gpu, to, got, LENGTH);
	a = opencl_export(device_pointer(from), LENGTH, 0);
	b = opencl_export(device_pointer(to), LENGTH, 0);
	in = guest_cl_import(a.fd, LENGTH, CL_MEM_READ_ONLY);
	out = guest_cl_import(b.fd, LENGTH, CL_MEM_WRITE_ONLY);
	guest_cl_transform(in, out, LENGTH);
	mockgpu_read(gpu, to, got, LENGTH);
	EXPECT_EQ(bytes_not_transformed(want, got, LENGTH), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	close(a.fd);
	close(b.fd);
	close(gpu);
}

TEST(opencl_gpu, "A kernel reads and writes GPU memory in a PCI BAR.")
{
	gpu_through_kernel(0);
}

TEST(opencl_gpu_scattered, "A kernel reads and writes GPU memory that is scattered in the BAR.")
{
	gpu_through_kernel(MOCK_SCATTER);
}

TEST(opencl_malloc, "A kernel reads and writes the memory of a malloc() through a dma-buf.")
{
	unsigned char *want = bytes_random(LENGTH), *memory = NULL;
	struct climport_dmabuf d;
	cl_mem in, mem;

	need_module();
	EXPECT_EQ(posix_memalign((void **)&memory, PAGE, LENGTH), 0);
	memset(memory, 0, LENGTH);
	d = opencl_export(memory, LENGTH, 0);
	EXPECT_EQ(d.offset, 0);
	mem = guest_cl_import(d.fd, LENGTH, CL_MEM_READ_WRITE);
	in = guest_cl_native(LENGTH, want);
	guest_cl_transform(in, mem, LENGTH);
	EXPECT_EQ(bytes_not_transformed(want, memory, LENGTH), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(mem);
	close(d.fd);
	free(memory);
	free(want);
}

/* The receiving process: imports the descriptor and reads the memory by a kernel. */
static void receive_and_run(int socket, const unsigned char *want)
{
	unsigned char *got = bytes_zero(LENGTH);
	int fd = receive_fd(socket);
	cl_mem in = guest_cl_import(fd, LENGTH, CL_MEM_READ_ONLY),
	       out = guest_cl_native(LENGTH, NULL);

	guest_cl_transform(in, out, LENGTH);
	guest_cl_native_read(out, got, LENGTH);
	_exit(bytes_not_transformed(want, got, LENGTH) ? 1 : 0);
}

/*
 * The fork comes before the first use of OpenCL in the test: OpenCL's threads do not survive
 * fork().
 */
static void opencl_pass_descriptor(const void *(*fill)(const unsigned char *want))
{
	unsigned char *want = bytes_random(LENGTH);
	struct climport_dmabuf d;
	int sockets[2], status;
	pid_t child;

	need_module();
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	fflush(NULL);
	child = fork();
	if (!child) {
		char self[32], number[16];

		/* A new program, because an earlier test may have used OpenCL. */
		snprintf(number, sizeof(number), "%d", sockets[1]);
		setenv("GDM_SOCKET", number, 1);
		snprintf(self, sizeof(self), "/proc/self/exe");
		execl(self, "receiver", NULL);
		_exit(99);
	}
	EXPECT_EQ(write(sockets[0], want, LENGTH), LENGTH);
	d = opencl_export(fill(want), LENGTH, 0);
	send_fd(sockets[0], d.fd);
	close(d.fd);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	close(sockets[0]);
	close(sockets[1]);
	free(want);
}

__attribute__((constructor)) static void opencl_receive_descriptor(void)
{
	const char *number = getenv("GDM_SOCKET");
	static unsigned char want[LENGTH];
	size_t have = 0;

	if (!number)
		return;
	while (have < LENGTH) {
		ssize_t n = read(atoi(number), want + have, LENGTH - have);

		if (n <= 0)
			_exit(98);
		have += (size_t)n;
	}
	receive_and_run(atoi(number), want);
}

static int cuda = -1;

static const void *fill_gpu(const unsigned char *want)
{
	uint64_t va;

	cuda = mockgpu_open();
	va = mockgpu_alloc(cuda, LENGTH, 0);
	mockgpu_write(cuda, va, want, LENGTH);
	return device_pointer(va);
}

static const void *fill_host(const unsigned char *want)
{
	return memcpy(pages_new(LENGTH, 0), want, LENGTH);
}

TEST(opencl_passed_gpu, "A kernel in another process reads GPU memory received by SCM_RIGHTS.")
{
	opencl_pass_descriptor(fill_gpu);
	close(cuda);
}

TEST(opencl_passed_host,
     "A kernel in another process reads this process's memory received by SCM_RIGHTS.")
{
	opencl_pass_descriptor(fill_host);
}

/* ---- a camera captures into GPU memory ---- */

static void camera_ok(struct camera *cam, int error)
{
	if (error)
		printf("# %s\n", cam->message);
	EXPECT_EQ(error, 0);
}

static void check_frame(int gpu, uint64_t va, cl_mem in, size_t size)
{
	unsigned char *frame = bytes_zero(size), *got = bytes_zero(size);
	cl_mem out = guest_cl_native(size, NULL);
	size_t changed = 0;

	guest_cl_transform(in, out, size);
	guest_cl_native_read(out, got, size);
	mockgpu_read(gpu, va, frame, size);
	EXPECT_EQ(bytes_not_transformed(frame, got, size), 0);
	for (size_t i = 0; i < size; i++)
		changed += frame[i] != 0xa5;
	EXPECT(changed > size / 2);
	clReleaseMemObject(out);
	free(frame);
	free(got);
}

/* A camera, and two buffers of GPU memory for its frames. */
struct gpu_capture {
	struct camera cam;
	int gpu, fds[2];
	uint64_t va[2];
};

static struct gpu_capture gpu_capture_begin(const char *path)
{
	struct gpu_capture c = { .gpu = mockgpu_open() };

	need_module();
	if (camera_open(&c.cam, path))
		test_skip("%s", c.cam.message);
	camera_ok(&c.cam, camera_set_format(&c.cam, WIDTH, HEIGHT, V4L2_PIX_FMT_RGB32));
	for (int i = 0; i < 2; i++) {
		size_t size = (c.cam.buffer_size + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
		unsigned char *blank = bytes_zero(size);

		c.va[i] = mockgpu_alloc(c.gpu, size, 0);
		memset(blank, 0xa5, size);
		mockgpu_write(c.gpu, c.va[i], blank, size);
		free(blank);
		c.fds[i] = opencl_export(device_pointer(c.va[i]), size, 0).fd;
	}
	camera_ok(&c.cam, camera_import(&c.cam, 2, c.fds));
	return c;
}

static void gpu_capture_end(struct gpu_capture *c)
{
	camera_close(&c->cam);
	close(c->fds[0]);
	close(c->fds[1]);
	close(c->gpu);
}

TEST(vivid_into_gpu,
     "A camera writes frames straight into the PCI BAR, and a kernel reads the frames.")
{
	struct gpu_capture c = gpu_capture_begin("/dev/video0");
	cl_mem mem[2];

	for (int i = 0; i < 2; i++)
		mem[i] = guest_cl_import(c.fds[i], c.cam.frame_size, CL_MEM_READ_ONLY);
	camera_ok(&c.cam, camera_start(&c.cam));
	for (int i = 0; i < FRAMES; i++) {
		unsigned int index;

		camera_ok(&c.cam, camera_dequeue(&c.cam, TIMEOUT_MS, &index, NULL));
		check_frame(c.gpu, c.va[index], mem[index], c.cam.frame_size);
		camera_ok(&c.cam, camera_queue(&c.cam, index));
	}
	camera_ok(&c.cam, camera_stop(&c.cam));
	clReleaseMemObject(mem[0]);
	clReleaseMemObject(mem[1]);
	gpu_capture_end(&c);
}

TEST(vivid_contiguous,
     "A camera whose device needs DMA addresses cannot capture into GPU memory: its driver is a "
     "static importer.")
{
	struct gpu_capture c = gpu_capture_begin("/dev/video1");

	EXPECT_EQ(camera_start(&c.cam), -EINVAL);
	gpu_capture_end(&c);
}

/* ---- libclimport ---- */

TEST(library_unaligned,
     "An export of a range inside pages gives whole pages, and the offset of the range.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct climport_dmabuf d;
	struct view view;

	need_module();
	d = opencl_export(p + 100, PAGE, 0);
	EXPECT_EQ(d.offset, 100);
	EXPECT_EQ(lseek(d.fd, 0, SEEK_END), 2 * PAGE);
	view = view_open(d.fd, 2 * PAGE, O_RDWR);
	EXPECT_EQ(memcmp(view.bytes + d.offset, p + 100, PAGE), 0);
	view_close(&view);
	close(d.fd);
}

TEST(library_unaligned_gpu,
     "An export of a range inside GPU pages gives whole GPU pages, and the offset of the range.")
{
	int gpu = mockgpu_open();
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);
	struct climport_dmabuf d;

	need_module();
	d = opencl_export(device_pointer(va + GPU_PAGE + 12), 100, 0);
	EXPECT_EQ(d.offset, 12);
	EXPECT_EQ(lseek(d.fd, 0, SEEK_END), GPU_PAGE);
	close(d.fd);
	close(gpu);
}

TEST(library_errors, "Bad ranges and flags fail with EINVAL or EFAULT, and leave *out unchanged.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct climport_dmabuf d = { .fd = -7 };

	need_module();
	EXPECT_EQ(climport_export_dmabuf(p, 0, 0, &d, sizeof(d)), -EINVAL);
	EXPECT_EQ(climport_export_dmabuf(p, SIZE_MAX, 0, &d, sizeof(d)), -EINVAL);
	EXPECT_EQ(climport_export_dmabuf((void *)(uintptr_t)-10, 10, 0, &d, sizeof(d)), -EINVAL);
	EXPECT_EQ(climport_export_dmabuf(p, PAGE, 1u << 31, &d, sizeof(d)), -EINVAL);
	EXPECT_EQ(climport_export_dmabuf(NULL, PAGE, 0, &d, sizeof(d)), -EFAULT);
	EXPECT_EQ(climport_export_dmabuf(device_pointer(0x7f4100000000), PAGE, 0, &d, sizeof(d)),
		  -EFAULT);
	EXPECT_EQ(d.fd, -7);
}

static void export_in_child(void *arg)
{
	struct climport_dmabuf d;

	/* The child exports a copy of the range, with a context of the child. */
	if (climport_export_dmabuf(arg, PAGE, 0, &d, sizeof(d)))
		_exit(1);
}

TEST(library_fork, "A child can export its own memory.")
{
	unsigned char *p = pages_new(LENGTH, 1);

	need_module();
	close(opencl_export(p, PAGE, 0).fd);
	EXPECT_EQ(in_child(export_in_child, p), 0);
}
