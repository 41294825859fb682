/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport info: which memory each OpenCL device takes.
 *
 * Drivers run in a child (info_part.c), which writes what it finds into memory that the parent prints.
 * If the child dies before it knows all, each driver is asked alone, so that the one at fault is named
 * and the others are printed.
 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include <CL/cl.h>

#include "drivers.h"

#define INFO_PLATFORMS 64
#define INFO_DEVICES 256 /* of all platforms; more are not looked at */
#define INFO_TYPES 2	 /* host memory and dma-bufs */

struct info_platform {
	cl_uint number;
	char name[256], version[256];
	cl_int err; /* of clGetDeviceIDs() */
};

/* How a device takes a type of memory: struct device_description, without pointers. */
struct info_type {
	char method[32]; /* "": refused */
	char why[1024], kept[512];
	size_t address_align, size_align;
};

struct info_device {
	size_t platform; /* an index into the list */
	cl_uint number;
	char name[256], driver[256];
	char extension[32]; /* the version that the device reports; "" without the extension */
	bool reports;	    /* the extension's name is in the device's list */
	bool reports_khr;   /* ... and cl_khr_external_memory_dma_buf */
	struct info_type types[INFO_TYPES];
};

/* What is known, in memory of parent and children. */
struct info_shared {
	char step[128]; /* what may end the child now: "in clGetDeviceIDs of PoCL" */
	bool ended;	/* all is known */
	bool failed;	/* as standard error says */
	bool any;	/* a driver gives a platform */
	char alone
		[320]; /* how the process of all drivers died, and each is alone; "": it did not */
	size_t platform_count, device_count; /* that the options choose */
	struct info_platform platforms[INFO_PLATFORMS];
	struct info_device devices[INFO_DEVICES];
	char why[][DRIVER_WHY_SIZE]; /* what is wrong with each driver; "": nothing */
};

typedef void info_print_fn(const struct info_shared *shared, const struct drivers *drivers);

struct info_options {
	const char *platform, *device; /* a number, or a part of the name; NULL: all */
	info_print_fn *print;
};

info_print_fn info_text, info_json;

/*
 * The command, with the layer enabled: argv[0] is "info".  Prints platforms and devices to standard
 * output.  Returns an exit status: 1 if there is no device, a driver died, or the layer was not loaded.
 */
int info_command(int argc, char **argv);

/* The child, with @count drivers from @first on. */
void info_part(const struct info_options *options, const struct drivers *drivers, size_t first,
	       size_t count, struct info_shared *shared);

#endif /* TOOLS_INFO_H */
