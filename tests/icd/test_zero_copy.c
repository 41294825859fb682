/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An import is zero copy or an error.  The tests' drivers copy some memory only.  The rule by size, access,
 * context and address.
 */
#include "zero_copy.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Drivers that copy host pointers of one kind of access. */
static const struct access {
	const char *name, *flag_name;
	enum stub_option copying;
	cl_mem_flags copied, shared;
} accesses[] = {
	{ "read_only", "CL_MEM_READ_ONLY", STUB_COPYING_READ_ONLY, CL_MEM_READ_ONLY,
	  CL_MEM_WRITE_ONLY },
	{ "write_only", "CL_MEM_WRITE_ONLY", STUB_COPYING_WRITE_ONLY, CL_MEM_WRITE_ONLY,
	  CL_MEM_READ_ONLY },
};

TEST_EACH(access, struct access, accesses,
	  "If a driver copies host pointers with an access flag, imports with the flag are "
	  "refused.")
{
	zero_copy_open(row->copying, 1);
	EXPECT(!zero_copy_takes(row->copied, pages_map(1), PAGE));
	EXPECT(strstr(fix.notice, row->flag_name) && strstr(fix.notice, "not proved"));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	EXPECT(zero_copy_takes(row->shared, pages_map(1), PAGE));
	fixture_close();
}

static const struct device_kind {
	const char *name;
	bool is_gpu;
} device_kinds[] = { { "cpu", false }, { "gpu", true } };

TEST_EACH(large, struct device_kind, device_kinds,
	  "If a driver copies large host pointers, imports up to the largest size that was not "
	  "copied succeed.")
{
	fixture_reset();
	stub_set(STUB_GPU, row->is_gpu);
	stub_set(STUB_NO_NATIVE_KERNEL, row->is_gpu);
	stub_set(STUB_COPYING_ABOVE, 96 * 1024);
	fixture_open();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(64), 262144));
	EXPECT(strstr(fix.notice, "262144 bytes are not proved") && strstr(fix.notice, "65536"));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(16), 65536));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(20), 81920));
	fixture_close();
}

TEST(smallest, "An import of a few bytes is proved by as many bytes as a self-test needs.")
{
	zero_copy_open(STUB_NUM_OPTIONS, 0);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), 1));
	for (size_t size = 1; size < 20; size++)
		EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1) + 1, size));
	fixture_close();
}

static const struct host_access {
	const char *name;
	cl_mem_flags flag;
} host_accesses[] = {
	{ "CL_MEM_HOST_NO_ACCESS", CL_MEM_HOST_NO_ACCESS },
	{ "CL_MEM_HOST_READ_ONLY", CL_MEM_HOST_READ_ONLY },
	{ "CL_MEM_HOST_WRITE_ONLY", CL_MEM_HOST_WRITE_ONLY },
};

TEST_EACH(host_access, struct host_access, host_accesses,
	  "If a driver copies buffers with CL_MEM_HOST_* flags, imports with the flags are "
	  "refused.")
{
	zero_copy_open_gpu();
	stub_set(STUB_COPYING_HOST_ACCESS, 1);
	EXPECT(!zero_copy_takes(CL_MEM_READ_ONLY | row->flag, pages_map(1), PAGE));
	EXPECT(strstr(fix.notice, row->name));
	EXPECT(zero_copy_takes(CL_MEM_READ_ONLY, pages_map(1), PAGE));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE | row->flag, pages_map(1), PAGE));
	fixture_close();
}

TEST(first_launch, "If the first launch of each kernel copies read-only buffers, they are refused.")
{
	zero_copy_open_gpu();
	stub_set(STUB_COPYING_FIRST_LAUNCH, 1);
	EXPECT(!zero_copy_takes(CL_MEM_READ_ONLY, pages_map(1), PAGE));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	fixture_close();
}

