/* SPDX-License-Identifier: Apache-2.0 */
/* The ioctl interface itself: sizes, flags, numbers, numbers that are none. */
#include "gdm.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct {
	unsigned long request;
	uint32_t size;
} calls[] = {
	{ GDMABUF_CAPS, sizeof(struct gdmabuf_caps) },
	{ GDMABUF_EXPORT_GPU, sizeof(struct gdmabuf_export) },
	{ GDMABUF_EXPORT_HOST, sizeof(struct gdmabuf_export) },
	{ GDMABUF_QUERY, sizeof(struct gdmabuf_query) },
	{ GDMABUF_DROP, sizeof(struct gdmabuf_pin_id) },
	{ GDMABUF_BUDGET, sizeof(struct gdmabuf_budget) },
	{ GDMABUF_STATS, sizeof(struct gdmabuf_stats) },
	{ GDMABUF_DIAG, sizeof(struct gdmabuf_diag) },
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static union {
	uint32_t words[1024];
	struct gdmabuf_caps caps;
} arg;

static int uapi_call(int ctx, unsigned int i, uint32_t size)
{
	arg.words[0] = size;
	return gdm_call(ctx, calls[i].request, &arg);
}

TEST(uapi_numbers, "ENOTTY for numbers that are no ioctl of gdmabuf.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, _IO('G', GDMABUF_CMD_BASE - 1), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IO('G', GDMABUF_CMD_DIAG + 1), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IO('H', GDMABUF_CMD_CAPS), &arg), -ENOTTY);
	EXPECT_EQ(gdm_call(ctx, _IOW('G', GDMABUF_CMD_CAPS, struct gdmabuf_caps), &arg), -ENOTTY);
	close(ctx);
}

TEST(uapi_too_small, "EINVAL for a size that is too small.")
{
	int ctx = gdm_open();

	for (unsigned int i = 0; i < CALLS; i++) {
		memset(&arg, 0, sizeof(arg));
		EXPECT_EQ(uapi_call(ctx, i, calls[i].size - 1), -EINVAL);
		EXPECT_EQ(uapi_call(ctx, i, 0), -EINVAL);
	}
	close(ctx);
}

TEST(uapi_too_big, "E2BIG for bytes beyond what is known that are not zero.")
{
	int ctx = gdm_open();

	for (unsigned int i = 0; i < CALLS; i++) {
		memset(&arg, 0, sizeof(arg));
		arg.words[calls[i].size / 4] = 1;
		EXPECT_EQ(uapi_call(ctx, i, calls[i].size + 8), -E2BIG);
	}
	close(ctx);
}

TEST(uapi_extended, "A larger size is taken when the bytes beyond are zero, and these stay zero.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	EXPECT_EQ(uapi_call(ctx, 0, sizeof(arg.caps) + 64), 0);
	EXPECT(arg.caps.out_caps & GDMABUF_CAP_HOST);
	EXPECT_EQ(arg.caps.out_host_page_size, PAGE);
	EXPECT_EQ(arg.words[sizeof(arg.caps) / 4], 0);
	close(ctx);
}

TEST(uapi_answer_ends, "Bytes beyond what the kernel knows of a larger size are not written.")
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

TEST(uapi_huge_size, "E2BIG for a size beyond a page; a page is taken.")
{
	int ctx = gdm_open();

	memset(&arg, 0, sizeof(arg));
	EXPECT_EQ(uapi_call(ctx, 0, PAGE), 0);
	EXPECT_EQ(uapi_call(ctx, 0, PAGE + 1), -E2BIG);
	EXPECT_EQ(uapi_call(ctx, 0, 0xffffffff), -E2BIG);
	close(ctx);
}

TEST(uapi_bad_pointer, "EFAULT for a bad pointer; no descriptor is left behind.")
{
	int ctx = gdm_open(), before = dup(0), after;

	close(before);
	for (unsigned int i = 0; i < CALLS; i++)
		EXPECT_EQ(gdm_call(ctx, calls[i].request, (void *)8), -EFAULT);
	after = dup(0);
	close(after);
	EXPECT_EQ(before, after);
	close(ctx);
}

TEST(uapi_read_only_argument, "EFAULT when the answer cannot be written; nothing stays pinned.")
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

/* An export that fails when all of it is done, but the answer. */
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

TEST(uapi_failed_keep,
     "An export that fails with EFAULT or EMFILE at its end keeps nothing, and is not "
     "counted.")
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
     "An export that fails at its end does not keep the pin of another that it found.")
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

