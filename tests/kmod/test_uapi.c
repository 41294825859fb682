/* SPDX-License-Identifier: Apache-2.0 */
/* The ioctl interface: numbers, sizes, flags, pointers and descriptors; and the counters. */
#include "gdm.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct uapi_ioctl {
	const char *name;
	unsigned long request;
	uint32_t size;
};

static const struct uapi_ioctl ioctls[] = {
	{ "caps", GDMABUF_CAPS, sizeof(struct gdmabuf_caps) },
	{ "export_host", GDMABUF_EXPORT_HOST, sizeof(struct gdmabuf_export) },
	{ "export_gpu", GDMABUF_EXPORT_GPU, sizeof(struct gdmabuf_export) },
	{ "watch_host", GDMABUF_WATCH_HOST, sizeof(struct gdmabuf_watch_host) },
	{ "unwatch_host", GDMABUF_UNWATCH_HOST, sizeof(struct gdmabuf_watch_id) },
};

/* The argument of a call: a structure, or a structure of a later version. */
static union {
	uint32_t words[GPU_PAGE / 4]; /* a page of any kernel */
	struct gdmabuf_caps caps;
} arg;

static int uapi_call(int ctx, unsigned long request, uint32_t size)
{
	arg.words[0] = size;
	return gdm_call(ctx, request, &arg);
}

/* The lowest free descriptor. */
static int uapi_next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

TEST(uapi_numbers, "An ioctl number that gdmabuf does not define fails with ENOTTY.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, _IO('G', GDMABUF_CMD_BASE - 1), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IO('G', GDMABUF_CMD_UNWATCH_HOST + 1), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IO('H', GDMABUF_CMD_CAPS), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IOW('G', GDMABUF_CMD_CAPS, struct gdmabuf_caps), &arg), -ENOTTY);
	close(ctx);
}

TEST_EACH(uapi_too_small, struct uapi_ioctl, ioctls,
	  "A size smaller than the structure's first version fails with EINVAL.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	EXPECT_EQ(uapi_call(ctx, row->request, row->size - 1), -EINVAL);
	EXPECT_EQ(uapi_call(ctx, row->request, 0), -EINVAL);
	close(ctx);
}

TEST_EACH(uapi_too_big, struct uapi_ioctl, ioctls,
	  "A nonzero byte beyond the structure fails with E2BIG.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	arg.words[row->size / 4] = 1;
	EXPECT_EQ(uapi_call(ctx, row->request, row->size + 8), -E2BIG);
	close(ctx);
}

TEST(uapi_extended,
     "A larger size is accepted if the extra bytes are zero, and the extra bytes stay zero.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	EXPECT_EQ(uapi_call(ctx, GDMABUF_CAPS, sizeof(arg.caps) + 64), 0);
	EXPECT_EQ(arg.caps.out_host_page_size, PAGE);
	EXPECT_EQ(arg.words[sizeof(arg.caps) / 4], 0);
	close(ctx);
}

TEST(uapi_answer_ends, "The answer leaves bytes beyond the known structure unwritten.")
{
	unsigned char *p = pages_new(2 * PAGE, 0);
	struct gdmabuf_caps *caps = (void *)(p + PAGE - sizeof(*caps));
	int ctx = gdm_open();

	caps->size = sizeof(*caps) + 64;
	EXPECT_EQ(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_CAPS, caps), 0);
	EXPECT_EQ(caps->out_watches, WATCHES);
	close(ctx);
	munmap(p, 2 * PAGE);
}

TEST(uapi_huge_size, "A size of a page is accepted, and a larger size fails with E2BIG.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	EXPECT_EQ(uapi_call(ctx, GDMABUF_CAPS, PAGE), 0);
	EXPECT_EQ(uapi_call(ctx, GDMABUF_CAPS, PAGE + 1), -E2BIG);
	EXPECT_EQ(uapi_call(ctx, GDMABUF_CAPS, 0xffffffff), -E2BIG);
	close(ctx);
}

TEST_EACH(uapi_bad_pointer, struct uapi_ioctl, ioctls,
	  "A bad pointer fails with EFAULT, and leaves no descriptor.")
{
	int ctx = gdm_open(), next = uapi_next_fd();

	EXPECT_EQ(gdm_call(ctx, row->request, (void *)8), -EFAULT);
	EXPECT_EQ(uapi_next_fd(), next);
	close(ctx);
}

