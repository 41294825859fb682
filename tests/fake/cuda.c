/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_cuda.h"
#include "fork.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "opaque.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { FUNCTIONS = 64, ATTRIBUTES = 160, STACK = 8 };

/* Physical memory: shared by all that maps it. */
struct handle {
	int fd;
	char *memory;
	size_t size;
	struct cuda_properties properties;
	int refs, maps;
};

enum kind { KIND_DEVICE, KIND_HOST, KIND_REGISTERED, KIND_MANAGED, KIND_VMM };

struct range {
	struct range *next;
	enum kind kind;
	uintptr_t addr;
	size_t size;
	uintptr_t block; /* the pages it lies in */
	size_t block_size;
	int device;
	void *context;
	unsigned long long id;
	unsigned int sync;
	int access;
	struct handle *handle;
	char *memory; /* behind block */
};

struct reservation {
	struct reservation *next;
	uintptr_t addr;
	size_t size;
};

struct context {
	int device;
	int refs;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
static struct reservation *reservations;
static struct context primary[FAKE_CUDA_DEVICES];
static int devices = 1, initialized, attributes[FAKE_CUDA_DEVICES][ATTRIBUTES];
static int handles, pushed, pcie;
static bool forks, no_mappings;
static int retains[FAKE_CUDA_DEVICES];
static unsigned long long last_id, last_flags;
static struct {
	const char *name;
	int count;
} calls[FUNCTIONS];
static struct {
	const char *name;
	int countdown, result;
	bool hit;
} failure;
static struct {
	const char *name;
	int countdown;
	void (*run)(void *arg);
	void *arg;
} hook;
static _Thread_local struct context *stack[STACK];
static _Thread_local int depth;

/* As the real one, it does not work in a child of a process that initialized it. */
static bool is_child;

static void driver_atfork_prepare(void)
{
	pthread_mutex_lock(&mutex);
}

static void driver_atfork_parent(void)
{
	pthread_mutex_unlock(&mutex);
}

static void driver_atfork_child(void)
{
	is_child = initialized;
	initialized = 0;
	pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void register_fork(void)
{
	pthread_atfork(driver_atfork_prepare, driver_atfork_parent, driver_atfork_child);
}

static bool failure_matches(const char *name, const char *function)
{
	return !name || !strcmp(name, function);
}

static void calls_count(const char *function)
{
	size_t i = 0;

	while (calls[i].name && strcmp(calls[i].name, function))
		i++;
	calls[i].name = function;
	calls[i].count++;
}

static bool gives_back(const char *function)
{
	static const char *const names[] = { "cuMemRelease", "cuMemUnmap", "cuMemAddressFree",
					     "cuCtxPopCurrent_v2", "cuDevicePrimaryCtxRelease_v2" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], function))
			return true;
	return false;
}

static bool failure_hits(const char *function)
{
	if (!failure.countdown)
		return false;
	if (failure.name ? strcmp(failure.name, function) : gives_back(function))
		return false;
	failure.hit = !--failure.countdown;
	return failure.hit;
}

/* Begins each function of the driver: 0 with the lock held, or what it shall return. */
static int driver_enter(const char *function)
{
	void (*run)(void *arg) = NULL;
	void *arg;
	int result = CUDA_SUCCESS;

	if (forks)
		fake_fork();
	pthread_mutex_lock(&mutex);
	if (hook.run && failure_matches(hook.name, function) && !--hook.countdown) {
		run = hook.run;
		arg = hook.arg;
		hook.run = NULL;
		pthread_mutex_unlock(&mutex);
		run(arg);
		pthread_mutex_lock(&mutex);
	}
	calls_count(function);
	if (failure_hits(function))
		result = failure.result;
	else if (!initialized && strcmp(function, "cuInit") && strcmp(function, "cuGetErrorName"))
		result = CUDA_NOT_INITIALIZED;
	if (result)
		pthread_mutex_unlock(&mutex);
	return result;
}

static int driver_leave(int result)
{
	pthread_mutex_unlock(&mutex);
	return result;
}

static size_t page_up(size_t size)
{
	size_t mask = (size_t)sysconf(_SC_PAGESIZE) - 1;

	return (size + mask) & ~mask;
}

