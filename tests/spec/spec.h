/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests share the device under test, the imported function, and helpers that import memory, run
 * kernels and release every object after a test.
 *
 * The suite depends on OpenCL and on the text of the extension, and on no implementation.  If the
 * text allows several outcomes, a test accepts each.  With CLIMPORT_CONFORM_EXACT=1 a test accepts
 * only the outcome that climport documents.
 *
 * A helper that cannot continue ends the test (EXPECT, test_skip).  Only the thread of the tests
 * may call a helper, unless the helper's comment says otherwise.
 */
#ifndef TESTS_SPEC_SPEC_H
#define TESTS_SPEC_SPEC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "channel.h"
#include "harness.h"
#include "opencl.h"
#include "run.h"

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
	char driver_version[128];
	cl_version device_version;   /* OpenCL's */
	cl_version version;	     /* of cl_arm_import_memory */
	cl_version external_version; /* of cl_khr_external_memory */
	bool has_arm, has_external;  /* cl_khr_external_memory_dma_buf */
	bool has_host, has_dma_buf, has_protected, has_android;
	bool is_plain; /* the driver's own buffers stand in for imports */
	bool exact;    /* CLIMPORT_CONFORM_EXACT */
	size_t page;
	size_t cache_line;	    /* bytes, 64 where the device does not say */
	atomic_uint notices;	    /* calls of the context's callback */
	const char *protected_heap; /* a file, or NULL */
};

extern struct spec spec;

/*
 * Takes the device of the command line, of the first platform that has an extension of the suite.  Returns NULL, or
 * the reason why no device can be tested, with its *@kind.
 *
 * With run->plain any platform is taken and treated as version 1.1.0, and the buffers of substitute.h
 * stand in for imports: a failure is then the driver's, and not the extension's.
 */
const char *spec_open(const struct run *run, enum nothing *kind);
void spec_close(void);

/* Casts the result of an address query, which may be NULL. */
import_function as_import_function(void *address);

/* "layer" or "native", by the file of the function. */
const char *spec_implementation(void);

/* The extension string of the device, or of the platform; the caller frees the string. */
char *device_extensions(void);
char *platform_extensions(void);
bool spec_device_reports(const char *extension);

cl_ulong device_number(cl_device_info what); /* an integer query; 0 if the query fails */

/* Prints a line below the test's result.  Any thread may call. */
void spec_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Notes a wrong byte of memory that a kernel used: with spec_note(), and for the comparison with the
 * driver's own buffers.  Returns false.
 */
bool spec_note_wrong_byte(size_t i, unsigned int is, unsigned int expected);

/* For the macros: the failed check is to be compared with the driver's own buffers.  Returns false. */
bool spec_note_driver(void);

/* Calls @undo after the test, even if the test fails; the last registered @undo comes first. */
void spec_undo_later(void (*undo)(void *), void *arg);
void undo_all(void);

/* For spec_undo_later(). */
void spec_close_descriptor(void *fd);
void spec_release_context(void *context);

/* Skip the test unless... */
void need_extension_of(const char *sentence); /* the device has the extension of the sentence */
void need_host(void);
void need_dma_buf(void);
void need_prior_to_1_1(void);
void need_1_1(void);
void spec_need_own_heap(void); /* no sanitizer, which keeps memory that was freed */

/*
 * ... the test is on imports.  The driver's own buffers need not refuse what imports refuse, so a death
 * in clCreateBuffer() is no excuse for a death in clImportMemoryARM().
 */
void spec_need_imports(void);

/*
 * The alignment of importable host addresses: a cache line.  If the device refuses a cache line,
 * the alignment may be up to CL_DEVICE_MEM_BASE_ADDR_ALIGN, except under CLIMPORT_CONFORM_EXACT.
 */
size_t host_alignment(void);
void need_alignment(size_t bytes); /* skips if host_alignment() is more */

/* New pages, all zero, unmapped after the test. */
unsigned char *spec_map_pages(size_t count);

/*
 * Four pages at addresses that no other test uses: drivers may destroy an import some time after
 * the release.
 */
unsigned char *spec_map_own_pages(void);

/* @count pages of a pattern, of which number @hole is not mapped. */
unsigned char *spec_map_pages_with_hole(size_t count, size_t hole);

/* @count pages between pages that are not mapped; the pages are all zero, and the test's own. */
unsigned char *spec_map_pages_between_holes(size_t count);

/* Sets memory[i] to a byte computed from i and @seed; spec_memory_is() compares. */
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
 * An import of host memory of a special kind.  Devices that pin pages may refuse with
 * CL_INVALID_OPERATION; then the test is skipped with the reason "@kind: refused".  Under
 * CLIMPORT_CONFORM_EXACT, or if the device refuses ordinary pages too, the test fails.
 */
cl_mem import_host_kind(const char *kind, cl_mem_flags flags, void *memory, size_t size);

/* Whether the import succeeds; the only error allowed is CL_INVALID_OPERATION. */
bool takes_host(cl_mem_flags flags, void *memory, size_t size);

/*
 * An import that must not succeed, also with errcode_ret NULL, and must leave
 * no descriptor and no mapping behind.  Returns the error code.
 */
cl_int spec_import_error(cl_mem_flags flags, const cl_import_properties_arm *properties,
			 void *memory, size_t size);
cl_int spec_import_host_error(cl_mem_flags flags, void *memory, size_t size);

/* Like spec_import_error(), for @context, and without the search for leaks. */
cl_int spec_import_error_once(cl_context context, cl_mem_flags flags,
			      const cl_import_properties_arm *properties, void *memory,
			      size_t size);

/* Calls @attempt again and again; expects no descriptor and no mapping to be left. */
void expect_no_leak(void (*attempt)(void *), void *arg);

/* Releases @mem after the test; returns @mem. */
cl_mem released_later(cl_mem mem);

/* Releases @mem, an object of released_later(), in the test. */
void spec_release_now(cl_mem mem);

/*
 * Checks of what an import has no part in, and of bytes that kernels write: if the check fails in the same
 * way on the driver's own buffers, the fault is the driver's.
 */
#define EXPECT_OF_DRIVER(condition)                                                \
	do {                                                                       \
		if (!(condition) && !spec_note_driver())                           \
			test_fail(__FILE__, __LINE__, "!!(" #condition ")", 0, 1); \
	} while (0)
#define EXPECT_BYTE(got, want)                                                  \
	do {                                                                    \
		long long byte_ = (long long)(got), right_ = (long long)(want); \
		if (byte_ != right_ && !spec_note_driver())                     \
			test_fail(__FILE__, __LINE__, #got, byte_, right_);     \
	} while (0)

/* Evaluates @error always, and compares only under CLIMPORT_CONFORM_EXACT. */
#define EXPECT_EXACT(error, code)                                                 \
	do {                                                                      \
		long long exact_ = (long long)(error), code_ = (long long)(code); \
		if (spec.exact && exact_ != code_)                                \
			test_fail(__FILE__, __LINE__, #error, exact_, code_);     \
	} while (0)

#endif /* TESTS_SPEC_SPEC_H */
