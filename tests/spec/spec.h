/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the suite share: the device under test, the function, and
 * helpers that import, run kernels and look after what a test leaves behind.
 *
 * Knows OpenCL and the text of the extension, and nothing of any
 * implementation.  Where the text allows several outcomes a test accepts all of
 * them, unless CLIMPORT_CONFORM_EXACT=1: then it wants what climport documents.
 *
 * Helpers end the test (EXPECT, test_skip) where they cannot go on.  Unless a
 * function says otherwise it is for the thread that runs the tests.
 */
#ifndef TESTS_SPEC_SPEC_H
#define TESTS_SPEC_SPEC_H

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness.h"

typedef cl_mem(CL_API_CALL *import_function)(cl_context, cl_mem_flags,
					     const cl_import_properties_arm *, void *, size_t,
					     cl_int *);

#define VERSION_1_1_0 CL_MAKE_VERSION(1, 1, 0)

/* Set by spec_open() and not changed by tests. */
struct spec {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	import_function import;
	char platform_name[128];
	char device_name[128];
	cl_version device_version; /* OpenCL's */
	cl_version version;	   /* the extension's */
	bool has_host, has_dma_buf, has_protected, has_android;
	bool exact; /* CLIMPORT_CONFORM_EXACT */
	size_t page;
	size_t cache_line;   /* bytes, 64 where the device does not say */
	atomic_uint notices; /* calls of the context's callback */
};

extern struct spec spec;

/*
 * Takes the first device, or the one with this index, of the first platform
 * whose name contains @platform and that reports the extension.  Returns NULL,
 * or why there is nothing to test.
 *
 * @plain takes any platform and treats it as one with version 1.1.0, with buffers
 * of CL_MEM_USE_HOST_PTR for imports: what fails then is not the extension's.
 */
const char *spec_open(const char *platform, unsigned int device, bool plain);

/* Whether there are platforms, but none with @platform in its name and a device of that number. */
bool spec_lacks(const char *platform, unsigned int device);
void spec_close(void);

/* What an address query returned, NULL included. */
import_function as_import_function(void *address);

/* "layer" or "native", by the file that the function is in. */
const char *spec_implementation(void);

/* An extension string of the device, or of the platform; the caller frees it. */
char *device_extensions(void);
char *platform_extensions(void);
bool spec_device_reports(const char *extension);

cl_ulong device_number(cl_device_info what); /* any integer; 0 where it is not known */

/* Calls @undo after this test, last registered first, however it ends. */
void spec_undo_later(void (*undo)(void *), void *arg);
void undo_all(void);

/* For spec_undo_later(). */
void spec_close_descriptor(void *fd);
void spec_release_context(void *context);

/* Skip the test unless... */
void need_host(void);
void need_dma_buf(void);
void need_prior_to_1_1(void);
void need_1_1(void);

/*
 * Addresses of host memory that the device takes are multiples of this: a cache line, or
 * more where it says so by CL_DEVICE_MEM_BASE_ADDR_ALIGN and refuses a cache line.  Under
 * CLIMPORT_CONFORM_EXACT a cache line.
 */
size_t host_alignment(void);
void need_alignment(size_t bytes); /* skips where that is more */

/* Fresh pages of this process, all zero, unmapped after the test. */
unsigned char *spec_map_pages(size_t count);

/*
 * Four pages at addresses that no other test has: drivers may destroy an import on another
 * thread, after its release.
 */
unsigned char *spec_map_own_pages(void);

/* @count pages of a pattern, of which number @hole is not mapped. */
unsigned char *spec_map_pages_with_hole(size_t count, size_t hole);

/* memory[i] = a byte that depends on i and @seed; spec_memory_is() compares. */
void spec_fill_memory(unsigned char *memory, size_t size, unsigned int seed);
bool spec_memory_is(const unsigned char *memory, size_t size, unsigned int seed);
unsigned char spec_pattern_byte(size_t i, unsigned int seed);

/*
 * An import of spec.context that must succeed; released after the test.
 * @properties as in clImportMemoryARM().
 */
cl_mem spec_import(cl_mem_flags flags, const cl_import_properties_arm *properties, void *memory,
		   size_t size);
cl_mem spec_import_host(cl_mem_flags flags, void *memory, size_t size);

/*
 * An import of host memory of a kind that devices which pin pages may refuse, with
 * CL_INVALID_OPERATION: then the test is skipped, as "@kind: refused".  Not under
 * CLIMPORT_CONFORM_EXACT, and not where the device refuses ordinary pages, too.
 */
cl_mem import_host_kind(const char *kind, cl_mem_flags flags, void *memory, size_t size);

/* Whether the import is made; if not, with CL_INVALID_OPERATION. */
bool takes_host(cl_mem_flags flags, void *memory, size_t size);

/*
 * An import that must not succeed, also with errcode_ret NULL, and must leave
 * no descriptor and no mapping behind.  Returns the error code.
 */
cl_int spec_import_error(cl_mem_flags flags, const cl_import_properties_arm *properties,
			 void *memory, size_t size);
cl_int spec_import_host_error(cl_mem_flags flags, void *memory, size_t size);

/* The same without the count of what was left behind, for @context. */
cl_int spec_import_error_once(cl_context context, cl_mem_flags flags,
			      const cl_import_properties_arm *properties, void *memory,
			      size_t size);

/* Calls @attempt until it is sure whether that leaves descriptors or mappings behind. */
void expect_no_leak(void (*attempt)(void *), void *arg);

/* Has the object released after the test; returns it. */
cl_mem released_later(cl_mem mem);

/* Evaluates @error always, compares it only under CLIMPORT_CONFORM_EXACT. */
#define EXPECT_EXACT(error, code)                                                 \
	do {                                                                      \
		long long exact_ = (long long)(error), code_ = (long long)(code); \
		if (spec.exact && exact_ != code_)                                \
			test_fail(__FILE__, __LINE__, #error, exact_, code_);     \
	} while (0)

#endif /* TESTS_SPEC_SPEC_H */
