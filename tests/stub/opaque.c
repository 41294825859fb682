/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_external_memory_opaque_fd as in NVIDIA's driver 580.  The driver owns an imported
 * descriptor, and closes the descriptor with the object.  A bad descriptor gets an object together
 * with an error that OpenCL does not define.  With STUB_OPAQUE_CACHED the driver caches memory that
 * kernels have read, until an opaque object is destroyed.
 */
#include "internal.h"

#include "fake/opaque.h"

#include <signal.h>
#include <unistd.h>

enum { CACHE_SIZE = 32 << 20 };	 /* larger memory is read anew for each kernel */
enum { LARGE_SIZE = 512 << 20 }; /* STUB_OPAQUE_DIES, STUB_OPAQUE_WRONG */

/* A caching device's copy of a memory, shared by all objects on the memory. */
struct cached {
	struct cached *next;
	unsigned char *memory, *seen, *clean;
	size_t size;
	unsigned int refs, filled;
};

static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* guards the two variables below, and each record */
static struct cached *caches;
static unsigned int evictions = 1;

STUB_API void stub_uuid(unsigned device, unsigned char uuid[16])
{
	memset(uuid, 0xa0 + (int)device, 16); /* the value in tests/fake/cuda/device.c */
}

static bool is_for(const struct context *context, const struct fake_opaque *opaque)
{
	unsigned char uuid[16];

	stub_uuid(context->device[0]->index, uuid);
	return opaque->any_device || !memcmp(uuid, opaque->uuid, sizeof(uuid));
}

static struct mem *opaque_create_dud(struct context *context, cl_mem_flags flags, cl_int *err,
				     cl_int code)
{
	*err = code;
	return mem_create(context, CL_MEM_OBJECT_BUFFER, flags, 1, NULL);
}

static struct cached *cached_get(const struct fake_opaque *opaque)
{
	struct cached *c;

	pthread_mutex_lock(&lock);
	c = caches;
	while (c && c->memory != opaque->memory)
		c = c->next;
	if (!c) {
		c = calloc(1, sizeof(*c));
		c->memory = opaque->memory;
		c->size = opaque->size;
		c->seen = malloc(c->size);
		c->clean = malloc(c->size);
		c->next = caches;
		caches = c;
	}
	c->refs++;
	pthread_mutex_unlock(&lock);
	return c;
}

static void cached_put(struct cached *c)
{
	struct cached **link = &caches;

	if (!c || --c->refs)
		return;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	free(c->seen);
	free(c->clean);
	free(c);
}

static bool is_large(const struct fake_opaque *opaque)
{
	return opaque->on_device && opaque->size >= LARGE_SIZE;
}

/* NVIDIA 580 with NVLink reads address 0.  Sanitizers would make another end of the process of it. */
static void opaque_die(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

struct mem *opaque_create(struct context *context, cl_mem_flags flags, size_t size, int fd,
			  cl_int *err)
{
	struct fake_opaque opaque;
	struct mem *mem;

	*err = fd < 0 ? CL_INVALID_VALUE : CL_SUCCESS;
	if (*err)
		return NULL;
	if (!fake_opaque_read(fd, &opaque) || !is_for(context, &opaque))
		return opaque_create_dud(context, flags, err, 999);
	if (size > opaque.size)
		return opaque_create_dud(context, flags, err, 1);
	if (is_large(&opaque) && context_option(context, STUB_OPAQUE_DIES))
		opaque_die();
	mem = object_create(STUB_MEM);
	object_retain(context);
	mem->context = context;
	mem->type = CL_MEM_OBJECT_BUFFER;
	mem->flags = flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) ? flags
								    : flags | CL_MEM_READ_WRITE;
	mem->size = size;
	mem->opaque = true;
	mem->opaque_fd = fd;
	mem->own_data = opaque.copied || context_option(context, STUB_OPAQUE_COPIES) ||
			(is_large(&opaque) && context_option(context, STUB_OPAQUE_WRONG));
	mem->data = opaque.memory;
	if (mem->own_data) {
		mem->data = calloc(1, size);
		memcpy(mem->data, opaque.memory, is_large(&opaque) ? 1 : size);
	}
	if (opaque.cached && !mem->own_data && opaque.size <= CACHE_SIZE)
		mem->cached = cached_get(&opaque);
	return mem;
}

void opaque_destroy(struct mem *mem)
{
	close(mem->opaque_fd);
	pthread_mutex_lock(&lock);
	evictions++;
	cached_put(mem->cached);
	pthread_mutex_unlock(&lock);
}

/*
 * Reads whole pages.  The pages may contain redzones and stacks of other threads, which sanitizers
 * would report.
 */
__attribute__((no_sanitize("address", "thread"))) static void cached_fetch(struct cached *c)
{
	const volatile unsigned char *memory = c->memory;

	for (size_t i = 0; i < c->size; i++)
		c->seen[i] = c->clean[i] = memory[i];
}

/* The memory as a caching device sees it: as of the first use after the last eviction. */
unsigned char *opaque_seen(struct mem *mem)
{
	struct cached *c = mem_root(mem)->cached;

	pthread_mutex_lock(&lock);
	if (c->filled != evictions)
		cached_fetch(c);
	c->filled = evictions;
	pthread_mutex_unlock(&lock);
	return c->seen + mem->origin;
}

/* Writes the device's changes back to the memory. */
void opaque_write_back(struct mem *mem)
{
	struct cached *c = mem_root(mem)->cached;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < c->size; i++)
		if (c->seen[i] != c->clean[i])
			c->memory[i] = c->clean[i] = c->seen[i];
	pthread_mutex_unlock(&lock);
}
