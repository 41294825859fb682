/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A camera's frames on the screen, through an OpenCL kernel, without a copy.  The V4L2 driver writes
 * frames into dma-bufs, the kernel writes the pictures into the screen's dma-bufs, and both are
 * imported once:
 *
 *	camera (V4L2) -> dma-buf -> kernel -> dma-buf -> screen (DRM)
 *
 *	climport run -- ./viewer [FRAMES [WIDTH HEIGHT]]
 *
 * The program needs a console without a desktop.
 *
 * The first picture and every tenth are compared with the CPU's own conversion, byte for byte, in the
 * buffer that the screen shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/videodev2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "camera.h"
#include "display.h"
#include "picture.h"
#include "session.h"

enum { FRAMES = 4, CHECK_EVERY = 10, TIMEOUT_MS = 60000 };

/* Two pixels of YUYV have a brightness each and one colour.  XRGB8888 is blue, green, red, 255. */
static const char source[] =
	"kernel void show(global const uchar *frame, uint pitch, global uchar4 *screen,\n"
	"		 uint screen_pitch)\n"
	"{\n"
	"	const uint x = get_global_id(0), y = get_global_id(1);\n"
	"	const uchar4 pair = vload4(0, frame + y * pitch + x / 2 * 4);\n"
	"	const int luma = 298 * ((x & 1 ? pair.s2 : pair.s0) - 16) + 128;\n"
	"	const int u = pair.s1 - 128, v = pair.s3 - 128;\n"
	"	const int4 colour = (int4)(luma + 516 * u, luma - 100 * u - 208 * v,\n"
	"				   luma + 409 * v, 255 << 8);\n"
	"	screen[y * screen_pitch + x] = convert_uchar4_sat(colour >> 8);\n"
	"}\n";

struct viewer {
	struct session cl;
	cl_kernel kernel;
	struct camera camera;
	struct display display;
	unsigned int width, height; /* of the part that the camera fills */
	int frame_fd[FRAMES];
	cl_mem frame[FRAMES], screen[DISPLAY_BUFFERS]; /* imports */
	unsigned int checked;
};

static void viewer_need_camera(struct viewer *v, int error)
{
	if (error)
		session_fail("%s", v->camera.message);
}

static void viewer_need_display(struct viewer *v, int error)
{
	if (error < 0)
		session_fail("%s", v->display.message);
}

static void viewer_open_camera(struct viewer *v, unsigned int width, unsigned int height)
{
	viewer_need_camera(v, camera_open(&v->camera, NULL));
	viewer_need_camera(v, camera_set_format(&v->camera, width, height, V4L2_PIX_FMT_YUYV));
	viewer_need_camera(v, camera_export(&v->camera, FRAMES, O_RDWR, v->frame_fd));
	for (int i = 0; i < FRAMES; i++)
		v->frame[i] = session_import_dmabuf(&v->cl, CL_MEM_READ_ONLY, v->frame_fd[i],
						    v->camera.frame_size);
}

static void viewer_open_display(struct viewer *v)
{
	viewer_need_display(v, display_open(&v->display, NULL));
	for (int i = 0; i < DISPLAY_BUFFERS; i++)
		v->screen[i] = session_import_dmabuf(&v->cl, CL_MEM_WRITE_ONLY,
						     v->display.dmabuf[i], v->display.size);
	v->width = v->camera.width < v->display.width ? v->camera.width : v->display.width;
	v->height = v->camera.height < v->display.height ? v->camera.height : v->display.height;
}

/* When clFinish() returns, the frame has been read and the picture has been written. */
static void viewer_draw(struct viewer *v, cl_mem frame, cl_mem screen)
{
	const size_t global[2] = { v->width, v->height };
	const cl_uint pitch = v->camera.pitch, screen_pitch = v->display.pitch / 4;

	session_check(clSetKernelArg(v->kernel, 0, sizeof(cl_mem), &frame), "clSetKernelArg");
	session_check(clSetKernelArg(v->kernel, 1, sizeof(pitch), &pitch), "clSetKernelArg");
	session_check(clSetKernelArg(v->kernel, 2, sizeof(cl_mem), &screen), "clSetKernelArg");
	session_check(clSetKernelArg(v->kernel, 3, sizeof(screen_pitch), &screen_pitch),
		      "clSetKernelArg");
	session_check(clEnqueueNDRangeKernel(v->cl.queue, v->kernel, 2, NULL, global, NULL, 0, NULL,
					     NULL),
		      "clEnqueueNDRangeKernel");
	session_check(clFinish(v->cl.queue), "clFinish");
}

