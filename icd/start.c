/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/start.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "icd/text.h"

static char **_Atomic start_noted; /* NULL: not noted, or no memory */
static char **start_before;	   /* what was noted before a change */
static unsigned long long start_noted_sum;
static atomic_bool start_differs;

/* Set, Intel's driver reads dozens of variables whose names have nothing in common. */
#define NEO_READS_ALL "NEOReadDebugKeys"

/*
 * Variables without influence, variables without inheritance by a probe process, LD_PRELOAD, and what
 * drivers set themselves: PoCL sets HWLOC_PLUGINS_PATH while devices are listed.
 */
static bool start_is_ignored(const char *variable)
{
	static const char *const ignored[] = {
		"OPENCL_LAYERS=",
		"CLIMPORT_LOG=",
		"CLIMPORT_PROBE=",
		"CLIMPORT_VERSION=",
		"CLIMPORT_VERIFY=",
		"CLIMPORT_DISABLE=",
		"CLIMPORT_IMAGE2D_FROM_BUFFER=",
		"LD_PRELOAD=",
		"HWLOC_PLUGINS_PATH=",
	};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (!strncmp(variable, ignored[i], strlen(ignored[i])))
			return true;
	return false;
}

/* Variables by which drivers, and the layer, choose devices and ways of work. */
static bool start_chooses(const char *variable)
{
	static const char *const prefixes[] = {
		"POCL_",  "CUDA_", "NVIDIA_", "NV_",	 "RUSTICL_",  "MESA_", "GALLIUM_",
		"LIBGL_", "DRI_",  "RADEON_", "AMD_",	 "HSA_",      "ROCR_", "HIP_",
		"GPU_",	  "LP_",   "ZE_",     "INTEL_",	 "IGC_",      "NEO",   "CL_",
		"OCL_",	  "CLVK_", "VK_",     "OPENCL_", "CLIMPORT_",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static char **start_now(void)
{
	static char *nothing[] = { NULL };

	return environ ? environ : nothing;
}

/* NULL: not set. */
static const char *start_value(const char *name, char **lines)
{
	const size_t length = strlen(name);

	for (; *lines; lines++)
		if (!strncmp(*lines, name, length) && (*lines)[length] == '=')
			return *lines + length + 1;
	return NULL;
}

/* The order of the variables does not matter. */
static unsigned long long start_sum_of(char **lines)
{
	const bool all = start_value(NEO_READS_ALL, lines);
	unsigned long long sum = 0;

	for (; *lines; lines++)
		if (!start_is_ignored(*lines) && (all || start_chooses(*lines)))
			sum += text_summand(*lines);
	return sum;
}

static void start_free(char **lines)
{
	for (size_t i = 0; lines[i]; i++)
		free(lines[i]);
	free(lines);
}

/* NULL: no memory. */
static char **start_copy(char **lines)
{
	char **copy;
	size_t count = 0;

	while (lines && lines[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		copy[i] = strdup(lines[i]);
		if (copy[i])
			continue;
		start_free(copy);
		return NULL;
	}
	return copy;
}

void start_note_environment(void)
{
	if (start_noted)
		return;
	start_noted_sum = start_sum_of(start_now());
	atomic_store(&start_noted, start_copy(environ));
}

/* The older copy stays: another thread may read it. */
static void start_note_change(void)
{
	char **now = start_copy(environ);

	if (atomic_exchange(&start_differs, true)) {
		if (now)
			start_free(now);
		return;
	}
	start_before = atomic_load(&start_noted);
	if (now)
		atomic_store(&start_noted, now);
}

bool start_is_changed(void)
{
	if (!atomic_load(&start_differs) &&
	    (!start_noted || start_sum_of(start_now()) != start_noted_sum))
		start_note_change();
	return atomic_load(&start_differs);
}

char **start_environment(void)
{
	char **noted;

	start_is_changed();
	noted = atomic_load(&start_noted);
	return noted ? noted : start_now();
}

unsigned long long start_sum(void)
{
	return start_sum_of(start_environment());
}

const char *start_variable(const char *name)
{
	return getauxval(AT_SECURE) ? NULL : start_value(name, start_environment());
}
