/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of other files than dma-bufs.  The text defines no error code, so any error will do;
 * climport documents CL_INVALID_VALUE.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dma_buf.h"

static void descriptors_expect_refused(int fd)
{
	EXPECT_EXACT(spec_import_error(CL_MEM_READ_WRITE, type_dma_buf, &fd, 4096),
		     CL_INVALID_VALUE);
}

static void descriptors_expect_refused_and_close(int fd)
{
	EXPECT(fd >= 0);
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)fd);
	need_dma_buf();
	descriptors_expect_refused(fd);
	EXPECT(fcntl(fd, F_GETFD) >= 0);
}

TEST(descriptor_minus_one,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	need_dma_buf();
	descriptors_expect_refused(-1);
}

TEST(descriptor_int_min,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	need_dma_buf();
	descriptors_expect_refused(INT32_MIN);
}

TEST(descriptor_int_max,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	need_dma_buf();
	descriptors_expect_refused(INT32_MAX);
}

TEST(descriptors_that_are_closed,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	int tried = 0;

	need_dma_buf();
	for (int fd = 0; fd < 10000; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		tried++;
		EXPECT_EXACT(spec_import_error_once(spec.context, CL_MEM_READ_WRITE, type_dma_buf,
						    &fd, 4096),
			     CL_INVALID_VALUE);
	}
	EXPECT(tried > 9000);
}

TEST(both_ends_of_a_pipe,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	int ends[2];

	EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)ends[1]);
	descriptors_expect_refused_and_close(ends[0]);
	descriptors_expect_refused(ends[1]);
}

TEST(regular_file, "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	FILE *file = tmpfile(); /* has no name, which a signal could leave behind */
	int fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1;

	EXPECT(file);
	fclose(file);
	EXPECT_EQ(ftruncate(fd, 65536), 0);
	descriptors_expect_refused_and_close(fd);
}

TEST(file_in_memory, "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	int fd = memfd_create("climport-conform", MFD_CLOEXEC);

	EXPECT_EQ(ftruncate(fd, 65536), 0);
	descriptors_expect_refused_and_close(fd);
}

TEST(dev_null, "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	descriptors_expect_refused_and_close(open("/dev/null", O_RDWR | O_CLOEXEC));
}

TEST(dev_zero, "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	descriptors_expect_refused_and_close(open("/dev/zero", O_RDWR | O_CLOEXEC));
}

TEST(directory, "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	descriptors_expect_refused_and_close(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

TEST(path_descriptor, "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	descriptors_expect_refused_and_close(open("/", O_PATH | O_CLOEXEC));
}

TEST(event_descriptor,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	descriptors_expect_refused_and_close(eventfd(0, EFD_CLOEXEC));
}

TEST(socket_descriptor,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	descriptors_expect_refused_and_close(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/* Clients have passed the descriptor itself.  A native implementation may crash. */
TEST(descriptor_by_value,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	if (!spec.exact)
		test_skip("undefined but for CLIMPORT_CONFORM_EXACT");
	need_dma_buf();
	for (intptr_t fd = 1; fd < 10; fd++)
		EXPECT_EQ(spec_import_error(CL_MEM_READ_WRITE, type_dma_buf, (void *)fd, 4096),
			  CL_INVALID_VALUE);
}

TEST(descriptor_in_a_hole,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	unsigned char *memory = spec_map_pages_with_hole(2, 1);

	if (!spec.exact)
		test_skip("undefined but for CLIMPORT_CONFORM_EXACT");
	need_dma_buf();
	memset(memory, 0xff, spec.page);
	EXPECT_EQ(spec_import_error(CL_MEM_READ_WRITE, type_dma_buf, memory + spec.page, 4096),
		  CL_INVALID_VALUE);
	EXPECT_EQ(spec_import_error(CL_MEM_READ_WRITE, type_dma_buf, memory + spec.page - 2, 4096),
		  CL_INVALID_VALUE);
}

/* A misaligned address is no error: the int at the address is the descriptor. */
TEST(descriptor_at_an_odd_address,
     "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	unsigned char *memory = spec_map_pages(1);

	if (!spec.exact)
		test_skip("undefined but for CLIMPORT_CONFORM_EXACT");
	need_dma_buf();
	memset(memory, 0xff, spec.page);
	EXPECT_EQ(spec_import_error(CL_MEM_READ_WRITE, type_dma_buf, memory + 1, 4096),
		  CL_INVALID_VALUE);
}
