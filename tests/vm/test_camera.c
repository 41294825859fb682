/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels read frames of the V4L2 test driver (vivid) without a copy.  The frames are in buffers of
 * the driver, exported with VIDIOC_EXPBUF, or in dma-bufs of other producers, imported by the
 * driver.
 */
#include "camera.h"
#include "guest_cl.h"
#include "harness.h"
#include "producer.h"
#include "view.h"

#include <fcntl.h>
#include <CL/cl_ext.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "external-memory.h" /* of docs/external-memory.md */

enum {
	WIDTH = 320,
	HEIGHT = 180,
	BUFFERS = 3,
	FRAMES = 6,
	TIMEOUT_MS = 10000,
	UNTOUCHED = 0xa5,
};

/* A camera, the camera's buffers as dma-bufs, and an import of each dma-buf. */
struct capture {
	struct camera cam;
	int access;
	int is_external; /* the imports are acquired and released */
	int fd[BUFFERS];
	struct view view[BUFFERS];
	cl_mem mem[BUFFERS];
};

static void capture_expect_success(struct capture *c, int error)
{
	if (error)
		printf("# %s\n", c->cam.message);
	EXPECT_EQ(error, 0);
}

static void capture_open_camera(struct capture *c, const char *path)
{
	*c = (struct capture){ .access = O_RDWR };
	if (camera_open(&c->cam, path))
		test_skip("%s", c->cam.message);
	capture_expect_success(c, camera_set_format(&c->cam, WIDTH, HEIGHT, V4L2_PIX_FMT_RGB32));
	EXPECT_EQ(c->cam.width, WIDTH);
	EXPECT_EQ(c->cam.height, HEIGHT);
}

static void capture_import_buffers(struct capture *c)
{
	for (int i = 0; i < BUFFERS; i++) {
		c->view[i] = view_open(c->fd[i], c->cam.buffer_size, c->access);
		c->mem[i] = (c->is_external ? guest_cl_external : guest_cl_import)(
			c->fd[i], c->cam.frame_size, CL_MEM_READ_WRITE);
	}
}

static void capture_open_exported(struct capture *c, const char *path, int access)
{
	capture_open_camera(c, path);
	c->access = access;
	capture_expect_success(c, camera_export(&c->cam, BUFFERS, access, c->fd));
	capture_import_buffers(c);
}

static void capture_open_imported(struct capture *c, const char *path, const char *name, int access)
{
	const struct producer *p = producer_find(name);
	char why[160];

	if (producer_check(p, access, why, sizeof(why)))
		test_skip("%s", why);
	capture_open_camera(c, path);
	c->access = access;
	for (int i = 0; i < BUFFERS; i++) {
		c->fd[i] = producer_create(p, c->cam.buffer_size, access);
		EXPECT(c->fd[i] >= 0);
	}
	capture_expect_success(c, camera_import(&c->cam, BUFFERS, c->fd));
	capture_import_buffers(c);
}

static void capture_close(struct capture *c)
{
	for (int i = 0; i < BUFFERS; i++) {
		EXPECT_EQ(clReleaseMemObject(c->mem[i]), CL_SUCCESS);
		view_close(&c->view[i]);
		close(c->fd[i]);
	}
	camera_close(&c->cam);
}

/* Overwrites a buffer: an old frame in the buffer would pass for a new frame. */
static void capture_blank(struct capture *c, unsigned int index)
{
	unsigned char *bytes;

	if (c->access != O_RDWR)
		return;
	bytes = bytes_zero(c->cam.frame_size);
	memset(bytes, UNTOUCHED, c->cam.frame_size);
	view_write(&c->view[index], bytes, c->cam.frame_size);
	free(bytes);
}

static void capture_expect_frame(const unsigned char *bytes, size_t size)
{
	size_t changed = 0, other = 0;

	for (size_t i = 0; i < size; i++) {
		changed += bytes[i] != UNTOUCHED;
		other += bytes[i] != bytes[0];
	}
	EXPECT(changed > size / 2);
	EXPECT(other > size / 8);
}

/* A kernel reads the import, or an image on the import. */
static void capture_copy_by_kernel(struct capture *c, unsigned int index, cl_mem out, int as_image)
{
	cl_mem image;

	if (!as_image) {
		guest_cl_transform(c->mem[index], out, c->cam.frame_size);
		return;
	}
	image = guest_cl_image(c->mem[index], CL_MEM_READ_ONLY, WIDTH, HEIGHT, c->cam.pitch);
	guest_cl_transform_from_image(image, out, WIDTH, HEIGHT);
	EXPECT_EQ(clReleaseMemObject(image), CL_SUCCESS);
}

