/* SPDX-License-Identifier: Apache-2.0 */
/* Extension names, in the four queries for extension names. */
#include "fixture.h"

#include <errno.h>
#include "text.h"

#define NAMES 3

static const char *const names[NAMES] = { "cl_arm_import_memory", "cl_arm_import_memory_host",
					  "cl_arm_import_memory_dma_buf" };

/* The four queries for extension names. */
static const struct query {
	const char *name;
	bool of_device, versions;
} queries[] = {
	{ "platform", false, false },
	{ "device", true, false },
	{ "platform_versions", false, true },
	{ "device_versions", true, true },
};

static cl_int query_ask(const struct query *q, cl_device_id device, size_t size, void *value,
			size_t *size_ret)
{
	if (q->of_device)
		return cl.clGetDeviceInfo(device,
					  q->versions ? CL_DEVICE_EXTENSIONS_WITH_VERSION
						      : CL_DEVICE_EXTENSIONS,
					  size, value, size_ret);
	return cl.clGetPlatformInfo(fix.platform,
				    q->versions ? CL_PLATFORM_EXTENSIONS_WITH_VERSION
						: CL_PLATFORM_EXTENSIONS,
				    size, value, size_ret);
}

static int count_name(const cl_name_version *list, size_t size, const char *name)
{
	int count = 0;

	for (size_t i = 0; i < size / sizeof(*list); i++)
		count += !strcmp(list[i].name, name);
	return count;
}

/* How often the answer to @q contains @name. */
static int count_in(const struct query *q, cl_device_id device, const char *name)
{
	char answer[4096];
	size_t size = 0;

	EXPECT_EQ(query_ask(q, device, sizeof(answer), answer, &size), CL_SUCCESS);
	return q->versions ? count_name((cl_name_version *)answer, size, name)
			   : text_count_word(answer, name);
}

static void query_expect_names(const struct query *q, cl_device_id device, int count)
{
	for (int n = 0; n < NAMES; n++)
		EXPECT_EQ(count_in(q, device, names[n]), count);
	EXPECT_EQ(count_in(q, device, "cl_khr_icd"), 1);
}

TEST_EACH(names_once, struct query, queries,
	  "Platform and device report each of the three names once, with and without versions.")
{
	fixture_reset();
	fixture_open();
	query_expect_names(row, fix.device[0], 1);
	fixture_close();
}

TEST_EACH(trailing_space, struct query, queries,
	  "If a driver's extension string ends with a space, the layer adds no second space.")
{
	char text[4096];

	fixture_reset();
	stub_set(STUB_TRAILING_SPACE, 1);
	fixture_open();
	query_expect_names(row, fix.device[0], 1);
	EXPECT_EQ(query_ask(row, fix.device[0], sizeof(text), text, NULL), CL_SUCCESS);
	EXPECT(row->versions || !strstr(text, "  "));
	fixture_close();
}

TEST_EACH(two_calls, struct query, queries,
	  "The size that a query reports is the size that the query fills; less room is an error.")
{
	unsigned char answer[4096], small[4096];
	size_t size = 0, again = 0;
	cl_device_id device;

	fixture_reset();
	fixture_open();
	device = fix.device[0];
	EXPECT_EQ(query_ask(row, device, 0, NULL, &size), CL_SUCCESS);
	EXPECT(size > 0 && size < sizeof(answer));
	memset(answer, 0xa5, sizeof(answer));
	EXPECT_EQ(query_ask(row, device, size, answer, &again), CL_SUCCESS);
	EXPECT_EQ(again, size);
	EXPECT_EQ(answer[size], 0xa5);
	EXPECT(row->versions ? size % sizeof(cl_name_version) == 0
			     : strlen((char *)answer) + 1 == size);
	EXPECT_EQ(query_ask(row, device, sizeof(answer), answer, NULL), CL_SUCCESS);
	memset(small, 0xa5, sizeof(small));
	EXPECT_EQ(query_ask(row, device, size - 1, small, NULL), CL_INVALID_VALUE);
	EXPECT_EQ(small[0], 0xa5);
	fixture_close();
}

