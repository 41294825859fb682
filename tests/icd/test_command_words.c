/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording functions of icd/calls/command_copy.c alone, compiled with and without
 * optimization.  Every parameter must reach the driver unchanged, in both versions of
 * cl_khr_command_buffer.
 */
#include "harness.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "icd/calls/command.h"
#include "icd/intercept.h"
#include "icd/objects/command_buffer.h"

static struct extensions driver;
static bool properties;
static cl_mem used[2];
static uintptr_t seen[16];
static int num_seen;

/* command_copy.c is compiled with these names for the layer's functions. */
struct command_target words_command_target_of(cl_command_buffer_khr buffer)
{
	(void)buffer;
	return (struct command_target){ &driver, properties, false };
}

cl_int words_command_check_recorded(const char *function, cl_mem first, cl_mem second)
{
	(void)function;
	used[0] = first ? first : second; /* a fill only writes */
	used[1] = first ? second : NULL;
	return CL_SUCCESS;
}

#define SEE(x) (seen[num_seen++] = (uintptr_t)(x))

/* Functions of a driver with 10, 11 or 15 parameters.  Each function notes all parameters. */
#define P10 \
	void *a, void *b, void *c, void *d, size_t e, size_t f, cl_uint g, void *h, void *i, void *j
#define P11                                                                                   \
	void *a, void *b, void *c, void *d, size_t e, size_t f, size_t g, cl_uint h, void *i, \
		void *j, void *k
#define S10 SEE(a), SEE(b), SEE(c), SEE(d), SEE(e), SEE(f), SEE(g), SEE(h), SEE(i), SEE(j)
#define S11 S10, SEE(k)

static cl_int CL_API_CALL driver_10(P10)
{
	return S10, 10;
}

static cl_int CL_API_CALL driver_11(P11)
{
	return S11, 11;
}

static cl_int CL_API_CALL driver_fill_image_properties(void *a, void *b, void *properties_, void *c,
						       void *d, size_t e, size_t f, cl_uint g,
						       void *h, void *i, void *j)
{
	EXPECT(!properties_);
	return S10, 10;
}

static cl_int CL_API_CALL driver_11_properties(void *a, void *b, void *properties_, void *c,
					       void *d, size_t e, size_t f, size_t g, cl_uint h,
					       void *i, void *j, void *k)
{
	EXPECT(!properties_);
	return S11, 11;
}

static cl_int CL_API_CALL driver_15(P11, size_t l, size_t m, size_t n, size_t o)
{
	return S11, SEE(l), SEE(m), SEE(n), SEE(o), 15;
}

static cl_int CL_API_CALL driver_15_properties(void *a, void *b, void *properties_, void *c,
					       void *d, size_t e, size_t f, size_t g, cl_uint h,
					       void *i, void *j, void *k, size_t l, size_t m,
					       size_t n, size_t o)
{
	EXPECT(!properties_);
	return S11, SEE(l), SEE(m), SEE(n), SEE(o), 15;
}

/* Parameters use all their bits; a cl_uint has 32. */
#define W(n) ((size_t)UINT64_C(0x8badf00d8badf000) + (n))
#define V(n) ((void *)(uintptr_t)W(n))
#define U(n) ((cl_uint)(0xf0000000 + (n)))

static void expect_seen(cl_int result, cl_int count, int at_uint, bool two)
{
	EXPECT_EQ(result, count);
	EXPECT_EQ(num_seen, count);
	for (int n = 0; n < count; n++)
		EXPECT(seen[n] == (n == at_uint ? U(n) : W(n)));
	EXPECT(used[0] == V(2));
	EXPECT(used[1] == (two ? V(3) : NULL));
	num_seen = 0;
}

#define A10 V(2), V(3), W(4), W(5), U(6), V(7), V(8), V(9)
#define A11 V(2), V(3), W(4), W(5), W(6), U(7), V(8), V(9), V(10)
#define A15 A11, W(11), W(12), W(13), W(14)

/* The layer's function, with the parameters of either version. */
static void *command_copy_function(const char *name)
{
#define RECORDS(function, count, mems) \
	if (!strcmp(name, #function))  \
		return (void *)layer_##function;
#include "icd/table.h"
	return NULL;
}

static void command_words_expect_plain(void)
{
	static const char *const of_11[] = {
		"clCommandCopyBufferKHR", "clCommandCopyBufferToImageKHR", "clCommandCopyImageKHR",
		"clCommandCopyImageToBufferKHR", "clCommandFillBufferKHR"
	};
	__typeof__(&driver_15) rect = command_copy_function("clCommandCopyBufferRectKHR");
	__typeof__(&driver_10) fill = command_copy_function("clCommandFillImageKHR");

	for (int i = 0; i < 5; i++) {
		__typeof__(&driver_11) record = command_copy_function(of_11[i]);

		expect_seen(record(V(0), V(1), A11), 11, 7, i < 4);
	}
	expect_seen(rect(V(0), V(1), A15), 15, 7, true);
	expect_seen(fill(V(0), V(1), A10), 10, 6, false);
}

static void expect_with_properties(void)
{
	static const char *const of_11[] = {
		"clCommandCopyBufferKHR", "clCommandCopyBufferToImageKHR", "clCommandCopyImageKHR",
		"clCommandCopyImageToBufferKHR", "clCommandFillBufferKHR"
	};
	__typeof__(&driver_15_properties) rect =
		command_copy_function("clCommandCopyBufferRectKHR");
	__typeof__(&driver_fill_image_properties) fill =
		command_copy_function("clCommandFillImageKHR");

	for (int i = 0; i < 5; i++) {
		__typeof__(&driver_11_properties) record = command_copy_function(of_11[i]);

		expect_seen(record(V(0), V(1), NULL, A11), 11, 7, i < 4);
	}
	expect_seen(rect(V(0), V(1), NULL, A15), 15, 7, true);
	expect_seen(fill(V(0), V(1), NULL, A10), 10, 6, false);
}

TEST(without_properties,
     "If recording functions take no list of properties, their parameters pass through.")
{
	properties = false;
	driver = (struct extensions){
		.clCreateCommandBufferKHR = (void *)driver_11,
		.clCommandCopyBufferKHR = (void *)driver_11,
		.clCommandCopyBufferToImageKHR = (void *)driver_11,
		.clCommandCopyImageKHR = (void *)driver_11,
		.clCommandCopyImageToBufferKHR = (void *)driver_11,
		.clCommandFillBufferKHR = (void *)driver_11,
		.clCommandCopyBufferRectKHR = (void *)driver_15,
		.clCommandFillImageKHR = (void *)driver_10,
	};
	command_words_expect_plain();
}

TEST(with_properties,
     "If recording functions take a list of properties, the parameters behind the list pass "
     "through.")
{
	properties = true;
	driver = (struct extensions){
		.clCreateCommandBufferKHR = (void *)driver_11,
		.clCommandCopyBufferKHR = (void *)driver_11_properties,
		.clCommandCopyBufferToImageKHR = (void *)driver_11_properties,
		.clCommandCopyImageKHR = (void *)driver_11_properties,
		.clCommandCopyImageToBufferKHR = (void *)driver_11_properties,
		.clCommandFillBufferKHR = (void *)driver_11_properties,
		.clCommandCopyBufferRectKHR = (void *)driver_15_properties,
		.clCommandFillImageKHR = (void *)driver_fill_image_properties,
	};
	expect_with_properties();
}
