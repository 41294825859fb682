/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/cuda/cuda_driver.h"
#include "util/descriptor.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/publish.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every driver of CUDA 11.4 (470) and later has what is needed. */
enum group { NEEDED, OPTIONAL };

struct symbol {
	const char *name;
	size_t offset; /* of the pointer in struct cuda_driver */
	enum group group;
};

#define AT(member) offsetof(struct cuda_driver, member)

static const struct symbol symbols[] = {
	{ "cuInit", AT(init), NEEDED },
	{ "cuGetErrorName", AT(error_name), NEEDED },
	{ "cuDeviceGetCount", AT(device_count), NEEDED },
	{ "cuDeviceGet", AT(device_get), NEEDED },
	{ "cuDeviceGetAttribute", AT(device_attribute), NEEDED },
	{ "cuDeviceGetUuid_v2", AT(device_uuid), NEEDED },
	{ "cuDevicePrimaryCtxRetain", AT(primary_retain), NEEDED },
	{ "cuDevicePrimaryCtxRelease_v2", AT(primary_release), NEEDED },
	{ "cuCtxPushCurrent_v2", AT(context_push), NEEDED },
	{ "cuCtxPopCurrent_v2", AT(context_pop), NEEDED },
	{ "cuCtxGetDevice", AT(context_device), NEEDED },
	{ "cuPointerGetAttributes", AT(pointer_attributes), NEEDED },
	{ "cuPointerGetAttribute", AT(pointer_attribute), NEEDED },
	{ "cuPointerSetAttribute", AT(set_pointer_attribute), NEEDED },
	{ "cuMemGetHandleForAddressRange", AT(range_handle), OPTIONAL },
	{ "cuMemGetAllocationGranularity", AT(granularity), NEEDED },
	{ "cuMemCreate", AT(create), NEEDED },
	{ "cuMemRelease", AT(release), NEEDED },
	{ "cuMemAddressReserve", AT(reserve), NEEDED },
	{ "cuMemAddressFree", AT(unreserve), NEEDED },
	{ "cuMemMap", AT(map), NEEDED },
	{ "cuMemUnmap", AT(unmap), NEEDED },
	{ "cuMemSetAccess", AT(set_access), NEEDED },
	{ "cuMemRetainAllocationHandle", AT(retain), NEEDED },
	{ "cuMemGetAllocationPropertiesFromHandle", AT(properties), NEEDED },
	{ "cuMemExportToShareableHandle", AT(share), NEEDED },
	{ "cuDeviceTotalMem_v2", AT(total_memory), NEEDED },
	{ "cuMemAlloc_v2", AT(alloc), NEEDED },
	{ "cuMemFree_v2", AT(free), NEEDED },
	{ "cuMemHostAlloc", AT(host_alloc), NEEDED },
	{ "cuMemFreeHost", AT(host_free), NEEDED },
	{ "cuEventCreate", AT(event_create), NEEDED },
	{ "cuEventDestroy_v2", AT(event_destroy), NEEDED },
	{ "cuEventRecord", AT(event_record), NEEDED },
	{ "cuEventQuery", AT(event_query), NEEDED },
	{ "cuEventSynchronize", AT(event_synchronize), NEEDED },
	{ "cuCtxSynchronize", AT(context_synchronize), NEEDED },
	{ "cuStreamGetId", AT(stream_id), OPTIONAL },
	{ "cuStreamIsCapturing", AT(stream_captures), OPTIONAL },
	{ "cuStreamSynchronize", AT(stream_synchronize), OPTIONAL },
};

static void cuda_driver_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(cuda_driver_lock, LOCK_LAST, cuda_driver_in_child);
/* The number of loaded libraries at the last search, which found no libcuda. */
static unsigned long long cuda_driver_searched GUARDED_BY(cuda_driver_lock);
/* Why there is no libcuda on the disk, or "". */
static char cuda_driver_absent[256] GUARDED_BY(cuda_driver_lock);
static unsigned int cuda_driver_loading GUARDED_BY(cuda_driver_lock); /* threads in dlopen() */
static bool cuda_driver_is_child GUARDED_BY(cuda_driver_lock);
/* In a child: a thread of the parent's was in dlopen(). */
static bool cuda_driver_is_torn GUARDED_BY(cuda_driver_lock);
static void *_Atomic cuda_driver_published; /* const struct cuda_driver */

