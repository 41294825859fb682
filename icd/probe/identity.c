/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/identity.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/place.h"
#include "icd/preload.h"
#include "icd/start.h"
#include "icd/text.h"
#include "util/restricted.h"

#define LONGEST 1100 /* of longer names the hash is used */

bool identity_is_privileged(void)
{
	return getauxval(AT_SECURE);
}

/* A loaded library. */
struct library {
	uintptr_t base;
	const char *path;	   /* the dynamic loader's */
	char build_id[2 * 64 + 1]; /* "": the library has no build ID */
};

static size_t note_align(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

/* @notes is the content of a segment of notes. */
static void build_id_read(const char *notes, size_t size, struct library *library)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)notes;
		size_t before = sizeof(*note) + note_align(note->n_namesz);
		const unsigned char *id = (const unsigned char *)notes + before;

		if (before > size || note->n_descsz > size - before)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(note + 1, "GNU", 4)) {
			for (size_t i = 0; i < note->n_descsz && i < 64; i++)
				sprintf(library->build_id + 2 * i, "%02x", id[i]);
			return;
		}
		if (note_align(note->n_descsz) > size - before)
			return;
		notes += before + note_align(note->n_descsz);
		size -= before + note_align(note->n_descsz);
	}
}

/* The program headers of a library.  By convention of linkers the first segment begins with the file. */
static const ElfW(Phdr) * segments_of(const struct dl_find_object *object, size_t *count)
{
	const ElfW(Ehdr) *header = object->dlfo_map_start;

	*count = memcmp(header->e_ident, ELFMAG, SELFMAG) ? 0 : header->e_phnum;
	return (const void *)((const char *)header + header->e_phoff);
}

/* dladdr() and dl_iterate_phdr() take locks, which a child of fork() may find taken (glibc 2.36). */
static bool library_find(void *function, struct library *library)
{
	struct dl_find_object object;
	const ElfW(Phdr) * segments;
	size_t count;

	memset(library, 0, sizeof(*library));
	if (!function || _dl_find_object(function, &object))
		return false;
	library->base = object.dlfo_link_map->l_addr;
	library->path = object.dlfo_link_map->l_name;
	segments = segments_of(&object, &count);
	for (size_t i = 0; i < count && !*library->build_id; i++)
		if (segments[i].p_type == PT_NOTE && segments[i].p_align <= 4)
			build_id_read((const char *)(library->base + segments[i].p_vaddr),
				      segments[i].p_memsz, library);
	return *library->path;
}

/* A function below climport's layer belongs to the loader or to a layer, which answer for a driver. */
static bool is_below(const struct library *library)
{
	void *const below[] = {
		(void *)next.clGetPlatformIDs,
		(void *)next.clGetExtensionFunctionAddress,
		(void *)next.clGetExtensionFunctionAddressForPlatform,
		(void *)next.clGetDeviceInfo,
	};
	struct library other;

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
		if (library_find(below[i], &other) && other.base == library->base)
			return true;
	return false;
}

/*
 * The library of a function of the driver's own.  A function pointer in an object's dispatch
 * table may be a loader's.  No loader has a clIcdGetPlatformIDsKHR of its own.  Some drivers name
 * clIcdGetPlatformIDsKHR to loaders alone; for such drivers the list below is tried.
 */
static bool library_of_platform(cl_platform_id platform, struct library *library)
{
	static const char *const names[] = {
		"clGetPlatformInfo",
		"clGetDeviceIDs",
		"clIcdGetFunctionAddressForPlatformKHR",
		"clIcdSetPlatformDispatchDataKHR",
		"clCreateCommandBufferKHR",
		"clGetKernelSuggestedLocalWorkSizeKHR",
		"clCreateSemaphoreWithPropertiesKHR",
		"clHostMemAllocINTEL",
		"clCreateCommandQueueWithPropertiesKHR",
		"clGetKernelSubGroupInfoKHR",
		"clCreateFromGLBuffer",
	};

	if (!next.clGetExtensionFunctionAddressForPlatform)
		return false;
	if (library_find(next.clGetExtensionFunctionAddressForPlatform(platform,
								       "clIcdGetPlatformIDsKHR"),
			 library))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (library_find(next.clGetExtensionFunctionAddressForPlatform(platform, names[i]),
				 library) &&
		    !is_below(library))
			return true;
	return false;
}