static void capture_check_frame(struct capture *c, unsigned int index, int as_image)
{
	size_t size = c->cam.frame_size;
	unsigned char *cpu = bytes_zero(size), *gpu = bytes_zero(size);
	cl_mem out = guest_cl_native(size, NULL);

	if (c->is_external)
		guest_cl_acquire(c->mem[index]);
	capture_copy_by_kernel(c, index, out, as_image);
	if (c->is_external)
		guest_cl_release(c->mem[index]);
	guest_cl_native_read(out, gpu, size);
	view_read(&c->view[index], cpu, size);
	capture_expect_frame(cpu, size);
	EXPECT_EQ(bytes_not_transformed(cpu, gpu, size), 0);
	EXPECT_EQ(clReleaseMemObject(out), CL_SUCCESS);
	free(cpu);
	free(gpu);
}

static void capture_check_frames(struct capture *c, int as_image)
{
	unsigned int index;

	for (unsigned int i = 0; i < BUFFERS; i++)
		capture_blank(c, i);
	capture_expect_success(c, camera_start(&c->cam));
	for (int i = 0; i < FRAMES; i++) {
		capture_expect_success(c, camera_dequeue(&c->cam, TIMEOUT_MS, &index, NULL));
		capture_check_frame(c, index, as_image);
		capture_blank(c, index);
		capture_expect_success(c, camera_queue(&c->cam, index));
	}
	capture_expect_success(c, camera_stop(&c->cam));
}

static void capture_run_exported(const char *path, int access)
{
	struct capture c;

	capture_open_exported(&c, path, access);
	capture_check_frames(&c, 0);
	capture_close(&c);
}

static void capture_run_imported(const char *name, int access)
{
	struct capture c;

	capture_open_imported(&c, "/dev/video0", name, access);
	capture_check_frames(&c, 0);
	capture_close(&c);
}

TEST(vivid_exported, "A kernel reads the frames in exported buffers of virtual memory.")
{
	capture_run_exported("/dev/video0", O_RDWR);
}

TEST(vivid_exported_contiguous,
     "A kernel reads the frames in exported buffers of contiguous memory.")
{
	capture_run_exported("/dev/video1", O_RDWR);
}

TEST(vivid_exported_read_only,
     "A kernel reads the frames in buffers exported read-only, and the imports are "
     "CL_MEM_READ_ONLY.")
{
	struct capture c;

	capture_open_exported(&c, "/dev/video0", O_RDONLY);
	EXPECT_EQ(guest_cl_flags(c.mem[0]), CL_MEM_READ_ONLY);
	capture_check_frames(&c, 0);
	capture_close(&c);
}

TEST(vivid_exported_image, "A kernel reads the frames through images on the imports.")
{
	struct capture c;

	capture_open_exported(&c, "/dev/video0", O_RDWR);
	capture_check_frames(&c, 1);
	capture_close(&c);
}

static const struct capture_view {
	const char *name;
	int as_image;
} capture_views[] = { { "buffer", 0 }, { "image", 1 } };

TEST_EACH(vivid_external, struct capture_view, capture_views,
	  "A kernel reads the frames, each of which is acquired and released.")
{
	struct capture c;

	capture_open_camera(&c, "/dev/video0");
	c.is_external = 1;
	capture_expect_success(&c, camera_export(&c.cam, BUFFERS, O_RDWR, c.fd));
	capture_import_buffers(&c);
	capture_check_frames(&c, row->as_image);
	capture_close(&c);
}

/* Copies each frame to @out, by the functions of the document. */
static void capture_run_recipe(struct capture *c, cl_kernel kernel, cl_mem out)
{
	const size_t size = c->cam.frame_size;
	unsigned char *cpu = bytes_zero(size), *gpu = bytes_zero(size);
	unsigned int index;

	capture_expect_success(c, camera_start(&c->cam));
	for (int i = 0; i < FRAMES; i++) {
		capture_expect_success(c, camera_dequeue(&c->cam, TIMEOUT_MS, &index, NULL));
		EXPECT_EQ(frame_process(guest_cl_session()->queue, kernel, c->mem[index], size),
			  CL_SUCCESS);
		guest_cl_native_read(out, gpu, size);
		view_read(&c->view[index], cpu, size);
		capture_expect_frame(cpu, size);
		EXPECT_EQ(bytes_not_transformed(cpu, gpu, size), 0);
		capture_expect_success(c, camera_queue(&c->cam, index));
	}
	capture_expect_success(c, camera_stop(&c->cam));
	free(cpu);
	free(gpu);
}