/* Returns a needed function that libcuda lacks, or NULL. */
static const char *cuda_driver_fill(struct cuda_driver *cu, void *library)
{
	const char *missing = NULL;

	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		const struct symbol *s = &symbols[i];
		void *function = dlsym(library, s->name);

		memcpy((char *)cu + s->offset, &function, sizeof(function));
		if (!function && s->group == NEEDED)
			missing = s->name;
	}
	return missing;
}

/*
 * A search for a libcuda that the process has loaded.  dlopen(RTLD_NOLOAD) of a library that is not
 * loaded would search all library folders on the disk, and read the cache of libraries, which a
 * fork() in between leaves unusable (glibc 2.36 unmaps the cache and forgets the address later; the
 * child's dlopen() reads there).  The number of loads takes a hundredth of the time.
 */
struct cuda_driver_search {
	unsigned long long before, loads; /* libraries that the process has loaded so far */
	bool found;
};

static int cuda_driver_search_visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	struct cuda_driver_search *search = arg;

	(void)size;
	search->loads = info->dlpi_adds;
	search->found = !strncmp(slash ? slash + 1 : info->dlpi_name, "libcuda.so", 10);
	return search->found || search->loads == search->before;
}

/*
 * glibc (2.36) takes a lock for the list, and does not initialize the lock in a child of fork().
 * Calls from here hold cuda_driver_lock, and fork() waits for the lock.  But a thread of the program
 * may have held glibc's lock, so a child leaves the search to dlopen(), whose lock is initialized.
 */
static bool cuda_driver_is_loaded(unsigned long long *loads)
{
	struct cuda_driver_search search = { 0 };

	lock_acquire(&cuda_driver_lock);
	if (cuda_driver_is_child) {
		search.found = !cuda_driver_is_torn;
	} else {
		search.before = cuda_driver_searched;
		dl_iterate_phdr(cuda_driver_search_visit, &search);
		if (!search.found)
			cuda_driver_searched = search.loads;
	}
	lock_release(&cuda_driver_lock);
	*loads = search.loads;
	return search.found;
}

static void cuda_driver_search_failed(unsigned long long loads)
{
	lock_acquire(&cuda_driver_lock);
	cuda_driver_searched = loads;
	lock_release(&cuda_driver_lock);
}

/* The child of a fork() while a thread was in dlopen() here never calls dlopen(). */
static void cuda_driver_in_child(struct lock *lock)
{
	(void)lock;
	cuda_driver_is_child = true;
	cuda_driver_is_torn |= cuda_driver_loading;
	cuda_driver_loading = 0;
}

/* NULL, logged: no memory, or the library lacks a function. */
static struct cuda_driver *cuda_driver_create(void *library)
{
	struct cuda_driver *cu = malloc(sizeof(*cu));
	const char *missing;

	if (!cu) {
		log_error("no memory for the functions of libcuda");
		return NULL;
	}
	missing = cuda_driver_fill(cu, library);
	if (!missing)
		return cu;
	log_error("libcuda.so.1 has no %s", missing);
	free(cu);
	return NULL;
}

/* The library stays loaded, as its functions are kept. */
static const struct cuda_driver *cuda_driver_publish(void *library)
{
	struct cuda_driver *mine = cuda_driver_create(library), *winner;

	if (!mine) {
		dlclose(library);
		return NULL;
	}
	winner = publish_first(&cuda_driver_published, mine);
	if (winner != mine)
		free(mine);
	return winner;
}

/* @why: set on failure; until the thread's next call of the dynamic loader */
static void *cuda_driver_dlopen(int flags, const char **why)
{
	void *library;

	lock_acquire(&cuda_driver_lock);
	cuda_driver_loading++;
	lock_release(&cuda_driver_lock);
	library = dlopen("libcuda.so.1", RTLD_NOW | flags);
	*why = library ? NULL : dlerror();
	lock_acquire(&cuda_driver_lock);
	cuda_driver_loading--;
	lock_release(&cuda_driver_lock);
	return library;
}

const struct cuda_driver *cuda_driver_loaded(void)
{
	const struct cuda_driver *cu = publish_get(&cuda_driver_published);
	unsigned long long loads;
	const char *why;
	void *library;

	if (cu || !cuda_driver_is_loaded(&loads))
		return cu;
	library = cuda_driver_dlopen(RTLD_NOLOAD, &why);
	cu = library ? cuda_driver_publish(library) : NULL;
	if (!cu)
		cuda_driver_search_failed(loads);
	return cu;
}

