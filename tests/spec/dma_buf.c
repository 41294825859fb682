/* SPDX-License-Identifier: Apache-2.0 */
/* The section Linux dma_buf memory type. */
#include "dma_buf.h"

#include <fcntl.h>
#include <unistd.h>

#include "kernels.h"

TEST(each_exporter, "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then "
		    "importing from dma_buf file handles is supported.")
{
	struct dma_buf *buf;

	need_dma_buf();
	for (size_t i = 0; (buf = dma_buf_next(&i, 4 * spec.page));) {
		cl_mem mem =
			spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, buf->size);

		spec_note("%s", buf->exporter);
		expect_shared(mem, buf->memory, buf->size);
	}
}

static void expect_size(size_t size)
{
	struct dma_buf *buf = dma_buf_get(4 * spec.page);
	cl_mem mem = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, size);

	expect_shared(mem, buf->memory, size);
}

TEST(dma_buf_of_frame_size, "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed "
			    "then importing from dma_buf file handles is supported.")
{
	expect_size(3 * spec.page + 1234);
}

TEST(size_of_a_part_of_a_dma_buf,
     "R12-15 <size> must be greater than 0 and represents the size of the memory object to be "
     "created.")
{
	struct dma_buf *buf = dma_buf_get(4 * spec.page);
	cl_mem mem = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, spec.page + 7);
	size_t size = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof(size), &size, NULL), CL_SUCCESS);
	EXPECT_EQ(size, spec.page + 7);
}

/* What the program can see of a descriptor. */
struct descriptor_state {
	off_t position;
	int flags, close_on_exec;
};

static struct descriptor_state descriptor_state(int fd)
{
	return (struct descriptor_state){ lseek(fd, 0, SEEK_CUR), fcntl(fd, F_GETFL),
					  fcntl(fd, F_GETFD) };
}

TEST(descriptor_is_left_alone,
     "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then importing from "
     "dma_buf file handles is supported.")
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	struct descriptor_state before, after;
	cl_int error;
	cl_mem mem;
	int fd = dup(buf->fd);

	EXPECT(fd >= 0);
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)fd);
	before = descriptor_state(fd);
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, coherent_dma_buf(), &fd, spec.page,
			  &error);
	EXPECT_EQ(error, CL_SUCCESS);
	expect_shared(mem, buf->memory, spec.page);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	after = descriptor_state(fd);
	EXPECT_EQ(after.position, before.position);
	EXPECT_EQ(after.flags, before.flags);
	EXPECT_EQ(after.close_on_exec, before.close_on_exec);
}

static size_t descriptors_without_close_on_exec(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);

		count += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	return count;
}

/* climport's descriptors close when the program executes another. */
TEST(descriptors_of_an_import_close_on_exec,
     "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then importing from "
     "dma_buf file handles is supported.")
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	size_t before = descriptors_without_close_on_exec();

	spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, spec.page);
	EXPECT_EXACT(descriptors_without_close_on_exec(), before);
}

TEST(type_behind_another_property, "R6-19 Valid values for CL_IMPORT_TYPE_ARM are: "
				   "CL_IMPORT_TYPE_DMA_BUF_ARM")
{
	const cl_import_properties_arm list[] = { CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM,
						  CL_TRUE, CL_IMPORT_TYPE_ARM,
						  CL_IMPORT_TYPE_DMA_BUF_ARM, 0 };
	struct dma_buf *buf = dma_buf_get(spec.page);

	need_1_1();
	expect_shared(spec_import(CL_MEM_READ_WRITE, list, &buf->fd, spec.page), buf->memory,
		      spec.page);
}

TEST(first_byte_of_a_dma_buf, "R6-32 If the extension string cl_arm_import_memory_dma_buf is "
			      "exposed then importing from dma_buf file handles is supported.")
{
	expect_size(1);
}

/* The application owns the descriptor, and may close or keep the descriptor. */
TEST(descriptor_closed_after_the_import,
     "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then importing from "
     "dma_buf file handles is supported.")
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	int copy = dup(buf->fd);
	cl_mem mem = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &copy, spec.page);

	EXPECT_EQ(close(copy), 0);
	expect_shared(mem, buf->memory, spec.page);
}