TEST(pin_limit, "If a driver cannot take a size in the self-test, larger imports are refused, and "
		"smaller ones are not.")
{
	zero_copy_open_gpu();
	stub_set(STUB_PIN_LIMIT, 512 * 1024);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(16), 65536));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(17), 65536 + PAGE));
	fixture_close();
}

TEST(even_pages,
     "If a driver copies memory that does not begin at an even page, imports of whole pages are "
     "refused.")
{
	for (int i = 0; i < 8; i++) {
		fixture_reset();
		stub_set(STUB_GPU, 1);
		stub_set(STUB_NO_NATIVE_KERNEL, 1);
		stub_set(STUB_ZERO_COPY_ALIGN, 2 * PAGE);
		fixture_open();
		EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(2), 2 * PAGE),
			  CL_INVALID_PROPERTY);
		fixture_close();
		pages_map(1);
	}
}

static const struct proof {
	const char *name;
	bool is_compiled;
} proofs[] = { { "native", false }, { "compiled", true } };

TEST_EACH(untouched, struct proof, proofs, "No proof changes the application's memory.")
{
	unsigned char *memory;

	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, row->is_compiled);
	fixture_open();
	memory = pages_map(2);
	memset(memory, 0xa5, 2 * PAGE);
	cl.clReleaseMemObject(fixture_import_host(0, memory, 2 * PAGE));
	for (size_t i = 0; i < 2 * PAGE; i++)
		EXPECT_EQ(memory[i], 0xa5);
	fixture_close();
}

TEST(once, "The rule of a device is found once in a process.")
{
	unsigned long kernels;

	zero_copy_open(STUB_NUM_OPTIONS, 0);
	EXPECT(zero_copy_takes(CL_MEM_READ_ONLY, pages_map(3), 3 * PAGE));
	kernels = stub_calls("clEnqueueNativeKernel");
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(4), 4 * PAGE));
	EXPECT(zero_copy_takes(CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS, pages_map(1) + 1, 100));
	EXPECT_EQ(stub_calls("clEnqueueNativeKernel"), kernels);
	fixture_close();
}

TEST(gigabytes, "A CPU that works at the host's addresses takes sizes that nobody has tried.")
{
	const size_t size = (size_t)3 << 30;
	unsigned char *memory;

	zero_copy_open(STUB_NUM_OPTIONS, 0);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		test_skip("no address space");
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, memory, size));
	munmap(memory, size);
	fixture_close();
}

TEST_EACH(verify, struct device_kind, device_kinds,
	  "With CLIMPORT_VERIFY=1 an import is refused that the rule allows and the driver copies, "
	  "and memory keeps its bytes.")
{
	unsigned char *memory;

	fixture_reset();
	setenv("CLIMPORT_VERIFY", "1", 1);
	stub_set(STUB_GPU, row->is_gpu);
	stub_set(STUB_NO_NATIVE_KERNEL, row->is_gpu);
	fixture_open();
	memory = pages_map(2);
	memset(memory, 0xa5, 2 * PAGE);
	cl.clReleaseMemObject(fixture_import_host(0, memory, 2 * PAGE));
	stub_set(STUB_COPYING, 1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, memory, 2 * PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "CLIMPORT_VERIFY: the device works on a copy"));
	for (size_t i = 0; i < 2 * PAGE; i++)
		EXPECT_EQ(memory[i], 0xa5);
	/* Of memory that may not be written nothing is known. */
	cl.clReleaseMemObject(fixture_import_host(CL_MEM_READ_ONLY, memory, 2 * PAGE));
	fixture_close();
	unsetenv("CLIMPORT_VERIFY");
}

TEST(verify_together,
     "With CLIMPORT_VERIFY=1 an import is refused where devices copy in one context alone.")
{
	fixture_reset();
	setenv("CLIMPORT_VERIFY", "1", 1);
	stub_set(STUB_DEVICES, 2);
	stub_set(STUB_COPYING_CONTEXTS, 1);
	fixture_open();
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "CLIMPORT_VERIFY: the device works on a copy"));
	fixture_close();
	unsetenv("CLIMPORT_VERIFY");
}
