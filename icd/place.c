/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/place.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct place place;

static char probe[PATH_MAX + 64];
static struct stat root_file, probe_file; /* as they were */

static bool place_is_same_file(const char *path, const struct stat *noted)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == noted->st_dev && st.st_ino == noted->st_ino;
}

bool place_of_probe(char *path, size_t size)
{
	return *probe && place_is_same_file("/", &root_file) &&
	       place_is_same_file(probe, &probe_file) &&
	       (size_t)snprintf(path, size, "%s", probe) < size;
}

static bool place_is_layer(const char *name)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	bool is_layer = library && dlsym(library, "clInitLayer");

	if (library)
		dlclose(library);
	return is_layer;
}

/* The caller frees the path. */
static char *place_absolute_path(const char *name)
{
	return name[0] == '/' ? strdup(name) : realpath(name, NULL);
}

/* The libraries of a table's functions, in the order of loading, as in OPENCL_LAYERS. */
struct libraries {
	const void *table; /* of functions */
	size_t entries;
	const char *name[16];
	size_t count;
};

static int place_note_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct libraries *libraries = arg;
	struct dl_find_object library;
	void *function;

	(void)size;
	for (size_t i = 0; *info->dlpi_name && i < libraries->entries; i++) {
		memcpy(&function, (const char *)libraries->table + i * sizeof(function),
		       sizeof(function));
		if (libraries->count < 16 && !_dl_find_object(function, &library) &&
		    library.dlfo_link_map->l_addr == info->dlpi_addr) {
			libraries->name[libraries->count++] = library.dlfo_link_map->l_name;
			break;
		}
	}
	return 0;
}

/*
 * The functions below tell the layers: a loader cuts the names in OPENCL_LAYERS apart in place.
 * dlopen() would deadlock within dl_iterate_phdr().
 */
void place_note_below(const void *table, size_t entries)
{
	struct libraries libraries = { .table = table, .entries = entries };

	place.below[0] = '\0';
	dl_iterate_phdr(place_note_library, &libraries);
	for (size_t i = 0; i < libraries.count; i++) {
		const size_t used = strlen(place.below), room = sizeof(place.below) - used;
		char *path = place_absolute_path(libraries.name[i]);

		if (path && place_is_layer(path) &&
		    (size_t)snprintf(place.below + used, room, "%s:", path) >= room)
			place.below[used] = '\0';
		free(path);
	}
}

/* Nobody but root, and whoever may write the layer, may write a program that gets the caller's rights. */
static bool place_is_safe(void)
{
	struct stat st;

	if (stat(place.layer, &st) || stat(probe, &probe_file) || !S_ISREG(probe_file.st_mode))
		return false;
	return (!probe_file.st_uid || probe_file.st_uid == st.st_uid) &&
	       !(probe_file.st_mode & (S_IWGRP | S_IWOTH) & ~st.st_mode);
}

/* In the build's folders, or installed. */
static bool place_find_probe(const char *of_layer)
{
	static const char *const places[] = { "../tools", LIBEXECDIR_FROM_LAYER "/climport" };
	const char *end = strrchr(of_layer, '/');

	for (int i = 0; end && i < 2; i++) {
		snprintf(probe, sizeof(probe), "%.*s/%s/climport-probe", (int)(end - of_layer),
			 of_layer, places[i]);
		if (place_is_safe())
			return true;
	}
	*probe = '\0';
	return false;
}

/* The program may have left the folder of a relative name, and another file may have that name. */
void place_note_loader(void *caller)
{
	Dl_info info;

	if (dladdr(caller, &info) && info.dli_fname && info.dli_fname[0] == '/' &&
	    strlen(info.dli_fname) < sizeof(place.loader))
		strcpy(place.loader, info.dli_fname);
}

/* The name of the layer may be a link. */
__attribute__((constructor)) static void place_note(void)
{
	Dl_info info;
	char *path = dladdr((void *)place_of_probe, &info) && info.dli_fname
			     ? place_absolute_path(info.dli_fname)
			     : NULL;

	if (path && strlen(path) < sizeof(place.layer))
		strcpy(place.layer, path);
	free(path);
	if (stat("/", &root_file) || place_find_probe(place.layer))
		return;
	path = realpath(place.layer, NULL);
	if (path)
		place_find_probe(path);
	free(path);
}
