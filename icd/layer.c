/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of an OpenCL layer: cl_loader_layers 1.0.  Nothing here calls OpenCL: the loader
 * is in the middle of its own initialisation.  The optional clDeinitLayer has nothing to do: the
 * library stays loaded (-z nodelete), since drivers may call its callbacks later.
 */
#include "icd/layer.h"

#include <stdbool.h>
#include <string.h>

#include "icd/config.h"
#include "icd/info_answer.h"
#include "icd/place.h"
#include "util/setting.h"

#define EXPORT __attribute__((visibility("default")))

struct _cl_icd_dispatch next;

/* The loader gets layer_dispatch without the functions that the next layer lacks. */
static struct _cl_icd_dispatch offered;

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
					 size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION)
		return CL_INVALID_VALUE;
	return info_answer(&version, sizeof(version), size, value, size_ret);
}

/*
 * "The table can contain NULL value entries": a slot is filled only where this
 * layer has a function and the target has one to call.  A disabled layer fills no slot.
 */
static void layer_offer(size_t entries)
{
	for (size_t i = 0; i < LAYER_ENTRIES; i++) {
		const bool has_target = !config.is_disabled && i < entries && layer_slot(&next, i);
		void *ours = has_target ? layer_slot(&layer_dispatch, i) : NULL;

		memcpy((char *)&offered + i * sizeof(ours), &ours, sizeof(ours));
	}
}

/* If a loader lists the library twice, the layer would call itself for ever. */
static bool is_ours(const struct _cl_icd_dispatch *target)
{
	return target->clGetExtensionFunctionAddress ==
	       layer_dispatch.clGetExtensionFunctionAddress;
}

/* A table longer or shorter than the header's is no error: loaders and headers differ in age. */
static cl_int layer_set_up(cl_uint num_entries, const struct _cl_icd_dispatch *target,
			   cl_uint *num_entries_ret, const struct _cl_icd_dispatch **dispatch_ret,
			   void *caller)
{
	size_t entries = num_entries < LAYER_ENTRIES ? num_entries : LAYER_ENTRIES;

	if (!target || !num_entries_ret || !dispatch_ret || num_entries < LAYER_MIN_ENTRIES ||
	    is_ours(target))
		return CL_INVALID_VALUE;
	memset(&next, 0, sizeof(next));
	memcpy(&next, target, entries * sizeof(void *));
	config_read();
	layer_offer(entries);
	place_note_below(&next, LAYER_ENTRIES);
	place_note_loader(caller);
	setting_report();
	*num_entries_ret = entries;
	*dispatch_ret = &offered;
	return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint num_entries, const struct _cl_icd_dispatch *target,
				      cl_uint *num_entries_ret,
				      const struct _cl_icd_dispatch **dispatch_ret)
{
	return layer_set_up(num_entries, target, num_entries_ret, dispatch_ret,
			    __builtin_return_address(0));
}

/* cl_properties of newer headers is a cl_ulong, zero-terminated in a list; none is known here. */
EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint num_entries,
						    const struct _cl_icd_dispatch *target,
						    cl_uint *num_entries_ret,
						    const struct _cl_icd_dispatch **dispatch_ret,
						    const cl_properties *properties);

EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint num_entries,
						    const struct _cl_icd_dispatch *target,
						    cl_uint *num_entries_ret,
						    const struct _cl_icd_dispatch **dispatch_ret,
						    const cl_properties *properties)
{
	if (properties && *properties)
		return CL_INVALID_PROPERTY;
	return layer_set_up(num_entries, target, num_entries_ret, dispatch_ret,
			    __builtin_return_address(0));
}
