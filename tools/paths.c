/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "terminal.h"

/* The program's folder, or NULL. */
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

/* The file in the first of two places, relative to the program's folder; NULL: in none. */
static const char *paths_find(char *path, const char *built, const char *installed)
{
	const char *const places[] = { built, installed }, *dir = program_dir();
	char unresolved[2 * PATH_MAX];

	for (int i = 0; dir && i < 2; i++) {
		snprintf(unresolved, sizeof(unresolved), "%s/%s", dir, places[i]);
		if (realpath(unresolved, path))
			return path;
	}
	return NULL;
}

static const char *paths_find_or_say(char *path, const char *built, const char *installed)
{
	const char *found = paths_find(path, built, installed), *dir = program_dir();

	if (!found)
		terminal_line(stderr, 4, "climport: neither %s nor %s exists, relative to %s",
			      built, installed, dir ? dir : "/proc/self/exe");
	return found;
}

const char *path_layer(void)
{
	static char path[PATH_MAX];

	return paths_find_or_say(path, "../icd/libCLImportMemoryLayer.so",
				 LAYERDIR_FROM_BIN "/libCLImportMemoryLayer.so");
}

const char *path_conform(void)
{
	static char path[PATH_MAX];

	return paths_find_or_say(path, "../tests/spec/climport-conform",
				 LIBEXECDIR_FROM_BIN "/climport/climport-conform");
}

static int paths_is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !strcmp(a, b) ||
	       (!stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* Whether an element of the list is the layer.  A longer path with the layer's in it is not. */
static int list_has(const char *list, const char *layer)
{
	char element[PATH_MAX];

	for (const char *end; list; list = *end ? end + 1 : NULL) {
		end = strchrnul(list, ':');
		if ((size_t)(end - list) >= sizeof(element))
			continue;
		memcpy(element, list, end - list);
		element[end - list] = '\0';
		if (paths_is_same_file(element, layer))
			return 1;
	}
	return 0;
}

/* Reports a path that would stop every loader, before a program is started. */
static int can_be_loaded(const char *layer)
{
	void *loaded;

	if (strchr(layer, ':')) {
		terminal_line(
			stderr, 4,
			"climport: the layer is at %s, and a colon separates two paths in "
			"OPENCL_LAYERS; install or build climport in a folder without a colon",
			layer);
		return 0;
	}
	loaded = dlopen(layer, RTLD_LAZY | RTLD_LOCAL);
	if (!loaded)
		terminal_line(stderr, 4, "climport: the layer cannot be loaded: %s", dlerror());
	return loaded != NULL;
}

/* Sets a variable to a list: a colon is between the two, unless one is empty or NULL. */
static int paths_set(const char *variable, const char *first, const char *second)
{
	const bool both = first && *first && second && *second;
	char *list;
	int done;

	if (asprintf(&list, "%s%s%s", first ? first : "", both ? ":" : "", second ? second : "") <
	    0)
		return 0;
	done = !setenv(variable, list, 1);
	free(list);
	return done;
}

int enable_layer(void)
{
	const char *layer = path_layer(), *others = getenv("OPENCL_LAYERS");

	if (!layer || !can_be_loaded(layer))
		return 0;
	return list_has(others, layer) || paths_set("OPENCL_LAYERS", layer, others);
}

/*
 * Whether programs that look clImportMemoryARM up in libOpenCL.so may have the library with the
 * symbol there: no driver of the machine has that name, and it has no symbol already.
 */
static bool paths_may_stand_in(void)
{
	void *present = dlopen("libOpenCL.so", RTLD_LAZY | RTLD_LOCAL);

	return !present || (!dlsym(present, "clImportMemoryARM") &&
			    dlsym(present, "clGetPlatformIDs") == (void *)clGetPlatformIDs);
}

int enable_symbol(void)
{
	static char folder[PATH_MAX];

	if (!paths_find(folder, "../import/opencl", LAYERDIR_FROM_BIN "/opencl") ||
	    !paths_may_stand_in())
		return 1;
	return paths_set("LD_LIBRARY_PATH", getenv("LD_LIBRARY_PATH"), folder);
}

bool loader_knows(const char *variable)
{
	Dl_info loader;
	struct stat st;
	void *file;
	bool knows;
	int fd;

	if (!dladdr((void *)clGetPlatformIDs, &loader))
		return false;
	fd = open(loader.dli_fname, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	file = fstat(fd, &st) ? MAP_FAILED : mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return false;
	knows = memmem(file, st.st_size, variable, strlen(variable) + 1) != NULL;
	munmap(file, st.st_size);
	return knows;
}

const char *why_no_layer(void)
{
	static char text[2 * PATH_MAX];
	const char *disable = getenv("CLIMPORT_DISABLE");
	Dl_info loader;

	if (disable && !strcmp(disable, "1"))
		return "CLIMPORT_DISABLE is 1, so the layer intercepts nothing";
	snprintf(text, sizeof(text),
		 "the OpenCL loader (%s) did not load the layer, which needs ocl-icd 2.3 or "
		 "Khronos' loader 2020.12 or newer",
		 dladdr((void *)clGetPlatformIDs, &loader) ? loader.dli_fname : "libOpenCL.so.1");
	return text;
}
