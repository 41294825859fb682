/* SPDX-License-Identifier: Apache-2.0 */
/* The method opaque_fd over a fake of NVIDIA's resource manager (RM). */
#include "opaque_rm_fixture.h"

#include <CL/climport.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "import/nvidia/rm/rm_refusal.h"

static const char *opaque_rm_why(void)
{
	describe_fn describe = (describe_fn)cl.clGetExtensionFunctionAddress(DESCRIBE_FUNCTION);
	struct device_description d;

	EXPECT_EQ(describe(fix.device[0], CL_IMPORT_TYPE_HOST_ARM, &d), CL_SUCCESS);
	return d.why;
}

TEST(rm_coherent,
     "Kernels see pages by RM at once, and the description says who makes them zero copy.")
{
	unsigned char *p;
	cl_mem mem;

	opaque_rm_reset();
	opaque_begin();
	p = pages_map(3);
	mem = fixture_import_host(0, p, 3 * PAGE);
	opaque_rm_expect_coherent(mem, p);
	EXPECT(fake_rm.pins_made > 1);
	EXPECT(strstr(opaque_rm_why(), "any pages by RM: zero copy by self-test"));
	cl.clReleaseMemObject(mem);
	opaque_rm_close();
}

TEST(rm_contexts,
     "The self-test of each exporter has a context of its own, since one that fails may have ended "
     "the context, and leaves none.")
{
	unsigned long before;
	long live;

	opaque_rm_reset();
	stub_fail("clEnqueueNativeKernel", 1, CL_INVALID_COMMAND_QUEUE);
	fixture_open();
	before = stub_calls("clCreateContext");
	live = stub_live(STUB_CONTEXT);
	EXPECT(!strcmp(opaque_read_method(CL_IMPORT_TYPE_HOST_ARM), "opaque_fd"));
	EXPECT_EQ(stub_live(STUB_CONTEXT), live);
	EXPECT_EQ(stub_calls("clCreateContext") - before, 2);
	EXPECT(strstr(opaque_rm_why(), "any pages by RM: zero copy by self-test"));
	EXPECT(strstr(opaque_rm_why(), "CUDA's cuMemCreate: copied"));
	opaque_rm_close();
}

TEST(rm_no_events, "A kernel on RM's memory has no buffer, no marker and no event of the layer's, "
		   "also behind user events.")
{
	unsigned long buffers, markers, events;
	unsigned char *p;
	cl_event gate;
	cl_int err;
	cl_mem mem;

	opaque_rm_reset();
	opaque_begin();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	gate = cl.clCreateUserEvent(fix.context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	buffers = stub_calls("clCreateBufferWithProperties");
	markers = stub_calls("clEnqueueMarkerWithWaitList");
	events = stub_calls("clCreateUserEvent");
	opaque_rm_expect_coherent(mem, p);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), buffers);
	EXPECT_EQ(stub_calls("clEnqueueMarkerWithWaitList"), markers);
	EXPECT_EQ(stub_calls("clCreateUserEvent"), events);
	EXPECT_EQ(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	cl.clReleaseEvent(gate);
	cl.clReleaseMemObject(mem);
	opaque_rm_close();
}

static void opaque_rm_hide(void)
{
	fake_rm.is_present = false;
}

static void opaque_rm_hide_node(void)
{
	fake_rm.gpu[0].no_node = true;
}

/* A MIG instance has a UUID that is no GPU's. */
static void opaque_rm_divide(void)
{
	fake_rm.gpu[0].uuid[0] ^= 1;
}

static void opaque_rm_copy(void)
{
	fake_rm.copied = true;
}

static void opaque_rm_refuse(void)
{
	fake_rm.fail_name = "export";
	fake_rm.fail_call = 1;
	fake_rm.fail_times = 1000;
	fake_rm.fail_status = 0x56;
}

/* Reasons why RM's memory is not taken. */
static const struct rm_reason {
	const char *name;
	void (*spoil)(void);
	const char *why, *notice;
} rm_reasons[] = {
	{ "missing", opaque_rm_hide, "any pages by RM: no descriptor",
	  "/dev/nvidiactl: No such file" },
	{ "no_node", opaque_rm_hide_node, "any pages by RM: no descriptor",
	  "/dev/nvidia4: No such file" },
	{ "mig", opaque_rm_divide, "any pages by RM: no descriptor",
	  "a MIG instance has a UUID that is no GPU's" },
	{ "copied", opaque_rm_copy, "any pages by RM: copied",
	  "exported by RM is zero copy on this device: any pages by RM: copied" },
	{ "refused", opaque_rm_refuse, "any pages by RM: no descriptor",
	  "refuses the export of an object: not supported" },
};

