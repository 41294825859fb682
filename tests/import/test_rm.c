/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of host memory by NVIDIA's resource manager: successes and refusals. */
#include "rm_fixture.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include <linux/magic.h>

RM_TEST(host_import, "The descriptor has the bytes of the memory, for the device with the UUID.")
{
	char *p = rm_pages(SIZE);
	struct fake_opaque opaque;
	int fd;

	EXPECT_EQ(rm_import_host(rm_uuid[1], p, SIZE, &fd), 0);
	EXPECT(fake_opaque_read(fd, &opaque));
	EXPECT(opaque.memory == p);
	EXPECT_EQ(opaque.size, SIZE);
	EXPECT(!memcmp(opaque.uuid, rm_uuid[1], sizeof(opaque.uuid)));
	close(fd);
}

RM_TEST(not_cached, "RM is told that the GPU must not cache the memory.")
{
	struct fake_opaque opaque;
	int fd = rm_try(rm_pages(SIZE), SIZE);

	EXPECT(fake_opaque_read(fd, &opaque));
	EXPECT(!opaque.cached);
	close(fd);
}

RM_TEST(one_page, "A single page can be imported, and so can many pages.")
{
	close(rm_try(rm_pages(PAGE), PAGE));
	close(rm_try(rm_pages(1000 * PAGE), 1000 * PAGE));
	EXPECT_EQ(fake_rm.pins_made, 3); /* the anchor's page is the first */
}

RM_TEST(descriptor_keeps, "The descriptor keeps the memory pinned, and RM's object is freed before "
			  "the import returns.")
{
	struct fake_rm_held held;
	int fd = rm_try(rm_pages(SIZE), SIZE);

	held = fake_rm_held();
	EXPECT_EQ(held.objects, 0);
	EXPECT_EQ(held.memories, 2); /* with the anchor's */
	close(fd);
	EXPECT_EQ(fake_rm_held().memories, 1);
}

RM_TEST(descriptor_is_callers, "The caller owns the descriptor, which is close-on-exec.")
{
	int before, fd;

	rm_import_works(0);
	before = process_count_descriptors();
	fd = rm_try(rm_pages(SIZE), SIZE);
	EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(process_count_descriptors(), before + 1);
	EXPECT_EQ(close(fd), 0);
}

RM_TEST(private_file,
	"A private mapping of a file on a disk is imported, and the file does not change.")
{
	char path[] = "climport-test-XXXXXX", byte = 1, *p;
	int file = mkstemp(path), fd;
	struct statfs fs;

	EXPECT(file >= 0);
	unlink(path);
	EXPECT_EQ(fstatfs(file, &fs), 0);
	if (fs.f_type == TMPFS_MAGIC)
		test_skip("no disk here");
	EXPECT_EQ(ftruncate(file, (off_t)PAGE), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	EXPECT(p != MAP_FAILED);
	fd = rm_try(p, PAGE);
	EXPECT(fd >= 0);
	*p = 7;
	EXPECT_EQ(pread(file, &byte, 1, 0), 1);
	EXPECT_EQ(byte, 0);
	close(fd);
	close(file);
	munmap(p, PAGE);
}

RM_TEST(whole_pages, "A range of other than whole pages is -EINVAL, without a call of RM.")
{
	char *p = rm_pages(SIZE);

	EXPECT_EQ(rm_try(p + 64, PAGE), -EINVAL);
	EXPECT_EQ(rm_try(p, 5000), -EINVAL);
	EXPECT_EQ(rm_try(p, 0), -EINVAL);
	EXPECT_EQ(fake_rm.calls, 0);
}

RM_TEST(not_mapped,
	"If a part of the range is not mapped, the error is -EFAULT, without a call of RM.")
{
	char *p = rm_pages(SIZE);

	close(rm_try(p, SIZE)); /* opens and maps everything the check needs */
	fake_rm.calls = 0;
	munmap(p + 3 * PAGE, PAGE);
	EXPECT_EQ(rm_try(p, SIZE), -EFAULT);
	EXPECT_EQ(fake_rm.calls, 0);
}

RM_TEST(out_of_address_space, "A range that leaves the address space is -ERANGE.")
{
	EXPECT_EQ(rm_try((void *)(UINTPTR_MAX - 2 * PAGE + 1), 4 * PAGE), -ERANGE);
	EXPECT_EQ(fake_rm.calls, 0);
}

RM_TEST(read_only,
	"A read-only mapping is -EOPNOTSUPP, with a message that says how to map the memory.")
{
	char *p = rm_pages(PAGE);

	mprotect(p, PAGE, PROT_READ);
	EXPECT_EQ(rm_try(p, PAGE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "mapped without write access"));
	EXPECT(strstr(log_last(), "map the memory writable, with MAP_PRIVATE if the file"));
	EXPECT_EQ(fake_rm.calls, 0);
}

RM_TEST(kernel_mapping, "Pages that the kernel maps are -EOPNOTSUPP, without a call of RM.")
{
	unsigned long ring = 0;

	if (syscall(SYS_io_setup, 1, &ring))
		test_skip("io_setup: %s", strerror(errno));
	EXPECT_EQ(rm_try((void *)ring, PAGE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "is a mapping of /[aio]"));
	EXPECT_EQ(fake_rm.calls, 0);
	syscall(SYS_io_destroy, ring);
}

RM_TEST(not_pinned,
	"If RM cannot pin the memory, the import is -EOPNOTSUPP and the next import works.")
{
	char *bad = rm_pages(SIZE);

	fake_rm.refused = bad;
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(rm_try(bad, SIZE), -EOPNOTSUPP);
		EXPECT(strstr(log_last(), "the memory cannot be pinned (status 0x1e)"));
		rm_expect_kept(1, 1);
		rm_import_works(0);
	}
}

