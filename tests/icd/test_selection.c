/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that select the devices of the layer: two platforms of the stub. */
#include "fixture.h"

#include <CL/cl_ext.h>

struct selection {
	const char *name, *platform, *device;
	unsigned int of_device[2]
			      [2]; /* platform, device: whether the device reports the extension */
};

static bool selection_reports(const char *text)
{
	return strstr(text, "cl_arm_import_memory");
}

static bool selection_device_reports(cl_device_id device)
{
	char text[2048];

	EXPECT_EQ(cl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL),
		  CL_SUCCESS);
	return selection_reports(text);
}

static bool selection_platform_reports(cl_platform_id platform)
{
	char text[2048];

	EXPECT_EQ(cl.clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL),
		  CL_SUCCESS);
	return selection_reports(text);
}

static void selection_set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void selection_open(const char *platform, const char *device)
{
	fixture_reset();
	selection_set("CLIMPORT_PLATFORM", platform);
	selection_set("CLIMPORT_DEVICE", device);
	stub_set(STUB_PLATFORMS, 2);
	stub_set(STUB_DEVICES, 2);
	fixture_open();
}

static void selection_close(void)
{
	fixture_close();
	unsetenv("CLIMPORT_PLATFORM");
	unsetenv("CLIMPORT_DEVICE");
	unsetenv("CLIMPORT_DISABLE");
}

static const struct selection selections[] = {
	{ "nothing", NULL, NULL, { { 1, 1 }, { 1, 1 } } },
	{ "empty", "", "", { { 1, 1 }, { 1, 1 } } },
	{ "platform_number", "1", NULL, { { 0, 0 }, { 1, 1 } } },
	{ "platform_name", "SECOND", NULL, { { 0, 0 }, { 1, 1 } } },
	{ "platform_of_all", "stub", NULL, { { 1, 1 }, { 1, 1 } } },
	{ "platform_unknown", "other", NULL, { { 0, 0 }, { 0, 0 } } },
	{ "platform_too_large", "7", NULL, { { 0, 0 }, { 0, 0 } } },
	{ "device_number", NULL, "1", { { 0, 1 }, { 0, 1 } } },
	{ "device_unknown", NULL, "other", { { 0, 0 }, { 0, 0 } } },
	{ "both", "0", "1", { { 0, 1 }, { 0, 0 } } },
};

TEST_EACH(
	reported, struct selection, selections,
	"The extension is reported for the selected devices and their platforms, by number or by a "
	"part of the name, in any case.")
{
	cl_platform_id platforms[2];
	cl_device_id devices[2];

	selection_open(row->platform, row->device);
	EXPECT_EQ(cl.clGetPlatformIDs(2, platforms, NULL), CL_SUCCESS);
	for (int p = 0; p < 2; p++) {
		EXPECT_EQ(cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 2, devices, NULL),
			  CL_SUCCESS);
		for (int d = 0; d < 2; d++)
			EXPECT_EQ(selection_device_reports(devices[d]), row->of_device[p][d]);
		EXPECT_EQ(selection_platform_reports(platforms[p]),
			  row->of_device[p][0] | row->of_device[p][1]);
	}
	selection_close();
}

TEST(untested,
     "A device that is not selected is not tested: no context and no buffer is created there.")
{
	unsigned long contexts;

	selection_open("second", NULL);
	contexts = stub_calls("clCreateContext");
	EXPECT(!selection_device_reports(fix.device[0]));
	EXPECT_EQ(stub_calls("clCreateContext"), contexts);
	EXPECT_EQ(stub_calls("clCreateBuffer"), 0);
	selection_close();
}

TEST(refused, "An import on a device that is not selected fails, and the message has the variable.")
{
	static unsigned char memory[4096];
	cl_int err;

	selection_open(NULL, "7");
	EXPECT(!selection_device_reports(fix.device[0]));
	EXPECT(!cl.clGetExtensionFunctionAddressForPlatform(fix.platform, "clImportMemoryARM"));
	EXPECT(!fix.import(fix.context, 0, NULL, memory, sizeof(memory), &err));
	EXPECT_EQ(err, CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "CLIMPORT_DEVICE=7 selects another device"));
	selection_close();
}

TEST(native, "A driver's own extension stays, whichever device is selected.")
{
	fixture_reset();
	selection_set("CLIMPORT_PLATFORM", "other");
	stub_set(STUB_NATIVE, 1);
	fixture_open();
	EXPECT(selection_device_reports(fix.device[0]));
	EXPECT(selection_platform_reports(fix.platform));
	EXPECT(fix.import);
	selection_close();
}

TEST(disabled, "With CLIMPORT_DISABLE=1 every function is the driver's.")
{
	struct _cl_icd_dispatch merged;

	fixture_reset();
	selection_set("CLIMPORT_DISABLE", "1");
	layer_init(layer_copy(), &stub_dispatch, &merged);
	EXPECT(!memcmp(&merged, &stub_dispatch, sizeof(merged)));
	unsetenv("CLIMPORT_DISABLE");
}

TEST(enabled, "With CLIMPORT_DISABLE=0, empty, or a value that is not understood, the layer works.")
{
	static const char *const values[] = { "0", "", "yes", "10" };

	for (size_t i = 0; i < 4; i++) {
		fixture_reset();
		selection_set("CLIMPORT_DISABLE", values[i]);
		fixture_open();
		EXPECT(selection_device_reports(fix.device[0]));
		selection_close();
	}
}
