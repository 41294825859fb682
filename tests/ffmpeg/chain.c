/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain WIDTH HEIGHT FRAMES [NUMBER]: a camera's frames through FFmpeg's filters in OpenCL, twice.
 *
 * One chain maps the camera's dma-bufs (AVDRMFrameDescriptor and hwmap), the other chain uploads the
 * same bytes.  The results are equal, byte for byte.  Exit status: 0, or 1 with a sentence.
 */
#include <drm_fourcc.h>
#include <fcntl.h>
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_drm.h>
#include <libavutil/imgutils.h>
#include <linux/dma-buf.h>
#include <linux/videodev2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "camera.h"

enum { BUFFERS = 4, TIMEOUT_MS = 60000 };

#define FILTER "avgblur_opencl=3,hwdownload,format=yuv420p"

/* A graph with a source and a sink. */
struct chain {
	const char *name;
	AVFilterGraph *graph;
	AVFilterContext *source, *sink;
};

static struct camera camera;
static int descriptor[BUFFERS];
static void *view[BUFFERS];
static AVBufferRef *drm_device, *drm_frames, *opencl;
static struct chain mapped = { .name = "mapped" }, uploaded = { .name = "uploaded" };

static void chain_check(int err, const char *what)
{
	if (err >= 0)
		return;
	printf("chain: FAILED: %s: %s\n", what, av_err2str(err));
	exit(1);
}

static void chain_check_camera(int err)
{
	if (!err)
		return;
	printf("chain: FAILED: %s\n", camera.message);
	exit(1);
}

static void camera_prepare(unsigned int width, unsigned int height)
{
	chain_check_camera(camera_open(&camera, NULL));
	chain_check_camera(camera_set_format(&camera, width, height, V4L2_PIX_FMT_YUV420));
	if (camera.width != width || camera.height != height || camera.pitch != width)
		chain_check(AVERROR(EINVAL), "the camera's frames have another size, or gaps");
	chain_check_camera(camera_export(&camera, BUFFERS, O_RDWR, descriptor));
	for (int i = 0; i < BUFFERS; i++) {
		view[i] = mmap(NULL, camera.frame_size, PROT_READ, MAP_SHARED, descriptor[i], 0);
		if (view[i] == MAP_FAILED)
			chain_check(AVERROR(errno), "mmap of a frame");
	}
}

/* A device of DRM needs no file to hand over descriptors. */
static void drm_prepare(void)
{
	AVHWFramesContext *frames;

	drm_device = av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_DRM);
	((AVDRMDeviceContext *)((AVHWDeviceContext *)drm_device->data)->hwctx)->fd = -1;
	chain_check(av_hwdevice_ctx_init(drm_device), "the device of DRM");
	drm_frames = av_hwframe_ctx_alloc(drm_device);
	frames = (AVHWFramesContext *)drm_frames->data;
	frames->format = AV_PIX_FMT_DRM_PRIME;
	frames->sw_format = AV_PIX_FMT_YUV420P;
	frames->width = (int)camera.width;
	frames->height = (int)camera.height;
	chain_check(av_hwframe_ctx_init(drm_frames), "the frames of DRM");
}

static void chain_add_source(struct chain *c, enum AVPixelFormat format, AVBufferRef *frames)
{
	AVBufferSrcParameters *parameters = av_buffersrc_parameters_alloc();

	c->source = avfilter_graph_alloc_filter(c->graph, avfilter_get_by_name("buffer"), "in");
	parameters->format = format;
	parameters->width = (int)camera.width;
	parameters->height = (int)camera.height;
	parameters->time_base = (AVRational){ 1, 25 };
	parameters->hw_frames_ctx = frames;
	chain_check(av_buffersrc_parameters_set(c->source, parameters), "the source's format");
	chain_check(avfilter_init_str(c->source, NULL), "the source");
	av_free(parameters);
	chain_check(avfilter_graph_create_filter(&c->sink, avfilter_get_by_name("buffersink"),
						 "out", NULL, NULL, c->graph),
		    "the sink");
}