TEST(vivid_documented, "The program of docs/external-memory.md reads the frames.")
{
	const struct guest_cl *cl = guest_cl_session();
	struct capture c;
	cl_kernel kernel;
	cl_mem out;

	acquire =
		(clEnqueueAcquireExternalMemObjectsKHR_fn)clGetExtensionFunctionAddressForPlatform(
			cl->platform, "clEnqueueAcquireExternalMemObjectsKHR");
	release =
		(clEnqueueReleaseExternalMemObjectsKHR_fn)clGetExtensionFunctionAddressForPlatform(
			cl->platform, "clEnqueueReleaseExternalMemObjectsKHR");
	EXPECT(acquire && release);
	capture_open_camera(&c, "/dev/video0");
	capture_expect_success(&c, camera_export(&c.cam, BUFFERS, O_RDWR, c.fd));
	for (unsigned int i = 0; i < BUFFERS; i++) {
		c.view[i] = view_open(c.fd[i], c.cam.buffer_size, O_RDWR);
		c.mem[i] = frame_import(cl->context, c.cam.fd, i, c.cam.frame_size);
		EXPECT(c.mem[i]);
		capture_blank(&c, i);
	}
	out = guest_cl_native(c.cam.frame_size, NULL);
	kernel = clCreateKernel(cl->program, "transform", NULL);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(out), &out), CL_SUCCESS);
	capture_run_recipe(&c, kernel, out);
	clReleaseKernel(kernel);
	clReleaseMemObject(out);
	capture_close(&c);
}

static void capture_write_by_kernel(const char *path)
{
	struct capture c;
	unsigned char *want, *got;
	cl_mem in;

	capture_open_exported(&c, path, O_RDWR);
	want = bytes_random(c.cam.frame_size);
	got = bytes_zero(c.cam.frame_size);
	in = guest_cl_native(c.cam.frame_size, want);
	guest_cl_transform(in, c.mem[0], c.cam.frame_size);
	view_read(&c.view[0], got, c.cam.frame_size);
	EXPECT_EQ(bytes_not_transformed(want, got, c.cam.frame_size), 0);
	EXPECT_EQ(clReleaseMemObject(in), CL_SUCCESS);
	capture_close(&c);
	free(want);
	free(got);
}

TEST(vivid_exported_written, "The CPU reads the bytes that a kernel wrote to an exported buffer.")
{
	capture_write_by_kernel("/dev/video0");
}

TEST(vivid_exported_contiguous_written,
     "The CPU reads the bytes that a kernel wrote to an exported contiguous buffer.")
{
	capture_write_by_kernel("/dev/video1");
}

TEST(vivid_into_udmabuf, "A kernel reads the frames captured into udmabuf's dma-bufs.")
{
	capture_run_imported("udmabuf", O_RDWR);
}

TEST(vivid_into_heap, "A kernel reads the frames captured into dma-bufs of the system heap.")
{
	capture_run_imported("dma-heap", O_RDWR);
}

TEST(vivid_into_heap_read_only,
     "A kernel reads frames through a read-only descriptor of the system heap.")
{
	capture_run_imported("dma-heap", O_RDONLY);
}

TEST(vivid_into_gdmabuf, "A kernel reads the frames captured into the process's own pages.")
{
	capture_run_imported("gdmabuf", O_RDWR);
}

TEST(vivid_into_vgem, "A kernel reads the frames captured into vgem's dma-bufs.")
{
	capture_run_imported("vgem", O_RDWR);
}

TEST(vivid_into_vgem_read_only, "A kernel reads frames through a read-only descriptor of vgem.")
{
	capture_run_imported("vgem", O_RDONLY);
}

TEST(vivid_into_virtio_gpu, "A kernel reads the frames captured into virtio-gpu's dma-bufs.")
{
	capture_run_imported("virtio-gpu", O_RDWR);
}

TEST(vivid_leaves_nothing,
     "Capturing and importing leaves no descriptor, mapping or dma-buf behind.")
{
	struct held before, after;

	capture_run_exported("/dev/video0", O_RDWR);
	capture_run_imported("vgem", O_RDWR);
	before = held_settled();
	for (int i = 0; i < 3; i++) {
		capture_run_exported("/dev/video0", O_RDWR);
		capture_run_imported("vgem", O_RDWR);
	}
	after = held_since(&before);
	EXPECT_EQ(after.descriptors, before.descriptors);
	EXPECT_EQ(after.mappings, before.mappings);
	EXPECT_EQ(after.dmabufs, before.dmabufs);
}