TEST(descriptor_open_after_the_release,
     "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then importing from "
     "dma_buf file handles is supported.")
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	int copy = dup(buf->fd);
	cl_int error;
	cl_mem mem = spec.import(spec.context, CL_MEM_READ_WRITE, coherent_dma_buf(), &copy,
				 spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT(fcntl(copy, F_GETFD) >= 0);
	EXPECT_EQ(close(copy), 0);
}

TEST(descriptor_variable_is_read_once,
     "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then importing from "
     "dma_buf file handles is supported.")
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	int variable = buf->fd;
	cl_mem mem = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &variable, spec.page);

	EXPECT_EQ(variable, buf->fd);
	variable = -1;
	expect_shared(mem, buf->memory, spec.page);
}

static void restore_stdin(void *saved)
{
	dup2((int)(intptr_t)saved, 0);
	close((int)(intptr_t)saved);
}

TEST(descriptor_zero, "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then "
		      "importing from dma_buf file handles is supported.")
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 3), zero = 0;

	if (saved < 0)
		test_skip("descriptor 0 is closed");
	spec_undo_later(restore_stdin, (void *)(intptr_t)saved);
	EXPECT_EQ(dup2(buf->fd, 0), 0);
	expect_shared(spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &zero, spec.page),
		      buf->memory, spec.page);
}

TEST(one_dma_buf_twice, "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed "
			"then importing from dma_buf file handles is supported.")
{
	struct dma_buf *buf = dma_buf_get(2 * spec.page);
	cl_mem one = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, buf->size);
	cl_mem two = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, spec.page);

	expect_shared(one, buf->memory, buf->size);
	expect_shared(two, buf->memory, spec.page);
	spec_fill_memory(buf->memory, spec.page, 1);
	kernels_add(one, spec.page, 1, 2);
	kernels_add(two, spec.page, 1, 3);
	EXPECT(spec_memory_is(buf->memory, spec.page, 6));
}

static void dma_buf_import_and_release(void *arg)
{
	struct dma_buf *buf = arg;
	cl_int error;
	cl_mem mem = spec.import(spec.context, CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd,
				 buf->size, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
}

TEST(released_dma_buf_leaves_nothing,
     "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then importing from "
     "dma_buf file handles is supported.")
{
	expect_no_leak(dma_buf_import_and_release, dma_buf_get(4 * spec.page));
}

TEST(type_dma_buf_is_valid, "R6-19 Valid values for CL_IMPORT_TYPE_ARM are: "
			    "CL_IMPORT_TYPE_DMA_BUF_ARM")
{
	struct dma_buf *buf = dma_buf_get(spec.page);

	spec_import(CL_MEM_READ_WRITE, type_dma_buf, &buf->fd, spec.page);
}

/* Without the property, and without a bracket around the host's accesses. */
static void expect_managed(void)
{
	struct dma_buf *buf = dma_buf_get(4 * spec.page);
	cl_mem mem;

	need_prior_to_1_1();
	mem = spec_import(CL_MEM_READ_WRITE, type_dma_buf, &buf->fd, buf->size);
	expect_shared(mem, buf->memory, buf->size);
}

TEST(runtime_manages_coherency, "R6-33 The CL runtime manages dma_buf memory coherency between the "
				"host CPU and GPU.")
{
	expect_managed();
}

TEST(managed_without_the_property,
     "R12-25 Prior to the introduction of "
     "CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM drivers always managed data consistency "
     "between the host CPU and memory.")
{
	expect_managed();
}

static void expect_managed_by_property(void)
{
	struct dma_buf *buf = dma_buf_get(4 * spec.page);

	need_1_1();
	expect_shared(spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, buf->size),
		      buf->memory, buf->size);
}

TEST(consistency_by_the_runtime,
     "R12-13 Valid values for "
     "CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM are: CL_TRUE - data consistency between "
     "memory and the host's view is managed by the OpenCL runtime.")
{
	expect_managed_by_property();
}

TEST(runtime_manages_consistency,
     "R12-23 When CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM is "
     "set to CL_TRUE, the OpenCL runtime manages data consistency between the host CPU and the "
     "memory backing the dma_buf allocation.")
{
	expect_managed_by_property();
}

