/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by name.  A driver's pointer would bypass the layer: for a function
 * that the layer intercepts the answer is the layer's.
 */
#include <string.h>

#include "icd/access/queue_bracket.h"
#include "icd/calls/command_buffer.h"
#include "icd/calls/external.h"
#include "icd/calls/intel.h"
#include "icd/calls/kernel_pointer.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/program.h"
#include "icd/queries/describe.h"
#include "icd/queries/make_facts.h"
#include "icd/queries/support.h"

struct named {
	const char *name;
	void *function;
	size_t slot;
};

#define NAMED(f) { #f, (void *)layer_##f, LAYER_ENTRY(f) },

/* NULL also if the driver lacks the function, which the layer would call. */
static void *address_intercepted(const char *name)
{
	static const struct named list[] = { INTERCEPTED(NAMED) };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!strcmp(list[i].name, name))
			return ((void *const *)&next)[list[i].slot] ? list[i].function : NULL;
	return NULL;
}

/* The function for the application in place of the driver's @function. */
static void *address_wrap(const char *name, void *function)
{
	void *ours = function ? address_intercepted(name) : NULL;

	if (!ours && function)
		ours = command_buffer_function(name);
	if (!ours && function)
		ours = kernel_pointer_function(name, function);
	if (!ours && function)
		ours = intel_function(name);
	if (!ours && function)
		ours = external_function(name);
	if (!ours && function && !strncmp(name, "clEnqueue", 9))
		queue_bracket_forbid();
	return ours ? ours : function;
}

/* A program that asks for a function must not pay for a test: only kept answers refuse. */
static bool platform_takes_imports(cl_platform_id platform)
{
	return platform && !support_nothing(platform);
}

static void *address_import_function(void)
{
	program_has_function();
	return (void *)layer_clImportMemoryARM;
}

static void *address_describe_function(void)
{
	program_needs_no_hint();
	return (void *)describe_device;
}

/* A function for all platforms, which looks at the context of each call. */
void *CL_API_CALL layer_clGetExtensionFunctionAddress(const char *name)
{
	if (name && !strcmp(name, "clImportMemoryARM"))
		return address_import_function();
	if (name && !strcmp(name, DESCRIBE_FUNCTION))
		return address_describe_function();
	if (name && !strcmp(name, PROBE_FUNCTION))
		return (void *)facts_make;
	return name ? address_wrap(name, next.clGetExtensionFunctionAddress(name)) : NULL;
}

void *CL_API_CALL layer_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
								 const char *name)
{
	if (name && !strcmp(name, "clImportMemoryARM") && platform_takes_imports(platform))
		return address_import_function();
	if (name && !strcmp(name, DESCRIBE_FUNCTION))
		return address_describe_function();
	if (name && !strcmp(name, PROBE_FUNCTION))
		return (void *)facts_make;
	if (!name)
		return next.clGetExtensionFunctionAddressForPlatform(platform, name);
	return address_wrap(name, next.clGetExtensionFunctionAddressForPlatform(platform, name));
}