TEST(uapi_read_only_argument,
     "If the answer cannot be written, the export fails with EFAULT and leaves no descriptor and "
     "no page pinned.")
{
	struct gdmabuf_export *e = (void *)pages_new(PAGE, 0);
	int ctx = gdm_open(), next = uapi_next_fd();
	long long pinned, total = gdm_read_total("host-bytes");

	*e = (struct gdmabuf_export){ .size = sizeof(*e),
				      .address = (uintptr_t)e,
				      .length = PAGE,
				      .flags = GDMABUF_READ_ONLY };
	mprotect(e, PAGE, PROT_READ);
	pinned = gdm_pinned_pages();
	EXPECT_EQ(gdm_call(ctx, GDMABUF_EXPORT_HOST, e), -EFAULT);
	EXPECT_EQ(uapi_next_fd(), next);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	EXPECT_EQ(gdm_read_total("host-bytes"), total);
	close(ctx);
	munmap(e, PAGE);
}

TEST(uapi_no_descriptor,
     "If the process has no free descriptor, an export fails with EMFILE and leaves no page "
     "pinned.")
{
	unsigned char *p = pages_new(PAGE, 1);
	int ctx = gdm_open(), err;
	long long pinned, total = gdm_read_total("host-bytes");
	struct rlimit old, limit;

	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	pinned = gdm_pinned_pages();
	limit = (struct rlimit){ (rlim_t)uapi_next_fd(), old.rlim_max };
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	err = gdm_export_host(ctx, p, PAGE, 0, NULL);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	EXPECT_EQ(err, -EMFILE);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	EXPECT_EQ(gdm_read_total("host-bytes"), total);
	close(ctx);
	munmap(p, PAGE);
}

static void uapi_export_as_user(void *limit)
{
	unsigned char *p = pages_new(PAGE, 1);
	int ctx = gdm_open();

	if (pwrite(*(int *)limit, "0", 1, 0) != 1)
		_exit(1);
	become_user(PAGE);
	_exit(gdm_export_host(ctx, p, PAGE, 0, NULL) == -ENFILE ? 0 : 2);
}

TEST(uapi_no_file,
     "If the system has no file left for a user, an export fails with ENFILE and leaves no page "
     "pinned.")
{
	int max = open("/proc/sys/fs/file-max", O_RDWR | O_CLOEXEC), status;
	long long pinned = gdm_pinned_pages();
	char old[32];
	ssize_t n = read(max, old, sizeof(old));

	EXPECT(n > 0);
	status = in_child(uapi_export_as_user, &max);
	EXPECT_EQ(pwrite(max, old, (size_t)n, 0), n);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	close(max);
}

TEST_EACH(uapi_flags, struct uapi_ioctl, ioctls, "An unknown flag fails with EOPNOTSUPP.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	arg.words[1] = 1U << 31;
	EXPECT_EQ(uapi_call(ctx, row->request, row->size), -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_reserved, "A reserved field that is not zero fails with EOPNOTSUPP.")
{
	struct gdmabuf_export e = { .size = sizeof(e), .length = PAGE, .reserved = 1 };
	unsigned char *p = pages_new(PAGE, 0);
	int ctx = gdm_open();

	e.address = (uintptr_t)p;
	EXPECT_EQ(gdm_call(ctx, GDMABUF_EXPORT_HOST, &e), -EOPNOTSUPP);
	close(ctx);
	munmap(p, PAGE);
}

TEST(uapi_no_provider,
     "Without a provider of GPU memory the capabilities name none, and an export of GPU memory "
     "fails with EOPNOTSUPP.")
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, GDMABUF_CAPS, &caps), 0);
	EXPECT_EQ(caps.out_gpu_page_size, 0);
	EXPECT_EQ(caps.out_provider[0], 0);
	EXPECT_EQ(gdm_export_gpu(ctx, 0x7f4000000000, GPU_PAGE, 0, NULL), -EOPNOTSUPP);
	close(ctx);
}

struct free_slot {
	const char *name;
	uint32_t slot;
};

static const struct free_slot free_slots[] = {
	{ "unused", 1 },	   { "last", WATCHES - 1 },    { "beyond", WATCHES },
	{ "int_max", 0x7fffffff }, { "all_bits", 0xffffffff },
};

