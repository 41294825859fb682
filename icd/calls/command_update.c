/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clUpdateMutableCommandsKHR gives recorded kernels new arguments.  A dma-buf cannot be a new argument:
 * which arguments the commands have would have to be known at each enqueue, and no known program updates
 * a command buffer to use another dma-buf.  Dma-bufs that an update replaces are bracketed as before.
 *
 * Before version 0.9.2 of cl_khr_command_buffer_mutable_dispatch the parameter is a structure, then
 * arrays of structures.  Headers have either form, so both are declared below.
 */
#include <string.h>

#include "icd/intercept.h"
#include "icd/objects/command_buffer.h"
#include "util/log.h"

struct dispatch_arg {
	cl_uint index;
	size_t size;
	const void *value;
};

/* The part of a kernel's new configuration that both versions have and the layer reads. */
struct dispatch {
	cl_mutable_command_khr command;
	cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
	const struct dispatch_arg *args, *svm_args;
};

/* Before 0.9.2 */
struct chained_dispatch {
	cl_uint type;
	const void *following;
	struct dispatch dispatch;
	const void *exec_infos;
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

static bool dispatch_needs_access(const struct dispatch *d)
{
	bool needs = false;

	for (cl_uint i = 0; d->args && i < d->num_args && !needs; i++) {
		struct memobj *obj;
		cl_mem mem;

		if (d->args[i].size != sizeof(mem) || !d->args[i].value)
			continue;
		memcpy(&mem, d->args[i].value, sizeof(mem));
		obj = memobj_get(mem);
		needs = obj && memobj_needs_access(obj);
		memobj_put(obj);
	}
	return needs;
}

static bool update_needs_access_chained(const struct chained_config *config)
{
	for (cl_uint i = 0; config && config->dispatches && i < config->num_dispatches; i++)
		if (dispatch_needs_access(&config->dispatches[i].dispatch))
			return true;
	return false;
}

static bool update_needs_access(cl_uint count, const cl_uint *types, const void *const *configs)
{
	for (cl_uint i = 0; types && configs && i < count; i++)
		if (types[i] == DISPATCH_CONFIG && configs[i] && dispatch_needs_access(configs[i]))
			return true;
	return false;
}

cl_int CL_API_CALL layer_clUpdateMutableCommandsKHR(WORDS_4)
{
	const struct command_target target = command_target_of((cl_command_buffer_khr)a0);

	if (!target.driver->clUpdateMutableCommandsKHR)
		return target.driver->clCreateCommandBufferKHR ? CL_INVALID_OPERATION
							       : CL_INVALID_COMMAND_BUFFER_KHR;
	if (memobj_live() &&
	    (target.arrays ? update_needs_access((cl_uint)a1, (const void *)a2, (const void *)a3)
			   : update_needs_access_chained((const void *)a1))) {
		log_error("a dma-buf cannot be given to a recorded kernel by "
			  "clUpdateMutableCommandsKHR: record the command anew");
		return CL_INVALID_OPERATION;
	}
	return target.driver->clUpdateMutableCommandsKHR(PASS_4);
}
