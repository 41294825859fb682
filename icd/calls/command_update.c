/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clUpdateMutableCommandsKHR gives recorded kernels new arguments: none that a recorded command cannot have.
 *
 * Before version 0.9.2 of cl_khr_command_buffer_mutable_dispatch the parameter is a structure, then
 * arrays of structures.  Headers have either form, so both are declared below.
 */
#include <string.h>

#include "icd/calls/command.h"
#include "icd/intercept.h"
#include "icd/objects/command_buffer.h"

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

/* A new argument that cannot be recorded, to be put; or NULL. */
static struct memobj *dispatch_import(const struct dispatch *d)
{
	for (cl_uint i = 0; d && d->args && i < d->num_args; i++) {
		struct memobj *obj;
		cl_mem mem;

		if (d->args[i].size != sizeof(mem) || !d->args[i].value)
			continue;
		memcpy(&mem, d->args[i].value, sizeof(mem));
		obj = memobj_get(mem);
		if (obj && !memobj_is_recordable(obj))
			return obj;
		memobj_put(obj);
	}
	return NULL;
}

static struct memobj *update_import_chained(const struct chained_config *config)
{
	const cl_uint count = config && config->dispatches ? config->num_dispatches : 0;
	struct memobj *obj = NULL;

	for (cl_uint i = 0; i < count && !obj; i++)
		obj = dispatch_import(&config->dispatches[i].dispatch);
	return obj;
}

static struct memobj *update_import(cl_uint count, const cl_uint *types, const void *const *configs)
{
	struct memobj *obj = NULL;

	for (cl_uint i = 0; types && configs && i < count && !obj; i++)
		obj = types[i] == DISPATCH_CONFIG ? dispatch_import(configs[i]) : NULL;
	return obj;
}

cl_int CL_API_CALL layer_clUpdateMutableCommandsKHR(WORDS_4)
{
	const struct command_target target = command_target_of((cl_command_buffer_khr)a0);
	struct memobj *obj = NULL;
	cl_int err;

	if (!target.driver->clUpdateMutableCommandsKHR)
		return target.driver->clCreateCommandBufferKHR ? CL_INVALID_OPERATION
							       : CL_INVALID_COMMAND_BUFFER_KHR;
	if (memobj_live())
		obj = target.arrays ? update_import((cl_uint)a1, (const void *)a2, (const void *)a3)
				    : update_import_chained((const void *)a1);
	if (!obj)
		return target.driver->clUpdateMutableCommandsKHR(PASS_4);
	err = command_refuse_recorded(obj, "clUpdateMutableCommandsKHR");
	memobj_put(obj);
	return err;
}
