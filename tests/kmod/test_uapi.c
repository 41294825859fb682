/* SPDX-License-Identifier: Apache-2.0 */
/* The ioctl interface: numbers, sizes, flags, pointers and descriptors. */
#include "gdm.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct uapi_ioctl {
	const char *name;
	unsigned long request;
	uint32_t size;
	uint32_t first; /* the size of the first version; 0: @size */
};

static const struct uapi_ioctl ioctls[] = {
	{ "caps", GDMABUF_CAPS, sizeof(struct gdmabuf_caps), 0 },
	{ "export_gpu", GDMABUF_EXPORT_GPU, sizeof(struct gdmabuf_export), 0 },
	{ "export_host", GDMABUF_EXPORT_HOST, sizeof(struct gdmabuf_export), 0 },
	{ "query", GDMABUF_QUERY, sizeof(struct gdmabuf_query), 0 },
	{ "drop", GDMABUF_DROP, sizeof(struct gdmabuf_pin_id), 0 },
	{ "budget", GDMABUF_BUDGET, sizeof(struct gdmabuf_budget), 0 },
	{ "stats", GDMABUF_STATS, sizeof(struct gdmabuf_stats),
	  offsetof(struct gdmabuf_stats, out_host_watches) },
	{ "diag", GDMABUF_DIAG, sizeof(struct gdmabuf_diag), 0 },
	{ "watch_host", GDMABUF_WATCH_HOST, sizeof(struct gdmabuf_watch_host), 0 },
};

/* The argument of a call: a structure, or a structure of a later version. */
static union {
	uint32_t words[1024];
	struct gdmabuf_caps caps;
	struct gdmabuf_stats stats;
} arg;

static int uapi_call(int ctx, unsigned long request, uint32_t size)
{
	arg.words[0] = size;
	return gdm_call(ctx, request, &arg);
}

TEST(uapi_numbers, "An ioctl number that gdmabuf does not define fails with ENOTTY.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, _IO('G', GDMABUF_CMD_BASE - 1), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IO('G', GDMABUF_CMD_WATCH_HOST + 1), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IO('H', GDMABUF_CMD_CAPS), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IOW('G', GDMABUF_CMD_CAPS, struct gdmabuf_caps), &arg), -ENOTTY);
	close(ctx);
}

TEST_EACH(uapi_too_small, struct uapi_ioctl, ioctls,
	  "A size smaller than the structure's first version fails with EINVAL.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	EXPECT_EQ(uapi_call(ctx, row->request, (row->first ? row->first : row->size) - 1), -EINVAL);
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
	EXPECT(arg.caps.out_caps & GDMABUF_CAP_HOST);
	EXPECT_EQ(arg.caps.out_host_page_size, PAGE);
	EXPECT_EQ(arg.words[sizeof(arg.caps) / 4], 0);
	close(ctx);
}

TEST(uapi_first_version, "The answer to a program with an older structure ends with the structure.")
{
	int ctx = gdm_open();

	memset(&arg, 0xff, sizeof(arg));
	arg.stats.flags = 0;
	EXPECT_EQ(uapi_call(ctx, GDMABUF_STATS, offsetof(struct gdmabuf_stats, out_host_watches)),
		  0);
	EXPECT_EQ(arg.stats.out_revoked, 0);
	EXPECT_EQ(arg.stats.out_host_watches, -1);
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
	EXPECT_EQ(caps->out_slots, 4096);
	close(ctx);
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
	int ctx = gdm_open(), before = dup(0), after;

	close(before);
	EXPECT_EQ(gdm_call(ctx, row->request, (void *)8), -EFAULT);
	after = dup(0);
	close(after);
	EXPECT_EQ(before, after);
	close(ctx);
}

TEST(uapi_read_only_argument,
     "If the answer cannot be written, the export fails with EFAULT and nothing stays pinned.")
{
	struct gdmabuf_export *e = (void *)pages_new(PAGE, 0);
	int ctx = gdm_open(), before = dup(0), after;

	close(before);
	e->size = sizeof(*e);
	e->address = (uintptr_t)e;
	e->length = PAGE;
	e->flags = GDMABUF_READ_ONLY;
	mprotect(e, PAGE, PROT_READ);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_EXPORT_HOST, e), -EFAULT);
	after = dup(0);
	close(after);
	EXPECT_EQ(before, after);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
}

