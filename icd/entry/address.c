/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by their place in the dispatch table, and by name.  A driver's pointer would bypass the
 * layer: for a function that the layer intercepts the answer is the layer's.
 */
#include <string.h>

#include "icd/access/queue_bracket.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/probe/interface.h"

/* A function that is not intercepted is not touched, and costs nothing. */
#define CALL(name) .name = layer_##name,
const struct _cl_icd_dispatch layer_dispatch = {
#include "icd/table.h"
};

/* The layer's function @name; NULL also if the driver lacks what it would call. */
static void *address_intercepted(const char *name)
{
#define CALL(f) { #f, (void *)layer_##f, (void *const *)&next.f },
#define EXTENSION(type, f, parameters) \
	{ #f, (void *)layer_##f, (void *const *)&next.clGetExtensionFunctionAddressForPlatform },
	static const struct {
		const char *name;
		void *ours;
		void *const *calls;
	} list[] = {
#include "icd/table.h"
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!strcmp(list[i].name, name))
			return *list[i].calls ? list[i].ours : NULL;
	return NULL;
}

/* Whether a function enqueues, or waits for commands. */
static bool address_observes(const char *name)
{
	return !strncmp(name, "clEnqueue", 9) || !strcmp(name, "clMemBlockingFreeINTEL");
}

/* The function for the application in place of the driver's @function. */
static void *address_wrap(const char *name, void *function)
{
	void *ours = function ? address_intercepted(name) : NULL;

	if (!ours && function && address_observes(name))
		queue_bracket_forbid();
	return ours ? ours : function;
}

/* A function that the layer adds to drivers that lack it; or NULL. */
static void *address_added(const char *name)
{
	if (!strcmp(name, "clImportMemoryARM"))
		return (void *)layer_clImportMemoryARM;
	return !strcmp(name, "clEnqueueAcquireExternalMemObjectsKHR") ||
			       !strcmp(name, "clEnqueueReleaseExternalMemObjectsKHR")
		       ? address_intercepted(name)
		       : NULL;
}

/* A function of the layer for climport's own programs, or one that it adds; or NULL. */
static void *address_own(const char *name)
{
	if (!strcmp(name, DESCRIBE_FUNCTION))
		return (void *)describe_device;
	return strcmp(name, PROBE_FUNCTION) ? address_added(name) : (void *)facts_make;
}

/* A function for all platforms, which looks at the context of each call. */
void *CL_API_CALL layer_clGetExtensionFunctionAddress(const char *name)
{
	void *ours = name ? address_own(name) : NULL;

	if (!name || ours)
		return ours;
	return address_wrap(name, next.clGetExtensionFunctionAddress(name));
}

/* "A non-NULL return value [...] does not guarantee that an extension function is actually supported by the platform." */
void *CL_API_CALL layer_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
								 const char *name)
{
	void *own = platform && name ? address_own(name) : NULL;

	if (own)
		return own;
	if (!name)
		return next.clGetExtensionFunctionAddressForPlatform(platform, name);
	return address_wrap(name, next.clGetExtensionFunctionAddressForPlatform(platform, name));
}
