/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

_Static_assert(sizeof(union call_rows) == sizeof(((union call_rows *)NULL)->all),
	       "call_rows.all contains each row");

const union call_rows call_rows = {
	.map_buffer = {
		{ "map_buffer", call_clEnqueueMapBuffer, BUFFER, DESTINATION, NONE },
		{ "map_sub_buffer", call_clEnqueueMapBuffer, SUB_BUFFER, DESTINATION, NONE },
	},
	.map_image = {
		{ "map_image", call_clEnqueueMapImage, IMAGE, DESTINATION, NONE },
		{ "map_image_of_sub", call_clEnqueueMapImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "map_image_1d", call_clEnqueueMapImage, IMAGE_1D, DESTINATION, NONE },
	},
	.unmap_mem_object = {
		{ "unmap_buffer", call_clEnqueueUnmapMemObject, BUFFER, DESTINATION, NONE },
		{ "unmap_sub_buffer", call_clEnqueueUnmapMemObject, SUB_BUFFER, DESTINATION, NONE },
		{ "unmap_image", call_clEnqueueUnmapMemObject, IMAGE, DESTINATION, NONE },
		{ "unmap_image_of_sub", call_clEnqueueUnmapMemObject,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "unmap_image_1d", call_clEnqueueUnmapMemObject, IMAGE_1D, DESTINATION, NONE },
	},
	.read_image = {
		{ "read_image", call_clEnqueueReadImage, IMAGE, SOURCE, NONE },
		{ "read_image_of_sub", call_clEnqueueReadImage, IMAGE_OF_SUB_BUFFER, SOURCE, NONE },
		{ "read_image_1d", call_clEnqueueReadImage, IMAGE_1D, SOURCE, NONE },
	},
	.write_image = {
		{ "write_image", call_clEnqueueWriteImage, IMAGE, DESTINATION, NONE },
		{ "write_image_of_sub", call_clEnqueueWriteImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "write_image_1d", call_clEnqueueWriteImage, IMAGE_1D, DESTINATION, NONE },
	},
	.read_buffer = {
		{ "read_buffer", call_clEnqueueReadBuffer, BUFFER, SOURCE, NONE },
		{ "read_sub_buffer", call_clEnqueueReadBuffer, SUB_BUFFER, SOURCE, NONE },
	},
	.read_buffer_rect = {
		{ "read_buffer_rect", call_clEnqueueReadBufferRect, BUFFER, SOURCE, NONE },
		{ "read_sub_buffer_rect", call_clEnqueueReadBufferRect, SUB_BUFFER, SOURCE, NONE },
	},
	.write_buffer = {
		{ "write_buffer", call_clEnqueueWriteBuffer, BUFFER, DESTINATION, NONE },
		{ "write_sub_buffer", call_clEnqueueWriteBuffer, SUB_BUFFER, DESTINATION, NONE },
	},
	.write_buffer_rect = {
		{ "write_buffer_rect", call_clEnqueueWriteBufferRect, BUFFER, DESTINATION, NONE },
		{ "write_sub_buffer_rect", call_clEnqueueWriteBufferRect,
		  SUB_BUFFER, DESTINATION, NONE },
	},
	.copy_buffer = {
		{ "copy_from_buffer", call_clEnqueueCopyBuffer, BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_from_sub_buffer", call_clEnqueueCopyBuffer,
		  SUB_BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_to_buffer", call_clEnqueueCopyBuffer, BUFFER, DESTINATION, PLAIN_BUFFER },
		{ "copy_to_sub_buffer", call_clEnqueueCopyBuffer,
		  SUB_BUFFER, DESTINATION, PLAIN_BUFFER },
	},
	.copy_buffer_rect = {
		{ "copy_rect_from_buffer", call_clEnqueueCopyBufferRect,
		  BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_rect_from_sub_buffer", call_clEnqueueCopyBufferRect,
		  SUB_BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_rect_to_buffer", call_clEnqueueCopyBufferRect,
		  BUFFER, DESTINATION, PLAIN_BUFFER },
		{ "copy_rect_to_sub_buffer", call_clEnqueueCopyBufferRect,
		  SUB_BUFFER, DESTINATION, PLAIN_BUFFER },
	},
	.copy_buffer_to_image = {
		{ "copy_buffer_to_plain_image", call_clEnqueueCopyBufferToImage,
		  BUFFER, SOURCE, PLAIN_IMAGE },
		{ "copy_sub_buffer_to_plain_image", call_clEnqueueCopyBufferToImage,
		  SUB_BUFFER, SOURCE, PLAIN_IMAGE },
		{ "copy_plain_buffer_to_image", call_clEnqueueCopyBufferToImage,
		  IMAGE, DESTINATION, PLAIN_BUFFER },
		{ "copy_plain_buffer_to_image_of_sub", call_clEnqueueCopyBufferToImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, PLAIN_BUFFER },
		{ "copy_plain_buffer_to_image_1d", call_clEnqueueCopyBufferToImage,
		  IMAGE_1D, DESTINATION, PLAIN_BUFFER },
	},
	.copy_image_to_buffer = {
		{ "copy_image_to_plain_buffer", call_clEnqueueCopyImageToBuffer,
		  IMAGE, SOURCE, PLAIN_BUFFER },
		{ "copy_image_of_sub_to_plain_buffer", call_clEnqueueCopyImageToBuffer,
		  IMAGE_OF_SUB_BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_image_1d_to_plain_buffer", call_clEnqueueCopyImageToBuffer,
		  IMAGE_1D, SOURCE, PLAIN_BUFFER },
		{ "copy_plain_image_to_buffer", call_clEnqueueCopyImageToBuffer,
		  BUFFER, DESTINATION, PLAIN_IMAGE },
		{ "copy_plain_image_to_sub_buffer", call_clEnqueueCopyImageToBuffer,
		  SUB_BUFFER, DESTINATION, PLAIN_IMAGE },
	},
	.copy_image = {
		{ "copy_from_image", call_clEnqueueCopyImage, IMAGE, SOURCE, PLAIN_IMAGE },
		{ "copy_from_image_of_sub", call_clEnqueueCopyImage,
		  IMAGE_OF_SUB_BUFFER, SOURCE, PLAIN_IMAGE },
		{ "copy_from_image_1d", call_clEnqueueCopyImage, IMAGE_1D, SOURCE, PLAIN_IMAGE },
		{ "copy_to_image", call_clEnqueueCopyImage, IMAGE, DESTINATION, PLAIN_IMAGE },
		{ "copy_to_image_of_sub", call_clEnqueueCopyImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, PLAIN_IMAGE },
		{ "copy_to_image_1d", call_clEnqueueCopyImage, IMAGE_1D, DESTINATION, PLAIN_IMAGE },
	},
	.fill_buffer = {
		{ "fill_buffer", call_clEnqueueFillBuffer, BUFFER, DESTINATION, NONE },
		{ "fill_sub_buffer", call_clEnqueueFillBuffer, SUB_BUFFER, DESTINATION, NONE },
	},
	.fill_image = {
		{ "fill_image", call_clEnqueueFillImage, IMAGE, DESTINATION, NONE },
		{ "fill_image_of_sub", call_clEnqueueFillImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "fill_image_1d", call_clEnqueueFillImage, IMAGE_1D, DESTINATION, NONE },
	},
};
