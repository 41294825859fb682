/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As the loaders do: Khronos' loader/linux/icd_linux.c, khrIcdOsVendorsEnumerate(), and ocl-icd's
 * ocl_icd_loader.c, __initClIcd().
 */
#include "drivers.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <CL/cl.h>
#include <CL/cl_icd.h>

#include "paths.h"

#define VENDORS "/etc/OpenCL/vendors"

static bool drivers_is_icd(const char *name)
{
	const size_t length = strlen(name);

	return length > 4 && !strcmp(name + length - 4, ".icd");
}

/* Takes @file and @library. */
static void drivers_add(struct drivers *drivers, char *file, char *library)
{
	struct driver *list =
		reallocarray(drivers->list, drivers->count + 1, sizeof(*drivers->list));

	if (!list || !library)
		abort(); /* no memory */
	list[drivers->count++] = (struct driver){ file, library };
	drivers->list = list;
}

/* The first line; "" if there is none.  The caller frees the text. */
static char *drivers_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;

	if (!file || getline(&line, &room, file) < 0) {
		free(line);
		line = strdup("");
	}
	if (file)
		fclose(file);
	if (line)
		line[strcspn(line, "\n")] = '\0';
	return line;
}

static void drivers_add_file(struct drivers *drivers, const char *path)
{
	drivers_add(drivers, strdup(path), drivers_read(path));
}

static int drivers_filter(const struct dirent *entry)
{
	return drivers_is_icd(entry->d_name);
}

static void drivers_add_folder(struct drivers *drivers, const char *folder)
{
	struct dirent **found;
	char path[PATH_MAX];
	int count = scandir(folder, &found, drivers_filter, alphasort);

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, found[i]->d_name);
		drivers_add_file(drivers, path);
		free(found[i]);
	}
	if (count >= 0)
		free(found);
}

/* The value of a variable that is set, and not empty. */
static const char *drivers_variable(const char *value)
{
	return value && *value ? value : NULL;
}

/* OCL_ICD_VENDORS of ocl-icd: a folder, an .icd file there or elsewhere, or a library. */
static void drivers_find_ocl_icd(struct drivers *drivers)
{
	const char *wanted = drivers_variable(getenv("OCL_ICD_VENDORS"));
	const char *folder = drivers_variable(getenv("OPENCL_VENDOR_PATH"));
	char path[PATH_MAX];
	struct stat st;

	if (!folder)
		folder = VENDORS;
	drivers->place = wanted ? wanted : folder;
	if (!wanted || (!stat(wanted, &st) && S_ISDIR(st.st_mode))) {
		drivers_add_folder(drivers, drivers->place);
	} else if (drivers_is_icd(wanted)) {
		bool is_there = (size_t)snprintf(path, sizeof(path), "%s/%s", folder, wanted) <
					sizeof(path) &&
				!stat(path, &st);

		drivers_add_file(drivers, is_there && !strchr(wanted, '/') ? path : wanted);
	} else {
		drivers_add(drivers, NULL, strdup(wanted));
	}
}

static void drivers_find_khronos(struct drivers *drivers)
{
	const char *libraries = getenv("OCL_ICD_FILENAMES"), *folder = getenv("OCL_ICD_VENDORS");

	for (size_t length; libraries && *libraries; libraries += length) {
		length = strcspn(libraries, ":");
		if (length)
			drivers_add(drivers, NULL, strndup(libraries, length));
		length += libraries[length] == ':';
	}
	drivers->place = folder ? folder : VENDORS;
	drivers_add_folder(drivers, drivers->place);
}

void drivers_find(struct drivers *drivers)
{
	*drivers = (struct drivers){ 0 };
	if (loader_knows("OCL_ICD_FILENAMES"))
		drivers_find_khronos(drivers);
	else
		drivers_find_ocl_icd(drivers);
}

void drivers_free(struct drivers *drivers)
{
	for (size_t i = 0; i < drivers->count; i++) {
		free(drivers->list[i].file);
		free(drivers->list[i].library);
	}
	free(drivers->list);
}

/* ocl-icd opens what is neither a folder nor an .icd file; Khronos' loader takes it for no folder. */
void driver_choose(const struct driver *driver)
{
	setenv("OCL_ICD_VENDORS", driver->library, 1);
	setenv("OCL_ICD_FILENAMES", driver->library, 1);
}

static bool driver_has_platform(void *library, char why[DRIVER_WHY_SIZE])
{
	void *(*function)(const char *) = NULL;
	clIcdGetPlatformIDsKHR_fn platforms = NULL;
	cl_uint count = 0;
	cl_int err;

	*(void **)&function = dlsym(library, "clGetExtensionFunctionAddress");
	if (function)
		*(void **)&platforms = function("clIcdGetPlatformIDsKHR");
	if (!platforms) {
		snprintf(why, DRIVER_WHY_SIZE, "it is no OpenCL driver: it has no %s",
			 function ? "clIcdGetPlatformIDsKHR" : "clGetExtensionFunctionAddress");
		return false;
	}
	err = platforms(0, NULL, &count);
	if (!err && count)
		return true;
	snprintf(why, DRIVER_WHY_SIZE, "it finds no device of its own, and gives no platform");
	return false;
}

/* As the loader loads it: Khronos' finds a function that is missing, ocl-icd a call of it. */
bool driver_check(const char *library, char why[DRIVER_WHY_SIZE])
{
	const int flags = loader_knows("OCL_ICD_FILENAMES") ? RTLD_NOW : RTLD_LAZY;
	void *opened;

	if (!*library) {
		snprintf(why, DRIVER_WHY_SIZE, "the file names no library, or cannot be read");
		return false;
	}
	opened = dlopen(library, flags | RTLD_LOCAL);
	if (opened)
		return driver_has_platform(opened, why);
	snprintf(why, DRIVER_WHY_SIZE, "it cannot be loaded: %s", dlerror());
	return false;
}
