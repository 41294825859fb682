/* SPDX-License-Identifier: Apache-2.0 */
/* How devices take memory: the layer's answer, or the driver's where the layer is not loaded. */
#ifndef IMPORT_API_IMPORT_INFO_H
#define IMPORT_API_IMPORT_INFO_H

#include <stdbool.h>

#include <CL/climport.h>

/*
 * @info is set on success, but for info->kinds.  So is @by_uuid_alone, which may be NULL: whether the
 * device takes no host memory but climport_alloc()'s for the UUID.  Returns 0 or a negative errno,
 * logged: see climport_get_import_info().
 */
int import_info_read(cl_device_id device, cl_uint type, struct climport_import_info *info,
		     bool *by_uuid_alone);

#endif
