/* SPDX-License-Identifier: Apache-2.0 */
/* Room for exports of GPU memory: the BAR's size, eviction of idle pins, and quotas. */
#include "gpu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void gpu_set_budget(const struct setup *s, uint32_t pages)
{
	struct mock_config config = { .budget_pages = pages };

	mockgpu_config(s->gpu, &config);
}

TEST(gpu_bar_exhausted,
     "If the BAR has no room, the export fails with ENOSPC and nothing stays pinned.")
{
	struct setup s = gpu_test_begin();

	gpu_set_budget(&s, 4);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), -ENOSPC);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	/* Five pages fit, but the watch needs a sixth. */
	gpu_set_budget(&s, 5);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 5 * GPU_PAGE, 0, NULL), -ENOSPC);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, 0, NULL), 0);
	gpu_test_end(&s);
}

TEST(gpu_evicts, "If the BAR is full, idle pins are evicted, least recently exported first.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a, b;

	gpu_set_budget(&s, 8);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 2 * GPU_PAGE, GDMABUF_KEEP, &a), 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 2 * GPU_PAGE, 2 * GPU_PAGE, GDMABUF_KEEP, &b), 0);
	close(a.fd);
	close(b.fd);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 4 * GPU_PAGE, 2 * GPU_PAGE, 0, NULL), 0);
	EXPECT(!gdm_is_valid(s.status, &a));
	EXPECT(gdm_is_valid(s.status, &b));
	EXPECT_EQ(gdm_stats(s.ctx).out_evictions, 1);
	EXPECT_EQ(gdm_stats(s.ctx).out_retries, 1);
	gpu_test_end(&s);
}

TEST(gpu_evicts_not_used, "If a dma-buf uses the pin in the way, the export fails with ENOSPC.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a;

	gpu_set_budget(&s, 8);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, GDMABUF_KEEP, &a), 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 4 * GPU_PAGE, 4 * GPU_PAGE, 0, NULL), -ENOSPC);
	EXPECT(gdm_is_valid(s.status, &a));
	EXPECT_EQ(gdm_stats(s.ctx).out_evictions, 0);
	close(a.fd);
	/* The pin is idle now, and still kept. */
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 1);
	gpu_test_end(&s);
}

TEST(gpu_evicts_gpu_only, "An export of GPU memory evicts no idle host memory.")
{
	struct setup s = gpu_test_begin();
	unsigned char *p = pages_new(PAGE, 1);
	struct gdm_export host;

	EXPECT_EQ(gdm_export_host(s.ctx, p, PAGE, GDMABUF_KEEP, &host), 0);
	close(host.fd);
	gpu_set_budget(&s, 4);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), -ENOSPC);
	EXPECT(gdm_is_valid(s.status, &host));
	munmap(p, PAGE);
	gpu_test_end(&s);
}

TEST(gpu_kinds_apart, "Host memory and GPU memory at equal addresses have separate pins.")
{
	struct setup s = gpu_test_begin();
	void *at = (void *)(uintptr_t)s.va;
	struct gdm_export gpu = gpu_export(&s, 0), host;
	unsigned char *view;

	EXPECT_EQ(mmap(at, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		  at);
	memset(at, 0x5e, PAGE);
	EXPECT_EQ(gdm_export_host(s.ctx, at, PAGE, 0, &host), 0);
	EXPECT_EQ(gdm_query(s.ctx, host.fd).out_kind, GDMABUF_KIND_HOST);
	EXPECT_EQ(gdm_query(s.ctx, gpu.fd).out_kind, GDMABUF_KIND_GPU);
	view = dmabuf_map(host.fd, PAGE, PROT_READ);
	EXPECT_EQ(view[0], 0x5e);
	munmap(view, PAGE);
	munmap(at, PAGE);
	close(host.fd);
	close(gpu.fd);
	gpu_test_end(&s);
}

TEST(gpu_evicts_for_slot,
     "If every slot is in use, an export of host memory evicts idle GPU memory.")
{
	enum { SLOTS = 4096 };
	static int fds[SLOTS];
	struct rlimit limit = { SLOTS + 100, SLOTS + 100 };
	struct setup s = gpu_test_begin();
	unsigned char *p = pages_new((size_t)SLOTS * PAGE, 0);
	struct gdm_export gpu = gpu_export(&s, GDMABUF_KEEP), host;

	close(gpu.fd);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (size_t i = 0; i < SLOTS; i++) {
		EXPECT_EQ(gdm_export_host(s.ctx, p + i * PAGE, PAGE, 0, &host), 0);
		fds[i] = host.fd;
	}
	EXPECT_EQ(host.slot, gpu.slot);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 0);
	for (size_t i = 0; i < SLOTS; i++)
		close(fds[i]);
	munmap(p, (size_t)SLOTS * PAGE);
	gpu_test_end(&s);
}

