/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arm Compute Library, CLTensorAllocator::import_memory and its tests: the function comes from
 * dlsym(), and tensors lie in malloc'ed memory and in a mapped file.
 */
#include "client.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TENSOR = 13 * 11 * 3 * 4 };

/* CLSymbols::load(): looks the function up in the library. */
static void load_symbols(void)
{
	void *library = dlopen(CLIMPORT_LIBRARY, RTLD_LAZY | RTLD_LOCAL);

	EXPECT(library);
	client.import = (__typeof__(client.import))dlsym(library, "clImportMemoryARM");
	EXPECT(client.import);
}

static cl_mem import_tensor(void *at, size_t size)
{
	const cl_import_properties_arm host[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };
	cl_context context;
	size_t reported;
	cl_int err;
	cl_mem mem;

	EXPECT(client_device_has("cl_arm_import_memory_host"));
	mem = client.import(client.context, CL_MEM_READ_WRITE, host, at, size, &err);
	client_expect_import(err, at);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof(reported), &reported, NULL),
		  CL_SUCCESS);
	EXPECT(reported >= size);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof(cl_context), &context, NULL),
		  CL_SUCCESS);
	EXPECT(context == client.context);
	return mem;
}

static void run_in_place(unsigned char *at, size_t size)
{
	cl_mem mem = import_tensor(at, size);

	for (unsigned char round = 0; round < 3; round++) {
		memset(at, round, size);
		client_increment(mem, size);
		for (size_t i = 0; i < size; i++)
			EXPECT_EQ(at[i], round + 1);
	}
	clReleaseMemObject(mem);
}

TEST(compute_library_malloc, "Compute Library runs a kernel in place on a malloc'ed tensor.")
{
	void *at;

	client_open();
	load_symbols();
	EXPECT_EQ(posix_memalign(&at, client_cache_line(), TENSOR), 0);
	run_in_place(at, TENSOR);
	free(at);
	client_close();
}

TEST(compute_library_file, "Compute Library runs a kernel in place on a mapped file.")
{
	char path[] = "/tmp/climport-tensor-XXXXXX", bytes[TENSOR];
	int fd = mkstemp(path);
	unsigned char *at;

	client_open();
	load_symbols();
	EXPECT(fd >= 0 && !unlink(path) && !ftruncate(fd, TENSOR));
	at = mmap(NULL, TENSOR, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(at != MAP_FAILED);
	run_in_place(at, TENSOR);
	EXPECT_EQ(pread(fd, bytes, TENSOR, 0), TENSOR);
	EXPECT_EQ(bytes[TENSOR - 1], 3);
	munmap(at, TENSOR);
	close(fd);
	client_close();
}
