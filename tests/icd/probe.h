/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of extensions by programs without imports.  Each program is a real process, under the
 * loader, over the stub as an ICD.  Each test has a new cache.  Tests see a probe by the files in
 * the cache, and by the threads and children of the program's process.
 */
#ifndef TESTS_ICD_PROBE_H
#define TESTS_ICD_PROBE_H

#include "harness.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>

extern char probe_cache[64]; /* the directory of the test's cache */
extern bool probe_on_pocl;

/* Creates an empty cache, and removes the cache of the test before. */
void probe_create_cache(void);

/* Creates a cache for programs on PoCL, a real driver. */
void probe_create_cache_for_pocl(void);

/* Runs @program in a process with a newly loaded layer and driver.  Returns the program's result. */
int probe_run_program(int (*program)(void));

/*
 * Likewise.  A query gives a probe up after ten seconds, which a busy machine may need for the start of a
 * process.  Here five minutes are added, so each probe that answers is in time.
 */
int probe_run_answered(int (*program)(void));

/*
 * Likewise, and the ten seconds begin when @is_time is true and the program's children sleep, and are over
 * at once.
 */
int probe_run_given_up(int (*program)(void), bool (*is_time)(void));

/* For probe_run_given_up(): a script has noted that it runs. */
bool probe_has_run(void);

/*
 * As probe_run_given_up(), or as probe_run_answered() if @is_time is NULL, and then waits for the ends of
 * all probe processes of the program.
 */
int probe_run_to_end(int (*program)(void), bool (*is_time)(void));

/*
 * A probe's script: the probe hangs as long as the test has its cache, ten minutes at most.  Its pause is
 * time: between two looks.
 */
#define PROBE_HANGS \
	"for i in $(seq 12000); do test -d $XDG_CACHE_HOME || exit 1; sleep 0.05; done; exit 1"

/* A probe's script: the real one. */
#define PROBE_ANSWERS PROBE_PATH " \"$@\""

/* Queries of a program. */
cl_platform_id probe_get_platform(void);
bool probe_platform_reports(void);
bool probe_device_reports(void);

/*
 * A program.  Returns 0 if the platform reports the name, and the query leaves no thread, no child
 * and no descriptor.
 */
int probe_query_platform(void);

/* probe_query_platform() without probe processes: only a kept record can give the name. */
int probe_query_kept(void);

/*
 * Programs.  Return 0 if the device reports the name, the platform does not, the device does not, or a
 * platform exists.
 */
int probe_query_device(void);
int probe_is_silent(void);
int probe_device_is_silent(void);
int probe_has_platform(void);

/* Copies the layer into a folder of the cache, with @script as climport-probe. */
void probe_install_layer(const char *script);

/* Makes the program load the layer of probe_install_layer(). */
void probe_use_installed_layer(void);

/*
 * Programs on the layer of probe_install_layer(): 100 times probe_is_silent(), of which the first alone may
 * wait; and a query.
 */
int probe_silent_with_installed(void);
int probe_query_with_installed(void);

/* For so many times this program has waited, and for so many seconds at most. */
int probe_count_waits(void);
int probe_longest_wait(void);

/* The number of entries in the cache's directory of results, with "." and "..". */
int probe_count_kept(void);

/* The number of lines in the file "ran" of the cache, which scripts write. */
int probe_count_runs(void);

#endif