static uintptr_t pages_reserve(uintptr_t addr, size_t size, int prot)
{
	void *p =
		mmap((void *)addr, size, prot,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (addr ? MAP_FIXED_NOREPLACE : 0),
		     -1, 0);

	return p == MAP_FAILED ? 0 : (uintptr_t)p;
}

static struct range *range_find(uintptr_t addr)
{
	struct range *r = ranges;

	while (r && addr - r->addr >= r->size)
		r = r->next;
	return r;
}

static struct reservation *reservation_find(uintptr_t addr)
{
	struct reservation *r = reservations;

	while (r && addr - r->addr >= r->size)
		r = r->next;
	return r;
}

static struct range *range_add(const struct range *with)
{
	struct range *r = malloc(sizeof(*r));

	*r = *with;
	r->id = ++last_id;
	r->next = ranges;
	ranges = r;
	return r;
}

static void range_remove(struct range *r)
{
	struct range **at = &ranges;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

/* Contexts. */

static struct context *context_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

API int cuInit(unsigned int flags);
API int cuInit(unsigned int flags)
{
	int result = driver_enter("cuInit");

	if (result)
		return result;
	if (is_child)
		return driver_leave(CUDA_NOT_INITIALIZED);
	initialized = 1;
	return driver_leave(flags ? CUDA_INVALID_VALUE : CUDA_SUCCESS);
}

API int cuGetErrorName(int error, const char **name);
API int cuGetErrorName(int error, const char **name)
{
	int result = driver_enter("cuGetErrorName");

	if (result)
		return result;
	*name = error == CUDA_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_FAKE";
	return driver_leave(CUDA_SUCCESS);
}

API int cuDeviceGetCount(int *out);
API int cuDeviceGetCount(int *out)
{
	int result = driver_enter("cuDeviceGetCount");

	if (result)
		return result;
	*out = devices;
	return driver_leave(CUDA_SUCCESS);
}

static bool is_device(int device)
{
	return device >= 0 && device < devices;
}

API int cuDeviceGet(int *device, int ordinal);
API int cuDeviceGet(int *device, int ordinal)
{
	int result = driver_enter("cuDeviceGet");

	if (result)
		return result;
	*device = ordinal;
	return driver_leave(is_device(ordinal) ? CUDA_SUCCESS : CUDA_INVALID_DEVICE);
}

API int cuDeviceGetAttribute(int *value, int attribute, int device);
API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	int result = driver_enter("cuDeviceGetAttribute");

	if (result)
		return result;
	if (!is_device(device) || attribute >= ATTRIBUTES)
		return driver_leave(CUDA_INVALID_VALUE);
	*value = attributes[device][attribute];
	return driver_leave(CUDA_SUCCESS);
}

API void fake_cuda_uuid(int device, unsigned char uuid[16])
{
	memset(uuid, 0xa0 + device, 16);
}

static int device_uuid(const char *function, void *uuid, int device)
{
	int result = driver_enter(function);

	if (result)
		return result;
	if (!is_device(device))
		return driver_leave(CUDA_INVALID_DEVICE);
	fake_cuda_uuid(device, uuid);
	return driver_leave(CUDA_SUCCESS);
}

API int cuDeviceGetUuid_v2(void *uuid, int device);
API int cuDeviceGetUuid_v2(void *uuid, int device)
{
	return device_uuid("cuDeviceGetUuid_v2", uuid, device);
}

API int cuDeviceGetUuid(void *uuid, int device);
API int cuDeviceGetUuid(void *uuid, int device)
{
	return device_uuid("cuDeviceGetUuid", uuid, device);
}

API int cuDevicePrimaryCtxRetain(void **context, int device);
API int cuDevicePrimaryCtxRetain(void **context, int device)
{
	int result = driver_enter("cuDevicePrimaryCtxRetain");

	if (result)
		return result;
	if (!is_device(device))
		return driver_leave(CUDA_INVALID_DEVICE);
	primary[device].device = device;
	primary[device].refs++;
	retains[device]++;
	*context = &primary[device];
	return driver_leave(CUDA_SUCCESS);
}

