/* SPDX-License-Identifier: Apache-2.0 */
/* climport info: which memory each OpenCL device takes. */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <stdbool.h>

#include <CL/cl.h>

#include "icd/queries/describe.h"

#define INFO_TYPES 2 /* host memory and dma-bufs */

struct info_platform {
	cl_uint number;
	char name[256], version[256];
	const char *note; /* NULL, or why the driver has no devices or compiles no kernels */
	cl_int err;	  /* of clGetDeviceIDs() */
};

struct info_device {
	cl_uint number;
	char name[256], driver[256];
	char extension[32]; /* the version that the device reports; "" without the extension */
	bool reports;	    /* the extension's name is in the device's list */
	bool known[INFO_TYPES];
	struct device_description types[INFO_TYPES];
};

/* A form of the output.  Each function is called in order; a platform may have no devices. */
struct info_form {
	void (*begin)(void);
	void (*platform)(const struct info_platform *platform);
	void (*device)(const struct info_device *device);
	void (*platform_end)(void);
	void (*end)(void);
};

extern const struct info_form info_text, info_json;

/*
 * The command, with the layer enabled: argv[0] is "info".  Prints platforms and devices to standard
 * output.  Returns an exit status: 1 if there is no device, or the layer was not loaded.
 */
int info_command(int argc, char **argv);

#endif /* TOOLS_INFO_H */
