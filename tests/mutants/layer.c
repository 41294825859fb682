/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of the layer: see mutants.h. */
#include "mutants.h"

#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum mutant mutant;
struct _cl_icd_dispatch mutant_next;

static struct _cl_icd_dispatch offered;
static pthread_t main_thread;

static const char *const mutant_names[MUTANT_COUNT] = {
	"none",
#define USE(name, version, where, says, call, when, action) #name,
#define IMPORT(name, version, where, says, when, outcome) #name,
#define COPY(name, version, where, says, when, how) #name,
#define QUERY(name, version, where, says, shapes, param, answer) #name,
#define EXTERNAL(name, version, where, says, is_command, from, to) #name,
#define OTHER(name, version, where, says) #name,
#include "rows.h"
};

size_t mutant_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

bool mutant_is_main_thread(void)
{
	return pthread_equal(main_thread, pthread_self());
}

/* A misspelt name must not look like a mutant that survives. */
static void mutant_read_environment(void)
{
	const char *name = getenv("MUTANT");

	while (mutant < MUTANT_COUNT && strcmp(name ? name : "none", mutant_names[mutant]))
		mutant++;
	if (mutant < MUTANT_COUNT)
		return;
	fprintf(stderr, "mutants: no mutant is called %s\n", name);
	abort();
}

/* ISO C has no cast from void * to a function. */
static mutant_import_function mutant_as_function(void *address)
{
	mutant_import_function function;

	memcpy(&function, &address, sizeof(function));
	return function;
}

mutant_import_function mutant_next_import(cl_context context)
{
	(void)context;
	return mutant_as_function(mutant_next.clGetExtensionFunctionAddress("clImportMemoryARM"));
}

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *result,
					 size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (result && size < sizeof(version)))
		return CL_INVALID_VALUE;
	if (result)
		memcpy(result, &version, sizeof(version));
	if (size_ret)
		*size_ret = sizeof(version);
	return CL_SUCCESS;
}

static void mutant_offer(void)
{
	mutant_offer_enqueue(&offered);
	mutant_offer_query(&offered);
	mutant_offer_derive(&offered);
	mutant_offer_life(&offered);
	mutant_offer_names(&offered);
	mutant_offer_external(&offered);
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target,
				      cl_uint *entries_ret,
				      const struct _cl_icd_dispatch **dispatch_ret)
{
	const size_t most = sizeof(mutant_next) / sizeof(void *);

	if (entries > most)
		entries = most;
	memcpy(&mutant_next, target, entries * sizeof(void *));
	*entries_ret = entries;
	*dispatch_ret = &offered;
	main_thread = pthread_self();
	mutant_read_environment();
	mutant_offer();
	return CL_SUCCESS;
}