RM_TEST(no_driver,
	"Without NVIDIA's driver each import is -EOPNOTSUPP, and asks for the driver again.")
{
	char *p = rm_pages(PAGE);

	fake_rm.is_present = false;
	EXPECT_EQ(rm_try(p, PAGE), -EOPNOTSUPP);
	EXPECT(!strcmp(log_last(), "/dev/nvidiactl: No such file or directory"));
	rm_expect_kept(0, 0);
	fake_rm.is_present = true;
	close(rm_try(p, PAGE));
	rm_expect_kept(1, 1);
}

RM_TEST(unknown_uuid, "If no GPU has the UUID, as with a MIG instance, the import is -EOPNOTSUPP.")
{
	int fd;

	EXPECT_EQ(rm_import_host(rm_uuid[3], rm_pages(PAGE), PAGE, &fd), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "the UUID of a device (a MIG instance has a UUID that is no "
				  "GPU's): object not found (status 0x57)"));
	rm_expect_kept(1, 0);
	rm_import_works(0);
}

RM_TEST(two_gpus, "Each GPU has a separate device, and all devices share a client.")
{
	rm_import_works(1);
	rm_import_works(0);
	rm_import_works(1);
	EXPECT_EQ(fake_rm.clients_made, 1);
	EXPECT_EQ(fake_rm.devices_made, 2);
	rm_expect_kept(1, 2);
}

RM_TEST(missing_node, "A GPU without a node is -EOPNOTSUPP, and other GPUs work.")
{
	fake_rm.gpu[0].no_node = true;
	EXPECT_EQ(rm_try(rm_pages(PAGE), PAGE), -EOPNOTSUPP);
	EXPECT(!strcmp(log_last(), "/dev/nvidia4: No such file or directory"));
	rm_expect_kept(1, 0);
	rm_import_works(1);
	fake_rm.gpu[0].no_node = false;
	rm_import_works(0);
}

RM_TEST(missing_card, "A GPU that the driver does not list is -EOPNOTSUPP.")
{
	fake_rm.gpu[0].no_card = true;
	EXPECT_EQ(rm_try(rm_pages(PAGE), PAGE), -EOPNOTSUPP);
	EXPECT(!strcmp(log_last(), "NVIDIA's driver does not list the GPU 0x100"));
	rm_expect_kept(1, 0);
	rm_import_works(1);
}