/* No earlier test's client has the device. */
static void opaque_rm_spoil(const struct rm_reason *reason)
{
	opaque_rm_close_nodes();
	reason->spoil();
}

TEST_EACH(
	rm_alone, struct rm_reason, rm_reasons,
	"If no exporter's memory is zero copy, no extension is reported, and imports are refused.")
{
	opaque_rm_reset();
	opaque_rm_spoil(row);
	fake_cuda_reset(0);
	stub_set(STUB_COPYING, 1);
	fixture_open();
	EXPECT(!fixture_device_reports(fix.device[0], "cl_arm_import_memory"));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	opaque_rm_close();
}

TEST_EACH(
	rm_refused, struct rm_reason, rm_reasons,
	"If CUDA's memory alone is zero copy, an import of other pages is refused with a sentence "
	"that says what is wrong with RM.")
{
	opaque_rm_reset();
	opaque_rm_spoil(row);
	opaque_begin();
	EXPECT(strstr(opaque_rm_why(), row->why));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, row->notice));
	opaque_rm_close();
}

/* A shortage at the first call of a name. */
static const struct rm_shortage {
	const char *name, *call;
	int status, error;
} rm_shortages[] = {
	{ "pin_memory", "pin", 0x51, 0 },
	{ "export_errno", "export", 0, ENOMEM },
	{ "open_descriptors", "open control", 0, EMFILE },
};

TEST_EACH(
	rm_shortage, struct rm_shortage, rm_shortages,
	"A shortage in the self-test says nothing of RM: an import is CL_OUT_OF_RESOURCES, with a "
	"sentence.")
{
	opaque_rm_reset();
	stub_set(STUB_COPYING, 1);
	opaque_rm_close_nodes();
	fixture_open();
	fake_rm.fail_name = row->call;
	fake_rm.fail_call = fake_rm.fail_times = 1;
	fake_rm.fail_status = row->status;
	fake_rm.fail_errno = row->error;
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "any pages by RM: untested"));
	opaque_rm_close();
}

TEST(old_release, "If RM is of a release of the driver that does not pin pages, RM pins none, and "
		  "no extension is "
		  "reported.")
{
	opaque_rm_reset();
	opaque_rm_close_nodes();
	fake_rm.release = (struct fake_rm_release){ "520.61.07", true, true, true };
	fake_cuda_reset(0);
	stub_set(STUB_COPYING, 1);
	fixture_open();
	EXPECT(!fixture_device_reports(fix.device[0], "cl_arm_import_memory"));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	EXPECT_EQ(fake_rm.pins_made, 0);
	EXPECT_EQ(fake_rm.clients_made, 0);
	opaque_rm_close();
}

#define CUDA_ERROR_OUT_OF_MEMORY 2

/* Another program has filled the GPU's memory. */
static void opaque_rm_fill_cuda(void *unused)
{
	(void)unused;
	fake_cuda_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
	fake_cuda_at("cuMemCreate", 1, opaque_rm_fill_cuda, NULL);
}

/* From now on no context can be created: self-tests create contexts, and imports do not. */
static void opaque_rm_begin_shortage(void)
{
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail("clCreateContext", 1, CL_OUT_OF_RESOURCES);
}

static void opaque_rm_end_shortage(void)
{
	stub_fail(NULL, 0, CL_SUCCESS);
	stub_set(STUB_FAULT_STAYS, 0);
}

static void opaque_rm_import(void)
{
	unsigned char *p = pages_map(1);
	cl_mem mem = fixture_import_host(0, p, PAGE);

	opaque_rm_expect_coherent(mem, p);
	cl.clReleaseMemObject(mem);
}

static void opaque_rm_query(void)
{
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory"));
}

/* Calls of the program that look at the results of a device again. */
static const struct rm_look {
	const char *name;
	void (*look)(void);
} rm_looks[] = { { "import", opaque_rm_import }, { "query", opaque_rm_query } };

TEST_EACH(rm_without_cuda, struct rm_look, rm_looks,
	  "If CUDA's memory cannot be tested, RM's memory is imported, also in a shortage.")
{
	opaque_rm_reset();
	stub_set(STUB_COPYING, 1);
	opaque_rm_fill_cuda(NULL);
	fixture_open();
	row->look();
	EXPECT(strstr(opaque_rm_why(), "CUDA's cuMemCreate: untested"));
	opaque_rm_begin_shortage();
	for (int i = 0; i < 3; i++) {
		row->look();
		opaque_rm_import();
	}
	opaque_rm_end_shortage();
	opaque_rm_close();
}

