/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/error.h"

#include <errno.h>

#include "icd/layer.h"
#include "util/cl_names.h"
#include "util/log.h"

static const struct {
	int error;
	cl_int code;
} codes[] = {
	{ 0, CL_SUCCESS },
	{ -ERANGE, CL_INVALID_BUFFER_SIZE }, /* "size is greater than the size of the allocation" */
	{ -EFAULT, CL_INVALID_OPERATION },   /* "host virtual pages ... are not mapped" */
	{ -EACCES, CL_INVALID_OPERATION },   /* mapped, but not for this access */
	{ -EPERM, CL_INVALID_OPERATION },
	{ -EBUSY, CL_INVALID_OPERATION },      /* "two allocations that aren't page-aligned" */
	{ -EOPNOTSUPP, CL_INVALID_OPERATION }, /* "an error when mapping is not possible" */
	{ -EBADF, CL_INVALID_VALUE }, /* "Valid <memory> pointer is dependent on the TYPE" */
	{ -ENOMEM, CL_OUT_OF_HOST_MEMORY },
	{ -EDQUOT, CL_OUT_OF_HOST_MEMORY }, /* RLIMIT_MEMLOCK */
	{ -ENOSPC, CL_MEM_OBJECT_ALLOCATION_FAILURE },
};

cl_int error_to_cl(int error)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].error == error)
			return codes[i].code;
	return CL_OUT_OF_RESOURCES;
}

void error_of_driver(const char *function, cl_int err)
{
	if (err)
		log_error("the driver's %s failed with %s", function, cl_error_name(err));
	else
		log_error("the driver's %s gave no object and no error", function);
}

void *error_created_or_null(const char *function, void *handle, cl_int *err)
{
	if (!is_created(handle, *err))
		error_of_driver(function, *err);
	return created_or_null(handle, err);
}