RM_TEST(wrong_minor, "If the listed node belongs to a different GPU, the import is -EOPNOTSUPP.")
{
	fake_rm.gpu[0].wrong_minor = fake_rm.gpu[1].minor;
	EXPECT_EQ(rm_try(rm_pages(PAGE), PAGE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "refuses a device: no permission (status 0x1b)"));
	rm_expect_kept(1, 0);
}

RM_TEST(no_libraries, "An import does not load CUDA.")
{
	rm_import_works(0);
	EXPECT_EQ(process_count_mappings("libcuda"), 0);
}

/* A call that fails in the first import of a process, and the objects kept afterwards. */
static const struct rm_failure {
	const char *name, *call;
	unsigned int nth;
	int error;	 /* errno of the call, or 0 */
	uint32_t status; /* of the call */
	int result;
	const char *says;
	int clients, devices;
} rm_failures[] = {
#define STATUS(what, why) "NVIDIA's resource manager refuses " what ": " why
#define IOCTL(what) what ": ioctl of NVIDIA's resource manager: Inappropriate ioctl for device"
	{ "control_eacces", "open control", 1, EACCES, 0, -EOPNOTSUPP,
	  "/dev/nvidiactl: Permission denied", 0, 0 },
	{ "control_emfile", "open control", 1, EMFILE, 0, -EMFILE,
	  "/dev/nvidiactl: Too many open files", 0, 0 },
	{ "control_enfile", "open control", 1, ENFILE, 0, -ENFILE,
	  "/dev/nvidiactl: Too many open files in system", 0, 0 },
	{ "control_enomem", "open control", 1, ENOMEM, 0, -ENOMEM,
	  "/dev/nvidiactl: Cannot allocate memory", 0, 0 },
	{ "version_enotty", "version", 1, ENOTTY, 0, -EOPNOTSUPP,
	  IOCTL("the version of NVIDIA's driver"), 0, 0 },
	{ "client_enotty", "client", 1, ENOTTY, 0, -EOPNOTSUPP, IOCTL("a client"), 0, 0 },
	{ "client_refused", "client", 1, 0, 0x1a, -ENOMEM,
	  STATUS("a client", "not enough resources (status 0x1a)"), 0, 0 },
	{ "uuid_enotty", "uuid", 1, ENOTTY, 0, -EOPNOTSUPP,
	  IOCTL("the UUID of a device (a MIG instance has a UUID that is no GPU's)"), 1, 0 },
	{ "uuid_lost", "uuid", 1, 0, 0x0f, -EIO,
	  STATUS("the UUID of a device (a MIG instance has a UUID that is no GPU's)",
		 "the GPU is lost (status 0xf)"),
	  1, 0 },
	{ "cards_enotty", "cards", 1, ENOTTY, 0, -EOPNOTSUPP, IOCTL("the list of GPUs"), 1, 0 },
	{ "cards_enomem", "cards", 1, ENOMEM, 0, -ENOMEM,
	  "the list of GPUs: ioctl of NVIDIA's resource manager: Cannot allocate memory", 1, 0 },
	{ "node_eacces", "open device", 1, EACCES, 0, -EOPNOTSUPP,
	  "/dev/nvidia4: Permission denied", 1, 0 },
	{ "node_emfile", "open device", 1, EMFILE, 0, -EMFILE, "/dev/nvidia4: Too many open files",
	  1, 0 },
	{ "node_eio", "open device", 1, EIO, 0, -EOPNOTSUPP, "/dev/nvidia4: Input/output error", 1,
	  0 },
	{ "register_enotty", "register", 1, ENOTTY, 0, -EOPNOTSUPP,
	  IOCTL("the registration of a device node with the control node"), 1, 0 },
	{ "device_enotty", "device", 1, ENOTTY, 0, -EOPNOTSUPP, IOCTL("a device"), 1, 0 },
	{ "device_refused", "device", 1, 0, 0x1b, -EOPNOTSUPP,
	  STATUS("a device", "no permission (status 0x1b)"), 1, 0 },
	{ "anchor_pin", "pin", 1, 0, 0x51, -ENOMEM, "out of memory (status 0x51)", 1, 0 },
	{ "anchor_node", "open control", 2, EMFILE, 0, -EMFILE,
	  "/dev/nvidiactl: Too many open files", 1, 0 },
	{ "anchor_export", "export", 1, 0, 0x1a, -ENOMEM,
	  STATUS("the export of an object", "not enough resources (status 0x1a)"), 1, 0 },
	{ "pin_enotty", "pin", 2, ENOTTY, 0, -EOPNOTSUPP,
	  "ioctl of NVIDIA's resource manager: Inappropriate ioctl for device", 1, 1 },
	{ "pin_enomem", "pin", 2, ENOMEM, 0, -ENOMEM, "Cannot allocate memory", 1, 1 },
	{ "pin_address", "pin", 2, 0, 0x1e, -EOPNOTSUPP,
	  "the memory cannot be pinned (status 0x1e)", 1, 1 },
	{ "pin_argument", "pin", 2, 0, 0x1f, -EOPNOTSUPP, "invalid argument (status 0x1f)", 1, 1 },
	{ "pin_limit", "pin", 2, 0, 0x2e, -EOPNOTSUPP, "invalid size (status 0x2e)", 1, 1 },
	{ "pin_not_supported", "pin", 2, 0, 0x56, -EOPNOTSUPP, "not supported (status 0x56)", 1,
	  1 },
	{ "pin_other", "pin", 2, 0, 0x59, -EIO, "status 0x59", 1, 1 },
	{ "descriptor_emfile", "open control", 3, EMFILE, 0, -EMFILE,
	  "/dev/nvidiactl: Too many open files", 1, 1 },
	{ "export_enotty", "export", 2, ENOTTY, 0, -EOPNOTSUPP, IOCTL("the export of an object"), 1,
	  1 },
	{ "export_refused", "export", 2, 0, 0x57, -EOPNOTSUPP,
	  STATUS("the export of an object", "object not found (status 0x57)"), 1, 1 },
};

