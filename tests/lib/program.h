/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs on libclimport, the system's loader and the stub as an ICD.  Each program is a child of
 * the test, and is not linked to the loader.
 */
#ifndef TESTS_LIB_PROGRAM_H
#define TESTS_LIB_PROGRAM_H

#include "harness.h"

#include <CL/climport.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <unistd.h>

#define PROGRAM_DEVICES 4

extern void *program_loader;
extern cl_device_id program_devices[PROGRAM_DEVICES];
extern cl_uint program_device_count;

#define CL(name) ((__typeof__(&(name)))dlsym(program_loader, #name))

/* For a child: a false condition becomes the exit status. */
#define CHECK(condition)                                                                \
	(void)((condition) || (printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition), \
			       fflush(stdout), _exit(1), 0))

/* Opens the loader. */
void program_find_devices(void);

/* A context of all devices; opens the loader. */
cl_context program_create_context(void);

size_t program_query_size(cl_mem mem, cl_mem_info name);

/* A kernel of the first device adds 1 to the first byte. */
void program_increment(cl_context context, cl_mem mem);

/* Runs @program in a child, with the layer if @layer is true. */
void program_expect_works(void (*program)(void), bool layer);

/* The same with "NAME=VALUE" in the environment; @environment may be NULL. */
void program_expect_works_in(const char *environment, void (*program)(void), bool layer);

#endif
