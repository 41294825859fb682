/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large memory of a device, of whose import the driver may die.  Each program is a process of its own
 * under the loader, over the stub and the fake of CUDA, and so is climport-probe, whose runs a script notes.
 */
#include "probe.h"

#include "fake_cuda.h"
#include "fake_dmabuf.h"

#include <CL/climport.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define LARGE (512 * MIB)
#define REAL_PROBE "exec " PROBE_PATH " \"$@\"; "
#define RUN_PROBE "echo ran >> $XDG_CACHE_HOME/ran; " REAL_PROBE
#define IMPORTS 2

/* What a program has seen, in memory that the test shares. */
struct seen {
	cl_int err[IMPORTS];
	char why[IMPORTS][256];
};

static struct seen *seen;

/* The program's devices and contexts. */
static cl_device_id devices[2];
static cl_context contexts[2];

static void large_begin(const char *script)
{
	probe_create_cache();
	probe_install_layer(script);
	if (!seen)
		seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	EXPECT(seen != MAP_FAILED);
	memset(seen, 0x55, sizeof(*seen));
}

/* In a program, before the first call of OpenCL.  @dies: bits of devices.  Returns 0, or a line. */
static int large_open(int count, const char *dies)
{
	char number[4];
	cl_int err = 0;

	snprintf(number, sizeof(number), "%d", count);
	setenv("STUB_OPAQUE", "1", 1);
	setenv("STUB_DEVICES", number, 1);
	setenv("STUB_OPAQUE_DIES", dies, 1);
	setenv("FAKE_CUDA_DEVICES", number, 1);
	fake_dmabuf_reset();
	fake_cuda_reset(count);
	fake_cuda_uninitialize();
	probe_use_installed_layer();
	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, (cl_uint)count, devices, NULL))
		return __LINE__;
	for (int i = 0; i < count && !err; i++)
		contexts[i] = clCreateContext(NULL, 1, &devices[i], NULL, NULL, &err);
	return err ? __LINE__ : 0;
}

static void *large_alloc(int device, size_t size)
{
	unsigned char uuid[16];
	void *address = NULL;

	fake_cuda_uuid(device, uuid);
	return climport_alloc(CLIMPORT_DEVICE, size, 0, uuid, &address) ? NULL : address;
}

/* Import @number of the program, of a part of device memory, whose buffer stays. */
static cl_mem large_import(int number, int device, void *address, size_t size)
{
	struct climport_dmabuf d = { .fd = -1 };
	cl_int err = CL_INVALID_VALUE;
	cl_mem mem = NULL;

	if (!climport_export_dmabuf(address, size, 0, &d, sizeof(d))) {
		mem = climport_create_buffer(contexts[device], CL_MEM_READ_WRITE, NULL, &d, &err);
		close(d.fd);
	}
	seen->err[number] = err;
	snprintf(seen->why[number], sizeof(seen->why[number]), "%s",
		 err ? climport_last_error() : "");
	return mem;
}

/* Whether a kernel works on the first byte of the memory. */
static bool large_increments(cl_mem mem, void *address)
{
	static const char *source =
		"kernel void increment(global uchar *a) { a[get_global_id(0)]++; }";
	unsigned char *byte = fake_cuda_memory((uintptr_t)address);
	const size_t one = 1;
	cl_program program = clCreateProgramWithSource(contexts[0], 1, &source, NULL, NULL);
	cl_command_queue queue =
		clCreateCommandQueueWithProperties(contexts[0], devices[0], NULL, NULL);
	cl_kernel kernel;

	if (!mem || clBuildProgram(program, 0, NULL, NULL, NULL, NULL))
		return false;
	*byte = 40;
	kernel = clCreateKernel(program, "increment", NULL);
	return !clSetKernelArg(kernel, 0, sizeof(mem), &mem) &&
	       !clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL) &&
	       !clFinish(queue) && *byte == 41;
}

static bool large_is_error(int number, cl_int err, const char *text)
{
	if (seen->err[number] == err && strstr(seen->why[number], text))
		return true;
	printf("# import %d: error %d: %.255s\n", number, seen->err[number], seen->why[number]);
	return false;
}

