/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport info: which memory each OpenCL device takes.
 *
 * Drivers run in a process of their own (info_part.c), which sends records to the first process.  If
 * that process dies, each driver is asked alone, so that the one at fault is named and the others are
 * printed.
 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <limits.h>
#include <stdbool.h>

#include <CL/cl.h>

#include "drivers.h"
#include "part.h"

#define INFO_TYPES 2 /* host memory and dma-bufs */

struct info_options {
	const char *platform, *device; /* a number, or a part of the name; NULL: all */
	const struct info_form *form;
	bool part; /* this is the drivers' process; the words behind the options are libraries */
};

struct info_platform {
	cl_uint number;
	char name[256], version[256];
	char note[PATH_MAX + 256]; /* why the driver has no devices or compiles no kernels, or "" */
	cl_int err;		   /* of clGetDeviceIDs() */
};

/* How a device takes a type of memory: struct device_description. */
struct info_type {
	bool known;
	char method[64]; /* "": refused */
	char why[1024];
	char kept[512]; /* "": nothing is kept */
	size_t address_align, size_align;
};

struct info_device {
	cl_uint number;
	char name[256], driver[256];
	char extension[32]; /* the version that the device reports; "" without the extension */
	bool reports;	    /* the extension's name is in the device's list */
	struct info_type types[INFO_TYPES];
};

/* What the drivers' process sends, in this order; a step comes before what it names. */
enum info_kind { INFO_STEP, INFO_DRIVER, INFO_PLATFORM, INFO_DEVICE, INFO_END };

struct info_record {
	enum info_kind kind;
	union {
		char step[128]; /* what may end the process now: "in clGetDeviceIDs" */
		struct {
			size_t number; /* of the library among the words */
			char why[DRIVER_WHY_SIZE];
		} driver; /* gives no platform */
		struct info_platform platform;
		struct info_device device;
		struct {
			cl_uint platforms;
			bool failed; /* as standard error says */
		} end;
	};
};

/* A driver, and what is wrong with it. */
struct info_driver {
	const struct driver *driver;
	char why[DRIVER_WHY_SIZE]; /* "": nothing */
};

/* A form of the output.  Each function is called in order; a platform may have no devices. */
struct info_form {
	void (*begin)(void);
	/* The drivers' process ended so; from here on each driver is alone. */
	void (*alone)(const char *how);
	void (*platform)(const struct info_platform *platform);
	void (*device)(const struct info_device *device);
	void (*platform_end)(void);
	void (*drivers)(const struct info_driver *drivers, size_t count);
	void (*end)(void);
};

extern const struct info_form info_text, info_json;

/*
 * The command, with the layer enabled: argv[0] is "info".  Prints platforms and devices to standard
 * output.  Returns an exit status: 1 if there is no device, a driver died, or the layer was not loaded.
 */
int info_command(int argc, char **argv);

/* The drivers' process.  Returns an exit status. */
int info_part(const struct info_options *options, char **libraries);

#endif /* TOOLS_INFO_H */