/* Makes an export that fails in the last step: the answer cannot be written. */
static int export_no_answer(int ctx, struct gdmabuf_export *e, uint32_t flags)
{
	int err;

	*e = (struct gdmabuf_export){
		.size = sizeof(*e),
		.address = (uintptr_t)e,
		.length = PAGE,
		.flags = flags,
	};
	mprotect(e, PAGE, PROT_READ);
	err = gdm_call(ctx, GDMABUF_EXPORT_HOST, e);
	mprotect(e, PAGE, PROT_READ | PROT_WRITE);
	return err;
}

static int export_no_descriptor(int ctx, const void *address, uint32_t flags)
{
	struct rlimit old, limit;
	int next = dup(0), err;

	close(next);
	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	limit = (struct rlimit){ (rlim_t)next, old.rlim_max };
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	err = gdm_export_host(ctx, address, PAGE, flags, NULL);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	return err;
}

enum { KEPT = GDMABUF_READ_ONLY | GDMABUF_KEEP };

TEST(uapi_failed_keep, "An export that fails in the last step keeps no pin and is not counted.")
{
	void *p = pages_new(PAGE, 0);
	int ctx = gdm_open();

	EXPECT_EQ(export_no_answer(ctx, p, KEPT), -EFAULT);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	EXPECT_EQ(export_no_descriptor(ctx, p, KEPT), -EMFILE);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	EXPECT_EQ(gdm_stats(ctx).out_exports, 0);
	close(ctx);
}

TEST(uapi_failed_keep_hit,
     "An export that fails in the last step does not keep a pin of an earlier export.")
{
	void *p = pages_new(PAGE, 0);
	int ctx = gdm_open();
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, GDMABUF_READ_ONLY, &e), 0);
	EXPECT_EQ(export_no_answer(ctx, p, KEPT), -EFAULT);
	EXPECT_EQ(export_no_descriptor(ctx, p, KEPT), -EMFILE);
	EXPECT_EQ(gdm_stats(ctx).out_exports, 1);
	close(e.fd);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
}

TEST_EACH(uapi_flags, struct uapi_ioctl, ioctls, "An unknown flag fails with EOPNOTSUPP.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	arg.words[1] = 1U << 31;
	EXPECT_EQ(uapi_call(ctx, row->request, row->size), -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_flags_of_gpu,
     "An export of host memory with a flag for GPU memory fails with EOPNOTSUPP.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 0), PAGE, GDMABUF_REVOCABLE, NULL),
		  -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_flags_of_host,
     "An export of GPU memory with a flag for host memory fails with EOPNOTSUPP.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_export_gpu(ctx, 0x7f4000000000, GPU_PAGE, GDMABUF_READ_ONLY, NULL),
		  -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_reserved, "A reserved field that is not zero fails with EOPNOTSUPP.")
{
	struct gdmabuf_export e = { .size = sizeof(e), .length = PAGE, .reserved = 1 };
	struct gdmabuf_budget b = { .size = sizeof(b), .kind = GDMABUF_KIND_GPU, .reserved = 1 };
	int ctx = gdm_open();

	e.address = (uintptr_t)pages_new(PAGE, 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_EXPORT_HOST, &e), -EOPNOTSUPP);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_BUDGET, &b), -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_budget_kind, "A budget of an unknown kind of memory fails with EOPNOTSUPP.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_budget(ctx, 0, 0, NULL), -EOPNOTSUPP);
	EXPECT_EQ(gdm_budget(ctx, 3, 0, NULL), -EOPNOTSUPP);
	close(ctx);
}

struct free_slot {
	const char *name;
	uint32_t slot;
};

static const struct free_slot free_slots[] = {
	{ "unused", 1 },	   { "last", 4095 },	       { "beyond", 4096 },
	{ "int_max", 0x7fffffff }, { "all_bits", 0xffffffff },
};