#define DIES "climport-probe did not survive the test of it; allocate parts of 510 MiB at most"

/* Memory of @size, imported whole. */
static int large_import_one(int count, const char *dies, size_t size)
{
	int ret = large_open(count, dies);
	void *address = ret ? NULL : large_alloc(0, size);

	if (!address)
		return ret ? ret : __LINE__;
	large_import(0, 0, address, size);
	return 0;
}

static int program_dies(void)
{
	return large_import_one(1, "1", LARGE);
}

static int program_lives(void)
{
	return large_import_one(1, "0", LARGE);
}

static int program_dies_of_1gib(void)
{
	return large_import_one(1, "1", 2 * LARGE);
}

static int program_below(void)
{
	return large_import_one(1, "1", LARGE - 2 * MIB);
}

TEST(dies,
     "Where the driver dies of device memory of 512 MiB, the import is an error with the reason.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_dies), 0);
	EXPECT(large_is_error(0, CL_INVALID_OPERATION, DIES));
	EXPECT_EQ(probe_count_runs(), 2); /* for the first import, and for large memory */
}

TEST(dies_of_more, "Where the driver dies of 512 MiB, the import of 1 GiB is an error.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_dies_of_1gib), 0);
	EXPECT(large_is_error(0, CL_INVALID_OPERATION, DIES));
}

static int program_odd(void)
{
	return large_import_one(1, "1", LARGE - MIB);
}

TEST(odd, "A request of 511 MiB, of which CUDA makes 512 MiB, is refused as 512 MiB are.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_odd), 0);
	EXPECT(large_is_error(0, CL_INVALID_OPERATION, DIES));
}

TEST(below, "Memory of 510 MiB, the largest below 512 MiB, is imported where the driver dies.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_below), 0);
	EXPECT_EQ(seen->err[0], CL_SUCCESS);
}

static int program_part(void)
{
	int ret = large_open(1, "1");
	char *address = ret ? NULL : large_alloc(0, LARGE);

	if (!address)
		return ret ? ret : __LINE__;
	large_import(0, 0, address, 4096);
	large_import(1, 0, address + LARGE - 4096, 4096);
	return 0;
}

TEST(part,
     "A small part of large memory is refused as the whole is: the descriptor is of the whole.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_part), 0);
	EXPECT(large_is_error(0, CL_INVALID_OPERATION, DIES));
	EXPECT(large_is_error(1, CL_INVALID_OPERATION, DIES));
	EXPECT_EQ(probe_count_runs(), 2);
}

static int program_host(void)
{
	unsigned char uuid[16];
	void *address;
	int ret = large_open(1, "1");

	fake_cuda_uuid(0, uuid);
	if (ret || climport_alloc(CLIMPORT_HOST, LARGE, 0, uuid, &address))
		return ret ? ret : __LINE__;
	clImportMemoryARM(contexts[0], 0, NULL, address, LARGE, &seen->err[0]);
	return 0;
}

TEST(host, "Memory of CUDA on the host is imported in any size.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_host), 0);
	EXPECT_EQ(seen->err[0], CL_SUCCESS);
}

static int program_works(void)
{
	int ret = large_open(1, "0");
	void *address = ret ? NULL : large_alloc(0, LARGE);
	cl_mem mem;

	if (!address)
		return ret ? ret : __LINE__;
	mem = large_import(0, 0, address, LARGE);
	return large_increments(mem, address) ? 0 : __LINE__;
}

TEST(lives, "Where the driver survives, kernels work in place on device memory of 512 MiB.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_works), 0);
	EXPECT_EQ(seen->err[0], CL_SUCCESS);
	EXPECT_EQ(probe_count_runs(), 2);
}

static const struct remembered {
	const char *name;
	int (*program)(void);
	cl_int err;
} remembered[] = {
	{ "death", program_dies, CL_INVALID_OPERATION },
	{ "life", program_lives, CL_SUCCESS },
};

