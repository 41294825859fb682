/* SPDX-License-Identifier: Apache-2.0 */
/* The folder is that of PoCL's lib/CL/pocl_cache.c, pocl_cache_init_topdir(). */
#include "kernel_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* False: PoCL takes a folder that every user can write. */
static bool kernel_cache_path(char path[PATH_MAX])
{
	static const struct {
		const char *variable, *below;
	} places[] = {
		{ "POCL_CACHE_DIR", "" },
		{ "XDG_CACHE_HOME", "/pocl/kcache" },
		{ "HOME", "/.cache/pocl/kcache" },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *value = getenv(places[i].variable);

		if (!value || !*value)
			continue;
		snprintf(path, PATH_MAX, "%s%s", value, places[i].below);
		return true;
	}
	return false;
}

/* Makes and removes a folder where PoCL would: in @path, or in the deepest folder that exists. */
static int kernel_cache_try(const char *path)
{
	char parent[PATH_MAX], made[PATH_MAX + 32];

	snprintf(parent, sizeof(parent), "%s", path);
	while (access(parent, F_OK) && errno == ENOENT && strrchr(parent, '/') > parent)
		*strrchr(parent, '/') = '\0';
	snprintf(made, sizeof(made), "%s/climport.XXXXXX", parent);
	if (!mkdtemp(made))
		return errno;
	rmdir(made);
	return 0;
}

const char *kernel_cache_why(cl_platform_id platform)
{
	static char text[PATH_MAX + 256];
	char name[256] = "", path[PATH_MAX];
	int error;

	clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name, NULL);
	if (strcmp(name, "Portable Computing Language") || !kernel_cache_path(path))
		return NULL;
	error = kernel_cache_try(path);
	if (!error)
		return NULL;
	snprintf(text, sizeof(text),
		 "PoCL keeps compiled kernels in %s, where this user can write no file (%s); set "
		 "POCL_CACHE_DIR to a folder that can be written",
		 path, strerror(error));
	return text;
}
