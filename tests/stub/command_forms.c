/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer from version 0.9.5 on: recording functions take a list of properties.  Both
 * forms of clUpdateMutableCommandsKHR.
 */
#include "internal.h"

#define SYNC                                                                       \
	cl_uint num, const cl_sync_point_khr *list, cl_sync_point_khr *sync_point, \
		cl_mutable_command_khr *command
#define PASS_SYNC num, list, sync_point, command

/* The list of properties may be empty or NULL; copies and fills have no mutable handle. */
static bool is_empty(const cl_properties *properties, const cl_mutable_command_khr *command)
{
	return (!properties || !*properties) && !command;
}

static cl_int form_copy_buffer(cl_command_buffer_khr handle, cl_command_queue queue,
			       const cl_properties *properties, cl_mem src, cl_mem dst,
			       size_t src_offset, size_t dst_offset, size_t size, SYNC)
{
	if (!is_empty(properties, command))
		return CL_INVALID_VALUE;
	return stub_clCommandCopyBufferKHR(handle, queue, src, dst, src_offset, dst_offset, size,
					   PASS_SYNC);
}

static cl_int form_copy_rect(cl_command_buffer_khr handle, cl_command_queue queue,
			     const cl_properties *properties, cl_mem src, cl_mem dst,
			     const size_t *src_origin, const size_t *dst_origin,
			     const size_t *region, size_t src_row, size_t src_slice, size_t dst_row,
			     size_t dst_slice, SYNC)
{
	if (!is_empty(properties, command))
		return CL_INVALID_VALUE;
	return stub_clCommandCopyBufferRectKHR(handle, queue, src, dst, src_origin, dst_origin,
					       region, src_row, src_slice, dst_row, dst_slice,
					       PASS_SYNC);
}

static cl_int form_copy_to_image(cl_command_buffer_khr handle, cl_command_queue queue,
				 const cl_properties *properties, cl_mem src, cl_mem dst,
				 size_t offset, const size_t *origin, const size_t *region, SYNC)
{
	if (!is_empty(properties, command))
		return CL_INVALID_VALUE;
	return stub_clCommandCopyBufferToImageKHR(handle, queue, src, dst, offset, origin, region,
						  PASS_SYNC);
}

static cl_int form_copy_image(cl_command_buffer_khr handle, cl_command_queue queue,
			      const cl_properties *properties, cl_mem src, cl_mem dst,
			      const size_t *src_origin, const size_t *dst_origin,
			      const size_t *region, SYNC)
{
	if (!is_empty(properties, command))
		return CL_INVALID_VALUE;
	return stub_clCommandCopyImageKHR(handle, queue, src, dst, src_origin, dst_origin, region,
					  PASS_SYNC);
}

static cl_int form_copy_from_image(cl_command_buffer_khr handle, cl_command_queue queue,
				   const cl_properties *properties, cl_mem src, cl_mem dst,
				   const size_t *origin, const size_t *region, size_t offset, SYNC)
{
	if (!is_empty(properties, command))
		return CL_INVALID_VALUE;
	return stub_clCommandCopyImageToBufferKHR(handle, queue, src, dst, origin, region, offset,
						  PASS_SYNC);
}

static cl_int form_fill_buffer(cl_command_buffer_khr handle, cl_command_queue queue,
			       const cl_properties *properties, cl_mem mem, const void *pattern,
			       size_t pattern_size, size_t offset, size_t size, SYNC)
{
	if (!is_empty(properties, command))
		return CL_INVALID_VALUE;
	return stub_clCommandFillBufferKHR(handle, queue, mem, pattern, pattern_size, offset, size,
					   PASS_SYNC);
}

static cl_int form_fill_image(cl_command_buffer_khr handle, cl_command_queue queue,
			      const cl_properties *properties, cl_mem image, const void *color,
			      const size_t *origin, const size_t *region, SYNC)
{
	if (!is_empty(properties, command))
		return CL_INVALID_VALUE;
	return stub_clCommandFillImageKHR(handle, queue, image, color, origin, region, PASS_SYNC);
}

/* The beginning of each configuration, from cl_khr_command_buffer_mutable_dispatch 0.9.2 on. */
struct config {
	cl_mutable_command_khr command;
	cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
	const cl_mutable_dispatch_arg_khr *args;
};

static cl_int form_update_arrays(cl_command_buffer_khr handle, cl_uint num, const cl_uint *types,
				 const void **configs)
{
	cl_int err = CALL(clUpdateMutableCommandsKHR, U(handle), U(num), U(types), U(configs));

	if (err)
		return err;
	if (!num != !types || !num != !configs)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < num && !err; i++) {
		const struct config *c = configs[i];

		err = types[i] ? CL_INVALID_VALUE
			       : command_buffer_update(handle, c->command, c->num_args, c->args);
	}
	return err;
}

cl_int CL_API_CALL stub_clUpdateMutableCommandsKHR(cl_command_buffer_khr handle,
						   const struct stub_mutable_base_config *config)
{
	cl_int err = CALL(clUpdateMutableCommandsKHR, U(handle), U(config));

	if (!err && !config)
		err = CL_INVALID_VALUE;
	for (cl_uint i = 0; !err && i < config->num_mutable_dispatch; i++) {
		const struct stub_mutable_dispatch_config *c = &config->mutable_dispatch_list[i];

		err = command_buffer_update(handle, c->command, c->num_args, c->arg_list);
	}
	return err;
}

void *command_form(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} forms[] = {
		{ "clCommandCopyBufferKHR", (void *)form_copy_buffer },
		{ "clCommandCopyBufferRectKHR", (void *)form_copy_rect },
		{ "clCommandCopyBufferToImageKHR", (void *)form_copy_to_image },
		{ "clCommandCopyImageKHR", (void *)form_copy_image },
		{ "clCommandCopyImageToBufferKHR", (void *)form_copy_from_image },
		{ "clCommandFillBufferKHR", (void *)form_fill_buffer },
		{ "clCommandFillImageKHR", (void *)form_fill_image },
	};

	if (stub_get(STUB_COMMAND_ARRAYS) && !strcmp(name, "clUpdateMutableCommandsKHR"))
		return (void *)form_update_arrays;
	for (size_t i = 0; stub_get(STUB_COMMAND_PROPERTIES) && i < sizeof(forms) / sizeof(*forms);
	     i++)
		if (!strcmp(forms[i].name, name))
			return forms[i].function;
	return NULL;
}
