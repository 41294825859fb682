/* SPDX-License-Identifier: Apache-2.0 */
/* The folder is that of PoCL's lib/CL/pocl_cache.c, pocl_cache_init_topdir(). */
#include "kernel_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* False: PoCL takes a folder that every user can write. */
static bool kernel_cache_path(char path[PATH_MAX])
{
	const struct {
		const char *value, *below;
	} places[] = {
		{ getenv("POCL_CACHE_DIR"), "" },
		{ getenv("XDG_CACHE_HOME"), "/pocl/kcache" },
		{ getenv("HOME"), "/.cache/pocl/kcache" },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!places[i].value || !*places[i].value)
			continue;
		snprintf(path, PATH_MAX, "%s%s", places[i].value, places[i].below);
		return true;
	}
	return false;
}

/* A signal waits until the folder is gone. */
static int kernel_cache_make(char *folder)
{
	sigset_t all, before;
	int error = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!mkdtemp(folder))
		error = errno;
	else
		rmdir(folder);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* Makes and removes a folder where PoCL would: in @path, or in the deepest folder that exists. */
static int kernel_cache_try(const char *path)
{
	char copy[PATH_MAX], made[PATH_MAX + 32];
	const char *parent = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	while (access(parent, F_OK) && errno == ENOENT && strcmp(parent, "/") &&
	       strcmp(parent, "."))
		parent = dirname(copy);
	snprintf(made, sizeof(made), "%s/climport.XXXXXX", parent);
	return kernel_cache_make(made);
}

/*
 * PoCL has a folder for each start of a kernel's name.  Those of another user, such as root's after
 * a run by sudo, stop the kernels with such names.  0, or an error with the folder in @path.
 */
static int kernel_cache_try_below(char path[PATH_MAX])
{
	DIR *folder = opendir(path);
	const size_t length = strlen(path);
	struct dirent *entry;
	int error = 0;

	if (!folder)
		return errno == ENOENT ? 0 : errno;
	while (!error && (entry = readdir(folder))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(path + length, PATH_MAX - length, "/%s", entry->d_name);
		if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS))
			error = errno;
	}
	closedir(folder);
	if (!error)
		path[length] = '\0';
	return error;
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
		error = kernel_cache_try_below(path);
	if (!error)
		return NULL;
	snprintf(text, sizeof(text),
		 "PoCL keeps compiled kernels in %s, where this user can write no file (%s); set "
		 "POCL_CACHE_DIR to a folder that can be written",
		 path, strerror(error));
	return text;
}