static void export_beside(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	struct mock_config config = { .budget_pages = *(uint32_t *)arg };
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);

	mockgpu_config(gpu, &config);
	if (gdm_export_gpu(ctx, va, 6 * GPU_PAGE, 0, NULL))
		_exit(1);
}

TEST(gpu_evicts_others, "An export evicts idle pins of the user's other processes.")
{
	struct setup s = gpu_test_begin();
	uint32_t pages = 10;
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, GDMABUF_KEEP, &e), 0);
	close(e.fd);
	EXPECT_EQ(in_child(export_beside, &pages), 0);
	EXPECT(!gdm_is_valid(s.status, &e));
	/* The watched page is unpinned, too. */
	EVENTUALLY(mockgpu_stats(s.gpu).pages_pinned == 0);
	gpu_test_end(&s);
}

static void export_beside_revocable(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	struct mock_config config = { .budget_pages = 10 };
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);

	(void)arg;
	mockgpu_config(gpu, &config);
	if (gdm_export_gpu(ctx, va, 4 * GPU_PAGE, 0, NULL) != -ENOSPC)
		_exit(1);
}

TEST(gpu_evicts_what_frees,
     "An idle pin of another process is kept if the eviction would free nothing at once.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE | GDMABUF_KEEP);

	close(e.fd);
	EXPECT_EQ(in_child(export_beside_revocable, NULL), 0);
	EXPECT(gdm_is_valid(s.status, &e));
	EXPECT_EQ(gdm_stats(s.ctx).out_evictions, 0);
	gpu_test_end(&s);
}

struct request {
	uint32_t pages;
	int err;
};

static void export_as_other_user(void *arg)
{
	const struct request *r = arg;
	struct mock_config config = { .budget_pages = 10 };
	int gpu = mockgpu_open(), ctx;
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);

	mockgpu_config(gpu, &config);
	become_user(0);
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, r->pages * GPU_PAGE, 0, NULL) != r->err)
		_exit(1);
}

/* Whether an export of @r.pages pages by another user ends with @r.err. */
static int other_user_gets(struct request r)
{
	int status;

	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	status = in_child(export_as_other_user, &r);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	return !status;
}

TEST(gpu_evicts_fairly,
     "An export evicts idle pins of another user only as far as that user has the larger share.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a, b;

	/*
	 * With watches, each pin takes five pages.  Six pages would take seven, a larger share than
	 * five.
	 */
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, GDMABUF_KEEP, &a), 0);
	close(a.fd);
	EXPECT(other_user_gets((struct request){ 6, -ENOSPC }));
	EXPECT(gdm_is_valid(s.status, &a));
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 4 * GPU_PAGE, 4 * GPU_PAGE, GDMABUF_KEEP, &b), 0);
	close(b.fd);
	EXPECT(other_user_gets((struct request){ 2, 0 }));
	EXPECT(!gdm_is_valid(s.status, &a));
	EXPECT(gdm_is_valid(s.status, &b));
	gpu_test_end(&s);
}

static void export_twice_as_other_user(void *arg)
{
	struct mock_config config = { .budget_pages = 11 };
	int gpu = mockgpu_open(), ctx;
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);
	struct gdm_export e;

	(void)arg;
	mockgpu_config(gpu, &config);
	become_user(0);
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, 2 * GPU_PAGE, 0, &e))
		_exit(1);
	if (gdm_export_gpu(ctx, va + 2 * GPU_PAGE, GPU_PAGE, 0, NULL))
		_exit(2);
}

TEST(gpu_evicts_no_more_than_owed,
     "An export evicts another user's idle pin only if the pin is no larger than the excess of "
     "the user's share.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a, b;

	/* With watches, a takes five pages, b three, and the other user's exports three and two. */
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, GDMABUF_KEEP, &a), 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 4 * GPU_PAGE, 2 * GPU_PAGE, GDMABUF_KEEP, &b), 0);
	close(a.fd);
	close(b.fd);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	EXPECT_EQ(in_child(export_twice_as_other_user, NULL), 0);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	EXPECT(gdm_is_valid(s.status, &a));
	EXPECT(!gdm_is_valid(s.status, &b));
	gpu_test_end(&s);
}

enum { MB = 1 << 20 };