TEST(rm_one_test,
     "An import whose self-tests lack resources tests each exporter once, and fails with "
     "CL_OUT_OF_RESOURCES and a sentence; behind the shortage an import works at once.")
{
	unsigned long contexts;

	opaque_rm_reset();
	stub_set(STUB_COPYING, 1);
	fixture_open();
	opaque_rm_begin_shortage();
	contexts = stub_calls("clCreateContext");
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "any pages by RM: untested"));
	EXPECT_EQ(stub_calls("clCreateContext") - contexts, 3); /* CUDA, RM, host_ptr */
	opaque_rm_end_shortage();
	opaque_rm_import();
	opaque_rm_close();
}

TEST(rm_failed_handle, "A handle that comes with an error of OpenCL's is left alone.")
{
	cl_int err = CL_SUCCESS;

	opaque_rm_reset();
	opaque_begin();
	stub_set(STUB_FAILED_HANDLE, 1);
	stub_trace_clear();
	stub_fail("clCreateBufferWithProperties", 1, CL_INVALID_VALUE);
	EXPECT(!fix.import(fix.context, 0, NULL, pages_map(1), PAGE, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	EXPECT_EQ(stub_trace_count("dead handle"), 0);
	stub_set(STUB_FAILED_HANDLE, 0);
	opaque_rm_close();
}

TEST(rm_within_page, "An import at an aligned address within a page is RM's, too.")
{
	unsigned char *p;
	cl_mem mem;

	opaque_rm_reset();
	opaque_begin();
	p = pages_map(2);
	mem = fixture_import_host(0, p + 3 * ALIGN, 5000);
	opaque_rm_expect_coherent(mem, p + 3 * ALIGN);
	EXPECT_EQ(p[3 * ALIGN - 1], 0);
	cl.clReleaseMemObject(mem);
	opaque_rm_close();
}

TEST(rm_queue_context, "A context that a queue alone keeps alive takes imports.")
{
	cl_command_queue queue;
	cl_context context;
	cl_mem mem;

	opaque_rm_reset();
	opaque_begin();
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	cl.clReleaseContext(context);
	mem = fix.import(context, 0, NULL, pages_map(1), PAGE, NULL);
	EXPECT(mem);
	cl.clReleaseMemObject(mem);
	cl.clReleaseCommandQueue(queue);
	opaque_rm_close();
}

TEST(rm_released, "The end of an import gives the pages back to the process.")
{
	struct fake_rm_held before, after;
	cl_mem mem;

	opaque_rm_reset();
	opaque_begin();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE));
	opaque_rm_settle(0);
	before = fake_rm_held();
	mem = fixture_import_host(0, pages_map(2), 2 * PAGE);
	EXPECT_EQ(fake_rm_held().memories, before.memories + 1);
	cl.clReleaseMemObject(mem);
	opaque_rm_settle(0);
	after = fake_rm_held();
	EXPECT_EQ(after.memories, before.memories);
	EXPECT_EQ(after.files, before.files);
	opaque_rm_close();
}

TEST(rm_private_file,
     "A writable private mapping of a file is imported, and the file stays as it was.")
{
	char path[] = "climport-test-XXXXXX", byte = 1;
	int file = mkstemp(path);
	unsigned char *p;
	cl_mem mem;

	EXPECT(file >= 0);
	unlink(path);
	EXPECT_EQ(ftruncate(file, PAGE), 0);
	opaque_rm_reset();
	opaque_begin();
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	EXPECT(p != MAP_FAILED);
	mem = fixture_import_host(0, p, PAGE);
	opaque_rm_expect_coherent(mem, p);
	EXPECT_EQ(pread(file, &byte, 1, 0), 1);
	EXPECT_EQ(byte, 0);
	cl.clReleaseMemObject(mem);
	munmap(p, PAGE);
	close(file);
	opaque_rm_close();
}

TEST(rm_read_only,
     "A read-only mapping is refused with a sentence that says how to map the memory.")
{
	unsigned char *p;
	unsigned int pins;

	opaque_rm_reset();
	opaque_begin();
	pins = fake_rm.pins_made;
	p = pages_map(1);
	mprotect(p, PAGE, PROT_READ);
	EXPECT_EQ(fixture_import_error(fix.context, CL_MEM_READ_ONLY, NULL, p, PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "map the memory writable, with MAP_PRIVATE"));
	EXPECT_EQ(fake_rm.pins_made, pins);
	opaque_rm_close();
}