TEST_EACH(uapi_slots, struct free_slot, free_slots,
	  "A drop of a slot that is not in use fails with ENOENT.")
{
	int ctx = gdm_open();
	struct gdm_export used, e;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 0), PAGE, 0, &used), 0);
	EXPECT_EQ(used.slot, 0);
	e = (struct gdm_export){ .slot = row->slot, .generation = used.generation };
	EXPECT_EQ(gdm_drop(ctx, &e), -ENOENT);
	close(used.fd);
	close(ctx);
}

TEST(uapi_wrong_generation, "A drop with another generation of a used slot fails with ENOENT.")
{
	int ctx = gdm_open();
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 0), PAGE, GDMABUF_KEEP, &e), 0);
	e.generation += 2;
	EXPECT_EQ(gdm_drop(ctx, &e), -ENOENT);
	close(e.fd);
	close(ctx);
}

struct not_a_dmabuf {
	const char *name;
	int fd;
};

static const struct not_a_dmabuf not_dmabufs[] = {
	{ "negative", -1 },
	{ "file", 0 },
	{ "closed", 1 << 20 },
};

TEST_EACH(uapi_query_descriptor, struct not_a_dmabuf, not_dmabufs,
	  "A query of a descriptor that is no dma-buf fails with EBADF.")
{
	struct gdmabuf_query q = { .size = sizeof(q), .fd = row->fd };
	int ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, GDMABUF_QUERY, &q), -EBADF);
	close(ctx);
}

TEST(uapi_query_context, "A query of a context fails with EBADF.")
{
	int ctx = gdm_open();
	struct gdmabuf_query q = { .size = sizeof(q), .fd = ctx };

	EXPECT_EQ(gdm_call(ctx, GDMABUF_QUERY, &q), -EBADF);
	close(ctx);
}

TEST(uapi_query_foreign, "A query of another exporter's dma-buf fails with EBADF.")
{
	int udmabuf = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	struct udmabuf_create create = { .size = PAGE };
	struct gdmabuf_query q = { .size = sizeof(q) };
	int ctx = gdm_open();

	if (udmabuf < 0)
		test_skip("/dev/udmabuf: %s", strerror(errno));
	create.memfd = (uint32_t)memfd_create("test", MFD_ALLOW_SEALING);
	EXPECT_EQ(ftruncate((int)create.memfd, PAGE), 0);
	EXPECT_EQ(fcntl((int)create.memfd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	q.fd = ioctl(udmabuf, UDMABUF_CREATE, &create);
	EXPECT(q.fd >= 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_QUERY, &q), -EBADF);
	close(q.fd);
	close((int)create.memfd);
	close(udmabuf);
	close(ctx);
}

TEST(uapi_no_descriptor,
     "If the process has no free descriptor, an export fails with EMFILE and nothing stays pinned.")
{
	int ctx = gdm_open();

	EXPECT_EQ(export_no_descriptor(ctx, pages_new(PAGE, 0), 0), -EMFILE);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
}

TEST(uapi_diag_devices, "A diagnosis of missing PCI devices fails with ENODEV.")
{
	struct gdmabuf_diag d = { .size = sizeof(d), .gpu = 0xffffffff, .peer = 0 };
	int ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, GDMABUF_DIAG, &d), -ENODEV);
	d.gpu = 0; /* the host bridge */
	EXPECT_EQ(gdm_call(ctx, GDMABUF_DIAG, &d), 0);
	close(ctx);
}

TEST(uapi_cloexec, "A new dma-buf is close-on-exec.")
{
	int ctx = gdm_open();
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 0), PAGE, 0, &e), 0);
	EXPECT_EQ(fcntl(e.fd, F_GETFD), FD_CLOEXEC);
	close(e.fd);
	close(ctx);
}

TEST(uapi_fdinfo, "The context's fdinfo shows the pins and the pinned bytes.")
{
	int ctx = gdm_open();
	char path[64], text[4096];
	struct gdm_export e;
	FILE *f;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 0), PAGE, 0, &e), 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", ctx);
	f = fopen(path, "r");
	EXPECT(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	EXPECT(strstr(text, "gdmabuf-host-pins:\t1\n"));
	EXPECT(strstr(text, "gdmabuf-host-bytes:\t4096\n"));
	close(e.fd);
	close(ctx);
}
