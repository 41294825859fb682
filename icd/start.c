/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/start.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/text.h"

static atomic_bool start_differs;
static unsigned long long start_noted;

/* The value in "NAME=VALUE", or NULL: another variable. */
static const char *start_value(const char *name, const char *variable)
{
	const size_t length = strlen(name);

	return !strncmp(variable, name, length) && variable[length] == '=' ? variable + length + 1
									   : NULL;
}

bool start_is_watcher(const char *variable)
{
	static const char *const runtimes[] = {
		"libasan.", "libtsan.",	  "libubsan.",	  "liblsan.",
		"libmsan.", "libhwasan.", "libclang_rt.", "vgpreload_",
	};

	const char *value = start_value("LD_PRELOAD", variable);

	for (size_t i = 0; value && i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strstr(value, runtimes[i]))
			return true;
	return false;
}

/* What a probe process does not inherit, and what drivers set themselves: PoCL, while devices are listed. */
static bool start_is_ignored(const char *variable)
{
	static const char *const ignored[] = {
		"OPENCL_LAYERS=",
		"CLIMPORT_PROBE=",
		"HWLOC_PLUGINS_PATH=",
	};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (!strncmp(variable, ignored[i], strlen(ignored[i])))
			return true;
	return start_is_watcher(variable);
}

/* Variables by which drivers choose devices and ways of work. */
static bool start_chooses(const char *variable)
{
	static const char *const prefixes[] = {
		"POCL_",  "CUDA_", "NVIDIA_", "NV_",	 "RUSTICL_",	"MESA_", "GALLIUM_",
		"LIBGL_", "DRI_",  "RADEON_", "AMD_",	 "HSA_",	"ROCR_", "HIP_",
		"GPU_",	  "LP_",   "ZE_",     "INTEL_",	 "IGC_",	"NEO",	 "CL_",
		"OCL_",	  "CLVK_", "VK_",     "OPENCL_", "LD_PRELOAD=",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * The order of the variables does not matter.  With NEOReadDebugKeys, Intel's driver reads dozens of variables whose
 * names have nothing in common.
 */
unsigned long long start_sum(void)
{
	const bool all = getenv("NEOReadDebugKeys");
	unsigned long long sum = 0;

	for (char **line = environ; line && *line; line++)
		if (!start_is_ignored(*line) && (all || start_chooses(*line)))
			sum += text_hash(*line);
	return sum;
}

__attribute__((constructor)) static void start_note(void)
{
	start_noted = start_sum();
}

bool start_is_changed(void)
{
	if (start_sum() != start_noted)
		atomic_store(&start_differs, true);
	return atomic_load(&start_differs);
}