API int cuDevicePrimaryCtxRelease_v2(int device);
API int cuDevicePrimaryCtxRelease_v2(int device)
{
	int result = driver_enter("cuDevicePrimaryCtxRelease_v2");

	if (result)
		return result;
	if (!is_device(device) || !primary[device].refs)
		return driver_leave(CUDA_INVALID_CONTEXT);
	primary[device].refs--;
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxPushCurrent_v2(void *context);
API int cuCtxPushCurrent_v2(void *context)
{
	struct context *c = context;
	int result = driver_enter("cuCtxPushCurrent_v2");

	if (result)
		return result;
	if (!c || c->refs < 1 || depth == STACK)
		return driver_leave(CUDA_INVALID_CONTEXT);
	stack[depth++] = c;
	pushed++;
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxPopCurrent_v2(void **context);
API int cuCtxPopCurrent_v2(void **context)
{
	int result = driver_enter("cuCtxPopCurrent_v2");

	if (result)
		return result;
	if (!depth)
		return driver_leave(CUDA_INVALID_CONTEXT);
	*context = stack[--depth];
	pushed--;
	return driver_leave(CUDA_SUCCESS);
}

API int cuCtxGetDevice(int *device);
API int cuCtxGetDevice(int *device)
{
	int result = driver_enter("cuCtxGetDevice");

	if (result)
		return result;
	if (!context_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	*device = context_current()->device;
	return driver_leave(CUDA_SUCCESS);
}

/* Pointers. */

/* Of VMM memory: the reservation, and no context; of the host device 0 (driver 580). */
static int attribute_of(const struct range *r, int attribute, void *data)
{
	const struct reservation *v = r && r->kind == KIND_VMM ? reservation_find(r->addr) : NULL;
	bool host = r && (r->kind == KIND_HOST || r->kind == KIND_REGISTERED);

	switch (attribute) {
	case CUDA_POINTER_CONTEXT:
		*(void **)data = r ? r->context : NULL;
		return CUDA_SUCCESS;
	case CUDA_POINTER_MEMORY_TYPE:
		*(int *)data = !r ? 0 : host ? CUDA_TYPE_HOST : CUDA_TYPE_DEVICE;
		return CUDA_SUCCESS;
	case CUDA_POINTER_SYNC_MEMOPS:
		*(unsigned int *)data = r ? r->sync : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_BUFFER_ID:
		*(unsigned long long *)data = r ? r->id : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_IS_MANAGED:
		*(bool *)data = r && r->kind == KIND_MANAGED;
		return CUDA_SUCCESS;
	case CUDA_POINTER_DEVICE_ORDINAL:
		*(int *)data = !r ? -2 : v && r->device < 0 ? 0 : r->device;
		return CUDA_SUCCESS;
	case CUDA_POINTER_RANGE_START:
		*(uintptr_t *)data = v ? v->addr : r ? r->addr : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_RANGE_SIZE:
		*(size_t *)data = v ? v->size : r ? r->size : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_MAPPING_BASE:
		if (no_mappings)
			return CUDA_INVALID_VALUE;
		*(uintptr_t *)data = r ? r->addr : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_MAPPING_SIZE:
		if (no_mappings)
			return CUDA_INVALID_VALUE;
		*(size_t *)data = r ? r->size : 0;
		return CUDA_SUCCESS;
	}
	return CUDA_INVALID_VALUE;
}

API int cuPointerGetAttributes(unsigned int n, int *which, void **data, uintptr_t addr);
API int cuPointerGetAttributes(unsigned int n, int *which, void **data, uintptr_t addr)
{
	int result = driver_enter("cuPointerGetAttributes");

	if (result)
		return result;
	for (unsigned int i = 0; i < n && !result; i++)
		result = attribute_of(range_find(addr), which[i], data[i]);
	return driver_leave(result);
}

API int cuPointerGetAttribute(void *data, int which, uintptr_t addr);
API int cuPointerGetAttribute(void *data, int which, uintptr_t addr)
{
	struct range *r;
	int result = driver_enter("cuPointerGetAttribute");

	if (result)
		return result;
	r = range_find(addr);
	return driver_leave(r ? attribute_of(r, which, data) : CUDA_INVALID_VALUE);
}

API int cuPointerSetAttribute(const void *value, int which, uintptr_t addr);
API int cuPointerSetAttribute(const void *value, int which, uintptr_t addr)
{
	struct range *r;
	int result = driver_enter("cuPointerSetAttribute");

	if (result)
		return result;
	r = range_find(addr);
	if (!r || which != CUDA_POINTER_SYNC_MEMOPS || r->kind == KIND_HOST)
		return driver_leave(CUDA_INVALID_VALUE);
	r->sync = *(const unsigned int *)value;
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemGetAddressRange_v2(uintptr_t *base, size_t *size, uintptr_t addr);
API int cuMemGetAddressRange_v2(uintptr_t *base, size_t *size, uintptr_t addr)
{
	struct range *r;
	int result = driver_enter("cuMemGetAddressRange_v2");

	if (result)
		return result;
	r = range_find(addr);
	if (!context_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	if (!r || r->kind == KIND_REGISTERED)
		return driver_leave(CUDA_NOT_FOUND);
	*base = r->kind == KIND_VMM && r->device < 0 ? 0 : r->addr;
	*size = r->size;
	return driver_leave(CUDA_SUCCESS);
}

/* The pages of one device that hold @addr. */
static struct range *range_find_pages(uintptr_t addr, int device)
{
	struct range *r = ranges;

	while (r && addr - r->block >= r->block_size)
		r = r->next;
	if (!r || r->device != device || (r->kind != KIND_DEVICE && r->kind != KIND_VMM))
		return NULL;
	return r;
}

/* A copy of what the device sees. */
static int copy_range(int *fd, uintptr_t addr, size_t size, int device)
{
	uintptr_t end = addr + size;
	const struct range *r;
	int copy = memfd_create("fake-dmabuf-cuda", 0);

	if (copy < 0)
		return CUDA_OPERATING_SYSTEM;
	for (uintptr_t at = addr; at < end; at = r->block + r->block_size) {
		r = range_find_pages(at, device);
		if (!r) {
			close(copy);
			return CUDA_INVALID_VALUE;
		}
		size_t n = r->block + r->block_size < end ? r->block + r->block_size - at
							  : end - at;

		if (pwrite(copy, r->memory + (at - r->block), n, (off_t)(at - addr)) != (ssize_t)n)
			abort();
	}
	*fd = copy;
	return CUDA_SUCCESS;
}

API int cuMemGetHandleForAddressRange(void *handle, uintptr_t addr, size_t size, int type,
				      unsigned long long flags);
API int cuMemGetHandleForAddressRange(void *handle, uintptr_t addr, size_t size, int type,
				      unsigned long long flags)
{
	int result = driver_enter("cuMemGetHandleForAddressRange");

	if (result)
		return result;
	if (!context_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	if (page_up(addr) != addr || page_up(size) != size || !size || flags > 1 ||
	    type != CUDA_RANGE_DMA_BUF_FD)
		return driver_leave(CUDA_INVALID_VALUE);
	if (flags && !pcie)
		return driver_leave(CUDA_NOT_SUPPORTED);
	result = copy_range(handle, addr, size, context_current()->device);
	if (!result)
		last_flags = flags;
	return driver_leave(result);
}

/* VMM. */

static bool is_host(const struct cuda_properties *p)
{
	return p->location.type == CUDA_LOCATION_HOST_NUMA;
}

static bool is_valid(const struct cuda_properties *p)
{
	return p->type == CUDA_ALLOCATION_PINNED &&
	       (p->location.type == CUDA_LOCATION_DEVICE ? is_device(p->location.id)
							 : is_host(p) && p->location.id >= 0);
}

static bool is_granular(uint64_t n)
{
	return n && n % FAKE_CUDA_GRANULARITY == 0;
}

static int handle_create(struct handle **out, size_t size, const struct cuda_properties *p)
{
	struct handle *h;

	if (!is_valid(p) || !is_granular(size))
		return CUDA_INVALID_VALUE;
	if (size >> 40)
		return CUDA_OUT_OF_MEMORY;
	h = malloc(sizeof(*h));
	*h = (struct handle){ .size = size, .properties = *p, .refs = 1 };
	h->fd = memfd_create("physical", MFD_CLOEXEC);
	if (h->fd < 0) {
		free(h);
		return CUDA_OPERATING_SYSTEM;
	}
	if (ftruncate(h->fd, (off_t)size))
		abort();
	h->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
	handles++;
	*out = h;
	return CUDA_SUCCESS;
}

static void handle_put(struct handle *h)
{
	if (h->refs || h->maps)
		return;
	munmap(h->memory, h->size);
	close(h->fd);
	free(h);
}

static int handle_release(struct handle *h)
{
	if (!h || !h->refs)
		return CUDA_INVALID_VALUE;
	handles--;
	h->refs--;
	handle_put(h);
	return CUDA_SUCCESS;
}

/* An address of @align: reserves more, and gives back what is around it. */
static int reservation_create(uintptr_t *addr, size_t size, size_t align)
{
	struct reservation *v;
	uintptr_t p;

	align = align > FAKE_CUDA_GRANULARITY ? align : FAKE_CUDA_GRANULARITY;
	if (!is_granular(size) || (align & (align - 1)))
		return CUDA_INVALID_VALUE;
	p = pages_reserve(0, size + align, PROT_NONE);
	if (!p)
		return CUDA_OUT_OF_MEMORY;
	*addr = (p + align - 1) & ~(align - 1);
	munmap((void *)p, *addr - p);
	munmap((void *)(*addr + size), p + align - *addr);
	v = malloc(sizeof(*v));
	*v = (struct reservation){ reservations, *addr, size };
	reservations = v;
	return CUDA_SUCCESS;
}

static bool range_overlaps(uintptr_t addr, size_t size)
{
	for (const struct range *r = ranges; r; r = r->next)
		if (r->addr < addr + size && addr < r->addr + r->size)
			return true;
	return false;
}

static int reservation_destroy(uintptr_t addr, size_t size)
{
	struct reservation **at = &reservations, *v;

	while (*at && (*at)->addr != addr)
		at = &(*at)->next;
	v = *at;
	if (!v || v->size != size || range_overlaps(addr, size))
		return CUDA_INVALID_VALUE;
	*at = v->next;
	free(v);
	munmap((void *)addr, size);
	return CUDA_SUCCESS;
}

static int handle_map(uintptr_t addr, size_t size, size_t offset, struct handle *h)
{
	const struct reservation *v = reservation_find(addr);
	struct range r = {
		.kind = KIND_VMM,
		.addr = addr,
		.size = size,
		.block = addr,
		.block_size = size,
		.handle = h,
	};

	if (!v || addr + size > v->addr + v->size || offset || !is_granular(size) ||
	    size > h->size || range_overlaps(addr, size))
		return CUDA_INVALID_VALUE;
	r.device = is_host(&h->properties) ? -1 : h->properties.location.id;
	r.memory = h->memory;
	range_add(&r);
	h->maps++;
	return CUDA_SUCCESS;
}

static int handle_unmap(uintptr_t addr, size_t size)
{
	struct range *r = range_find(addr);

	if (!r || r->kind != KIND_VMM || r->addr != addr || r->size != size)
		return CUDA_INVALID_VALUE;
	if (mmap((void *)addr, size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	r->handle->maps--;
	handle_put(r->handle);
	range_remove(r);
	return CUDA_SUCCESS;
}

/* Memory of the host becomes accessible to the CPU at the same address. */
static int range_set_access(uintptr_t addr, size_t size, const struct cuda_access *access, size_t n)
{
	struct range *r = range_find(addr);

	if (!r || r->kind != KIND_VMM || r->addr != addr || r->size != size)
		return CUDA_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		bool host = access[i].location.type == CUDA_LOCATION_HOST_NUMA;

		if (host && !is_host(&r->handle->properties))
			return CUDA_INVALID_VALUE;
		if (!host && !is_device(access[i].location.id))
			return CUDA_INVALID_DEVICE;
		if (host && mmap((void *)addr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				 r->handle->fd, 0) == MAP_FAILED)
			return CUDA_OUT_OF_MEMORY;
	}
	r->access = (int)n;
	return CUDA_SUCCESS;
}

API int cuMemGetAllocationGranularity(size_t *out, const struct cuda_properties *p, int option);
API int cuMemGetAllocationGranularity(size_t *out, const struct cuda_properties *p, int option)
{
	int result = driver_enter("cuMemGetAllocationGranularity");

	if (result)
		return result;
	*out = FAKE_CUDA_GRANULARITY;
	return driver_leave(is_valid(p) && option >= 0 ? CUDA_SUCCESS : CUDA_INVALID_VALUE);
}

API int cuMemCreate(struct handle **h, size_t size, const struct cuda_properties *p,
		    unsigned long long flags);
API int cuMemCreate(struct handle **h, size_t size, const struct cuda_properties *p,
		    unsigned long long flags)
{
	int result = driver_enter("cuMemCreate");

	return result ? result
		      : driver_leave(flags ? CUDA_INVALID_VALUE : handle_create(h, size, p));
}

API int cuMemRelease(struct handle *h);
API int cuMemRelease(struct handle *h)
{
	int result = driver_enter("cuMemRelease");

	return result ? result : driver_leave(handle_release(h));
}

API int cuMemAddressReserve(uintptr_t *addr, size_t size, size_t align, uintptr_t hint,
			    unsigned long long flags);
API int cuMemAddressReserve(uintptr_t *addr, size_t size, size_t align, uintptr_t hint,
			    unsigned long long flags)
{
	int result = driver_enter("cuMemAddressReserve");

	if (result)
		return result;
	return driver_leave(flags || hint ? CUDA_INVALID_VALUE
					  : reservation_create(addr, size, align));
}

API int cuMemAddressFree(uintptr_t addr, size_t size);
API int cuMemAddressFree(uintptr_t addr, size_t size)
{
	int result = driver_enter("cuMemAddressFree");

	return result ? result : driver_leave(reservation_destroy(addr, size));
}

API int cuMemMap(uintptr_t addr, size_t size, size_t offset, struct handle *h,
		 unsigned long long flags);
API int cuMemMap(uintptr_t addr, size_t size, size_t offset, struct handle *h,
		 unsigned long long flags)
{
	int result = driver_enter("cuMemMap");

	return result ? result
		      : driver_leave(flags ? CUDA_INVALID_VALUE
					   : handle_map(addr, size, offset, h));
}

API int cuMemUnmap(uintptr_t addr, size_t size);
API int cuMemUnmap(uintptr_t addr, size_t size)
{
	int result = driver_enter("cuMemUnmap");

	return result ? result : driver_leave(handle_unmap(addr, size));
}

API int cuMemSetAccess(uintptr_t addr, size_t size, const struct cuda_access *access, size_t n);
API int cuMemSetAccess(uintptr_t addr, size_t size, const struct cuda_access *access, size_t n)
{
	int result = driver_enter("cuMemSetAccess");

	return result ? result : driver_leave(range_set_access(addr, size, access, n));
}

API int cuMemRetainAllocationHandle(struct handle **h, void *addr);
API int cuMemRetainAllocationHandle(struct handle **h, void *addr)
{
	struct range *r;
	int result = driver_enter("cuMemRetainAllocationHandle");

	if (result)
		return result;
	r = range_find((uintptr_t)addr);
	if (!r || !r->handle)
		return driver_leave(CUDA_INVALID_VALUE);
	r->handle->refs++;
	handles++;
	*h = r->handle;
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemGetAllocationPropertiesFromHandle(struct cuda_properties *p, struct handle *h);
API int cuMemGetAllocationPropertiesFromHandle(struct cuda_properties *p, struct handle *h)
{
	int result = driver_enter("cuMemGetAllocationPropertiesFromHandle");

	if (result)
		return result;
	*p = h->properties;
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemExportToShareableHandle(int *fd, struct handle *h, int type, unsigned long long flags);
API int cuMemExportToShareableHandle(int *fd, struct handle *h, int type, unsigned long long flags)
{
	struct fake_opaque opaque = { .magic = FAKE_OPAQUE_MAGIC };
	int result = driver_enter("cuMemExportToShareableHandle");

	if (result)
		return result;
	if (type != CUDA_HANDLE_POSIX_FD || flags || !(h->properties.handle_types & type))
		return driver_leave(CUDA_INVALID_VALUE);
	opaque.memory = h->memory;
	opaque.size = h->size;
	fake_cuda_uuid(is_host(&h->properties) ? 0 : h->properties.location.id, opaque.uuid);
	*fd = fake_opaque_create(&opaque);
	return driver_leave(*fd < 0 ? CUDA_OPERATING_SYSTEM : CUDA_SUCCESS);
}

/* The test's side. */

API void fake_cuda_reset(int n)
{
	pthread_mutex_lock(&mutex);
	devices = n;
	initialized = 1;
	is_child = forks = no_mappings = false;
	pcie = 0;
	memset(calls, 0, sizeof(calls));
	memset(&failure, 0, sizeof(failure));
	memset(&hook, 0, sizeof(hook));
	memset(attributes, 0, sizeof(attributes));
	for (int i = 0; i < FAKE_CUDA_DEVICES; i++) {
		primary[i] = (struct context){ i, 1 }; /* the application's */
		retains[i] = 0;
		attributes[i][CUDA_DEVICE_VMM] = 1;
		attributes[i][CUDA_DEVICE_DMA_BUF] = 1;
		attributes[i][CUDA_DEVICE_RDMA_WITH_VMM] = 1;
	}
	pthread_mutex_unlock(&mutex);
}

API void fake_cuda_uninitialize(void)
{
	initialized = 0;
}

API void fake_cuda_set_attribute(int device, int attribute, int value)
{
	attributes[device][attribute] = value;
}

API void fake_cuda_set_pcie(bool supported)
{
	pcie = supported;
}

API void fake_cuda_set_no_mappings(bool hidden)
{
	no_mappings = hidden;
}

API void fake_cuda_set_forks(bool each_call)
{
	forks = each_call;
}

API void fake_cuda_fail(const char *function, int nth, int result)
{
	failure.name = function;
	failure.countdown = nth;
	failure.result = result;
	failure.hit = false;
}

API bool fake_cuda_has_failed(void)
{
	return failure.hit;
}

API void fake_cuda_at(const char *function, int nth, void (*run)(void *arg), void *arg)
{
	hook.name = function;
	hook.countdown = nth;
	hook.run = run;
	hook.arg = arg;
}

API int fake_cuda_calls(const char *function)
{
	int sum = 0;

	for (size_t i = 0; i < FUNCTIONS && calls[i].name; i++)
		sum += failure_matches(function, calls[i].name) ? calls[i].count : 0;
	return sum;
}

API int fake_cuda_retains(int device)
{
	return retains[device];
}

API unsigned long long fake_cuda_range_flags(void)
{
	return last_flags;
}

static uintptr_t range_map(struct range *r, int device, int prot, uintptr_t at)
{
	pthread_mutex_lock(&mutex);
	r->block_size = page_up(r->size);
	r->block = pages_reserve(at & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1), r->block_size, prot);
	r->addr = r->block + (prot == PROT_NONE && r->size < r->block_size - 512 ? 512 : 0);
	r->memory = prot == PROT_NONE
			    ? (char *)pages_reserve(0, r->block_size, PROT_READ | PROT_WRITE)
			    : (char *)r->block;
	r->device = device;
	r->context = &primary[device];
	if (!r->block)
		abort();
	range_add(r);
	pthread_mutex_unlock(&mutex);
	return r->addr;
}

API uintptr_t fake_cuda_alloc_at(int device, size_t size, uintptr_t addr)
{
	struct range r = { .kind = KIND_DEVICE, .size = size };

	return range_map(&r, device, PROT_NONE, addr);
}

API uintptr_t fake_cuda_alloc(int device, size_t size)
{
	return fake_cuda_alloc_at(device, size, 0);
}

API uintptr_t fake_cuda_managed(int device, size_t size)
{
	struct range r = { .kind = KIND_MANAGED, .size = size };

	return range_map(&r, device, PROT_READ | PROT_WRITE, 0);
}

API uintptr_t fake_cuda_host(int device, size_t size)
{
	struct range r = { .kind = KIND_HOST, .size = size };

	return range_map(&r, device, PROT_READ | PROT_WRITE, 0);
}

API void fake_cuda_host_register(int device, void *memory, size_t size)
{
	struct range r = {
		.kind = KIND_REGISTERED,
		.addr = (uintptr_t)memory,
		.size = size,
		.device = device,
		.context = &primary[device],
		.memory = memory,
	};

	pthread_mutex_lock(&mutex);
	r.block = r.addr;
	range_add(&r);
	pthread_mutex_unlock(&mutex);
}

API void fake_cuda_free(uintptr_t addr)
{
	struct range *r;

	pthread_mutex_lock(&mutex);
	r = range_find(addr);
	if (r->kind != KIND_REGISTERED)
		munmap((void *)r->block, r->block_size);
	if (r->kind == KIND_DEVICE)
		munmap(r->memory, r->block_size);
	range_remove(r);
	pthread_mutex_unlock(&mutex);
}

static void segment_add(uintptr_t addr, const struct fake_cuda_segment *s)
{
	struct cuda_properties p = {
		.type = CUDA_ALLOCATION_PINNED,
		.handle_types = s->handle_types,
		.location = { CUDA_LOCATION_DEVICE, s->device },
	};
	struct cuda_access access = { p.location, CUDA_ACCESS_READ_WRITE };
	struct handle *h;

	if (s->device == FAKE_CUDA_HOST_NUMA)
		access.location = p.location = (struct cuda_location){ CUDA_LOCATION_HOST_NUMA, 0 };
	if (handle_create(&h, s->size, &p) || handle_map(addr, s->size, 0, h) ||
	    range_set_access(addr, s->size, &access, 1) || handle_release(h))
		abort();
}

API uintptr_t fake_cuda_vmm(const struct fake_cuda_segment *segments, size_t n)
{
	size_t size = FAKE_CUDA_GRANULARITY;
	uintptr_t base, at;

	for (size_t i = 0; i < n; i++)
		size += segments[i].size;
	pthread_mutex_lock(&mutex);
	if (reservation_create(&base, size, 0))
		abort();
	at = base;
	for (size_t i = 0; i < n; at += segments[i++].size)
		if (segments[i].device != FAKE_CUDA_HOLE)
			segment_add(at, &segments[i]);
	pthread_mutex_unlock(&mutex);
	return base;
}

API void fake_cuda_vmm_free(uintptr_t addr)
{
	struct reservation *v;
	struct range *r, *next;

	pthread_mutex_lock(&mutex);
	v = reservation_find(addr);
	for (r = ranges; r; r = next) {
		next = r->next;
		if (r->addr - v->addr < v->size)
			handle_unmap(r->addr, r->size);
	}
	reservation_destroy(v->addr, v->size);
	pthread_mutex_unlock(&mutex);
}

API void *fake_cuda_memory(uintptr_t addr)
{
	struct range *r;
	void *memory;

	pthread_mutex_lock(&mutex);
	r = range_find(addr);
	memory = r ? r->memory + (addr - r->block) : NULL;
	pthread_mutex_unlock(&mutex);
	return memory;
}

API bool fake_cuda_syncs(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r && r->sync;
}

API int fake_cuda_access(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r ? r->access : 0;
}

API int fake_cuda_node(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r && r->handle ? r->handle->properties.location.id : -1;
}

API int fake_cuda_rdma(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r && r->handle ? r->handle->properties.rdma_capable : 0;
}

API void *fake_cuda_context_create(int device)
{
	struct context *c = malloc(sizeof(*c));

	*c = (struct context){ device, 1 };
	return c;
}

API void fake_cuda_context_destroy(void *context)
{
	free(context);
}

API void fake_cuda_set_current(void *context)
{
	depth = context ? 1 : 0;
	stack[0] = context;
}

API void *fake_cuda_current(void)
{
	return context_current();
}

static int reservations_count(void)
{
	int n = 0;

	for (const struct reservation *v = reservations; v; v = v->next)
		n++;
	return n;
}

API struct fake_cuda_held fake_cuda_held(void)
{
	struct fake_cuda_held held = { .handles = handles, .pushed = pushed };

	pthread_mutex_lock(&mutex);
	held.reservations = reservations_count();
	for (const struct range *r = ranges; r; r = r->next)
		(*(r->kind == KIND_VMM ? &held.mappings : &held.allocations))++;
	for (int i = 0; i < FAKE_CUDA_DEVICES; i++)
		held.primaries += primary[i].refs ? primary[i].refs - 1 : 0;
	pthread_mutex_unlock(&mutex);
	return held;
}