TEST(uapi_flags, "EOPNOTSUPP for unknown flags, and for those of the other kind.")
{
	unsigned char *p = pages_new(PAGE, 0);
	int ctx = gdm_open();

	for (unsigned int i = 0; i < CALLS; i++) {
		memset(&arg, 0, sizeof(arg));
		arg.words[1] = 1U << 31;
		EXPECT_EQ(uapi_call(ctx, i, calls[i].size), -EOPNOTSUPP);
	}
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, GDMABUF_REVOCABLE, NULL), -EOPNOTSUPP);
	EXPECT_EQ(gdm_export_gpu(ctx, 0x7f4000000000, GPU_PAGE, GDMABUF_READ_ONLY, NULL),
		  -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_reserved, "EOPNOTSUPP for a reserved field that is not zero.")
{
	struct gdmabuf_export e = { .size = sizeof(e), .length = PAGE, .reserved = 1 };
	struct gdmabuf_budget b = { .size = sizeof(b), .kind = GDMABUF_KIND_GPU, .reserved = 1 };
	int ctx = gdm_open();

	e.address = (uintptr_t)pages_new(PAGE, 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_EXPORT_HOST, &e), -EOPNOTSUPP);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_BUDGET, &b), -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_budget_kind, "EOPNOTSUPP for the budget of a kind there is not.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_budget(ctx, 0, 0, NULL), -EOPNOTSUPP);
	EXPECT_EQ(gdm_budget(ctx, 3, 0, NULL), -EOPNOTSUPP);
	close(ctx);
}

TEST(uapi_slots, "ENOENT for slots that are not in use, or none.")
{
	static const uint32_t slots[] = { 1, 4095, 4096, 0x7fffffff, 0xffffffff };
	int ctx = gdm_open();
	struct gdm_export used;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 0), PAGE, 0, &used), 0);
	EXPECT_EQ(used.slot, 0);
	for (unsigned int i = 0; i < 5; i++) {
		struct gdm_export e = { .slot = slots[i], .generation = used.generation };

		EXPECT_EQ(gdm_drop(ctx, &e), -ENOENT);
	}
	close(used.fd);
	close(ctx);
}

TEST(uapi_wrong_generation, "ENOENT for another generation of a slot in use.")
{
	int ctx = gdm_open();
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 0), PAGE, GDMABUF_KEEP, &e), 0);
	e.generation += 2;
	EXPECT_EQ(gdm_drop(ctx, &e), -ENOENT);
	close(e.fd);
	close(ctx);
}

TEST(uapi_query_descriptor, "EBADF for a query of what is no dma-buf of gdmabuf.")
{
	struct gdmabuf_query q = { .size = sizeof(q) };
	int ctx = gdm_open(), fds[] = { -1, 0, ctx, 1 << 20 };

	for (unsigned int i = 0; i < 4; i++) {
		q.fd = fds[i];
		EXPECT_EQ(gdm_call(ctx, GDMABUF_QUERY, &q), -EBADF);
	}
	close(ctx);
}

TEST(uapi_query_foreign, "EBADF for a query of another exporter's dma-buf.")
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

TEST(uapi_no_descriptor, "EMFILE when the process has no descriptor left; nothing stays pinned.")
{
	int ctx = gdm_open();

	EXPECT_EQ(export_no_descriptor(ctx, pages_new(PAGE, 0), 0), -EMFILE);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
}

TEST(uapi_diag_devices, "ENODEV for a diagnosis of PCI devices that are not there.")
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

TEST(uapi_fdinfo, "The context's fdinfo shows what it has pinned.")
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
