/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's question to a device: climport_get_import_info(). */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "icd/probe/interface.h"
#include "import/alloc/memory.h"
#include "import/api/common.h"
#include "import/api/import_info.h"
#include "import/api/loader.h"
#include "util/cl_names.h"
#include "util/log.h"
#include "util/thread.h"

/* Struct of version 0.2.0. */
#define IMPORT_INFO_SIZE SIZE_TO(struct climport_import_info, uuid)

static int import_info_failed(cl_int err)
{
	int error = err == CL_INVALID_DEVICE	   ? EINVAL
		    : err == CL_OUT_OF_HOST_MEMORY ? ENOMEM
		    : err == CL_INVALID_OPERATION  ? ENXIO
						   : EIO;

	return log_errno(error, "the device cannot be asked: %s", cl_error_name(err));
}

/* The driver's own extensions: the caller's to free, or NULL. */
static char *import_info_extensions(cl_device_id device)
{
	__typeof__(&clGetDeviceInfo) info = LOADER(clGetDeviceInfo);
	size_t size = 0;
	char *text;

	if (!info || info(device, CL_DEVICE_EXTENSIONS, 0, NULL, &size))
		return NULL;
	text = calloc(1, size + 1);
	if (text && info(device, CL_DEVICE_EXTENSIONS, size, text, NULL))
		text[0] = '\0';
	return text;
}

static bool import_info_has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

/* Without the layer, a driver takes memory by the driver's own function. */
static cl_int import_info_of_driver(cl_device_id device, cl_uint type, struct device_description *d)
{
	const char *name = type == CL_IMPORT_TYPE_HOST_ARM ? "cl_arm_import_memory_host"
							   : "cl_arm_import_memory_dma_buf";
	char *extensions = import_info_extensions(device);
	bool has = extensions && import_info_has_word(extensions, name);

	free(extensions);
	if (!extensions)
		return CL_OUT_OF_HOST_MEMORY;
	*d = (struct device_description){
		.method = has ? "native" : NULL,
		.why = has ? "the driver has the extension itself"
			   : "the driver does not have the extension, and the layer is not loaded "
			     "(climport run)",
		.address_align = 1,
		.size_align = 1,
	};
	return CL_SUCCESS;
}

static cl_int import_info_describe(cl_device_id device, cl_uint type, struct device_description *d)
{
	cl_platform_id platform;
	describe_device_fn describe;
	cl_int err = loader_platform_of(device, &platform);

	if (err)
		return err;
	describe = (describe_device_fn)loader_function_of(platform, DESCRIBE_FUNCTION);
	return describe ? describe(device, type, d) : import_info_of_driver(device, type, d);
}

static bool import_info_uuid(cl_device_id device, unsigned char uuid[CLIMPORT_UUID_SIZE])
{
	__typeof__(&clGetDeviceInfo) info = LOADER(clGetDeviceInfo);

	return info && !info(device, CL_DEVICE_UUID_KHR, CLIMPORT_UUID_SIZE, uuid, NULL);
}

int import_info_read(cl_device_id device, cl_uint type, struct climport_import_info *info,
		     bool *by_uuid_alone)
{
	struct device_description d = { 0 };
	cl_int err;

	if (!device)
		return log_errno(EINVAL, "the device is NULL");
	err = import_info_describe(device, type, &d);
	if (err)
		return import_info_failed(err);
	*info = (struct climport_import_info){
		.method = d.method,
		.why = d.why,
		.kept = d.kept,
		.address_alignment = d.method ? d.address_align : 0,
		.size_alignment = d.method ? d.size_align : 0,
	};
	info->by_uuid = d.method && d.by_uuid && import_info_uuid(device, info->uuid);
	if (by_uuid_alone)
		*by_uuid_alone = d.by_uuid_alone;
	return 0;
}

/* Device memory is imported as a dma-buf, host memory by the address. */
static uint32_t import_info_kinds(const struct climport_import_info *info, cl_uint type)
{
	if (!info->method)
		return 0;
	if (type == CL_IMPORT_TYPE_HOST_ARM)
		return 1u << CLIMPORT_HOST;
	return info->by_uuid && memory_is_possible(MEMORY_DEVICE, info->uuid)
		       ? 1u << CLIMPORT_DEVICE
		       : 0;
}

static int import_info_get(cl_device_id device, cl_uint type, struct climport_import_info *out,
			   size_t out_size)
{
	struct climport_import_info info;
	int ret = climport_check_caller(0, 0, out_size, IMPORT_INFO_SIZE);

	if (ret)
		return ret;
	if (type != CL_IMPORT_TYPE_HOST_ARM && type != CL_IMPORT_TYPE_DMA_BUF_ARM)
		return log_errno(EINVAL, "%s is no type of memory", cl_import_name(type));
	ret = import_info_read(device, type, &info, NULL);
	if (ret)
		return ret;
	info.kinds = import_info_kinds(&info, type);
	climport_fill(out, out_size, &info, sizeof(info));
	return 0;
}

PUBLIC int climport_get_import_info(cl_device_id device, cl_uint type,
				    struct climport_import_info *out, size_t out_size)
{
	THREAD_NO_CANCEL();

	climport_error_begin();
	return climport_error_end(import_info_get(device, type, out, out_size));
}
