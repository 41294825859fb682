/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DMA_BUF_IOCTL_SYNC around kernels, from the view of the Linux kernel. vgem's fences stand for a
 * device that still uses the buffer, and a probe counts the calls.
 */
#include "guest_cl.h"
#include "harness.h"
#include "process.h"
#include "producer.h"
#include "view.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <stdint.h>
#include <unistd.h>
#include <xf86drm.h>

enum { SIZE = 64 * 1024 };

/* From Linux, include/uapi/drm/vgem_drm.h; libdrm does not install the header. */
struct vgem_fence_attach {
	uint32_t handle, flags, out_fence, pad;
};
struct vgem_fence_signal {
	uint32_t fence, flags;
};
#define VGEM_FENCE_ATTACH DRM_IOWR(DRM_COMMAND_BASE + 1, struct vgem_fence_attach)
#define VGEM_FENCE_SIGNAL DRM_IOW(DRM_COMMAND_BASE + 2, struct vgem_fence_signal)
enum { READS = 0, WRITES = 1 };

/* A device at work on a dma-buf. */
struct device {
	int card, fd;
	uint32_t fence;
	struct view view;
};

static int vgem_open(void)
{
	char path[32];

	for (int i = 0; i < 8; i++) {
		drmVersionPtr version;
		int card, found;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		card = open(path, O_RDWR | O_CLOEXEC);
		if (card < 0)
			continue;
		version = drmGetVersion(card);
		found = version && !strcmp(version->name, "vgem");
		drmFreeVersion(version);
		if (found)
			return card;
		close(card);
	}
	test_skip("no vgem device");
}

static struct device device_start(uint32_t what)
{
	struct device d = { .card = vgem_open() };
	struct vgem_fence_attach attach = { .flags = what };

	d.fd = producer_create(producer_find("vgem"), SIZE, O_RDWR);
	EXPECT(d.fd >= 0);
	d.view = view_open(d.fd, SIZE, O_RDWR);
	EXPECT_EQ(drmPrimeFDToHandle(d.card, d.fd, &attach.handle), 0);
	EXPECT_EQ(drmIoctl(d.card, VGEM_FENCE_ATTACH, &attach), 0);
	d.fence = attach.out_fence;
	return d;
}

/*
 * Fails with ETIMEDOUT if the fence was over before, as vgem's are after ten seconds: so nothing has waited
 * for the fence until now.
 */
static void device_done(struct device *d)
{
	struct vgem_fence_signal signal = { .fence = d->fence };

	EXPECT_EQ(drmIoctl(d->card, VGEM_FENCE_SIGNAL, &signal), 0);
}

static void device_close(struct device *d)
{
	view_close(&d->view);
	close(d->fd);
	close(d->card);
}

