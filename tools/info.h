/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport info: which memory each OpenCL device takes.
 *
 * Drivers run in a child (info_part.c), which prints when it knows all.  If the child dies before,
 * each driver is asked alone, so that the one at fault is named and the others are printed.
 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include <CL/cl.h>

#include "drivers.h"
#include "icd/queries/describe.h"

#define INFO_TYPES 2 /* host memory and dma-bufs */

struct info_options {
	const char *platform, *device; /* a number, or a part of the name; NULL: all */
	const struct info_form *form;
};

/* What the children tell their parent, in memory of both. */
struct info_shared {
	char step[128]; /* what may end the child now: "in clGetDeviceIDs of PoCL" */
	bool ended;	/* all is known, and printed */
	bool failed;	/* as standard error says */
	int unwritten;	/* errno: what is printed cannot be written */
	/* Platforms that drivers give, and platforms and devices that were printed. */
	unsigned int platforms, printed, devices;
	char why[][DRIVER_WHY_SIZE]; /* what is wrong with each driver; "": nothing */
};

struct info_platform {
	cl_uint number;
	char name[256], version[256];
	cl_int err; /* of clGetDeviceIDs() */
	bool first; /* to be printed */
};

struct info_device {
	cl_uint number;
	char name[256], driver[256];
	char extension[32]; /* the version that the device reports; "" without the extension */
	bool reports;	    /* the extension's name is in the device's list */
	bool reports_khr;   /* ... and cl_khr_external_memory_dma_buf */
	bool first;	    /* of the platform, to be printed */
	bool known[INFO_TYPES];
	struct device_description types[INFO_TYPES];
};

/* A form of the output.  Called in order; a platform may have no devices. */
struct info_form {
	void (*begin)(void); /* may be NULL */
	/* The drivers' process ended so; from here on each driver is alone. */
	void (*alone)(const char *how);
	void (*platform)(FILE *out, const struct info_platform *platform);
	void (*device)(FILE *out, const struct info_device *device);
	void (*platform_end)(FILE *out); /* may be NULL */
	void (*end)(const struct drivers *drivers, char (*why)[DRIVER_WHY_SIZE]);
};

extern const struct info_form info_text, info_json;

/*
 * The command, with the layer enabled: argv[0] is "info".  Prints platforms and devices to standard
 * output.  Returns an exit status: 1 if there is no device, a driver died, or the layer was not loaded.
 */
int info_command(int argc, char **argv);

/* The child, with @count drivers from @first on.  Returns an exit status. */
int info_part(const struct info_options *options, const struct drivers *drivers, size_t first,
	      size_t count, struct info_shared *shared);

#endif /* TOOLS_INFO_H */
