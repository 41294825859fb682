/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A camera's frames in an OpenCL kernel, without a copy.  The V4L2 driver writes the frames into
 * dma-bufs, which are imported once.  The kernel writes its result into imported memory of
 * malloc(), from which the PNG file is written.
 *
 * For comparison the frames also go through the kernel by copying, in turns.
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
#include "edge.h"
#include "picture.h"
#include "session.h"
#include "timing.h"

enum { BUFFERS = 4, CHECK_EVERY = 10, TIMEOUT_MS = 10000 };

struct way {
	double *frame;	  /* seconds for each frame */
	double *transfer; /* the part of @frame in copies */
};

struct demo {
	struct session cl;
	struct camera camera;
	cl_kernel kernel;
	unsigned int width, height, frames;
	size_t out_size;
	int fd[BUFFERS];
	void *view[BUFFERS];   /* the CPU's mapping of each dma-buf, for the copying way */
	cl_mem frame[BUFFERS]; /* imports */
	unsigned char *out;    /* the zero-copy result */
	cl_mem out_import;
	unsigned char *copied; /* the copying way's result */
	cl_mem native_in, native_out;
	unsigned char *reference;
	struct way zero_copy, copying;
};

static void demo_require(struct demo *d, int error)
{
	if (error)
		session_fail("%s", d->camera.message);
}

static void *demo_allocate(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	if (!p)
		session_fail("no memory for %zu bytes", size);
	memset(p, 0, size);
	return p;
}

static void open_camera(struct demo *d)
{
	demo_require(d, camera_open(&d->camera, NULL));
	demo_require(d, camera_set_format(&d->camera, d->width, d->height, V4L2_PIX_FMT_YUYV));
	d->width = d->camera.width;
	d->height = d->camera.height;
	d->out_size = 4 * (size_t)d->width * d->height;
	demo_require(d, camera_export(&d->camera, BUFFERS, O_RDWR, d->fd));
	printf("camera: %u x %u, %u frames into %d dma-bufs of %zu bytes\n", d->width, d->height,
	       d->frames, BUFFERS, d->camera.buffer_size);
}

static void import_all(struct demo *d)
{
	for (int i = 0; i < BUFFERS; i++) {
		d->frame[i] = session_import_dmabuf(&d->cl, CL_MEM_READ_ONLY, d->fd[i],
						    d->camera.frame_size);
		d->view[i] = mmap(NULL, d->camera.frame_size, PROT_READ, MAP_SHARED, d->fd[i], 0);
		if (d->view[i] == MAP_FAILED)
			session_fail("mmap of a camera's dma-buf: %s", strerror(errno));
	}
	d->out = demo_allocate(d->out_size);
	d->out_import = session_import_host(&d->cl, CL_MEM_READ_WRITE, d->out, d->out_size);
	d->copied = demo_allocate(d->out_size);
	d->reference = demo_allocate(d->out_size);
	d->native_in = session_buffer(&d->cl, CL_MEM_READ_ONLY, d->camera.frame_size, NULL);
	d->native_out = session_buffer(&d->cl, CL_MEM_READ_WRITE, d->out_size, NULL);
}

static void demo_filter(struct demo *d, cl_mem in, cl_mem out)
{
	const size_t global[2] = { d->width, d->height };
	const cl_uint pitch = d->camera.pitch;
	size_t local[2];

	edge_local_size(d->width, local);
	session_check(clSetKernelArg(d->kernel, 0, sizeof(in), &in), "clSetKernelArg");
	session_check(clSetKernelArg(d->kernel, 1, sizeof(pitch), &pitch), "clSetKernelArg");
	session_check(clSetKernelArg(d->kernel, 2, sizeof(out), &out), "clSetKernelArg");
	session_check(clEnqueueNDRangeKernel(d->cl.queue, d->kernel, 2, NULL, global, local, 0,
					     NULL, NULL),
		      "clEnqueueNDRangeKernel");
	session_check(clFinish(d->cl.queue), "clFinish");
}

static void demo_sync(int fd, __u64 flags)
{
	struct dma_buf_sync sync = { .flags = flags | DMA_BUF_SYNC_READ };

	while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync))
		if (errno != EINTR && errno != EAGAIN)
			session_fail("DMA_BUF_IOCTL_SYNC: %s", strerror(errno));
}

static double run_zero_copy(struct demo *d, unsigned int buffer)
{
	demo_filter(d, d->frame[buffer], d->out_import);
	return 0;
}

/* A copy in, straight from the camera's mapping, and a copy out. */
static double run_copying(struct demo *d, unsigned int buffer)
{
	double start = timing_now(), in, out;

	demo_sync(d->fd[buffer], DMA_BUF_SYNC_START);
	session_check(clEnqueueWriteBuffer(d->cl.queue, d->native_in, CL_TRUE, 0,
					   d->camera.frame_size, d->view[buffer], 0, NULL, NULL),
		      "clEnqueueWriteBuffer");
	demo_sync(d->fd[buffer], DMA_BUF_SYNC_END);
	in = timing_now() - start;
	demo_filter(d, d->native_in, d->native_out);
	start = timing_now();
	session_check(clEnqueueReadBuffer(d->cl.queue, d->native_out, CL_TRUE, 0, d->out_size,
					  d->copied, 0, NULL, NULL),
		      "clEnqueueReadBuffer");
	out = timing_now() - start;
	return in + out;
}