static _Atomic(unsigned long long) environment; /* 0: not known yet */
static atomic_bool environment_is_told;

/* Some drivers of the process may have read other variables than others. */
static bool identity_is_mixed(void)
{
	return !atomic_load(&environment_is_told) && start_is_changed();
}

/* A library is known by the build ID, which outlives the file, or by the file's size and time. */
static char *identity_library(cl_platform_id platform)
{
	struct library library;
	struct stat st;

	if (identity_is_privileged() || !library_of_platform(platform, &library))
		return NULL;
	if (*library.build_id)
		return text_create("%s build %s", library.path, library.build_id);
	if (stat(library.path, &st))
		return NULL;
	return text_create("%s %lld %lld.%09ld", library.path, (long long)st.st_size,
			   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* 0: no library that a probe process has is preloaded. */
static unsigned long long preload_hash(void)
{
	char *libraries = preload_describe();
	const unsigned long long hash = libraries && *libraries ? text_summand(libraries) : 0;

	free(libraries);
	return hash;
}

/*
 * The order of the variables does not matter.  Layers below and preloaded libraries are a choice like
 * a variable.
 */
static unsigned long long environment_hash(void)
{
	return text_summand(place_layers_below()) + preload_hash() + start_sum();
}

unsigned long long identity_environment(void)
{
	const bool is_changed = identity_is_mixed();
	unsigned long long known = atomic_load_explicit(&environment, memory_order_relaxed);

	if (is_changed)
		return environment_hash();
	if (!known) {
		known = environment_hash();
		atomic_store_explicit(&environment, known, memory_order_relaxed);
	}
	return known;
}

void identity_set_environment(unsigned long long hash)
{
	atomic_store_explicit(&environment, hash, memory_order_relaxed);
	atomic_store(&environment_is_told, true);
}

/*
 * @library, the machine and @parts in this order; NULL if a part is NULL.  Frees the parts.
 * Containers of an image have machine names of their own.
 */
static char *identity_join(const char *library, char **parts, size_t count)
{
	struct utsname machine;
	bool complete = library && !uname(&machine);
	char *full = NULL;
	size_t length;
	FILE *file = open_memstream(&full, &length);

	if (file && complete)
		fprintf(file, "%s on %s, %s, %s, environment %016llx", library, machine.nodename,
			machine.release, machine.version, identity_environment());
	for (size_t i = 0; i < count; i++) {
		if (file && parts[i])
			fprintf(file, ", %s", parts[i]);
		complete &= parts[i] != NULL;
		free(parts[i]);
	}
	complete = file && !fclose(file) && complete;
	for (char *c = full; complete && *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (!complete) {
		free(full);
		return NULL;
	}
	if (length > LONGEST)
		sprintf(full, "hash %016llx", text_hash(full));
	return full;
}

char *identity_platform(cl_platform_id platform, bool *lasting)
{
	char *parts[] = {
		platform_string(platform, CL_PLATFORM_NAME),
		platform_string(platform, CL_PLATFORM_VERSION),
		platform_string(platform, CL_PLATFORM_VENDOR),
	};
	char *library = identity_library(platform), *text;

	*lasting = library && !identity_is_mixed();
	text = identity_join(library ? library : "a library", parts,
			     sizeof(parts) / sizeof(parts[0]));
	free(library);
	return text;
}

void identity_limits(char text[IDENTITY_LIMITS_SIZE])
{
	static const int kinds[] = { RLIMIT_AS,	   RLIMIT_DATA,	   RLIMIT_STACK, RLIMIT_NOFILE,
				     RLIMIT_NPROC, RLIMIT_MEMLOCK, RLIMIT_CPU };
	struct rlimit limit;
	int used = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!getrlimit(kinds[i], &limit))
			used += sprintf(text + used, "%llx ", (unsigned long long)limit.rlim_cur);
	sprintf(text + used, "limits, %ld filters", restricted_filters());
}
