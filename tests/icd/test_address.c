/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of functions by name. */
#include "fixture.h"

TEST(function_address, "Both address queries give the same function.")
{
	void *function;

	fixture_reset();
	fixture_open();
	function = cl.clGetExtensionFunctionAddressForPlatform(fix.platform, "clImportMemoryARM");
	EXPECT(function);
	EXPECT(function == cl.clGetExtensionFunctionAddress("clImportMemoryARM"));
	EXPECT(!cl.clGetExtensionFunctionAddress("clNoSuchFunctionARM"));
	EXPECT(!cl.clGetExtensionFunctionAddressForPlatform(fix.platform, "clNoSuchFunctionARM"));
	EXPECT(!cl.clGetExtensionFunctionAddress(NULL));
	EXPECT(!cl.clGetExtensionFunctionAddressForPlatform(fix.platform, NULL));
	EXPECT(!cl.clGetExtensionFunctionAddressForPlatform((cl_platform_id)fix.context,
							    "clFinish"));
	fixture_close();
}

/*
 * Both address queries give @mine for @name.  Where the layer has a function, no address leads
 * around the layer.
 */
static void expect_address(const char *name, void *mine)
{
	void *found[2] = { cl.clGetExtensionFunctionAddressForPlatform(fix.platform, name),
			   cl.clGetExtensionFunctionAddress(name) };

	for (int i = 0; i < 2; i++) {
		if (found[i] != mine)
			printf("# %s by address is another function\n", name);
		EXPECT(found[i] == mine);
	}
}

TEST(wrappers_by_address,
     "The address of a core function by name is the function of the dispatch table.")
{
	fixture_reset();
	fixture_open();
#define F(name) expect_address(#name, (void *)cl.name);
#define N F
#define X(name)
#define V(name)
#include "functions.h"
#undef V
#undef X
#undef N
#undef F
	fixture_close();
}

/* Recording functions of cl_khr_command_buffer. */
static const struct recording {
	const char *name;
} recordings[] = {
	{ "clCommandCopyBufferKHR" },	     { "clCommandCopyBufferRectKHR" },
	{ "clCommandCopyBufferToImageKHR" }, { "clCommandCopyImageKHR" },
	{ "clCommandCopyImageToBufferKHR" }, { "clCommandFillBufferKHR" },
	{ "clCommandFillImageKHR" },
};

TEST_EACH(recording, struct recording, recordings,
	  "The address of a recording function of cl_khr_command_buffer is the layer's.")
{
	void *ours;

	fixture_reset();
	fixture_open();
	ours = cl.clGetExtensionFunctionAddressForPlatform(fix.platform, row->name);
	EXPECT(ours);
	EXPECT(ours !=
	       stub_dispatch.clGetExtensionFunctionAddressForPlatform(fix.platform, row->name));
	EXPECT(ours == cl.clGetExtensionFunctionAddress(row->name));
	fixture_close();
}
