/* SPDX-License-Identifier: Apache-2.0 */
/* The C of docs/gstreamer.md, on the frames of the V4L2 test driver (vivid). */
#include "guest_cl.h"
#include "harness.h"

#include <string.h>

#include <CL/cl_ext.h>
#include <gst/allocators/gstdmabuf.h>
#include <gst/app/gstappsink.h>

#include "gstreamer.h" /* of docs/gstreamer.md */

enum { FRAMES = 12, SIZE = 320 * 180 * 2 };

static int imports;
static __typeof__(&clImportMemoryARM) layer_import;

static cl_mem CL_API_CALL counting_import(cl_context context, cl_mem_flags flags,
					  const cl_import_properties_arm *properties, void *memory,
					  size_t size, cl_int *err)
{
	imports++;
	return layer_import(context, flags, properties, memory, size, err);
}

static GstElement *pipeline_start(const char *mode)
{
	char text[256];
	GstElement *pipeline;

	gst_init(NULL, NULL);
	snprintf(text, sizeof(text),
		 "v4l2src io-mode=%s num-buffers=%d ! video/x-raw,format=YUY2,width=320,height=180 "
		 "! "
		 "appsink name=sink sync=false max-buffers=2",
		 mode, FRAMES);
	pipeline = gst_parse_launch(text, NULL);
	EXPECT(pipeline);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	return pipeline;
}

static void pipeline_stop(GstElement *pipeline)
{
	gst_element_set_state(pipeline, GST_STATE_NULL);
	gst_object_unref(pipeline);
}

static GstSample *pipeline_frame(GstElement *pipeline)
{
	GstElement *sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
	GstSample *sample = gst_app_sink_pull_sample(GST_APP_SINK(sink));

	gst_object_unref(sink);
	return sample;
}

static cl_kernel kernel_open(cl_mem to)
{
	const struct guest_cl *cl = guest_cl_session();
	cl_kernel kernel = clCreateKernel(cl->program, "transform", NULL);

	EXPECT(kernel);
	clSetKernelArg(kernel, 1, sizeof(to), &to);
	*(void **)&layer_import =
		clGetExtensionFunctionAddressForPlatform(cl->platform, "clImportMemoryARM");
	EXPECT(layer_import);
	import_memory = counting_import;
	imports = 0;
	return kernel;
}

/* The kernel has read what the CPU reads. */
static void pipeline_compare(GstSample *sample, cl_mem to)
{
	static unsigned char bytes[SIZE];
	GstMapInfo map;

	guest_cl_native_read(to, bytes, SIZE);
	EXPECT(gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ));
	EXPECT_EQ(map.size, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		EXPECT(bytes[i] == (map.data[i] ^ GUEST_CL_KEY));
	gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
}

TEST(frames,
     "A kernel reads each frame of v4l2src, and each of the camera's buffers is imported once.")
{
	const struct guest_cl *cl = guest_cl_session();
	cl_mem to = guest_cl_native(SIZE, NULL);
	cl_kernel kernel = kernel_open(to);
	GstElement *pipeline = pipeline_start("dmabuf");
	GstSample *sample;
	int frames = 0;

	while ((sample = pipeline_frame(pipeline))) {
		EXPECT_EQ(frame_process(cl->context, cl->queue, kernel, sample), CL_SUCCESS);
		pipeline_compare(sample, to);
		gst_sample_unref(sample);
		frames++;
	}
	EXPECT_EQ(frames, FRAMES);
	printf("# %d imports of %d frames\n", imports, frames);
	EXPECT(imports < FRAMES);
	pipeline_stop(pipeline);
	clReleaseKernel(kernel);
	clReleaseMemObject(to);
}

TEST(no_dma_buf, "A frame that is no dma-buf is an error.")
{
	const struct guest_cl *cl = guest_cl_session();
	cl_mem to = guest_cl_native(SIZE, NULL);
	cl_kernel kernel = kernel_open(to);
	GstElement *pipeline = pipeline_start("rw");
	GstSample *sample = pipeline_frame(pipeline);

	EXPECT(sample);
	EXPECT_EQ(frame_process(cl->context, cl->queue, kernel, sample), CL_INVALID_VALUE);
	EXPECT_EQ(imports, 0);
	gst_sample_unref(sample);
	pipeline_stop(pipeline);
	clReleaseKernel(kernel);
	clReleaseMemObject(to);
}