TEST(rm_kernel_mapping, "Pages that the kernel maps are refused before RM could take the pages.")
{
	unsigned long ring = 0;
	unsigned int pins;

	opaque_rm_reset();
	if (syscall(SYS_io_setup, 1, &ring))
		test_skip("io_setup: %s", strerror(errno));
	opaque_begin();
	pins = fake_rm.pins_made;
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, (void *)ring, PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "which this device cannot pin"));
	EXPECT_EQ(fake_rm.pins_made, pins);
	syscall(SYS_io_destroy, ring);
	opaque_rm_close();
}

/* Exporters of dma-bufs, and whether RM attaches to their dma-bufs. */
static const struct rm_dmabuf_row {
	const char *name, *exporter;
	bool is_attached;
} rm_dmabufs[] = { { "udmabuf", "udmabuf", true }, { "gpu", "amdgpu", false } };

TEST_EACH(
	rm_dma_buf, struct rm_dmabuf_row, rm_dmabufs,
	"RM attaches to the dma-buf of an exporter of host memory; another dma-buf goes in by its "
	"CPU mapping.")
{
	unsigned int attaches, pins;
	unsigned char *seen;
	cl_mem mem;
	int fd;

	opaque_rm_reset();
	fake_rm.exporter = row->exporter;
	opaque_begin();
	attaches = fake_rm.attaches_made;
	pins = fake_rm.pins_made;
	fd = fake_dmabuf_create("frame", PAGE);
	seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(seen != MAP_FAILED);
	mem = fixture_import_dmabuf(fd, PAGE);
	close(fd);
	EXPECT_EQ(fake_rm.attaches_made - attaches, row->is_attached);
	EXPECT_EQ(fake_rm.pins_made - pins, !row->is_attached);
	stub_trace_clear();
	opaque_rm_expect_coherent(mem, seen);
	EXPECT_EQ(stub_trace_count("sync START"), 5);
	cl.clReleaseMemObject(mem);
	munmap(seen, PAGE);
	opaque_rm_close();
}

TEST(rm_unknown_exporter,
     "A dma-buf of an unknown exporter whose mapping cannot be pinned is refused with the reason "
     "that `climport diag` gives.")
{
	unsigned int pins;
	int fd, read_only;

	opaque_rm_reset();
	fake_rm.exporter = "amdgpu";
	opaque_begin();
	pins = fake_rm.pins_made;
	fd = fake_dmabuf_create("frame", PAGE);
	read_only = fake_dmabuf_reopen(fd, O_RDONLY);
	EXPECT(read_only >= 0);
	EXPECT_EQ(fixture_import_error(fix.context, CL_MEM_READ_ONLY, fixture_dma_buf, &read_only,
				       PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "is of the exporter amdgpu"));
	EXPECT(strstr(fix.notice, RM_REFUSAL));
	EXPECT_EQ(fake_rm.attaches_made, 0);
	EXPECT_EQ(fake_rm.pins_made, pins);
	close(fd);
	close(read_only);
	opaque_rm_close();
}

TEST(rm_registered,
     "Imports of registered shared memory have one pin and one hidden buffer, which go with "
     "climport_unregister().")
{
	struct climport_registration r;
	unsigned long buffers;
	struct fake_rm_held held;
	unsigned int pins;
	unsigned char *p;

	opaque_rm_reset();
	opaque_begin();
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(p != MAP_FAILED);
	cl.clReleaseMemObject(fixture_import_host(0, p, PAGE));
	opaque_rm_settle(0);
	held = fake_rm_held();
	pins = fake_rm.pins_made;
	buffers = stub_calls("clCreateBufferWithProperties");
	EXPECT_EQ(climport_register(p, 4 * PAGE, 0, &r, sizeof(r)), 0);
	for (int i = 0; i < 4; i++) {
		cl_mem mem = fixture_import_host(0, p + i * PAGE, PAGE);

		opaque_rm_expect_coherent(mem, p + i * PAGE);
		cl.clReleaseMemObject(mem);
	}
	EXPECT_EQ(fake_rm.pins_made, pins + 1);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), buffers + 1);
	opaque_rm_settle(1);
	climport_unregister(&r);
	opaque_rm_settle(0);
	EXPECT_EQ(fake_rm_held().memories, held.memories);
	cl.clReleaseMemObject(fixture_import_host(0, p, PAGE));
	EXPECT_EQ(fake_rm.pins_made, pins + 2);
	munmap(p, 4 * PAGE);
	opaque_rm_close();
}

