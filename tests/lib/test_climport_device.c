/* SPDX-License-Identifier: Apache-2.0 */
/* climport_get_import_info(), climport_alloc_for_device() and climport_alloc_for_context(). */
#include "program.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fake_rm.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define ALIGN 128	       /* CL_DEVICE_MEM_BASE_ADDR_ALIGN of the stub, in bytes */
#define NVIDIA "STUB_OPAQUE=1" /* devices like NVIDIA's, and a fake libcuda */
#define UNKNOWN 9u	       /* no kind of memory */

static struct climport_import_info climport_info_of(cl_uint type)
{
	struct climport_import_info info;

	memset(&info, 0xee, sizeof(info));
	CHECK(!climport_get_import_info(program_devices[0], type, &info, sizeof(info)));
	return info;
}

static void expect_method(const struct climport_import_info *info, const char *method)
{
	if (!info->method || strcmp(info->method, method))
		printf("# %s: %s\n", info->method ? info->method : "refused", info->why);
	CHECK(info->method && !strcmp(info->method, method));
	CHECK(info->why && *info->why);
}

static void program_ask_host_ptr(void)
{
	struct climport_import_info host, dmabuf;

	program_find_devices();
	host = climport_info_of(CL_IMPORT_TYPE_HOST_ARM);
	dmabuf = climport_info_of(CL_IMPORT_TYPE_DMA_BUF_ARM);
	expect_method(&host, "host_ptr");
	expect_method(&dmabuf, "host_ptr");
	CHECK(host.address_alignment == 64 && host.size_alignment == 1);
	CHECK(host.kinds == 1u << CLIMPORT_HOST && dmabuf.kinds == 0);
	CHECK(!host.by_uuid && !dmabuf.by_uuid && !host.kept);
}

static void program_ask_as_newer(void)
{
	struct {
		struct climport_import_info info;
		unsigned char more[64];
	} newer;
	static const unsigned char zeros[sizeof(newer.more)];

	memset(&newer, 0xee, sizeof(newer));
	program_find_devices();
	CHECK(!climport_get_import_info(program_devices[0], CL_IMPORT_TYPE_HOST_ARM, &newer.info,
					sizeof(newer)));
	expect_method(&newer.info, "host_ptr");
	CHECK(!memcmp(newer.more, zeros, sizeof(zeros)));
}

TEST(info_newer_caller,
     "Members that a newer caller's struct has and the library does not know are 0.")
{
	program_expect_works(program_ask_as_newer, true);
}

TEST(info_host_ptr, "A device that takes host pointers has the alignment of the self-test.")
{
	program_expect_works_in("STUB_ZERO_COPY_ALIGN=64", program_ask_host_ptr, true);
}

static void program_ask_page_only(void)
{
	struct climport_import_info host;

	program_find_devices();
	host = climport_info_of(CL_IMPORT_TYPE_HOST_ARM);
	expect_method(&host, "host_ptr");
	CHECK(host.address_alignment == ALIGN && host.size_alignment == 1);
}

TEST(info_page_only,
     "A device that takes whole pages alone has the alignment of the device's sub-buffers.")
{
	program_expect_works_in("STUB_ZERO_COPY_ALIGN=4096", program_ask_page_only, true);
}

static void program_ask_opaque_fd(void)
{
	struct climport_import_info host, dmabuf;
	unsigned char uuid[CLIMPORT_UUID_SIZE];

	fake_cuda_reset(1);
	fake_cuda_uuid(0, uuid);
	program_find_devices();
	host = climport_info_of(CL_IMPORT_TYPE_HOST_ARM);
	dmabuf = climport_info_of(CL_IMPORT_TYPE_DMA_BUF_ARM);
	expect_method(&host, "opaque_fd");
	expect_method(&dmabuf, "opaque_fd");
	CHECK(host.address_alignment == ALIGN && host.size_alignment == 1);
	CHECK(host.kinds == 1u << CLIMPORT_HOST && dmabuf.kinds == 1u << CLIMPORT_DEVICE);
	CHECK(host.by_uuid && !memcmp(host.uuid, uuid, sizeof(uuid)));
	CHECK(dmabuf.by_uuid && !memcmp(dmabuf.uuid, uuid, sizeof(uuid)));
}