static cl_version query_version(const struct query *q, const char *name)
{
	cl_name_version list[32];
	size_t size;

	EXPECT_EQ(query_ask(q, fix.device[0], sizeof(list), list, &size), CL_SUCCESS);
	for (size_t i = 0; i < size / sizeof(*list); i++)
		if (!strcmp(list[i].name, name))
			return list[i].version;
	return 0;
}

/* A value of CLIMPORT_VERSION, and the version that the layer reports. */
static const struct version {
	const char *name, *asked;
	cl_version reported;
} versions[] = {
	{ "default", NULL, CL_MAKE_VERSION(1, 0, 0) },
	{ "1_0_0", "1.0.0", CL_MAKE_VERSION(1, 0, 0) },
	{ "1_1_0", "1.1.0", CL_MAKE_VERSION(1, 1, 0) },
};

TEST_EACH(version, struct version, versions,
	  "The extension's version is 1.0.0, or the version that CLIMPORT_VERSION asks for.")
{
	fixture_reset();
	if (row->asked)
		setenv("CLIMPORT_VERSION", row->asked, 1);
	fixture_open();
	for (int n = 0; n < NAMES; n++) {
		EXPECT_EQ(query_version(&queries[2], names[n]), row->reported);
		EXPECT_EQ(query_version(&queries[3], names[n]), row->reported);
	}
	fixture_close();
}

/* Two sub-devices of the first device. */
static void sub_devices_create(cl_device_id sub[2])
{
	const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };

	EXPECT_EQ(cl.clCreateSubDevices(fix.device[0], halves, 2, sub, NULL), CL_SUCCESS);
}

static void sub_devices_release(const cl_device_id sub[2])
{
	cl.clReleaseDevice(sub[0]);
	cl.clReleaseDevice(sub[1]);
}

TEST_EACH(sub_device, struct query, queries, "A sub-device reports the names of its root device.")
{
	cl_device_id sub[2];

	fixture_reset();
	fixture_open();
	sub_devices_create(sub);
	query_expect_names(row, sub[1], 1);
	sub_devices_release(sub);
	fixture_close();
}