TEST(reader_waits,
     "A kernel that reads begins only after the device has written, and the enqueue does not "
     "block.")
{
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(SIZE);
	struct device d = device_start(WRITES);
	cl_mem in = guest_cl_import(d.fd, SIZE, CL_MEM_READ_ONLY),
	       out = guest_cl_native(SIZE, NULL);
	cl_event event = guest_cl_transform_begin(in, out, SIZE);

	EXPECT(process_settles(process_is_quiet, NULL));
	EXPECT(!guest_cl_is_complete(event));
	memcpy(d.view.bytes, want, SIZE);
	device_done(&d);
	guest_cl_transform_end(event);
	guest_cl_native_read(out, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	device_close(&d);
	free(want);
	free(got);
}

TEST(writer_waits, "A kernel that writes begins only after the device has read.")
{
	unsigned char *want = bytes_random(SIZE), *zero = bytes_zero(SIZE);
	struct device d = device_start(READS);
	cl_mem in = guest_cl_native(SIZE, want),
	       out = guest_cl_import(d.fd, SIZE, CL_MEM_WRITE_ONLY);
	cl_event event = guest_cl_transform_begin(in, out, SIZE);

	EXPECT(process_settles(process_is_quiet, NULL));
	EXPECT(!guest_cl_is_complete(event));
	EXPECT(!memcmp(d.view.bytes, zero, SIZE));
	device_done(&d);
	guest_cl_transform_end(event);
	EXPECT_EQ(bytes_not_transformed(want, d.view.bytes, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	device_close(&d);
	free(want);
	free(zero);
}

TEST(readers_share, "A kernel that reads does not wait for a device that reads.")
{
	struct device d = device_start(READS);
	cl_mem in = guest_cl_import(d.fd, SIZE, CL_MEM_READ_ONLY),
	       out = guest_cl_native(SIZE, NULL);

	guest_cl_transform(in, out, SIZE);
	device_done(&d);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	device_close(&d);
}

TEST(others_do_not_wait,
     "A kernel without the import among the arguments does not wait for the device.")
{
	struct device d = device_start(WRITES);
	cl_mem waiting = guest_cl_import(d.fd, SIZE, 0);
	cl_mem in = guest_cl_native(SIZE, NULL), out = guest_cl_native(SIZE, NULL);

	guest_cl_transform(in, out, SIZE);
	device_done(&d);
	clReleaseMemObject(waiting);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	device_close(&d);
}

/* The counts of DMA_BUF_IOCTL_SYNC calls, from a probe in the Linux kernel. */
struct brackets {
	int begun, ended;
};

#define TRACING "/sys/kernel/tracing/"

static void trace_write(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		test_skip("%s: %m", file);
	EXPECT_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void probe_on(void)
{
	if (!access(TRACING "events/climport", F_OK))
		return;
	trace_write(TRACING "kprobe_events",
		    "p:climport/sync dma_buf_ioctl flags=+u0($arg3):x64\n");
	trace_write(TRACING "events/climport/enable", "1");
}

static struct brackets brackets_now(void)
{
	FILE *trace = fopen(TRACING "trace", "re");
	struct brackets b = { 0, 0 };
	unsigned long long flags;
	char line[256], *at;

	EXPECT(trace);
	while (fgets(line, sizeof(line), trace)) {
		at = strstr(line, "flags=");
		if (!at || sscanf(at, "flags=%llx", &flags) != 1)
			continue;
		*(flags & DMA_BUF_SYNC_END ? &b.ended : &b.begun) += 1;
	}
	fclose(trace);
	return b;
}

/* Expects that the counts have grown so. */
static void expect_brackets(struct brackets before, int begun, int ended)
{
	struct brackets now = brackets_now();

	EXPECT_EQ(now.begun - before.begun, begun);
	EXPECT_EQ(now.ended - before.ended, ended);
}

TEST(arguments_bracketed,
     "Begin and end of CPU access are called once for each import among the arguments, and end "
     "once before, for what the host has written.")
{
	struct device d = device_start(READS), e = device_start(READS);
	cl_mem in = guest_cl_import(d.fd, SIZE, 0), out = guest_cl_import(e.fd, SIZE, 0);
	cl_mem native = guest_cl_native(SIZE, NULL);
	struct brackets before;

	probe_on();
	device_done(&d);
	device_done(&e);
	before = brackets_now();
	guest_cl_transform(native, native, SIZE);
	expect_brackets(before, 0, 0);
	guest_cl_transform(in, native, SIZE);
	expect_brackets(before, 1, 2);
	guest_cl_transform(in, out, SIZE);
	expect_brackets(before, 3, 6);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	clReleaseMemObject(native);
	device_close(&d);
	device_close(&e);
}

TEST(acquire_brackets, "Access begins with the acquire, which waits for the device, and ends with "
		       "the release; kernels "
		       "between have no bracket.")
{
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(SIZE);
	struct device d = device_start(WRITES);
	cl_mem in = guest_cl_external(d.fd, SIZE, CL_MEM_READ_ONLY),
	       out = guest_cl_native(SIZE, NULL);
	struct brackets before;
	cl_event event;

	probe_on();
	before = brackets_now();
	guest_cl_acquire(in);
	event = guest_cl_transform_begin(in, out, SIZE);
	EXPECT(process_settles(process_is_quiet, NULL));
	EXPECT(!guest_cl_is_complete(event));
	memcpy(d.view.bytes, want, SIZE);
	device_done(&d);
	guest_cl_transform_end(event);
	guest_cl_transform(in, out, SIZE);
	expect_brackets(before, 1, 1);
	guest_cl_release(in);
	expect_brackets(before, 1, 2);
	guest_cl_native_read(out, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	device_close(&d);
	free(want);
	free(got);
}

TEST(inconsistent_bracketed,
     "An import without requested host consistency gets begin and end of CPU access, too.")
{
	struct device d = device_start(READS);
	cl_mem in = guest_cl_import_inconsistent(d.fd, SIZE, 0), out = guest_cl_native(SIZE, NULL);
	struct brackets before;

	probe_on();
	device_done(&d);
	before = brackets_now();
	guest_cl_transform(in, out, SIZE);
	expect_brackets(before, 1, 2);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	device_close(&d);
}