static void time_way(struct demo *d, struct way *way, double (*run)(struct demo *, unsigned int),
		     unsigned int frame, unsigned int buffer)
{
	double start = timing_now();

	way->transfer[frame] = run(d, buffer);
	way->frame[frame] = timing_now() - start;
}

static void expect_equal(const struct demo *d, const unsigned char *got, const char *way)
{
	for (size_t i = 0; i < d->out_size; i++)
		if (got[i] != d->reference[i])
			session_fail("%s: byte %zu is %d, the CPU's own filter says %d", way, i,
				     got[i], d->reference[i]);
}

static void demo_check(struct demo *d, unsigned int buffer)
{
	demo_sync(d->fd[buffer], DMA_BUF_SYNC_START);
	edge_reference(d->reference, d->view[buffer], d->camera.pitch, d->width, d->height);
	demo_sync(d->fd[buffer], DMA_BUF_SYNC_END);
	expect_equal(d, d->out, "zero copy");
	expect_equal(d, d->copied, "copying");
}

static void write_pictures(struct demo *d, unsigned int buffer)
{
	int error;

	picture_from_yuyv(d->reference, d->view[buffer], d->camera.pitch, d->width, d->height);
	error = picture_write("demo-in.png", d->reference, d->width, d->height);
	if (!error)
		error = picture_write("demo-out.png", d->out, d->width, d->height);
	if (error)
		session_fail("the pictures cannot be written: %s", strerror(-error));
}

static void demo_process(struct demo *d, unsigned int frame, unsigned int buffer)
{
	if (frame & 1) { /* in turns, as the second finds the frame in the CPU's caches */
		time_way(d, &d->copying, run_copying, frame, buffer);
		time_way(d, &d->zero_copy, run_zero_copy, frame, buffer);
	} else {
		time_way(d, &d->zero_copy, run_zero_copy, frame, buffer);
		time_way(d, &d->copying, run_copying, frame, buffer);
	}
	if (frame % CHECK_EVERY == 0 || frame + 1 == d->frames)
		demo_check(d, buffer);
	if (frame + 1 == d->frames)
		write_pictures(d, buffer);
}

static void demo_capture(struct demo *d)
{
	unsigned int buffer;

	demo_require(d, camera_start(&d->camera));
	for (unsigned int frame = 0; frame < d->frames; frame++) {
		demo_require(d, camera_dequeue(&d->camera, TIMEOUT_MS, &buffer, NULL));
		demo_process(d, frame, buffer);
		demo_require(d, camera_queue(&d->camera, buffer));
		if ((frame + 1) % 10 == 0 || frame + 1 == d->frames)
			printf("frame %u of %u\n", frame + 1, d->frames);
	}
	demo_require(d, camera_stop(&d->camera));
}

static void close_all(struct demo *d)
{
	for (int i = 0; i < BUFFERS; i++) {
		session_release(d->frame[i]);
		munmap(d->view[i], d->camera.frame_size);
		close(d->fd[i]);
	}
	session_release(d->out_import);
	session_release(d->native_in);
	session_release(d->native_out);
	clReleaseKernel(d->kernel);
	camera_close(&d->camera);
	session_close(&d->cl);
	free(d->out);
	free(d->copied);
	free(d->reference);
}

static void print_result(struct demo *d)
{
	double zero_copy = timing_median(d->zero_copy.frame, d->frames);
	double copying = timing_median(d->copying.frame, d->frames);
	double transfer = timing_median(d->copying.transfer, d->frames);

	printf("every %dth frame equals the CPU's own filter, byte for byte, both ways\n",
	       CHECK_EVERY);
	printf("zero copy:  %8.1f frames/s  %7.3f ms a frame\n", 1 / zero_copy, zero_copy * 1e3);
	printf("copying:    %8.1f frames/s  %7.3f ms a frame, of which %.3f ms are copies\n",
	       1 / copying, copying * 1e3, transfer * 1e3);
	printf("pictures: demo-in.png, demo-out.png\n");
	printf("demo: ok, %u frames, zero copy %.2f times as fast as copying\n", d->frames,
	       copying / zero_copy);
}

static void demo_parse(struct demo *d, int argc, char **argv)
{
	d->width = 640;
	d->height = 360;
	d->frames = 60;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && !strcmp(argv[i], "--size") &&
		    sscanf(argv[i + 1], "%ux%u", &d->width, &d->height) == 2)
			continue;
		if (i + 1 < argc && !strcmp(argv[i], "--frames") &&
		    sscanf(argv[i + 1], "%u", &d->frames) == 1 && d->frames)
			continue;
		session_fail("usage: demo [--size WIDTHxHEIGHT] [--frames N], not \"%s\"", argv[i]);
	}
}

int main(int argc, char **argv)
{
	struct demo d = { .frames = 0 };
	double *times;

	session_program = "demo";
	setvbuf(stdout, NULL, _IOLBF, 0);
	demo_parse(&d, argc, argv);
	times = calloc(4 * (size_t)d.frames, sizeof(*times));
	if (!times)
		session_fail("no memory for %u frames", d.frames);
	d.zero_copy = (struct way){ times, times + d.frames };
	d.copying = (struct way){ times + 2L * d.frames, times + 3L * d.frames };
	session_open(&d.cl, NULL);
	session_print(&d.cl);
	d.kernel = session_kernel(&d.cl, edge_source, "edge");
	open_camera(&d);
	import_all(&d);
	demo_filter(&d, d.frame[0], d.out_import); /* warms up both, compiles */
	run_copying(&d, 0);
	demo_capture(&d);
	print_result(&d);
	close_all(&d);
	free(times);
	return 0;
}