static AVFilterInOut *chain_end_of(AVFilterContext *filter, const char *name)
{
	AVFilterInOut *end = avfilter_inout_alloc();

	end->name = av_strdup(name);
	end->filter_ctx = filter;
	return end;
}

static void chain_open(struct chain *c, const char *filters, enum AVPixelFormat format,
		       AVBufferRef *frames)
{
	AVFilterInOut *from, *to;

	c->graph = avfilter_graph_alloc();
	chain_add_source(c, format, frames);
	from = chain_end_of(c->source, "in");
	to = chain_end_of(c->sink, "out");
	chain_check(avfilter_graph_parse_ptr(c->graph, filters, &to, &from, NULL), filters);
	avfilter_inout_free(&from);
	avfilter_inout_free(&to);
	for (unsigned int i = 0; opencl && i < c->graph->nb_filters; i++)
		c->graph->filters[i]->hw_device_ctx = av_buffer_ref(opencl);
	chain_check(avfilter_graph_config(c->graph, NULL), c->name);
}

/* The frame is handed over; the result is the caller's. */
static AVFrame *chain_run(struct chain *c, AVFrame *frame)
{
	AVFrame *result = av_frame_alloc();

	chain_check(av_buffersrc_add_frame(c->source, frame), c->name);
	av_frame_free(&frame);
	chain_check(av_buffersink_get_frame(c->sink, result), c->name);
	return result;
}

static AVFrame *frame_alloc(enum AVPixelFormat format, int number)
{
	AVFrame *frame = av_frame_alloc();

	frame->format = format;
	frame->width = (int)camera.width;
	frame->height = (int)camera.height;
	frame->pts = number;
	return frame;
}

static void frame_free_descriptor(void *opaque, uint8_t *data)
{
	(void)opaque;
	av_free(data);
}

/* What a program does for a buffer of a camera. */
static AVFrame *frame_of_buffer(unsigned int index, int number)
{
	AVFrame *frame = frame_alloc(AV_PIX_FMT_DRM_PRIME, number);
	AVDRMFrameDescriptor *drm = av_mallocz(sizeof(*drm));
	const ptrdiff_t luma = (ptrdiff_t)camera.width * camera.height, pitch = camera.width;

	*drm = (AVDRMFrameDescriptor){
		.nb_objects = 1,
		.objects = { { .fd = descriptor[index], .size = camera.frame_size } },
		.nb_layers = 1,
		.layers = { { .format = DRM_FORMAT_YUV420,
			      .nb_planes = 3,
			      .planes = { { 0, 0, pitch },
					  { 0, luma, pitch / 2 },
					  { 0, luma * 5 / 4, pitch / 2 } } } },
	};
	frame->data[0] = (uint8_t *)drm;
	frame->buf[0] =
		av_buffer_create((uint8_t *)drm, sizeof(*drm), frame_free_descriptor, NULL, 0);
	frame->hw_frames_ctx = av_buffer_ref(drm_frames);
	return frame;
}

static void camera_sync(unsigned int index, __u64 edge)
{
	const struct dma_buf_sync sync = { DMA_BUF_SYNC_READ | edge };
	int ret;

	do
		ret = ioctl(descriptor[index], DMA_BUF_IOCTL_SYNC, &sync);
	while (ret && (errno == EINTR || errno == EAGAIN));
	chain_check(ret ? AVERROR(errno) : 0, "DMA_BUF_IOCTL_SYNC");
}

static AVFrame *frame_copy(unsigned int index, int number)
{
	AVFrame *frame = frame_alloc(AV_PIX_FMT_YUV420P, number);
	const uint8_t *planes[4];
	int pitches[4];

	chain_check(av_frame_get_buffer(frame, 0), "the frame to upload");
	camera_sync(index, DMA_BUF_SYNC_START);
	av_image_fill_arrays((uint8_t **)planes, pitches, view[index], AV_PIX_FMT_YUV420P,
			     frame->width, frame->height, 1);
	av_image_copy(frame->data, frame->linesize, planes, pitches, AV_PIX_FMT_YUV420P,
		      frame->width, frame->height);
	camera_sync(index, DMA_BUF_SYNC_END);
	return frame;
}

