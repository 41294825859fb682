/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES = 160, STACK = 8, COMPUTE_MAJOR = 75 };

static struct context primary[FAKE_CUDA_DEVICES];
static int devices = 1, attributes[FAKE_CUDA_DEVICES][ATTRIBUTES], retains[FAKE_CUDA_DEVICES];
static int pushed;
static _Thread_local struct context *stack[STACK];
static _Thread_local int depth;

void device_reset(int count)
{
	devices = count;
	memset(attributes, 0, sizeof(attributes));
	for (int i = 0; i < FAKE_CUDA_DEVICES; i++) {
		primary[i] = (struct context){ i, 1 }; /* the application's reference */
		retains[i] = 0;
		attributes[i][CUDA_DEVICE_VMM] = 1;
		attributes[i][CUDA_DEVICE_DMA_BUF] = 1;
		attributes[i][CUDA_DEVICE_RDMA_WITH_VMM] = 1;
	}
}

bool device_exists(int device)
{
	return device >= 0 && device < devices;
}

struct context *device_get_primary(int device)
{
	return &primary[device];
}

int device_count_retained(void)
{
	int n = 0;

	for (int i = 0; i < FAKE_CUDA_DEVICES; i++)
		n += primary[i].refs ? primary[i].refs - 1 : 0;
	return n;
}

struct context *context_get_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

int context_count_pushed(void)
{
	return pushed;
}

API int cuDeviceGetCount(int *out);
API int cuDeviceGetCount(int *out)
{
	int result = driver_enter("cuDeviceGetCount");

	if (result)
		return result;
	*out = devices;
	return driver_leave(CUDA_SUCCESS);
}

API int cuDeviceGet(int *device, int ordinal);
API int cuDeviceGet(int *device, int ordinal)
{
	int result = driver_enter("cuDeviceGet");

	if (result)
		return result;
	*device = ordinal;
	return driver_leave(device_exists(ordinal) ? CUDA_SUCCESS : CUDA_INVALID_DEVICE);
}

API int cuDeviceGetAttribute(int *value, int attribute, int device);
API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	int result = driver_enter("cuDeviceGetAttribute");

	if (result)
		return result;
	if (!device_exists(device) || attribute >= ATTRIBUTES)
		return driver_leave(CUDA_INVALID_VALUE);
	*value = attributes[device][attribute];
	if (attribute == COMPUTE_MAJOR && !*value)
		*value = 8;
	return driver_leave(CUDA_SUCCESS);
}

API void fake_cuda_uuid(int device, unsigned char uuid[16])
{
	memset(uuid, 0xa0 + device, 16);
}

static int device_uuid(const char *function, void *uuid, int device)
{
	int result = driver_enter(function);

	if (result)
		return result;
	if (!device_exists(device))
		return driver_leave(CUDA_INVALID_DEVICE);
	fake_cuda_uuid(device, uuid);
	return driver_leave(CUDA_SUCCESS);
}

API int cuDeviceGetUuid_v2(void *uuid, int device);
API int cuDeviceGetUuid_v2(void *uuid, int device)
{
	return device_uuid("cuDeviceGetUuid_v2", uuid, device);
}

API int cuDeviceGetUuid(void *uuid, int device);
API int cuDeviceGetUuid(void *uuid, int device)
{
	return device_uuid("cuDeviceGetUuid", uuid, device);
}

API int cuDevicePrimaryCtxRetain(void **context, int device);
API int cuDevicePrimaryCtxRetain(void **context, int device)
{
	int result = driver_enter("cuDevicePrimaryCtxRetain");

	if (result)
		return result;
	if (!device_exists(device))
		return driver_leave(CUDA_INVALID_DEVICE);
	primary[device].device = device;
	primary[device].refs++;
	retains[device]++;
	*context = &primary[device];
	return driver_leave(CUDA_SUCCESS);
}

API int cuDevicePrimaryCtxRelease_v2(int device);
API int cuDevicePrimaryCtxRelease_v2(int device)
{
	int result = driver_enter("cuDevicePrimaryCtxRelease_v2");

	if (result)
		return result;
	if (!device_exists(device) || !primary[device].refs)
		return driver_leave(CUDA_INVALID_CONTEXT);
	primary[device].refs--;
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxPushCurrent_v2(void *context);
API int cuCtxPushCurrent_v2(void *context)
{
	struct context *c = context;
	int result = driver_enter("cuCtxPushCurrent_v2");

	if (result)
		return result;
	if (!c || c->refs < 1 || depth == STACK)
		return driver_leave(CUDA_INVALID_CONTEXT);
	stack[depth++] = c;
	pushed++;
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxPopCurrent_v2(void **context);
API int cuCtxPopCurrent_v2(void **context)
{
	int result = driver_enter("cuCtxPopCurrent_v2");

	if (result)
		return result;
	if (!depth)
		return driver_leave(CUDA_INVALID_CONTEXT);
	*context = stack[--depth];
	pushed--;
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxGetDevice(int *device);
API int cuCtxGetDevice(int *device)
{
	int result = driver_enter("cuCtxGetDevice");

	if (result)
		return result;
	if (!context_get_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	*device = context_get_current()->device;
	return driver_leave(CUDA_SUCCESS);
}

API int cuDeviceGetName(char *name, int room, int device);
API int cuDeviceGetName(char *name, int room, int device)
{
	int result = driver_enter("cuDeviceGetName");

	if (result)
		return result;
	snprintf(name, (size_t)room, "fake GPU %d", device);
	return driver_leave(CUDA_SUCCESS);
}

API int cuDeviceCanAccessPeer(int *can, int device, int peer);
API int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	int result = driver_enter("cuDeviceCanAccessPeer");

	if (result)
		return result;
	*can = device == peer;
	return driver_leave(CUDA_SUCCESS);
}

API int cuDevicePrimaryCtxReset_v2(int device);
API int cuDevicePrimaryCtxReset_v2(int device)
{
	int result = driver_enter("cuDevicePrimaryCtxReset_v2");

	if (result)
		return result;
	primary[device] = (struct context){ device, 1 };
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxGetCurrent(void **context);
API int cuCtxGetCurrent(void **context)
{
	int result = driver_enter("cuCtxGetCurrent");

	if (result)
		return result;
	*context = context_get_current();
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxSetCurrent(void *context);
API int cuCtxSetCurrent(void *context)
{
	int result = driver_enter("cuCtxSetCurrent");

	if (result)
		return result;
	fake_cuda_set_current(context);
	return driver_leave(CUDA_SUCCESS);
}

API void fake_cuda_set_attribute(int device, int attribute, int value)
{
	attributes[device][attribute] = value;
}

API int fake_cuda_retains(int device)
{
	return retains[device];
}

API void *fake_cuda_context_create(int device)
{
	struct context *c = driver_malloc(sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct context){ device, 1 };
	return c;
}

API void fake_cuda_context_destroy(void *context)
{
	free(context);
}

API void fake_cuda_set_current(void *context)
{
	depth = context ? 1 : 0;
	stack[0] = context;
}

API void *fake_cuda_current(void)
{
	return context_get_current();
}