TEST(info_opaque_fd, "A device that takes opaque descriptors has a UUID and device memory.")
{
	program_expect_works_in(NVIDIA, program_ask_opaque_fd, true);
}

static void program_ask_without_vmm(void)
{
	fake_cuda_reset(1);
	program_find_devices();
	fake_cuda_set_attribute(0, 102, 0); /* ..._VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
	CHECK(!climport_info_of(CL_IMPORT_TYPE_DMA_BUF_ARM).kinds);
	CHECK(!*climport_last_error());
}

TEST(info_no_vmm, "A device without virtual memory management has no device memory to allocate.")
{
	program_expect_works_in(NVIDIA, program_ask_without_vmm, true);
}

static void program_ask_driver(void)
{
	struct climport_import_info host;

	program_find_devices();
	host = climport_info_of(CL_IMPORT_TYPE_HOST_ARM);
	expect_method(&host, "native");
	CHECK(host.address_alignment == 1 && host.size_alignment == 1);
	CHECK(host.kinds == 1u << CLIMPORT_HOST && !host.by_uuid);
}

TEST(info_native, "Without the layer, a driver that has the extension answers for the driver.")
{
	program_expect_works_in("STUB_NATIVE=1", program_ask_driver, false);
}

static void program_ask_in_vain(void)
{
	struct climport_import_info info;
	unsigned int kind = UNKNOWN;
	void *p = &p;

	program_find_devices();
	info = climport_info_of(CL_IMPORT_TYPE_HOST_ARM);
	CHECK(!info.method && info.why && *info.why);
	CHECK(!info.kinds && !info.address_alignment && !info.size_alignment);
	CHECK(!*climport_last_error());
	CHECK(climport_alloc_for_device(program_devices[0], 1, 0, CLIMPORT_NO_CPU, &p, &kind) ==
	      -EOPNOTSUPP);
	CHECK(strstr(climport_last_error(), info.why));
	CHECK(p == (void *)&p && kind == UNKNOWN);
}

static const struct refusal_row {
	const char *name;
	const char *environment;
	bool layer;
} refusals[] = {
	{ "copies", "STUB_COPYING=1", true },
	{ "no_layer", "STUB_NATIVE=0", false },
};

TEST_EACH(refused, struct refusal_row, refusals,
	  "If a device refuses imports, the information has the reason, and so has the error of an "
	  "allocation.")
{
	program_expect_works_in(row->environment, program_ask_in_vain, row->layer);
}

/* An address that is imported as the caller's next step. */
static void expect_imports_host(cl_context context, unsigned char *p)
{
	cl_int err = -1;
	cl_mem mem = clImportMemoryARM(context, 0, NULL, p, PAGE, &err);

	CHECK(mem && !err);
	p[0] = 6;
	program_increment(context, mem);
	CHECK(p[0] == 7);
	CHECK(!CL(clReleaseMemObject)(mem));
}

static void program_alloc_pages(void)
{
	cl_context context = program_create_context();
	unsigned int kind = UNKNOWN;
	void *p;

	for (uint64_t flags = 0; flags <= CLIMPORT_NO_CPU; flags += CLIMPORT_NO_CPU) {
		CHECK(!climport_alloc_for_device(program_devices[0], PAGE, 0, flags, &p, &kind));
		CHECK(kind == CLIMPORT_HOST && !((uintptr_t)p % 64));
		expect_imports_host(context, p);
		climport_free(p);
		CHECK(!climport_alloc_for_context(context, PAGE, 4096, flags, &p, &kind));
		CHECK(kind == CLIMPORT_HOST && !((uintptr_t)p % 4096));
		expect_imports_host(context, p);
		climport_free(p);
	}
	CHECK(!climport_alloc_for_device(program_devices[0], PAGE, 0, 0, &p, NULL));
	climport_free(p);
	CHECK(!fake_cuda_calls(NULL));
	CL(clReleaseContext)(context);
}

TEST(alloc_host_ptr,
     "A device that takes host pointers gets pages of the host, without a call of CUDA.")
{
	program_expect_works_in("STUB_ZERO_COPY_ALIGN=64", program_alloc_pages, true);
}

TEST(alloc_devices, "A context of several devices that take host pointers gets pages of the host.")
{
	program_expect_works_in("STUB_DEVICES=3", program_alloc_pages, true);
}

static void program_alloc_cuda_host(void)
{
	cl_context context;
	unsigned int kind = UNKNOWN;
	void *p;

	fake_cuda_reset(1);
	context = program_create_context();
	CHECK(!climport_alloc_for_device(program_devices[0], PAGE, 0, 0, &p, &kind));
	CHECK(kind == CLIMPORT_HOST && fake_cuda_node((uintptr_t)p) >= 0);
	expect_imports_host(context, p);
	climport_free(p);
	CHECK(!climport_alloc_for_context(context, PAGE, 0, 0, &p, NULL));
	CHECK(fake_cuda_node((uintptr_t)p) >= 0);
	expect_imports_host(context, p);
	climport_free(p);
	CL(clReleaseContext)(context);
}

TEST(alloc_opaque_fd, "A device that takes opaque descriptors gets CUDA's memory of the host.")
{
	program_expect_works_in(NVIDIA, program_alloc_cuda_host, true);
}

static void program_alloc_device(void)
{
	cl_context context;
	struct climport_dmabuf d;
	unsigned int kind = UNKNOWN;
	cl_int err = -1;
	cl_mem mem;
	void *p;

	fake_cuda_reset(1);
	context = program_create_context();
	CHECK(!climport_alloc_for_context(context, PAGE, 0, CLIMPORT_NO_CPU, &p, &kind));
	CHECK(kind == CLIMPORT_DEVICE && fake_cuda_rdma((uintptr_t)p));
	CHECK(!climport_export_dmabuf(p, PAGE, 0, &d, sizeof(d)));
	mem = climport_create_buffer(context, 0, NULL, &d, &err);
	CHECK(mem && !err);
	close(d.fd);
	*(unsigned char *)fake_cuda_memory((uintptr_t)p) = 8;
	program_increment(context, mem);
	CHECK(*(unsigned char *)fake_cuda_memory((uintptr_t)p) == 9);
	CHECK(!CL(clReleaseMemObject)(mem));
	climport_free(p);
	CL(clReleaseContext)(context);
}

TEST(alloc_device, "With CLIMPORT_NO_CPU a device with memory of its own gets device memory.")
{
	program_expect_works_in(NVIDIA, program_alloc_device, true);
}

/* The self-test passes with CUDA's memory, which then is no more. */
static cl_context program_create_without_vmm(void)
{
	cl_context context;

	fake_cuda_reset(1);
	context = program_create_context();
	climport_info_of(CL_IMPORT_TYPE_HOST_ARM);
	fake_cuda_set_attribute(0, 102, 0); /* ..._VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
	return context;
}

static char program_cache[] = "/tmp/climport-XXXXXX"; /* without results of other tests */

static void program_remove_cache(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", program_cache);
	CHECK(!system(command));
}

/* A device that takes any pages, by RM. */
static void program_add_rm(void)
{
	CHECK(mkdtemp(program_cache) && !setenv("XDG_CACHE_HOME", program_cache, 1));
	fake_cuda_reset(1);
	fake_rm_reset(1);
	fake_cuda_uuid(0, fake_rm.gpu[0].uuid);
}

static void program_alloc_without_vmm(void)
{
	cl_context context;
	unsigned int kind = UNKNOWN;
	void *p;

	program_add_rm();
	context = program_create_without_vmm();
	CHECK(!climport_alloc_for_device(program_devices[0], PAGE, 0, CLIMPORT_NO_CPU, &p, &kind));
	CHECK(kind == CLIMPORT_HOST && fake_cuda_node((uintptr_t)p) < 0);
	expect_imports_host(context, p);
	climport_free(p);
	CHECK(!*climport_last_error());
	CL(clReleaseContext)(context);
	program_remove_cache();
}

TEST(alloc_no_vmm, "If CUDA has no memory of a kind, a device that takes any pages gets pages.")
{
	program_expect_works_in(NVIDIA, program_alloc_without_vmm, true);
}

static void program_alloc_in_vain(void)
{
	cl_context context = program_create_without_vmm();
	unsigned int kind = UNKNOWN;
	void *p = &p;

	for (uint64_t flags = 0; flags <= CLIMPORT_NO_CPU; flags += CLIMPORT_NO_CPU) {
		CHECK(climport_alloc_for_device(program_devices[0], PAGE, 0, flags, &p, &kind) ==
		      -EOPNOTSUPP);
		CHECK(*climport_last_error());
		CHECK(climport_alloc_for_context(context, PAGE, 0, flags, &p, &kind) ==
		      -EOPNOTSUPP);
	}
	CHECK(p == (void *)&p && kind == UNKNOWN);
	CL(clReleaseContext)(context);
}

TEST(alloc_in_vain,
     "If CUDA has no memory, a device that takes CUDA's memory alone gets -EOPNOTSUPP, no pages.")
{
	program_expect_works_in(NVIDIA, program_alloc_in_vain, true);
}

static void program_alloc_too_much(void)
{
	unsigned int kind = UNKNOWN;
	void *p = &p;

	fake_cuda_reset(1);
	program_find_devices();
	climport_info_of(CL_IMPORT_TYPE_HOST_ARM);
	fake_cuda_fail("cuMemCreate", 1, 2); /* CUDA_ERROR_OUT_OF_MEMORY */
	CHECK(climport_alloc_for_device(program_devices[0], PAGE, 0, CLIMPORT_NO_CPU, &p, &kind) ==
	      -ENOMEM);
	CHECK(p == (void *)&p && kind == UNKNOWN);
	CHECK(*climport_last_error());
}

TEST(alloc_no_memory, "A device without free memory is -ENOMEM, and not memory of another kind.")
{
	program_expect_works_in(NVIDIA, program_alloc_too_much, true);
}

static void program_alloc_for_several(void)
{
	cl_context context;
	void *p = &p;

	fake_cuda_reset(2);
	context = program_create_context();
	CHECK(program_device_count == 2);
	CHECK(climport_alloc_for_context(context, PAGE, 0, 0, &p, NULL) == -EOPNOTSUPP);
	CHECK(strstr(climport_last_error(), "all 2 devices"));
	CHECK(p == (void *)&p);
	CL(clReleaseContext)(context);
}

TEST(alloc_several_opaque_fd,
     "If each device of a context takes memory of its own UUID, the error is -EOPNOTSUPP.")
{
	setenv("STUB_DEVICES", "2", 1);
	program_expect_works_in(NVIDIA, program_alloc_for_several, true);
	unsetenv("STUB_DEVICES");
}

static void program_ask_wrongly(void)
{
	struct climport_import_info info;
	unsigned int kind = UNKNOWN;
	cl_device_id device;
	void *p = &p;

	program_find_devices();
	device = program_devices[0];
	CHECK(climport_get_import_info(NULL, CL_IMPORT_TYPE_HOST_ARM, &info, sizeof(info)) ==
	      -EINVAL);
	CHECK(climport_get_import_info(device, 0x7777, &info, sizeof(info)) == -EINVAL);
	CHECK(climport_get_import_info(device, CL_IMPORT_TYPE_HOST_ARM, &info, 8) == -EINVAL);
	CHECK(climport_alloc_for_device(NULL, 1, 0, 0, &p, &kind) == -EINVAL);
	CHECK(climport_alloc_for_device(device, 0, 0, 0, &p, &kind) == -EINVAL);
	CHECK(climport_alloc_for_device(device, 1, 3, 0, &p, &kind) == -EINVAL);
	CHECK(climport_alloc_for_device(device, 1, 0, 1, &p, &kind) == -EINVAL);
	CHECK(climport_alloc_for_device(device, 1, 0, CLIMPORT_NO_CPU, &p, NULL) == -EINVAL);
	CHECK(climport_alloc_for_context(NULL, 1, 0, 0, &p, &kind) == -EINVAL);
	CHECK(p == (void *)&p && kind == UNKNOWN);
	CHECK(*climport_last_error());
}

TEST(bad_arguments,
     "No device, no context, an unknown type or flag, and no place for the kind are -EINVAL.")
{
	program_expect_works(program_ask_wrongly, true);
}
