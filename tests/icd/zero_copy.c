/* SPDX-License-Identifier: Apache-2.0 */
#include "zero_copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void *mapped;
static size_t mapped_size;

void zero_copy_open(enum stub_option option, long value)
{
	fixture_reset();
	if (option < STUB_NUM_OPTIONS)
		stub_set(option, value);
	fixture_open();
}

unsigned char *zero_copy_map_file(int fd, size_t size, int flags)
{
	EXPECT(fd >= 0);
	EXPECT_EQ(ftruncate(fd, (off_t)size), 0);
	mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	mapped_size = size;
	EXPECT(mapped != MAP_FAILED);
	close(fd);
	return mapped;
}

int zero_copy_create_file(void)
{
	char name[] = "/var/tmp/climport-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	unlink(name);
	return fd;
}

void zero_copy_unmap(void)
{
	munmap(mapped, mapped_size);
}

bool zero_copy_takes_import(cl_mem_flags flags, const cl_import_properties_arm *properties,
			    void *memory, size_t size, unsigned char *bytes)
{
	cl_int err = 1;
	cl_mem mem = fix.import(fix.context, flags, properties, memory, size, &err);

	EXPECT_EQ(mem == NULL, err != CL_SUCCESS);
	if (!mem) {
		EXPECT_EQ(err, CL_INVALID_OPERATION);
		return false;
	}
	if (flags == CL_MEM_READ_WRITE) {
		bytes[0] = 5;
		fixture_increment(mem);
		EXPECT_EQ(bytes[0], 6);
	}
	cl.clReleaseMemObject(mem);
	return true;
}

bool zero_copy_takes(cl_mem_flags flags, unsigned char *memory, size_t size)
{
	return zero_copy_takes_import(flags, NULL, memory, size, memory);
}

void zero_copy_open_gpu(void)
{
	fixture_reset();
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	fixture_open();
}
