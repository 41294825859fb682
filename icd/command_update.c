/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clUpdateMutableCommandsKHR gives recorded kernels other arguments: dma-bufs among them are
 * bracketed from then on.  Those that were arguments before stay so; that costs, and harms nothing.
 *
 * Before version 0.9.2 of cl_khr_command_buffer_mutable_dispatch its parameter is a structure,
 * then arrays of structures.  Both are declared here: headers have the one or the other.
 */
#include <string.h>

#include "command_buffer.h"
#include "command_words.h"

struct dispatch_arg {
	cl_uint index;
	size_t size;
	const void *value;
};

/* What both versions have of a kernel's new configuration, as far as it is read. */
struct dispatch {
	cl_mutable_command_khr command;
	cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
	const struct dispatch_arg *args;
};

/* Before 0.9.2 */
struct chained_dispatch {
	cl_uint type;
	const void *following;
	struct dispatch dispatch;
	const void *svm_args, *exec_infos;
	const size_t *offset, *global, *local;
};

struct chained_config {
	cl_uint type;
	const void *following;
	cl_uint num_dispatches;
	const struct chained_dispatch *dispatches;
};

/* CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR from 0.9.2 on */
#define DISPATCH_CONFIG 0

static cl_int use_dispatch(cl_command_buffer_khr handle, const struct dispatch *dispatch)
{
	cl_int err = CL_SUCCESS;

	for (cl_uint i = 0; dispatch->args && i < dispatch->num_args && !err; i++) {
		const struct dispatch_arg *arg = &dispatch->args[i];
		cl_mem mem;

		if (arg->size != sizeof(mem) || !arg->value)
			continue;
		memcpy(&mem, arg->value, sizeof(mem));
		err = command_buffer_use(handle, mem, NULL);
	}
	return err;
}

static cl_int use_chain(cl_command_buffer_khr handle, const struct chained_config *config)
{
	cl_int err = CL_SUCCESS;

	if (!config || !config->dispatches)
		return CL_SUCCESS;
	for (cl_uint i = 0; i < config->num_dispatches && !err; i++)
		err = use_dispatch(handle, &config->dispatches[i].dispatch);
	return err;
}

static cl_int use_arrays(cl_command_buffer_khr handle, cl_uint count, const cl_uint *types,
			 const void *const *configs)
{
	cl_int err = CL_SUCCESS;

	if (!types || !configs)
		return CL_SUCCESS;
	for (cl_uint i = 0; i < count && !err; i++)
		if (types[i] == DISPATCH_CONFIG && configs[i])
			err = use_dispatch(handle, configs[i]);
	return err;
}

static cl_int CL_API_CALL command_update(WORDS_4)
{
	cl_command_buffer_khr handle = (cl_command_buffer_khr)a0;
	const struct command_target target = command_target_of(handle);
	cl_int(CL_API_CALL * driver)(WORDS_4) = NULL;
	cl_int err;

	if (target.functions)
		driver = target.functions->update;
	if (!driver)
		return target.functions ? CL_INVALID_OPERATION : CL_INVALID_COMMAND_BUFFER_KHR;
	if (target.arrays)
		err = use_arrays(handle, (cl_uint)a1, (const void *)a2, (const void *)a3);
	else
		err = use_chain(handle, (const void *)a1);
	return err ? err : driver(PASS_4);
}

void *command_update_function(const char *name)
{
	return strcmp(name, "clUpdateMutableCommandsKHR") ? NULL : (void *)command_update;
}
