/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatch tables, the functions reached by address, and the exports of an ICD. */
#include "internal.h"

#define F(name) .name = stub_##name,
#define N F
#define X(name)
#define V(name)
STUB_API const struct _cl_icd_dispatch stub_dispatch = {
#include "functions.h"
};
#undef N

#define N(name)
STUB_API const struct _cl_icd_dispatch stub_dispatch_12 = {
#include "functions.h"
};
#undef V
#undef X
#undef N
#undef F

/* Like real drivers, the stub has addresses for its core functions too. */
#define F(name) { #name, (void *)(uintptr_t)stub_##name },
#define N F
#define X F
#define V F
static const struct {
	const char *name;
	void *address;
} by_address[] = {
#include "functions.h"
};
#undef V
#undef X
#undef N
#undef F

static void *extension_address(const char *name, unsigned platforms_native)
{
	if (!name || (!strcmp(name, "clImportMemoryARM") && !platforms_native))
		return NULL;
	if (!strcmp(name, "clIcdGetPlatformIDsKHR"))
		return (void *)stub_clIcdGetPlatformIDsKHR;
	if (!strncmp(name, "clEnqueueAcquireExternal", 24) ||
	    !strncmp(name, "clEnqueueReleaseExternal", 24))
		return stub_khr_function(name);
	if (command_form(name))
		return command_form(name);
	/* functions of extensions that no layer knows */
	if (!strcmp(name, "clEnqueueSomethingSTUB") || !strcmp(name, "clMemBlockingFreeINTEL"))
		return (void *)(uintptr_t)stub_clFinish;
	for (size_t i = 0; i < sizeof(by_address) / sizeof(*by_address); i++)
		if (!strcmp(by_address[i].name, name))
			return by_address[i].address;
	return NULL;
}

void *CL_API_CALL stub_clGetExtensionFunctionAddress(const char *name)
{
	CALL(clGetExtensionFunctionAddress, U(name));
	return extension_address(name, stub_get(STUB_NATIVE) != 0);
}

void *CL_API_CALL stub_clGetExtensionFunctionAddressForPlatform(cl_platform_id handle,
								const char *name)
{
	struct platform *platform = object_get(handle, STUB_PLATFORM);

	CALL(clGetExtensionFunctionAddressForPlatform, U(handle), U(name));
	if (!platform || stub_get(STUB_UNNAMED) > 1)
		return NULL;
	if (stub_get(STUB_UNNAMED) && name && !strcmp(name, "clIcdGetPlatformIDsKHR"))
		return NULL;
	if (stub_get(STUB_UNNAMED) && name && !strcmp(name, "clGetPlatformInfo"))
		return (void *)stub_clGetPlatformInfo;
	return extension_address(name, stub_get(STUB_NATIVE) >> platform->index & 1);
}

/* The functions that loaders look up in an ICD. */
STUB_API CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
	return stub_clGetExtensionFunctionAddress(name);
}

STUB_API CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num, cl_platform_id *out,
								cl_uint *num_ret)
{
	return stub_clGetPlatformIDs(num, out, num_ret);
}

STUB_API CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
							   cl_platform_info name, size_t room,
							   void *out, size_t *size_ret)
{
	return stub_clGetPlatformInfo(platform, name, room, out, size_ret);
}
