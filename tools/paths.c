/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of this program, or NULL. */
static const char *program_dir(void)
{
	static char dir[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (length < 0)
		return NULL;
	dir[length] = '\0';
	*strrchr(dir, '/') = '\0';
	return dir;
}

/* The first of two places, relative to this program, that has the file. */
static const char *find(char *path, const char *built, const char *installed)
{
	const char *const places[] = { built, installed }, *dir = program_dir();
	char unresolved[2 * PATH_MAX];

	for (int i = 0; dir && i < 2; i++) {
		snprintf(unresolved, sizeof(unresolved), "%s/%s", dir, places[i]);
		if (realpath(unresolved, path))
			return path;
	}
	fprintf(stderr, "climport: neither %s nor %s is there, seen from %s\n", built, installed,
		dir ? dir : "/proc/self/exe");
	return NULL;
}

const char *path_layer(void)
{
	static char path[PATH_MAX];

	return find(path, "../icd/libCLImportMemoryLayer.so",
		    LIBDIR_FROM_BIN "/libCLImportMemoryLayer.so");
}

const char *path_conform(void)
{
	static char path[PATH_MAX];

	return find(path, "../tests/spec/climport-conform",
		    LIBEXECDIR_FROM_BIN "/climport/climport-conform");
}

int enable_layer(void)
{
	const char *layer = path_layer(), *others = getenv("OPENCL_LAYERS");
	char *list;
	int done;

	if (!layer)
		return 0;
	if (others && strstr(others, layer))
		return 1;
	if (asprintf(&list, "%s%s%s", layer, others && *others ? ":" : "", others ? others : "") <
	    0)
		return 0;
	done = !setenv("OPENCL_LAYERS", list, 1);
	free(list);
	return done;
}