TEST_EACH(remembered, struct remembered, remembered, "A second process tests nothing again.")
{
	large_begin(RUN_PROBE);
	for (int i = 0; i < 2; i++) {
		seen->err[0] = 1;
		EXPECT_EQ(probe_run_program(row->program), 0);
		EXPECT_EQ(seen->err[0], row->err);
	}
	EXPECT_EQ(probe_count_runs(), 2);
}

static void large_make_old(void)
{
	char command[256];

	snprintf(command, sizeof(command), "touch -d '2 hours ago' %s/climport/results/*",
		 probe_cache);
	EXPECT_EQ(system(command), 0);
}

TEST(death_forgotten, "That the driver dies is believed for an hour.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_dies), 0);
	large_make_old();
	EXPECT_EQ(probe_run_program(program_dies), 0);
	EXPECT(large_is_error(0, CL_INVALID_OPERATION, DIES));
	EXPECT_EQ(probe_count_runs(), 3);
}

TEST(no_memory, "If the device has no memory for the test, the import is an error, and an hour "
		"later the driver is tested again.")
{
	large_begin("test 0$(wc -l < $XDG_CACHE_HOME/ran) -ge 2 || export "
		    "FAKE_CUDA_FREE=0x10000000; " RUN_PROBE);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(probe_run_program(program_lives), 0);
		EXPECT(large_is_error(0, CL_INVALID_OPERATION, "cuMemCreate of 536870912 bytes"));
	}
	EXPECT_EQ(probe_count_runs(), 2);
	large_make_old();
	EXPECT_EQ(probe_run_program(program_lives), 0);
	EXPECT_EQ(seen->err[0], CL_SUCCESS);
	EXPECT_EQ(probe_count_runs(), 3);
}

static int program_host_part(void)
{
	unsigned char uuid[16];
	void *address;
	int ret;

	setenv("STUB_COPYING", "1", 1);
	ret = large_open(1, "0");
	fake_cuda_uuid(0, uuid);
	if (ret || climport_alloc(CLIMPORT_HOST, 4096, 0, uuid, &address))
		return ret ? ret : __LINE__;
	clImportMemoryARM(contexts[0], 0, NULL, address, 4096, &seen->err[0]);
	return 0;
}

TEST(untested,
     "A device that could not be tested for want of memory takes nothing in this program, and a "
     "later program has it tested.")
{
	large_begin("test -e $XDG_CACHE_HOME/ran || export FAKE_CUDA_FREE=0; "
		    "echo ran >> $XDG_CACHE_HOME/ran; " REAL_PROBE);
	EXPECT_EQ(probe_run_program(program_host_part), 0);
	EXPECT_EQ(seen->err[0], CL_OUT_OF_RESOURCES);
	EXPECT_EQ(probe_run_program(program_host_part), 0);
	EXPECT_EQ(seen->err[0], CL_SUCCESS);
	EXPECT_EQ(probe_run_program(program_host_part), 0);
	EXPECT_EQ(probe_count_runs(), 2);
}

static int program_two_devices(void)
{
	int ret = large_open(2, "1");
	void *a = ret ? NULL : large_alloc(0, LARGE), *b = ret ? NULL : large_alloc(1, LARGE);

	if (!a || !b)
		return ret ? ret : __LINE__;
	large_import(0, 0, a, LARGE);
	large_import(1, 1, b, LARGE);
	return 0;
}

TEST(two_devices, "A driver that dies of one device's large memory takes that of the next.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_two_devices), 0);
	EXPECT(large_is_error(0, CL_INVALID_OPERATION, DIES));
	EXPECT_EQ(seen->err[1], CL_SUCCESS);
	EXPECT_EQ(probe_count_runs(), 2);
}

static int program_wrong(void)
{
	setenv("STUB_OPAQUE_WRONG", "1", 1);
	return program_lives();
}

TEST(wrong, "A driver that shows other memory in place of large memory imports none.")
{
	large_begin(RUN_PROBE);
	EXPECT_EQ(probe_run_program(program_wrong), 0);
	EXPECT(large_is_error(0, CL_INVALID_OPERATION,
			      "a second buffer over such memory did not show what"));
}