/* A copy of a dma-buf's bytes for the CPU. */
static unsigned char *viewer_read(int fd, size_t size)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ };
	unsigned char *copy = malloc(size);
	void *view = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (!copy || view == MAP_FAILED)
		session_fail("mmap of a dma-buf: %s", strerror(errno));
	while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) && (errno == EINTR || errno == EAGAIN))
		;
	memcpy(copy, view, size);
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ;
	while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) && (errno == EINTR || errno == EAGAIN))
		;
	munmap(view, size);
	return copy;
}

static int viewer_is_equal(const unsigned char *xrgb, const unsigned char *rgba)
{
	return xrgb[0] == rgba[2] && xrgb[1] == rgba[1] && xrgb[2] == rgba[0];
}

/* The screen's buffer comes from the card, and not from what the program believes to show. */
static void viewer_check(struct viewer *v, int frame_fd)
{
	int fd = display_get_shown(&v->display);
	unsigned char *shown, *frame, *want;

	viewer_need_display(v, fd);
	shown = viewer_read(fd, v->display.size);
	close(fd);
	frame = viewer_read(frame_fd, v->camera.frame_size);
	want = malloc(4 * (size_t)v->camera.width * v->camera.height);
	if (!want)
		session_fail("no memory");
	picture_from_yuyv(want, frame, v->camera.pitch, v->camera.width, v->camera.height);
	for (size_t y = 0; y < v->height; y++)
		for (size_t x = 0; x < v->width; x++)
			if (!viewer_is_equal(shown + y * v->display.pitch + 4 * x,
					     want + 4 * (y * v->camera.width + x)))
				session_fail(
					"the screen's pixel %zu, %zu is another than the CPU's", x,
					y);
	free(shown);
	free(frame);
	free(want);
	v->checked++;
}

static void viewer_run(struct viewer *v, unsigned int frames)
{
	viewer_need_camera(v, camera_start(&v->camera));
	for (unsigned int i = 0; i < frames; i++) {
		unsigned int index, screen = i % DISPLAY_BUFFERS;

		viewer_need_camera(v, camera_dequeue(&v->camera, TIMEOUT_MS, &index, NULL));
		viewer_draw(v, v->frame[index], v->screen[screen]);
		viewer_need_display(v, display_show(&v->display, screen));
		if (i % CHECK_EVERY == 0)
			viewer_check(v, v->frame_fd[index]);
		viewer_need_camera(v, camera_queue(&v->camera, index));
	}
	viewer_need_camera(v, camera_stop(&v->camera));
}

static void viewer_close(struct viewer *v)
{
	for (int i = 0; i < FRAMES; i++) {
		session_release(v->frame[i]);
		close(v->frame_fd[i]);
	}
	for (int i = 0; i < DISPLAY_BUFFERS; i++)
		session_release(v->screen[i]);
	clReleaseKernel(v->kernel);
	session_close(&v->cl);
	camera_close(&v->camera);
	display_close(&v->display);
}

static unsigned int viewer_number(int argc, char **argv, int index, unsigned int preset)
{
	unsigned int number = index < argc ? (unsigned int)strtoul(argv[index], NULL, 10) : preset;

	if (!number)
		session_fail("usage: viewer [FRAMES [WIDTH HEIGHT]], not \"%s\"", argv[index]);
	return number;
}

int main(int argc, char **argv)
{
	const unsigned int frames = viewer_number(argc, argv, 1, 300);
	struct viewer v = { .checked = 0 };

	session_program = "viewer";
	session_open(&v.cl, NULL);
	session_print(&v.cl);
	v.kernel = session_kernel(&v.cl, source, "show");
	viewer_open_camera(&v, viewer_number(argc, argv, 2, 640),
			   viewer_number(argc, argv, 3, 480));
	viewer_open_display(&v);
	printf("camera: %u x %u, screen: %u x %u\n", v.camera.width, v.camera.height,
	       v.display.width, v.display.height);
	viewer_run(&v, frames);
	viewer_close(&v);
	printf("viewer: ok, %u frames shown, %u compared with the CPU's own conversion\n", frames,
	       v.checked);
	return 0;
}