/* The pixels of a frame without gaps; the caller frees them. */
static uint8_t *frame_pixels(const AVFrame *frame, int *size)
{
	uint8_t *pixels;

	*size = av_image_get_buffer_size(AV_PIX_FMT_YUV420P, frame->width, frame->height, 1);
	pixels = av_malloc(*size);
	chain_check(av_image_copy_to_buffer(pixels, *size, (const uint8_t *const *)frame->data,
					    frame->linesize, AV_PIX_FMT_YUV420P, frame->width,
					    frame->height, 1),
		    "the pixels");
	return pixels;
}

/* Whether the filter changes the frame: a filter that changes nothing would prove nothing. */
static int frame_compare(unsigned int index, int number)
{
	AVFrame *by_map = chain_run(&mapped, frame_of_buffer(index, number));
	AVFrame *by_upload = chain_run(&uploaded, frame_copy(index, number));
	int size, size_uploaded, changed;
	uint8_t *got = frame_pixels(by_map, &size);
	uint8_t *want = frame_pixels(by_upload, &size_uploaded);

	if (size != size_uploaded || memcmp(got, want, size)) {
		printf("chain: FAILED: frame %d differs from the uploaded frame\n", number);
		exit(1);
	}
	camera_sync(index, DMA_BUF_SYNC_START);
	changed = memcmp(got, view[index], size) != 0;
	camera_sync(index, DMA_BUF_SYNC_END);
	av_free(got);
	av_free(want);
	av_frame_free(&by_map);
	av_frame_free(&by_upload);
	return changed;
}

static void chain_compare(int frames)
{
	unsigned int index;

	chain_check_camera(camera_start(&camera));
	for (int i = 0; i < frames; i++) {
		chain_check_camera(camera_dequeue(&camera, TIMEOUT_MS, &index, NULL));
		if (!frame_compare(index, i))
			chain_check(AVERROR_BUG, "the filter changed nothing");
		chain_check_camera(camera_queue(&camera, index));
	}
	chain_check_camera(camera_stop(&camera));
}

/*
 * @number is as in `ffmpeg -init_hw_device opencl=cl:NUMBER`.  Without a number, FFmpeg derives the
 * device from DRM: the one device that reports cl_arm_import_memory.
 */
static void chain_open_both(const char *number)
{
	const char *map = number ? "hwmap=mode=read+write," FILTER
				 : "hwmap=derive_device=opencl:mode=read+write," FILTER;

	if (number)
		chain_check(
			av_hwdevice_ctx_create(&opencl, AV_HWDEVICE_TYPE_OPENCL, number, NULL, 0),
			number);
	chain_open(&mapped, map, AV_PIX_FMT_DRM_PRIME, drm_frames);
	if (!number)
		chain_check(av_hwdevice_ctx_create_derived(&opencl, AV_HWDEVICE_TYPE_OPENCL,
							   drm_device, 0),
			    "the device of OpenCL");
	chain_open(&uploaded, "hwupload," FILTER, AV_PIX_FMT_YUV420P, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: chain WIDTH HEIGHT FRAMES [NUMBER]\n");
		return 2;
	}
	camera_prepare((unsigned int)atoi(argv[1]), (unsigned int)atoi(argv[2]));
	drm_prepare();
	chain_open_both(argc > 4 ? argv[4] : NULL);
	chain_compare(atoi(argv[3]));
	avfilter_graph_free(&mapped.graph);
	avfilter_graph_free(&uploaded.graph);
	av_buffer_unref(&drm_frames);
	av_buffer_unref(&drm_device);
	av_buffer_unref(&opencl);
	camera_close(&camera);
	printf("chain: ok, %s frames of %s x %s are equal\n", argv[3], argv[1], argv[2]);
	return 0;
}