TEST_EACH(failed, struct rm_failure, rm_failures,
	  "If a call of the first import fails, nothing is left behind, the message names the "
	  "cause, and the next import works.")
{
	char *p;

	rm_begin();
	p = rm_pages(SIZE);
	rm_fail(row->call, row->nth, row->error, row->status);
	EXPECT_EQ(rm_try(p, SIZE), row->result);
	EXPECT_EQ(fake_rm.matched >= row->nth, 1);
	if (!strstr(log_last(), row->says))
		printf("# %s\n", log_last());
	EXPECT(strstr(log_last(), row->says));
	rm_expect_kept(row->clients, row->devices);
	rm_import_works(0);
	rm_expect_kept(1, 1);
	EXPECT_EQ(fake_rm.clients_made, 1);
	rm_end();
}

/* Calls that a signal may interrupt. */
static const struct rm_interrupted {
	const char *name, *call;
} rm_interruptions[] = {
	{ "open", "open control" }, { "node", "open device" }, { "client", "client" },
	{ "version", "version" },   { "pin", "pin" },	       { "export", "export" },
	{ "cards", "cards" },
};

TEST_EACH(interrupted, struct rm_interrupted, rm_interruptions,
	  "A call that a signal interrupts is made again.")
{
	rm_begin();
	rm_fail(row->call, 1, EINTR, 0);
	fake_rm.fail_times = 3;
	rm_import_works(0);
	EXPECT(fake_rm.matched > 3);
	rm_end();
}

RM_TEST(free_fails, "A free that RM refuses is logged, and the import succeeds.")
{
	int fd;

	rm_import_works(0);
	rm_fail("free", 1, 0, 0x56);
	fd = rm_try(rm_pages(PAGE), PAGE);
	EXPECT(fd >= 0);
	EXPECT(strstr(log_last(), "refuses the end of an object"));
	close(fd);
	EXPECT_EQ(fake_rm_held().objects, 1);
	rm_close_all(0); /* the end of the client frees the object */
	rm_close_all(1);
}
