/* SPDX-License-Identifier: Apache-2.0 */
/* DMA_BUF_IOCTL_SYNC around kernels: failing allocations of the layer. */
#include "access.h"

#include <dlfcn.h>
#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 1 /* the sanitizer's malloc, which a program cannot replace */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 1
#endif
#endif

static atomic_int until_failure; /* counts the layer's allocations down to the failing allocation */

#ifndef HAS_OWN_MALLOC
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

/* Whether the allocation at @caller is the layer's and has to fail. */
static bool allocation_fails(const void *caller)
{
	Dl_info info;

	if (!atomic_load(&until_failure) || !dladdr(caller, &info) ||
	    !strstr(info.dli_fname, "climport"))
		return false;
	return atomic_fetch_sub(&until_failure, 1) == 1;
}

STUB_API void *malloc(size_t size)
{
	return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

STUB_API void *calloc(size_t count, size_t size)
{
	return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

STUB_API void *realloc(void *old, size_t size)
{
	return allocation_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}
#endif

/*
 * Enqueues a kernel while the layer's @nth allocation fails.  Returns false if the layer makes
 * fewer allocations.
 */
static bool enqueue_without_memory(struct run *r, int nth, cl_event *event, cl_int *err)
{
	bool failed;

	atomic_store(&until_failure, nth);
	*err = fixture_enqueue(r->queue, r->kernel, 0, NULL, event);
	failed = atomic_exchange(&until_failure, 0) <= 0;
	return failed;
}

TEST_EACH(kernel, struct event_kind, event_kinds,
	  "If an allocation fails, a kernel is not enqueued, or the kernel is bracketed.")
{
	bool failed = true;

#ifdef HAS_OWN_MALLOC
	test_skip("the sanitizer's malloc cannot be made to fail");
#endif
	for (int nth = 1; failed; nth++) {
		struct run r = run_open(nth & 1 ? OUT_OF_ORDER : 0);
		cl_event done = NULL;
		cl_int err;

		failed = enqueue_without_memory(&r, nth, row->wanted ? &done : NULL, &err);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		if (err) {
			EXPECT_EQ(err, CL_OUT_OF_HOST_MEMORY);
			expect_count("kernel increment", 0);
		} else {
			expect_bracket("a", "increment");
		}
		if (done)
			cl.clReleaseEvent(done);
		run_close(&r);
		EXPECT(nth < 20);
	}
}

/* For TEST_EACH(): whether a map blocks, and whether the application asks for an event. */
static const struct map_kind {
	const char *name;
	cl_bool blocking;
	bool wants_event;
} map_kinds[] = {
	{ "without_event", CL_FALSE, false },
	{ "with_event", CL_FALSE, true },
	{ "blocking", CL_TRUE, false },
};

TEST_EACH(map, struct map_kind, map_kinds,
	  "If an allocation fails, a buffer is not mapped, or the map is bracketed.")
{
	bool failed = true;

#ifdef HAS_OWN_MALLOC
	test_skip("the sanitizer's malloc cannot be made to fail");
#endif
	for (int nth = 1; failed; nth++) {
		struct run r = run_open_for_host(nth & 1 ? OUT_OF_ORDER : 0);
		cl_event done = NULL;
		cl_int err = 1;
		void *mapped;

		atomic_store(&until_failure, nth);
		mapped = cl.clEnqueueMapBuffer(r.queue, r.a.mem, row->blocking, CL_MAP_READ, 0, 64,
					       0, NULL, row->wants_event ? &done : NULL, &err);
		failed = atomic_exchange(&until_failure, 0) <= 0;
		EXPECT_EQ(err, mapped ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY);
		EXPECT_EQ(done != NULL, mapped && row->wants_event);
		if (mapped)
			cl.clEnqueueUnmapMemObject(r.queue, r.a.mem, mapped, 0, NULL, NULL);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		if (mapped) {
			expect_count("sync START a", 1);
			expect_count("sync END a", 1);
		}
		if (done)
			cl.clReleaseEvent(done);
		run_close(&r); /* fails if a START has no END */
		EXPECT(nth < 20);
	}
}

TEST(clone, "If an allocation fails, a kernel is not cloned, or the clone is bracketed.")
{
	bool failed = true;

#ifdef HAS_OWN_MALLOC
	test_skip("the sanitizer's malloc cannot be made to fail");
#endif
	for (int nth = 1; failed; nth++) {
		struct run r = run_open(0);
		cl_kernel clone;
		cl_int err = 1;

		atomic_store(&until_failure, nth);
		clone = cl.clCloneKernel(r.kernel, &err);
		failed = atomic_exchange(&until_failure, 0) <= 0;
		EXPECT_EQ(err, clone ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY);
		if (clone) {
			EXPECT_EQ(fixture_enqueue(r.queue, clone, 0, NULL, NULL), CL_SUCCESS);
			EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
			expect_bracket("a", "increment");
			cl.clReleaseKernel(clone);
		}
		run_close(&r);
		EXPECT(nth < 20);
	}
}

TEST(first_import, "If an allocation failed in the first import, the next import works.")
{
	bool failed = true;

#ifdef HAS_OWN_MALLOC
	test_skip("the sanitizer's malloc cannot be made to fail");
#endif
	for (int nth = 1; failed; nth++) {
		unsigned char *memory;
		cl_int err = 1;
		cl_mem mem;

		fixture_reset();
		fixture_open();
		memory = pages_map(1);
		atomic_store(&until_failure, nth);
		mem = fix.import(fix.context, 0, NULL, memory, 4096, &err);
		failed = atomic_exchange(&until_failure, 0) <= 0;
		EXPECT_EQ(mem != NULL, err == CL_SUCCESS);
		if (mem)
			cl.clReleaseMemObject(mem);
		cl.clReleaseMemObject(fixture_import_host(0, memory, 4096));
		fixture_close();
		EXPECT(nth < 200);
	}
}
