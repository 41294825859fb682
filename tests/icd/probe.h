/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that query and import nothing: real processes, under the loader, over the stub as an
 * ICD.  Each test has a cache of its own.  What a query starts is seen by the files that it leaves
 * there, and by the process's threads and children.
 */
#ifndef TESTS_ICD_PROBE_H
#define TESTS_ICD_PROBE_H

#include "harness.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>

extern char probe_cache[64];
extern bool probe_on_pocl;

void probe_create_cache(void);

/* For a real driver, PoCL. */
void probe_create_cache_for_pocl(void);

/* Runs @program in a process that loads the layer and the driver anew. */
int probe_run_program(int (*program)(void));

double probe_clock(void);

/*
 * Runs a program that returns 1 without the name, where nothing is kept.  A query waits two seconds
 * for its probe: a machine that needs more is given another try, a query that ends sooner is not.
 */
int probe_run_answered(int (*program)(void));

cl_platform_id probe_get_platform(void);

bool probe_platform_reports(void);

bool probe_device_reports(void);

/* 0: the name is reported, and this process has one thread, no child and no new descriptor. */
int probe_query_platform(void);

int probe_is_silent(void);

int probe_count_kept(void);

/* With no process to ask: what is kept answers. */
int probe_query_kept(void);

int probe_query_device(void);

int probe_has_platform(void);

/* Copies the layer to a folder of the cache's, with @script for climport-probe. */
void probe_install_layer(const char *script);

/* The program loads the layer that probe_install_layer() made. */
void probe_use_installed_layer(void);

int probe_silent_with_installed(void);

int probe_query_with_installed(void);

int probe_count_runs(void);

#endif