static void export_as_user(void *arg)
{
	static const struct mock_config fails = { .fail_errno = -EIO }, works;
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, 2 * MB, 0);

	(void)arg;
	become_user(0);
	if (gdm_export_gpu(ctx, va, 2 * MB, 0, NULL) != -EDQUOT)
		_exit(1);
	/* The watch's page is charged as well. */
	if (gdm_export_gpu(ctx, va, MB, 0, NULL) != -EDQUOT)
		_exit(7);
	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, 0, NULL))
		_exit(2);
	/* The last close ends the charge, and so does an error of the driver. */
	mockgpu_config(gpu, &fails);
	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, 0, NULL) != -EIO)
		_exit(3);
	mockgpu_config(gpu, &works);
	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, GDMABUF_KEEP, NULL))
		_exit(4);
	/* The idle pin of the export before is evicted. */
	if (gdm_export_gpu(ctx, va + MB, MB - GPU_PAGE, 0, NULL))
		_exit(5);
	if (gdm_stats(ctx).out_evictions != 1)
		_exit(6);
}

TEST(gpu_quota, "An export beyond the user's quota of pins in use fails with EDQUOT, except with "
		"CAP_SYS_RESOURCE.")
{
	struct setup s = gpu_test_begin();
	uint64_t va = mockgpu_alloc(s.gpu, 2 * MB, 0);
	int user, root;

	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(export_as_user, NULL);
	root = gdm_export_gpu(s.ctx, va, 2 * MB, 0, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(user, 0);
	EXPECT_EQ(root, 0);
	mockgpu_free(s.gpu, va);
	gpu_test_end(&s);
}

static void exceed_quota(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open(), other = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, 2 * MB, 0);

	(void)arg;
	become_user(0);
	for (int i = 0; i < 4; i++)
		if (gdm_export_gpu(ctx, va + (size_t)i * GPU_PAGE, GPU_PAGE, GDMABUF_KEEP, NULL))
			_exit(1);
	/* The range fills the quota, so the watch's page exceeds the quota. */
	if (gdm_export_gpu(ctx, va + MB, MB, 0, NULL) != -EDQUOT)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
	if (gdm_export_gpu(other, va + MB, MB - GPU_PAGE, 0, NULL))
		_exit(4);
	if (gdm_stats(ctx).out_evictions != 4)
		_exit(5);
}

TEST(gpu_quota_not_in_vain,
     "An export larger than the quota evicts nothing; a smaller export evicts from all contexts "
     "of the user.")
{
	int user;

	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(exceed_quota, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(user, 0);
}

/* Exports, keeps and frees all that the limit allows, again and again. */
static void export_and_free(int ctx, int gpu, size_t length)
{
	for (int i = 0; i < 8; i++) {
		uint64_t va = mockgpu_alloc(gpu, length, 0);
		struct gdm_export e;

		if (gdm_export_gpu(ctx, va, length, GDMABUF_KEEP, &e))
			_exit(1);
		close(e.fd);
		mockgpu_free(gpu, va);
	}
	if (gdm_stats(ctx).out_evictions || gdm_stats(ctx).out_retries)
		_exit(2);
}

static void fill_quota_again(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();

	(void)arg;
	become_user(0);
	export_and_free(ctx, gpu, MB - GPU_PAGE);
}

TEST(gpu_quota_of_freed, "Pins of freed memory do not count against the next export's quota.")
{
	int user;

	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(fill_quota_again, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(user, 0);
}

static void fill_bar_again(void *arg)
{
	const struct setup *s = arg;

	gpu_set_budget(s, 9);
	export_and_free(gdm_open(), s->gpu, 8 * GPU_PAGE);
}

TEST(gpu_bar_of_freed, "Pins of freed memory leave the BAR before the next export fails.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child(fill_bar_again, &s), 0);
	gpu_test_end(&s);
}

static void exceed_quota_beside(void *arg)
{
	int gpu = *(int *)arg, ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, MB, 0);

	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, 0, NULL) != -EDQUOT)
		_exit(1);
}

/*
 * Keeps 448 KiB of the quota of 1 MiB.  The watch takes 64 KiB, which only this process can unpin.
 */
static void keep_beside(void *arg)
{
	int gpu = mockgpu_open(), others = mockgpu_open(), ctx;
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);

	(void)arg;
	become_user(0);
	/* A context is charged to the user who opened the device. */
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, 7 * GPU_PAGE, GDMABUF_KEEP, NULL))
		_exit(1);
	if (in_child(exceed_quota_beside, &others))
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
}

TEST(gpu_quota_not_in_vain_beside,
     "An export evicts nothing of another process if the watched page that stays pinned is "
     "needed, too.")
{
	int user;

	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(keep_beside, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	EXPECT_EQ(user, 0);
}
