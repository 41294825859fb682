/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clUpdateMutableCommandsKHR gives recorded kernels new arguments.  New dma-bufs are bracketed from
 * then on, and dma-bufs that were replaced are not.  During the driver's call both are bracketed,
 * as a second thread may run the command buffer with old or new arguments.
 *
 * Before version 0.9.2 of cl_khr_command_buffer_mutable_dispatch the parameter is a structure, then
 * arrays of structures.  Headers have either form, so both are declared below.
 */
#include "icd/calls/command_update.h"

#include <string.h>

#include "icd/calls/command_words.h"
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

/* What an update changes: @chained, or @types and @configs. */
struct update {
	cl_uint count;
	const struct chained_dispatch *chained;
	const cl_uint *types;
	const void *const *configs;
	unsigned long stamp; /* of the new arguments */
};

static struct update update_chained(const struct chained_config *config)
{
	struct update u = { .chained = config ? config->dispatches : NULL };

	u.count = u.chained ? config->num_dispatches : 0;
	return u;
}

static struct update update_arrays(cl_uint count, const cl_uint *types, const void *const *configs)
{
	struct update u = { .types = types, .configs = configs };

	u.count = types && configs ? count : 0;
	return u;
}

/* Configuration @i, or NULL if the configuration is not a kernel's. */
static const struct dispatch *update_dispatch(const struct update *u, cl_uint i)
{
	if (u->chained)
		return &u->chained[i].dispatch;
	return u->types[i] == DISPATCH_CONFIG ? u->configs[i] : NULL;
}

static cl_int dispatch_uses(const struct dispatch *d, struct command_use **uses)
{
	cl_int err = CL_SUCCESS;

	for (cl_uint i = 0; d->args && i < d->num_args && !err; i++) {
		const struct dispatch_arg *arg = &d->args[i];
		cl_mem mem;

		if (arg->size != sizeof(mem) || !arg->value)
			continue;
		memcpy(&mem, arg->value, sizeof(mem));
		err = command_uses_add_mem(uses, mem, d->command, arg->index);
	}
	return err;
}

static cl_int update_uses(const struct update *u, struct command_use **uses)
{
	cl_int err = CL_SUCCESS;

	for (cl_uint i = 0; i < u->count && !err; i++) {
		const struct dispatch *d = update_dispatch(u, i);

		if (d)
			err = dispatch_uses(d, uses);
	}
	return err;
}

static bool args_have(const struct dispatch_arg *args, cl_uint count, cl_uint index)
{
	for (cl_uint i = 0; args && i < count; i++)
		if (args[i].index == index)
			return true;
	return false;
}

static bool is_refused(const struct command_use *use, const void *update)
{
	return use->stamp == ((const struct update *)update)->stamp;
}

static bool is_replaced(const struct command_use *use, const void *update)
{
	const struct update *u = update;

	if (!use->command || use->stamp >= u->stamp)
		return false;
	for (cl_uint i = 0; i < u->count; i++) {
		const struct dispatch *d = update_dispatch(u, i);

		if (d && d->command == use->command &&
		    (args_have(d->args, d->num_args, use->index) ||
		     args_have(d->svm_args, d->num_svm_args, use->index)))
			return true;
	}
	return false;
}

static cl_int CL_API_CALL command_update(WORDS_4)
{
	cl_command_buffer_khr handle = (cl_command_buffer_khr)a0;
	const struct command_target target = command_target_of(handle);
	cl_int(CL_API_CALL * driver)(WORDS_4) = NULL;
	struct command_use *uses = NULL;
	struct update u;
	cl_int err;

	if (target.functions)
		driver = target.functions->update;
	if (!driver)
		return target.functions ? CL_INVALID_OPERATION : CL_INVALID_COMMAND_BUFFER_KHR;
	if (target.arrays)
		u = update_arrays((cl_uint)a1, (const void *)a2, (const void *)a3);
	else
		u = update_chained((const void *)a1);
	err = update_uses(&u, &uses);
	if (err) {
		command_uses_free(uses);
		return err;
	}
	u.stamp = command_buffer_use(handle, uses);
	err = driver(PASS_4);
	command_buffer_unuse(handle, err ? is_refused : is_replaced, &u);
	return err;
}

void *command_update_function(const char *name)
{
	return strcmp(name, "clUpdateMutableCommandsKHR") ? NULL : (void *)command_update;
}