static void expect_managed_by_us(const cl_import_properties_arm *list)
{
	struct dma_buf *buf = dma_buf_get(4 * spec.page);
	cl_mem mem;

	need_1_1();
	mem = spec_import(CL_MEM_READ_WRITE, list, &buf->fd, buf->size);
	for (unsigned int turn = 1; turn < 4; turn++) {
		dma_buf_begin(buf);
		spec_fill_memory(buf->memory, buf->size, turn);
		dma_buf_end(buf);
		kernels_add(mem, buf->size, 1, 10);
		dma_buf_begin(buf);
		EXPECT(spec_memory_is(buf->memory, buf->size, turn + 10));
		dma_buf_end(buf);
	}
}

TEST(consistency_by_the_application,
     "R12-12 Valid values for CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM are: CL_FALSE - "
     "maintaining data consistency between memory and the host's view of it is the application's "
     "responsibility (default).")
{
	expect_managed_by_us((cl_import_properties_arm[]){
		CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
		CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, CL_FALSE, 0 });
}

TEST(consistency_by_the_application_is_default,
     "R12-12 Valid values for CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM are: CL_FALSE - "
     "maintaining data consistency between memory and the host's view of it is the application's "
     "responsibility (default).")
{
	expect_managed_by_us(type_dma_buf);
}

static void expect_gated(unsigned char *memory, cl_mem mem)
{
	cl_int error;
	cl_event gate = clCreateUserEvent(spec.context, &error), done;

	EXPECT_EQ(error, CL_SUCCESS);
	spec_fill_memory(memory, spec.page, 1);
	kernels_add_after(mem, spec.page, 10, gate, &done);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	spec_fill_memory(memory, spec.page, 100);
	EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 110));
	clReleaseEvent(done);
	clReleaseEvent(gate);
}

TEST(user_event_before_a_dma_buf_is_used,
     "R6-35 This can be achieved either by not enqueueing the workload until the data is visible, "
     "or by using a user event to prevent the command from being executed until the expected data "
     "has reached memory.")
{
	struct dma_buf *buf = dma_buf_get(spec.page);

	expect_gated(buf->memory,
		     spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, buf->size));
}

TEST(user_event_before_host_memory_is_used,
     "R6-35 This can be achieved either by not enqueueing the workload until the data is visible, "
     "or by using a user event to prevent the command from being executed until the expected data "
     "has reached memory.")
{
	unsigned char *memory = spec_map_pages(1);

	expect_gated(memory, spec_import_host(CL_MEM_READ_WRITE, memory, spec.page));
}

static void expect_size_error(size_t size)
{
	struct dma_buf *buf = dma_buf_get(2 * spec.page);
	cl_int error = spec_import_error(CL_MEM_READ_WRITE, type_dma_buf, &buf->fd, size);

	EXPECT_EXACT(error, CL_INVALID_BUFFER_SIZE);
	if (spec.version >= VERSION_1_1_0)
		EXPECT_EQ(error, CL_INVALID_BUFFER_SIZE);
}

TEST(one_byte_more_than_the_dma_buf, "R12-17 CL_INVALID_BUFFER_SIZE when size is greater than the "
				     "size of the allocation being imported.")
{
	struct dma_buf *buf = dma_buf_get(2 * spec.page);

	expect_size_error(buf->size + 1);
}

TEST(twice_the_dma_buf,
     "R12-26 <size> must be less than or equal to the size of the imported dma_buf allocation.")
{
	struct dma_buf *buf = dma_buf_get(2 * spec.page);

	expect_size_error(2 * buf->size);
}

TEST(size_max_of_a_dma_buf,
     "R12-26 <size> must be less than or equal to the size of the imported dma_buf allocation.")
{
	expect_size_error(SIZE_MAX);
}

TEST(zero_bytes_of_a_dma_buf, "R12-16 CL_INVALID_BUFFER_SIZE when size is 0.")
{
	expect_size_error(0);
}

TEST(all_of_the_dma_buf,
     "R12-26 <size> must be less than or equal to the size of the imported dma_buf allocation.")
{
	struct dma_buf *buf = dma_buf_get(2 * spec.page);

	spec_import(CL_MEM_READ_WRITE, type_dma_buf, &buf->fd, buf->size);
}
