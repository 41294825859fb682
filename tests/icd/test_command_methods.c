/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers on imports of each method, with both forms of updates: what a command buffer uses
 * is bracketed or acquired around each run, and lives as long as the command buffer.
 */
#include "command_list.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum made_by { BY_HOST_PTR, BY_KHR };

/* An import of memory, at @offset of two pages. */
static const struct imported {
	const char *name;
	enum made_by by;
	bool is_dmabuf;
	size_t offset;
	bool pages_alone; /* the device is zero copy for whole pages alone */
} importeds[] = {
	{ "host", BY_HOST_PTR, false, 1, false },   { "host_part", BY_HOST_PTR, false, 256, true },
	{ "dma_buf", BY_HOST_PTR, true, 0, false }, { "khr_dma_buf", BY_KHR, true, 0, false },
	{ "khr_host", BY_KHR, false, 0, false },    { "khr_host_part", BY_KHR, false, 256, false },
};

/* The form of a driver's updates and recording functions. */
static const struct form {
	const char *name;
	long arrays, properties;
} forms[] = { { "chain", 0, 0 }, { "arrays", 1, 1 } };

struct memory {
	int fd;
	unsigned char *at;
	cl_mem mem;
};

static void methods_open(const struct imported *imported, const struct form *form,
			 const char *version)
{
	fixture_reset();
	stub_set(STUB_COMMAND_ARRAYS, form->arrays);
	stub_set(STUB_COMMAND_PROPERTIES, form->properties);
	stub_set(STUB_PAGES_ALONE, imported->pages_alone);
	if (imported->by == BY_KHR) {
		fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
		stub_set(STUB_COPYING, 1);
		stub_set(STUB_GPU, 1);
		stub_set(STUB_NO_NATIVE_KERNEL, 1);
		stub_set(STUB_KHR_DMABUF, STUB_KHR_WORKS);
		stub_set(STUB_KHR_HABITS, STUB_KHR_NEEDS_ACQUIRE);
	}
	setenv("CLIMPORT_VERSION", version, 1);
	fixture_open();
	khr_get_functions();
}

static struct memory memory_open(const struct imported *imported, const char *name)
{
	static const cl_import_properties_arm host[] = { CL_IMPORT_TYPE_ARM,
							 CL_IMPORT_TYPE_HOST_ARM, 0 };
	struct memory m;
	cl_int err = 1;

	m.fd = imported->is_dmabuf ? fake_dmabuf_create(name, SIZE)
				   : memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(m.fd >= 0);
	if (!imported->is_dmabuf)
		EXPECT(!ftruncate(m.fd, SIZE) && !fcntl(m.fd, F_ADD_SEALS, F_SEAL_SHRINK));
	m.at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	EXPECT(m.at != MAP_FAILED);
	m.at += imported->offset;
	m.mem = fix.import(fix.context, 0, imported->is_dmabuf ? runtime_keeps : host,
			   imported->is_dmabuf ? (void *)&m.fd : m.at, 1001, &err);
	if (err)
		printf("# %s\n", fix.notice);
	EXPECT_EQ(err, CL_SUCCESS);
	return m;
}

static void memory_close(struct memory *m, const struct imported *imported)
{
	munmap(m->at - imported->offset, SIZE);
	close(m->fd);
}

/* Runs the command buffer, whose kernels and copies use @uses times an import. */
static void methods_run(cl_command_buffer_khr list, const struct imported *imported, int uses)
{
	const int brackets = imported->is_dmabuf && imported->by == BY_HOST_PTR ? uses : 0,
		  acquires = imported->by == BY_KHR ? uses : 0;

	stub_trace_clear();
	EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_count("sync START ", brackets);
	expect_count("sync END ", brackets);
	expect_acquires(acquires);
}

/* A finalized command buffer with a kernel on @mem. */
static cl_command_buffer_khr methods_record(cl_mem mem, cl_mutable_command_khr *command)
{
	cl_command_buffer_khr list = list_create();
	cl_kernel kernel = fixture_create_increment(mem);
	const size_t one = 1;

	EXPECT_EQ(khr.kernel(list, NULL, NULL, kernel, 1, NULL, &one, NULL, 0, NULL, NULL, command),
		  CL_SUCCESS);
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	return list;
}