TEST_EACH(uapi_slots, struct free_slot, free_slots,
	  "The end of a watch in a slot that has none fails with ENOENT.")
{
	unsigned char *p = pages_new(PAGE, 0);
	struct gdm_watch used, unused = { .slot = row->slot };
	int ctx = gdm_open();

	/* Before the first watch there is no status page, and after it slot 0 is in use. */
	EXPECT_EQ(gdm_unwatch(ctx, &unused), -ENOENT);
	EXPECT_EQ(gdm_watch_host(ctx, p, PAGE, &used), 0);
	EXPECT_EQ(used.slot, 0);
	unused.generation = used.generation;
	EXPECT_EQ(gdm_unwatch(ctx, &unused), -ENOENT);
	unused.generation = gdm_status(ctx)[row->slot % WATCHES];
	EXPECT_EQ(gdm_unwatch(ctx, &unused), -ENOENT);
	close(ctx);
	munmap(p, PAGE);
}

TEST(uapi_cloexec, "A new dma-buf is close-on-exec.")
{
	unsigned char *p = pages_new(PAGE, 0);
	int ctx = gdm_open(), fd;

	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &fd), 0);
	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	close(ctx);
	munmap(p, PAGE);
}

/* The value of @key in the fdinfo of @fd; empty without such a line. */
static const char *uapi_read_fdinfo(int fd, const char *key)
{
	static char value[64];
	char path[64], line[256], format[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	snprintf(format, sizeof(format), "%s: %%63s", key);
	file = fopen(path, "re");
	EXPECT(file);
	value[0] = '\0';
	while (fgets(line, sizeof(line), file) && sscanf(line, format, value) != 1)
		;
	fclose(file);
	return value;
}

TEST(uapi_fdinfo, "The fdinfo of a dma-buf of host memory shows size and exporter.")
{
	unsigned char *p = pages_new(3 * PAGE, 0);
	int ctx = gdm_open(), fd;

	EXPECT_EQ(gdm_export_host(ctx, p, 3 * PAGE, 0, &fd), 0);
	EXPECT_EQ(strcmp(uapi_read_fdinfo(fd, "exp_name"), "gdmabuf-host"), 0);
	EXPECT_EQ(atoll(uapi_read_fdinfo(fd, "size")), 3 * PAGE);
	close(fd);
	close(ctx);
	munmap(p, 3 * PAGE);
}

TEST(uapi_fdinfo_watches, "The fdinfo of a context shows the number of watches.")
{
	unsigned char *p = pages_new(PAGE, 0);
	struct gdm_watch a, b;
	int ctx = gdm_open();

	EXPECT_EQ(strcmp(uapi_read_fdinfo(ctx, "gdmabuf-watches"), "0"), 0);
	EXPECT_EQ(gdm_watch_host(ctx, p, PAGE, &a), 0);
	EXPECT_EQ(gdm_watch_host(ctx, p, PAGE, &b), 0);
	munmap(p, PAGE);
	EXPECT_EQ(strcmp(uapi_read_fdinfo(ctx, "gdmabuf-watches"), "2"), 0);
	EXPECT_EQ(gdm_unwatch(ctx, &a), 0);
	EXPECT_EQ(strcmp(uapi_read_fdinfo(ctx, "gdmabuf-watches"), "1"), 0);
	close(ctx);
}

TEST(uapi_totals, "The totals in debugfs count what all contexts have pinned and watch.")
{
	long long bytes = gdm_read_total("host-bytes"), watches = gdm_read_total("watches");
	unsigned char *p = pages_new(2 * PAGE, 1);
	int a = gdm_open(), b = gdm_open(), fd[2];
	struct gdm_watch watch;

	EXPECT_EQ(gdm_export_host(a, p, 2 * PAGE, 0, &fd[0]), 0);
	EXPECT_EQ(gdm_export_host(b, p, PAGE, 0, &fd[1]), 0);
	EXPECT_EQ(gdm_watch_host(a, p, PAGE, &watch), 0);
	EXPECT_EQ(gdm_watch_host(b, p, PAGE, &watch), 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), bytes + 3 * PAGE);
	EXPECT_EQ(gdm_read_total("gpu-bytes"), 0);
	EXPECT_EQ(gdm_read_total("watches"), watches + 2);
	close(a);
	EXPECT_EQ(gdm_read_total("watches"), watches + 1);
	close(fd[0]);
	EXPECT_EQ(gdm_read_total("host-bytes"), bytes + PAGE);
	close(fd[1]);
	close(b);
	EXPECT_EQ(gdm_read_total("host-bytes"), bytes);
	munmap(p, 2 * PAGE);
}