TEST(sub_devices_import, "A context of sub-devices imports.")
{
	cl_device_id sub[2];
	cl_context context;
	cl_int err;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	sub_devices_create(sub);
	context = cl.clCreateContext(NULL, 2, sub, NULL, NULL, &err);
	mem = fix.import(context, 0, NULL, pages_map(1), 4096, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	cl.clReleaseContext(context);
	sub_devices_release(sub);
	fixture_close();
}

TEST_EACH(copying_device, struct query, queries,
	  "A device that copies does not report the names, and neither does its platform.")
{
	fixture_reset();
	stub_set(STUB_COPYING, 1);
	fixture_open();
	query_expect_names(row, fix.device[0], 0);
	fixture_close();
}

TEST_EACH(one_of_two_devices, struct query, queries,
	  "If one of two devices qualifies, that device and the platform report the names.")
{
	fixture_reset();
	stub_set(STUB_DEVICES, 2);
	stub_set(STUB_COPYING, 2);
	fixture_open();
	query_expect_names(row, fix.device[0], 1);
	if (row->of_device)
		query_expect_names(row, fix.device[1], 0);
	fixture_close();
}

TEST_EACH(native_driver, struct query, queries,
	  "If a driver has the extension, the layer does not repeat the driver's names.")
{
	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	fixture_open();
	query_expect_names(row, fix.device[0], 1);
	fixture_close();
}

TEST(errors_pass, "The driver's error for a wrong query reaches the application.")
{
	char text[64];
	size_t size;

	fixture_reset();
	fixture_open();
	EXPECT_EQ(cl.clGetDeviceInfo(NULL, CL_DEVICE_EXTENSIONS, sizeof(text), text, &size),
		  CL_INVALID_DEVICE);
	EXPECT_EQ(cl.clGetDeviceInfo((cl_device_id)fix.context, CL_DEVICE_EXTENSIONS, sizeof(text),
				     text, &size),
		  CL_INVALID_DEVICE);
	EXPECT_EQ(cl.clGetPlatformInfo((cl_platform_id)fix.context, CL_PLATFORM_EXTENSIONS,
				       sizeof(text), text, &size),
		  CL_INVALID_PLATFORM);
	EXPECT_EQ(cl.clGetDeviceInfo(fix.device[0], 0x7fff, sizeof(text), text, &size),
		  CL_INVALID_VALUE);
	EXPECT_EQ(cl.clGetPlatformInfo(NULL, CL_PLATFORM_NAME, sizeof(text), text, &size),
		  CL_SUCCESS);
	EXPECT(!strcmp(text, "stub"));
	fixture_close();
}

TEST(platform_null,
     "Platform NULL is the platform that the driver chooses, in queries of extension names.")
{
	char text[512];

	fixture_reset();
	fixture_open();
	EXPECT_EQ(cl.clGetPlatformInfo(NULL, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(text_count_word(text, "cl_arm_import_memory_host"), 1);
	fixture_close();
}

TEST_EACH(no_with_version_in_1_2, struct query, queries,
	  "An OpenCL 1.2 driver's error for the WITH_VERSION queries is passed on.")
{
	char answer[1024];

	fixture_reset();
	stub_set(STUB_CL12, 1);
	fixture_open();
	EXPECT_EQ(query_ask(row, fix.device[0], sizeof(answer), answer, NULL),
		  row->versions ? CL_INVALID_VALUE : CL_SUCCESS);
	if (!row->versions)
		EXPECT_EQ(count_in(row, fix.device[0], names[1]), 1);
	fixture_close();
}

/*
 * Returns whether the @nth driver call of the query failed; false if the query makes fewer calls.
 */
static bool query_with_fault(const struct query *q, unsigned long nth)
{
	char answer[4096];
	bool happened;
	cl_int err;

	fixture_reset();
	fixture_open();
	/* The calls of the self-test fail in one query: they are the same in each. */
	if (!q->of_device || q->versions)
		EXPECT_EQ(query_ask(q, fix.device[0], sizeof(answer), answer, NULL), CL_SUCCESS);
	stub_fail(NULL, nth, CL_OUT_OF_HOST_MEMORY);
	err = query_ask(q, fix.device[0], sizeof(answer), answer, NULL);
	happened = stub_failed();
	stub_fail(NULL, 0, CL_SUCCESS);
	EXPECT(!err || (happened && err == CL_OUT_OF_HOST_MEMORY));
	fixture_close();
	return happened;
}

TEST_EACH(driver_fails_query, struct query, queries,
	  "If any driver call of a query fails, the query fails or the names are missing.")
{
	for (unsigned long n = 1; query_with_fault(row, n); n++)
		EXPECT(n < 1000);
}

/* The value of CLIMPORT_IMAGE2D_FROM_BUFFER, and the program. */
static const struct request {
	const char *name, *value, *program;
	bool is_reported;
} requests[] = { { "default", NULL, "mpv", false },
		 { "asked", "1", "mpv", true },
		 { "ffmpeg", NULL, "ffmpeg", true },
		 { "ffplay", NULL, "ffplay", true },
		 { "ffmpeg_not_asked", "0", "ffmpeg", false } };

TEST_EACH_PAIR(image2d_name, struct query, queries, struct request, requests,
	       "cl_khr_image2d_from_buffer is reported on request, and to ffmpeg and ffplay, with "
	       "pitch alignment 1.")
{
	char *name = program_invocation_short_name;
	cl_uint align = 77;

	fixture_reset();
	if (column->value)
		setenv("CLIMPORT_IMAGE2D_FROM_BUFFER", column->value, 1);
	program_invocation_short_name = (char *)(uintptr_t)column->program;
	fixture_open();
	EXPECT_EQ(count_in(row, fix.device[0], "cl_khr_image2d_from_buffer"), column->is_reported);
	EXPECT_EQ(cl.clGetDeviceInfo(fix.device[0], CL_DEVICE_IMAGE_PITCH_ALIGNMENT, sizeof(align),
				     &align, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(align, column->is_reported);
	fixture_close();
	program_invocation_short_name = name;
}