#define KEPT_PAGES 16

static unsigned char *opaque_rm_map(void)
{
	unsigned char *p = mmap(NULL, KEPT_PAGES * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static void opaque_rm_import_once(unsigned char *p)
{
	cl_mem mem = fixture_import_host(0, p, KEPT_PAGES * PAGE);

	opaque_rm_expect_coherent(mem, p);
	cl.clReleaseMemObject(mem);
}

static const char *opaque_rm_kept(void)
{
	describe_fn describe = (describe_fn)cl.clGetExtensionFunctionAddress(DESCRIBE_FUNCTION);
	struct device_description d;

	EXPECT_EQ(describe(fix.device[0], CL_IMPORT_TYPE_HOST_ARM, &d), CL_SUCCESS);
	return d.kept ? d.kept : "nothing";
}

static void opaque_rm_keep(void)
{
	opaque_rm_reset();
	fake_gdmabuf.open_error = 0;
	opaque_begin();
}

static void opaque_rm_unmap(unsigned char *p)
{
	fake_gdmabuf_change(p, KEPT_PAGES * PAGE);
	munmap(p, KEPT_PAGES * PAGE);
	opaque_rm_settle(0);
}

static void opaque_rm_run_kept(void)
{
	unsigned char *p;
	unsigned long buffers;
	unsigned int pins;

	opaque_rm_keep();
	p = opaque_rm_map();
	pins = fake_rm.pins_made;
	opaque_rm_import_once(p);
	EXPECT(!strcmp(opaque_rm_kept(), "the kernel module gdmabuf tells of changes"));
	opaque_rm_settle(0);
	opaque_rm_import_once(p);
	EXPECT_EQ(fake_rm.pins_made, pins + 2);
	buffers = stub_calls("clCreateBufferWithProperties");
	for (int i = 0; i < 3; i++)
		opaque_rm_import_once(p);
	EXPECT_EQ(fake_rm.pins_made, pins + 2);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), buffers);
	opaque_rm_unmap(p);
	opaque_rm_close();
}

TEST(rm_kept,
     "From the third import of a range on, an import is a sub-buffer of the second's hidden "
     "buffer, which goes when the range is unmapped.")
{
	test_in_child(opaque_rm_run_kept);
}

static void opaque_rm_run_kept_unasked(void)
{
	unsigned char *p;
	int calls;

	opaque_rm_keep();
	p = opaque_rm_map();
	for (int i = 0; i < 2; i++)
		opaque_rm_import_once(p);
	calls = fake_cuda_calls(NULL);
	EXPECT(calls > 0);
	for (int i = 0; i < 3; i++)
		opaque_rm_import_once(p);
	EXPECT_EQ(fake_cuda_calls(NULL), calls);
	opaque_rm_unmap(p);
	opaque_rm_close();
}

TEST(rm_kept_unasked, "libcuda is not asked about the memory of a kept registration.")
{
	test_in_child(opaque_rm_run_kept_unasked);
}

static void opaque_rm_run_kept_context(void)
{
	struct fake_rm_held held;
	unsigned char *p;
	unsigned int pins;

	opaque_rm_keep();
	p = opaque_rm_map();
	opaque_rm_import_once(p);
	opaque_rm_settle(0);
	held = fake_rm_held();
	opaque_rm_import_once(p);
	fixture_close();
	EXPECT_EQ(fake_rm_held().memories, held.memories);
	opaque_begin();
	pins = fake_rm.pins_made;
	opaque_rm_import_once(p);
	EXPECT_EQ(fake_rm.pins_made, pins + 1);
	opaque_rm_import_once(p);
	EXPECT_EQ(fake_rm.pins_made, pins + 1);
	opaque_rm_unmap(p);
	opaque_rm_close();
}

TEST(rm_kept_context,
     "The pages of a kept range are unpinned with the last context, and pinned anew in the next.")
{
	test_in_child(opaque_rm_run_kept_context);
}

TEST(rm_descriptors, "An import that is alive has one descriptor, the driver's.")
{
	cl_mem mem;
	int before;

	opaque_rm_reset();
	opaque_begin();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE));
	opaque_rm_settle(0);
	before = process_count_descriptors();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	EXPECT_EQ(process_count_descriptors(), before + 1);
	cl.clReleaseMemObject(mem);
	opaque_rm_close();
}
