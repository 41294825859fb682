/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers on imports of each method, with both forms of updates: memory that is synchronized around
 * each command cannot be recorded.
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
	bool pages_alone;   /* the device is zero copy for whole pages alone */
	bool is_consistent; /* a dma-buf, which is bracketed where the CPU maps it */
	bool is_recorded;
} importeds[] = {
	{ "host", BY_HOST_PTR, false, 1, false, false, true },
	{ "host_part", BY_HOST_PTR, false, 256, true, false, true },
	{ "inconsistent_dma_buf", BY_HOST_PTR, true, 0, false, false, true },
	{ "dma_buf", BY_HOST_PTR, true, 0, false, true, false },
	{ "khr_dma_buf", BY_KHR, true, 0, false, true, false },
	{ "khr_host", BY_KHR, false, 0, false, false, false },
	{ "khr_host_part", BY_KHR, false, 256, false, false, false },
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
	const cl_import_properties_arm host[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };
	const cl_import_properties_arm dma_buf[] = {
		CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
		CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, imported->is_consistent, 0
	};
	struct memory m;
	cl_int err = 1;

	m.fd = imported->is_dmabuf ? fake_dmabuf_create(name, SIZE)
				   : memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(m.fd >= 0);
	if (!imported->is_dmabuf)
		EXPECT(!ftruncate(m.fd, 2 * (off_t)PAGE) &&
		       !fcntl(m.fd, F_ADD_SEALS, F_SEAL_SHRINK));
	m.at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	EXPECT(m.at != MAP_FAILED);
	m.at += imported->offset;
	m.mem = fix.import(fix.context, 0, imported->is_dmabuf ? dma_buf : host,
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

static cl_int methods_record(cl_command_buffer_khr list, cl_mem mem,
			     cl_mutable_command_khr *command)
{
	cl_kernel kernel = fixture_create_increment(mem);
	const size_t one = 1;
	cl_int err =
		khr.kernel(list, NULL, NULL, kernel, 1, NULL, &one, NULL, 0, NULL, NULL, command);

	cl.clReleaseKernel(kernel);
	return err;
}

static void methods_run(cl_command_buffer_khr list)
{
	EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
}

static void methods_expect(const struct imported *imported, cl_int err)
{
	EXPECT_EQ(err, imported->is_recorded ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (imported->is_recorded)
		return;
	EXPECT(strstr(fix.notice, "a command buffer cannot use memory that is synchronized around "
				  "each command; enqueue the command"));
	EXPECT_EQ(!!strstr(fix.notice, "CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM"),
		  imported->by == BY_HOST_PTR);
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
	recorded, struct imported, importeds, struct form, forms,
	"A kernel is recorded on memory that needs nothing around each command, which lives as "
	"long as the command buffer; on other memory it is refused.")
{
	cl_command_buffer_khr list;
	struct memory a;
	atomic_bool has_ended;

	methods_open(row, column, "1.0.0");
	a = memory_open(row, "a");
	list = list_create();
	methods_expect(row, methods_record(list, a.mem, NULL));
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	methods_release(a.mem, &has_ended);
	methods_run(list);
	methods_run(list);
	EXPECT_EQ(a.at[0], row->is_recorded ? 2 : 0);
	if (row->is_recorded)
		EXPECT(!atomic_load(&has_ended));
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	EXPECT(process_settles(methods_has_ended, &has_ended));
	memory_close(&a, row);
	fixture_close();
}

TEST_EACH_PAIR(
	updated, struct imported, importeds, struct form, forms,
	"An update takes the memory that can be recorded, and a refused one changes nothing.")
{
	cl_mutable_command_khr command = NULL;
	cl_command_buffer_khr list;
	struct memory a;
	cl_mem plain;

	methods_open(row, column, "1.0.0");
	a = memory_open(row, "a");
	plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	list = list_create();
	EXPECT_EQ(methods_record(list, plain, &command), CL_SUCCESS);
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	EXPECT_EQ(list_update(list, command, &plain), CL_SUCCESS);
	methods_expect(row, list_update(list, command, &a.mem));
	methods_run(list);
	EXPECT_EQ(a.at[0], row->is_recorded);
	stub_fail("clUpdateMutableCommandsKHR", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(list_update(list, command, &plain), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(list_update(NULL, command, &plain), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	cl.clReleaseMemObject(plain);
	cl.clReleaseMemObject(a.mem);
	memory_close(&a, row);
	fixture_close();
}

TEST_EACH(remapped, struct form, forms,
	  "A remapped command buffer runs, takes updates, and is released by the last release.")
{
	cl_mutable_command_khr command = NULL, of_copy = NULL;
	cl_command_buffer_khr list, copy;
	struct memory a;
	cl_mem plain;
	cl_int err = 1;

	methods_open(&importeds[0], row, "1.0.0");
	a = memory_open(&importeds[0], "a");
	plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	list = list_create();
	EXPECT_EQ(methods_record(list, plain, &command), CL_SUCCESS);
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	copy = khr.remap(list, CL_FALSE, 1, &fix.queue, 1, &command, &of_copy, &err);
	EXPECT(copy && !err);
	EXPECT_EQ(khr.retain(copy), CL_SUCCESS);
	EXPECT_EQ(khr.release(copy), CL_SUCCESS);
	EXPECT_EQ(list_update(copy, of_copy, &a.mem), CL_SUCCESS);
	methods_run(copy);
	methods_run(list);
	EXPECT_EQ(a.at[0], 1);
	EXPECT_EQ(khr.release(copy), CL_SUCCESS);
	EXPECT_EQ(khr.release(copy), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	cl.clReleaseMemObject(plain);
	cl.clReleaseMemObject(a.mem);
	memory_close(&a, &importeds[0]);
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
	       "In version 1.1.0 a copy between imports is recorded, and copies the memory itself, "
	       "unless the memory is synchronized around each command.")
{
	cl_command_buffer_khr list;
	struct memory a, b;

	methods_open(row, column, "1.1.0");
	a = memory_open(row, "a");
	b = memory_open(row, "b");
	list = list_create();
	methods_expect(row, methods_copy(column, list, a.mem, b.mem));
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	cl.clReleaseMemObject(a.mem);
	cl.clReleaseMemObject(b.mem);
	for (unsigned char value = 7; value < 9; value++) {
		a.at[3] = value;
		methods_run(list);
		EXPECT_EQ(b.at[3], row->is_recorded ? value : 0);
	}
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	memory_close(&a, row);
	memory_close(&b, row);
	fixture_close();
}
