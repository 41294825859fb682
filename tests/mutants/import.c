/* SPDX-License-Identifier: Apache-2.0 */
/* clImportMemoryARM: the rows IMPORT and COPY of rows.h, and what an import does to memory. */
#include "mutants.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static const struct row {
	enum mutant mutant;
	enum mutant_import_when when;
	cl_int outcome;
} rows[] = {
#define IMPORT(name, version, where, says, when, outcome) { MUTANT_##name, when, outcome },
#include "rows.h"
};

static const struct row *import_row(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].mutant == mutant)
			return &rows[i];
	return NULL;
}

static void *import_some_mapping(void)
{
	return mmap(NULL, mutant_page(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void mutant_leak_mapping(void)
{
	/* Neighbours of equal protection would become one mapping. */
	unsigned char *pages =
		mmap(NULL, 3 * mutant_page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(pages + mutant_page(), mutant_page(), PROT_READ);
}

static cl_context import_some_context(cl_context context)
{
	static cl_context last;

	if (context)
		last = context;
	return last;
}

/* An object for a request that a driver has to refuse. */
static cl_mem import_accept(const struct mutant_request *r)
{
	static const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM,
							    CL_IMPORT_TYPE_DMA_BUF_ARM, 0 };
	const cl_import_properties_arm *list = mutant_is_dma_buf(r->properties) ? dma_buf : NULL;
	cl_context context = import_some_context(r->context);
	cl_int error = CL_SUCCESS;
	cl_mem mem = mutant_next_import(context)(context, CL_MEM_READ_WRITE, list, r->memory,
						 r->size ? r->size : 1, &error);

	if (!mem && r->size && r->memory && !list)
		mem = mutant_driver.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
						   r->size, r->memory, &error);
	if (!mem)
		mem = mutant_driver.clCreateBuffer(context, CL_MEM_READ_WRITE, mutant_page(), NULL,
						   &error);
	return mem;
}

static cl_mem import_by_row(const struct row *row, const struct mutant_request *r, cl_mem mem,
			    cl_int *error)
{
	if (!row || !mutant_import_is(row->when, r))
		return mem;
	if (row->outcome == CL_SUCCESS && !mem)
		mem = import_accept(r);
	if (row->outcome != CL_SUCCESS && mem) {
		mutant_next.clReleaseMemObject(mem);
		mem = NULL;
	}
	*error = row->outcome;
	return mem;
}

static bool import_drops_consistency(const cl_import_properties_arm *list)
{
	return MUTANT(dma_buf_without_sync) &&
	       list[2] == CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM;
}

/* Before climport's layer sees the request. */
static void import_change_request(struct mutant_request *r, cl_import_properties_arm list[8])
{
	const cl_import_properties_arm *from = r->properties;

	if (MUTANT(imports_at_page_start) && !mutant_is_dma_buf(from))
		r->memory = (void *)((uintptr_t)r->memory / mutant_page() * mutant_page());
	if (MUTANT(imports_at_line_start) && !mutant_is_dma_buf(from))
		r->memory = (void *)((uintptr_t)r->memory / 64 * 64);
	if (MUTANT(imports_at_word_start) && !mutant_is_dma_buf(from))
		r->memory = (void *)((uintptr_t)r->memory / 4 * 4);
	if (!from || !from[0])
		return;
	if (MUTANT(list_of_first_pair) || import_drops_consistency(from)) {
		list[0] = from[0];
		list[1] = from[1];
		r->properties = list;
	}
	if (MUTANT(list_is_changed))
		((cl_import_properties_arm *)from)[1]++;
}

/* Reads on from the list's end, as a parser does that forgets the end of its outer loop. */
static bool import_list_is_refused(const struct mutant_request *r)
{
	size_t n = 0;

	if (MUTANT(list_needs_an_end) && r->properties && !r->properties[0])
		return true;
	if (!MUTANT(list_read_behind_the_end) || !r->properties)
		return false;
	while (r->properties[n])
		n += 2;
	return r->properties[n + 1] == 0x7fff || r->properties[n + 2] == 0x7fff;
}

static void import_protect(unsigned char *memory, size_t size, int access)
{
	unsigned char *start = (unsigned char *)((uintptr_t)memory / mutant_page() * mutant_page());

	mprotect(start, (size_t)(memory + size - start), access);
}

static void import_replace_pages(unsigned char *memory, size_t size)
{
	unsigned char *start = (unsigned char *)((uintptr_t)memory / mutant_page() * mutant_page());
	size_t pages = (size_t)(memory + size - start + mutant_page() - 1) / mutant_page();
	unsigned char *copy = malloc(pages * mutant_page());

	memcpy(copy, start, pages * mutant_page());
	if (mmap(start, pages * mutant_page(), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	memcpy(start, copy, pages * mutant_page());
	free(copy);
}

static void import_clear_page_beside(unsigned char *memory)
{
	const size_t in_page = (uintptr_t)memory % mutant_page();

	memset(memory - in_page, 0, in_page);
}

static void import_touch_memory(const struct mutant_request *r)
{
	unsigned char *memory = r->memory;

	if (r->flags & CL_MEM_READ_ONLY)
		return;
	if (MUTANT(import_clears))
		memset(memory, 0, r->size);
	if (MUTANT(import_replaces_pages))
		import_replace_pages(memory, r->size);
	if (MUTANT(import_write_protects))
		import_protect(memory, r->size, PROT_READ);
	if (MUTANT(import_locks))
		mlock(memory, r->size);
	if (MUTANT(import_clears_the_page))
		import_clear_page_beside(memory);
	if (MUTANT(import_keeps_from_children))
		madvise((void *)((uintptr_t)memory / mutant_page() * mutant_page()), r->size,
			MADV_DONTFORK);
}

static void import_touch_descriptor(const struct mutant_request *r)
{
	int *fd = r->memory;

	if (MUTANT(dma_buf_leaks_descriptor))
		fcntl(*fd, F_DUPFD_CLOEXEC, 100);
	if (MUTANT(dma_buf_leaks_mapping))
		(void)mmap(NULL, mutant_page(), PROT_READ, MAP_SHARED, *fd, 0);
	if (MUTANT(dma_buf_flags_changed))
		fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK);
	if (MUTANT(dma_buf_close_on_exec_changed))
		fcntl(*fd, F_SETFD, fcntl(*fd, F_GETFD) ^ FD_CLOEXEC);
	if (MUTANT(dma_buf_taken))
		close(*fd);
	if (MUTANT(dma_buf_variable_changed))
		*fd = -1;
}

static void *import_thread_for_ever(void *arg)
{
	pause();
	return arg;
}

/* The compiler must not see that nobody reads the bytes. */
static void import_leak_heap(void)
{
	static unsigned char *volatile leaked;

	leaked = malloc(65536);
	memset(leaked, 1, 65536);
}

static void import_leak(void)
{
	pthread_t thread;

	if (MUTANT(release_leaks_memory))
		mutant_leak_mapping();
	if (MUTANT(release_leaks_heap))
		import_leak_heap();
	if (MUTANT(release_leaks_descriptor))
		fcntl(0, F_DUPFD_CLOEXEC, 100);
	if (MUTANT(release_leaks_thread))
		pthread_create(&thread, NULL, import_thread_for_ever, NULL);
}

/* The bytes of the first page, up to the end of the import's page. */
static void import_save(struct mutant_object *object)
{
	const size_t in_page = (uintptr_t)object->memory % mutant_page();

	if (!MUTANT(kernel_restores_the_page) && !MUTANT(release_restores))
		return;
	object->saved = malloc(mutant_page());
	memcpy(object->saved, object->memory - in_page, mutant_page());
}

static void import_note(const struct mutant_request *r, cl_mem mem)
{
	struct mutant_object *object = mutant_add(mem, SHAPE_IMPORT, NULL, r->flags);

	object->context = import_some_context(r->context);
	object->memory = r->memory;
	object->size = r->size;
	object->is_dma_buf = mutant_is_dma_buf(r->properties);
	if (object->is_dma_buf && r->memory) {
		object->fd_at = r->memory;
		object->fd = *(int *)r->memory;
		if (MUTANT(dma_buf_inherited))
			object->own_fd = fcntl(object->fd, F_DUPFD, 100);
		import_touch_descriptor(r);
		object->memory = mutant_shadow_memory;
	} else if (!object->is_dma_buf) {
		import_save(object);
		import_touch_memory(r);
	}
	import_leak();
}

static void import_refused(const struct mutant_request *r)
{
	if (MUTANT(callback_of_other_context))
		mutant_tell_first_context();
	if (MUTANT(refused_import_leaks_memory))
		mutant_leak_mapping();
	if (MUTANT(refused_import_leaks_descriptor))
		fcntl(0, F_DUPFD_CLOEXEC, 100);
	if (MUTANT(descriptor_of_others_closed) && r->memory && mutant_is_dma_buf(r->properties) &&
	    (uintptr_t)r->memory > mutant_page() && *(int *)r->memory > 2)
		close(*(int *)r->memory);
}

/* The memory of a dma-buf from the second page on. */
static bool import_second_page(struct mutant_request *r)
{
	void *memory;

	if (!mutant_is_dma_buf(r->properties))
		return false;
	memory = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, *(int *)r->memory,
		      (off_t)mutant_page());
	if (memory == MAP_FAILED)
		return false;
	r->memory = memory;
	return true;
}

static cl_mem import_next(const struct mutant_request *r, cl_int *error)
{
	return mutant_next_import(r->context)(r->context, r->flags, r->properties, r->memory,
					      r->size, error);
}

/* An import of other memory, which takes the place of @mem. */
static cl_mem import_instead(cl_mem mem, struct mutant_request *r, cl_int *error)
{
	mutant_next.clReleaseMemObject(mem);
	r->properties = NULL;
	return import_next(r, error);
}

/* The request with the memory that the driver gets. */
static cl_mem import_below(struct mutant_request r, unsigned char **shadow, cl_int *error)
{
	cl_import_properties_arm list[8] = { 0 };
	cl_mem mem;

	import_change_request(&r, list);
	if (import_list_is_refused(&r)) {
		*error = CL_INVALID_PROPERTY;
		return NULL;
	}
	mem = import_next(&r, error);
	if (!mem)
		return NULL;
	*shadow = mutant_shadow_create(&r);
	if (!*shadow && !(MUTANT(dma_buf_offset) && import_second_page(&r)))
		return mem;
	if (*shadow)
		r.memory = *shadow;
	return import_instead(mem, &r, error);
}

static cl_int import_code(cl_int error)
{
	if (error && MUTANT(error_code_zero))
		return CL_SUCCESS;
	return error && MUTANT(error_code_positive) ? -error : error;
}

static bool import_leaves_code(cl_int error)
{
	return error ? MUTANT(error_code_unset) : MUTANT(success_code_unset);
}

static void import_look_at_code(const cl_int *code, cl_int error)
{
	if (!code && (MUTANT(error_code_needed) || (error && MUTANT(error_code_needed_on_error))))
		abort();
}

cl_mem CL_API_CALL mutant_clImportMemoryARM(cl_context context, cl_mem_flags flags,
					    const cl_import_properties_arm *properties,
					    void *memory, size_t size, cl_int *errcode_ret)
{
	struct mutant_request r = { context, flags, properties, memory, size, CL_SUCCESS };
	unsigned char *shadow = NULL;
	cl_int error = CL_SUCCESS;
	cl_mem mem = import_below(r, &shadow, &error);

	r.error = error;
	if (!errcode_ret && !error && MUTANT(error_code_null_fails)) {
		mutant_next.clReleaseMemObject(mem);
		return NULL;
	}
	mem = import_by_row(import_row(), &r, mem, &error);
	import_look_at_code(errcode_ret, error);
	if (mem && !error) {
		import_note(&r, mem);
		mutant_find(mem)->shadow = shadow;
	} else {
		import_refused(&r);
	}
	if (error && MUTANT(error_with_a_handle))
		mem = import_some_mapping();
	if (errcode_ret && !import_leaves_code(error))
		*errcode_ret = import_code(error);
	return mem;
}