/* Whether to load: false, logged, if a load has failed, or in a child that may not. */
static bool cuda_driver_may_load(void)
{
	bool may;

	lock_acquire(&cuda_driver_lock);
	if (cuda_driver_is_torn)
		log_error("libcuda.so.1 cannot be loaded: a thread of the parent process was "
			  "loading libraries when this process was forked");
	else if (cuda_driver_absent[0])
		log_error("%s", cuda_driver_absent);
	may = !cuda_driver_is_torn && !cuda_driver_absent[0];
	lock_release(&cuda_driver_lock);
	return may;
}

/* A file that is not there; after another failure, as a shortage, the next call tries again. */
static void cuda_driver_load_failed(const char *why)
{
	char no_file[64];

	log_error("%s", why);
	errno = ENOENT;
	snprintf(no_file, sizeof(no_file), "%m");
	if (!strstr(why, no_file))
		return;
	lock_acquire(&cuda_driver_lock);
	snprintf(cuda_driver_absent, sizeof(cuda_driver_absent), "%s", why);
	lock_release(&cuda_driver_lock);
}

static const struct cuda_driver *cuda_driver_open(void)
{
	const char *why;
	void *library;

	if (!cuda_driver_may_load())
		return NULL;
	library = cuda_driver_dlopen(0, &why);
	if (library)
		return cuda_driver_publish(library);
	cuda_driver_load_failed(why);
	return NULL;
}

const struct cuda_driver *cuda_driver_load(void)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	int result;

	if (!cu)
		cu = cuda_driver_open();
	if (!cu)
		return NULL;
	result = cu->init(0);
	if (!result)
		return cu;
	cuda_failed(cu, result, "cuInit");
	return NULL;
}

static int cuda_driver_errno_of(int result)
{
	switch (result) {
	case CUDA_INVALID_VALUE:
		return EINVAL;
	case CUDA_OUT_OF_MEMORY:
		return ENOMEM;
	case CUDA_NOT_INITIALIZED:
	case CUDA_DEINITIALIZED:
	case CUDA_NO_DEVICE:
	case CUDA_INVALID_DEVICE:
	case CUDA_INVALID_CONTEXT:
	case CUDA_CONTEXT_IS_DESTROYED:
		return ENODEV;
	case CUDA_NOT_PERMITTED:
		return EPERM;
	case CUDA_NOT_SUPPORTED:
		return EOPNOTSUPP;
	default:
		return EIO;
	}
}

static int cuda_driver_failed(const struct cuda_driver *cu, int error, int result,
			      const char *format, va_list args)
{
	const char *name;
	char what[128];

	vsnprintf(what, sizeof(what), format, args);
	if (cu->error_name(result, &name))
		return log_errno(error, "%s: CUDA error %d", what, result);
	return log_errno(error, "%s: %s", what, name);
}

int cuda_failed(const struct cuda_driver *cu, int result, const char *format, ...)
{
	va_list args;
	int err;

	va_start(args, format);
	err = cuda_driver_failed(cu, cuda_driver_errno_of(result), result, format, args);
	va_end(args);
	return err;
}

int cuda_descriptor_failed(const struct cuda_driver *cu, int result, const char *format, ...)
{
	int error = descriptor_errno(), err;
	va_list args;

	va_start(args, format);
	err = cuda_driver_failed(cu, error ? error : cuda_driver_errno_of(result), result, format,
				 args);
	va_end(args);
	return err;
}

int cuda_device_attribute(const struct cuda_driver *cu, int attribute, int device)
{
	int value;

	return cu->device_attribute(&value, attribute, device) ? 0 : value;
}

static bool cuda_driver_is_current(const struct cuda_driver *cu, int device)
{
	int current;

	return !cu->context_device(&current) && (device < 0 || device == current);
}

int cuda_scope_enter(struct cuda_scope *scope, const struct cuda_driver *cu, void *context,
		     int device)
{
	int result;

	*scope = (struct cuda_scope){ .cu = cu, .retained = -1 };
	if (!context) {
		if (cuda_driver_is_current(cu, device))
			return CUDA_SUCCESS;
		if (device < 0)
			return CUDA_INVALID_CONTEXT;
		result = cu->primary_retain(&context, device);
		if (result)
			return result;
		scope->retained = device;
	}
	result = cu->context_push(context);
	scope->pushed = !result;
	if (result)
		cuda_scope_leave(scope);
	return result;
}

void cuda_scope_leave(struct cuda_scope *scope)
{
	void *context;

	if (scope->pushed)
		scope->cu->context_pop(&context);
	if (scope->retained >= 0)
		scope->cu->primary_release(scope->retained);
}