TEST_EACH_PAIR(updated, struct imported, importeds, struct form, forms,
	       "An update takes an import without access of its own, and refuses the others.")
{
	const bool is_taken = row->by == BY_HOST_PTR && !row->is_dmabuf;
	cl_mutable_command_khr command = NULL;
	cl_command_buffer_khr list;
	struct memory a, b;

	methods_open(row, column, "1.0.0");
	a = memory_open(row, "a");
	b = memory_open(row, "b");
	list = methods_record(a.mem, &command);
	EXPECT_EQ(list_update(list, command, &b.mem), is_taken ? CL_SUCCESS : CL_INVALID_OPERATION);
	methods_run(list, row, 1);
	EXPECT_EQ(a.at[0], !is_taken);
	EXPECT_EQ(b.at[0], is_taken);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	cl.clReleaseMemObject(a.mem);
	cl.clReleaseMemObject(b.mem);
	memory_close(&a, row);
	memory_close(&b, row);
	fixture_close();
}

static void CL_CALLBACK methods_note_end(cl_mem mem, void *has_ended)
{
	(void)mem;
	atomic_store((atomic_bool *)has_ended, true);
}

/* Releases an import.  The driver's end of the import sets *@has_ended. */
static void methods_release(cl_mem mem, atomic_bool *has_ended)
{
	atomic_store(has_ended, false);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(mem, methods_note_end, has_ended),
		  CL_SUCCESS);
	cl.clReleaseMemObject(mem);
}

static bool methods_has_ended(void *has_ended)
{
	return atomic_load((atomic_bool *)has_ended);
}

TEST_EACH_PAIR(
	released, struct imported, importeds, struct form, forms,
	"A released import lives as long as a command buffer uses the import, and no longer.")
{
	cl_command_buffer_khr list;
	struct memory a;
	atomic_bool has_ended;

	methods_open(row, column, "1.0.0");
	a = memory_open(row, "a");
	list = methods_record(a.mem, NULL);
	methods_release(a.mem, &has_ended);
	methods_run(list, row, 1);
	methods_run(list, row, 1);
	EXPECT_EQ(a.at[0], 2);
	EXPECT(!atomic_load(&has_ended));
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	EXPECT(process_settles(methods_has_ended, &has_ended));
	memory_close(&a, row);
	fixture_close();
}

/*
 * Access for a command that is refused begins and ends in a callback, behind which nothing waits.
 * The stub's queue runs a command only when the callbacks of the command before have returned.
 */
static void methods_wait_for_callbacks(void)
{
	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(fix.queue, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
}

TEST_EACH_PAIR(enqueue_refused, struct imported, importeds, struct form, forms,
	       "If the driver refuses to run a command buffer, no access stays open, and the next "
	       "run works.")
{
	cl_command_buffer_khr list;
	struct memory a;

	methods_open(row, column, "1.0.0");
	a = memory_open(row, "a");
	list = methods_record(a.mem, NULL);
	stub_trace_clear();
	stub_fail("clEnqueueCommandBufferKHR", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
	methods_wait_for_callbacks();
	EXPECT_EQ(stub_trace_count("sync START "), stub_trace_count("sync END "));
	EXPECT_EQ(stub_trace_count("acquire"), stub_trace_count("release"));
	methods_run(list, row, 1);
	EXPECT_EQ(a.at[0], 1);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	cl.clReleaseMemObject(a.mem);
	memory_close(&a, row);
	fixture_close();
}

typedef cl_int copy_with_properties(cl_command_buffer_khr, cl_command_queue, const cl_properties *,
				    cl_mem, cl_mem, size_t, size_t, size_t, cl_uint,
				    const cl_sync_point_khr *, cl_sync_point_khr *,
				    cl_mutable_command_khr *);

static cl_int methods_copy(const struct form *form, cl_command_buffer_khr list, cl_mem from,
			   cl_mem to)
{
	if (form->properties)
		return ((copy_with_properties *)(void *)khr.copy)(list, NULL, NULL, from, to, 0, 0,
								  4, 0, NULL, NULL, NULL);
	return khr.copy(list, NULL, from, to, 0, 0, 4, 0, NULL, NULL, NULL);
}

TEST_EACH_PAIR(copied, struct imported, importeds, struct form, forms,
	       "In version 1.1.0 a recorded copy between imports copies the memory itself, and is "
	       "access.")
{
	cl_command_buffer_khr list;
	struct memory a, b;

	methods_open(row, column, "1.1.0");
	a = memory_open(row, "a");
	b = memory_open(row, "b");
	list = list_create();
	EXPECT_EQ(methods_copy(column, list, a.mem, b.mem), CL_SUCCESS);
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	cl.clReleaseMemObject(a.mem);
	cl.clReleaseMemObject(b.mem);
	for (unsigned char value = 7; value < 9; value++) {
		a.at[3] = value;
		methods_run(list, row, 2);
		EXPECT_EQ(b.at[3], value);
	}
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	memory_close(&a, row);
	memory_close(&b, row);
	fixture_close();
}
