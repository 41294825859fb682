/* SPDX-License-Identifier: Apache-2.0 */
#include "opaque_fixture.h"

#include <string.h>
#include <unistd.h>

unsigned char uuid[16];

void opaque_reset(void)
{
	fixture_reset();
	fake_cuda_reset(1);
	stub_set(STUB_OPAQUE, 1);
	stub_set(STUB_NO_CALLS_IN_CALLBACKS, 1);
	stub_set(STUB_NO_CONTEXT_CALLBACKS, 1);
	stub_set(STUB_OWN_REFERENCES, 1);
	stub_uuid(0, uuid);
	fake_rm_reset(1);
	memcpy(fake_rm.gpu[0].uuid, uuid, sizeof(uuid));
}

const char *opaque_read_method(cl_uint type)
{
	describe_fn describe = (describe_fn)cl.clGetExtensionFunctionAddress(DESCRIBE_FUNCTION);
	struct device_description d;

	EXPECT_EQ(describe(fix.device[0], type, &d), CL_SUCCESS);
	if (!d.method || strcmp(d.method, "opaque_fd"))
		printf("# %s: %s\n", d.method, d.why);
	return d.method ? d.method : "refused";
}

void opaque_begin(void)
{
	fixture_open();
	EXPECT(!strcmp(opaque_read_method(CL_IMPORT_TYPE_HOST_ARM), "opaque_fd"));
	stub_live(STUB_MEM); /* until the self-test's last command has let go of its memory */
}

size_t opaque_query_size(cl_mem mem, cl_mem_info name)
{
	size_t value = 0;

	EXPECT_EQ(cl.clGetMemObjectInfo(mem, name, sizeof(value), &value, NULL), CL_SUCCESS);
	return value;
}
