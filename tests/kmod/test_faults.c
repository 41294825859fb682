/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of a call fails once: the n-th allocation in the n-th attempt, until an attempt
 * makes fewer than n allocations.
 *
 * The tests need a kernel with CONFIG_FAULT_INJECTION (/proc/thread-self/fail-nth), booted with
 * dma_debug=off: if an allocation of dma-debug itself fails, dma-debug warns and gives up.
 */
#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH_GPU = 3 * GPU_PAGE, LENGTH_HOST = 40 * PAGE, MAX_FAULTS = 2000 };

static int gpu = -1, ctx = -1, importer = -1, fail_nth = -1;
static uint64_t va;
static unsigned char *memory;
static uint64_t watches_held; /* by the test, all the time */

/* A call under test.  @run returns 0 or -errno.  Allocations of @prepare and @undo do not fail. */
struct operation {
	int (*run)(void);
	void (*prepare)(void);
	void (*undo)(void); /* reverts @run, after a failure as well */
	int pins; /* @run itself pins: after a failure nothing is pinned, even before @undo */
};

static void set_fail_nth(int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(fail_nth, text, (size_t)length, 0) != length)
		test_skip("/proc/thread-self/fail-nth: %s", strerror(errno));
}

/* The kernel counts down to 0, and fails the allocation at 0. */
static int was_injected(void)
{
	char text[16] = "";

	EXPECT(pread(fail_nth, text, sizeof(text) - 1, 0) > 0);
	return !atoi(text);
}

static void fault_test_begin(void)
{
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_nth < 0)
		test_skip("/proc/thread-self/fail-nth: %s", strerror(errno));
	gpu = mockgpu_open();
	ctx = gdm_open();
	va = mockgpu_alloc(gpu, LENGTH_GPU, MOCK_SCATTER);
	memory = pages_new(LENGTH_HOST, 1);
	/* The first exports make the allocations of a context's life, which happen only once. */
	EXPECT_EQ(gdm_export_gpu(ctx, va, LENGTH_GPU, 0, NULL), 0);
	EXPECT_EQ(gdm_export_host(ctx, memory, LENGTH_HOST, 0, NULL), 0);
}

/* The kernel closes descriptors in work items at the latest, so the wait is short. */
static void nothing_is_pinned(void)
{
	EVENTUALLY(!gdm_stats(ctx).out_gpu_pins && !gdm_stats(ctx).out_host_pins);
	EXPECT_EQ(gdm_stats(ctx).out_gpu_bytes, 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_bytes, 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_watches, watches_held);
	EVENTUALLY(!mockgpu_stats(gpu).pins && !mockgpu_stats(gpu).persistent);
	EXPECT_EQ(mockgpu_stats(gpu).pages_pinned, 0);
}

static int lowest_fd(void)
{
	int fd = dup(fail_nth);

	close(fd);
	return fd;
}

static void fault_test_end(void)
{
	nothing_is_pinned();
	mockgpu_free(gpu, va);
	EXPECT_EQ(mockgpu_stats(gpu).pages_used, 0);
	munmap(memory, LENGTH_HOST);
	close(ctx);
	close(gpu);
	close(fail_nth);
}

/* A failed allocation gives ENOMEM, or an error into which a layer on the way translates ENOMEM. */
static int is_expected(int err)
{
	switch (-err) {
	case ENOMEM:
	case EFAULT: /* copies from and to user space fail as well */
	case EIO:    /* from the mapping of DMA addresses */
	case ENOSPC: /* the GPU driver's error for lack of room in the BAR */
	case EAGAIN:
	case ENFILE:
	case EMFILE:
		return 1;
	}
	return 0;
}

static void fail_all(const struct operation *op)
{
	int n, err, injected = 1, fd, failed = 0;

	if (op->prepare)
		op->prepare();
	EXPECT_EQ(op->run(), 0);
	op->undo();
	fd = lowest_fd();
	for (n = 1; injected; n++) {
		EXPECT(n < MAX_FAULTS);
		if (op->prepare)
			op->prepare();
		set_fail_nth(n);
		err = op->run();
		injected = was_injected();
		set_fail_nth(0);
		if (err && !is_expected(err))
			test_fail(__FILE__, __LINE__, "error", err, -ENOMEM);
		EXPECT(!err || injected);
		failed += err != 0;
		if (err && op->pins)
			nothing_is_pinned();
		op->undo();
		nothing_is_pinned();
		EXPECT_EQ(lowest_fd(), fd);
	}
	printf("# %d failures injected, %d of which made it fail\n", n - 2, failed);
	EXPECT(n > 2);
	if (op->prepare)
		op->prepare();
	EXPECT_EQ(op->run(), 0);
	op->undo();
}

/* ---- exports ---- */

static struct gdm_export made = { .fd = -1 };
static uint32_t flags;

static void close_made(void)
{
	if (made.fd >= 0)
		close(made.fd);
	made.fd = -1;
}

static void undo_export(void)
{
	close_made();
	EXPECT_EQ(gdm_budget(ctx, GDMABUF_KIND_GPU, 0, NULL), 0);
	EXPECT_EQ(gdm_budget(ctx, GDMABUF_KIND_GPU, UINT64_MAX, NULL), 0);
	EXPECT_EQ(gdm_budget(ctx, GDMABUF_KIND_HOST, 0, NULL), 0);
	EXPECT_EQ(gdm_budget(ctx, GDMABUF_KIND_HOST, UINT64_MAX, NULL), 0);
}

static int run_export_gpu(void)
{
	return gdm_export_gpu(ctx, va, LENGTH_GPU, flags, &made);
}

static int run_export_host(void)
{
	return gdm_export_host(ctx, memory, LENGTH_HOST, flags, &made);
}

static void fail_exports(int (*run)(void), uint32_t with)
{
	struct operation op = { .run = run, .undo = undo_export, .pins = 1 };

	flags = with;
	fault_test_begin();
	fail_all(&op);
	fault_test_end();
}

TEST(faults_export_gpu,
     "If an allocation fails, GDMABUF_EXPORT_GPU fails and leaves nothing pinned.")
{
	fail_exports(run_export_gpu, 0);
}

TEST(faults_export_gpu_keep,
     "If an allocation fails, GDMABUF_EXPORT_GPU with GDMABUF_KEEP fails and leaves nothing "
     "pinned.")
{
	fail_exports(run_export_gpu, GDMABUF_KEEP);
}

TEST(faults_export_revocable,
     "If an allocation fails, GDMABUF_EXPORT_GPU with GDMABUF_REVOCABLE fails and leaves nothing "
     "pinned.")
{
	fail_exports(run_export_gpu, GDMABUF_REVOCABLE);
}

TEST(faults_export_host,
     "If an allocation fails, GDMABUF_EXPORT_HOST fails and leaves nothing pinned.")
{
	fail_exports(run_export_host, 0);
}

TEST(faults_export_host_read_only,
     "If an allocation fails, GDMABUF_EXPORT_HOST with GDMABUF_READ_ONLY fails and leaves "
     "nothing pinned.")
{
	fail_exports(run_export_host, GDMABUF_READ_ONLY);
}

TEST(faults_export_host_keep,
     "If an allocation fails, GDMABUF_EXPORT_HOST with GDMABUF_KEEP fails and leaves nothing "
     "pinned.")
{
	fail_exports(run_export_host, GDMABUF_READ_ONLY | GDMABUF_KEEP);
}

/* A pin allocates pages if the range has no pages yet. */
static void forget_memory(void)
{
	EXPECT_EQ(madvise(memory, LENGTH_HOST, MADV_DONTNEED), 0);
}

TEST(faults_export_host_new,
     "If the allocation of a page fails, GDMABUF_EXPORT_HOST fails and leaves nothing pinned.")
{
	struct operation op = {
		.run = run_export_host,
		.prepare = forget_memory,
		.undo = undo_export,
		.pins = 1,
	};

	flags = 0;
	fault_test_begin();
	fail_all(&op);
	fault_test_end();
}

/* If an allocation fails, gdmabuf evicts idle pins and tries again. */
static unsigned char *other;

static void keep_other(void)
{
	EXPECT_EQ(gdm_export_host(ctx, other, PAGE, GDMABUF_KEEP, NULL), 0);
}

TEST(faults_export_evicts,
     "If an allocation fails even after an idle pin was evicted, GDMABUF_EXPORT_HOST fails and "
     "leaves nothing pinned.")
{
	struct operation op = {
		.run = run_export_host,
		.prepare = keep_other,
		.undo = undo_export,
	};

	flags = 0;
	fault_test_begin();
	other = pages_new(PAGE, 1);
	fail_all(&op);
	munmap(other, PAGE);
	fault_test_end();
}

/* ---- watches ---- */

static int run_watch_host(void)
{
	return gdm_watch_host(ctx, memory, LENGTH_HOST, &made);
}

/* The slot may be an older watch's if the call failed. */
static void undo_watch(void)
{
	if (made.generation)
		gdm_drop(ctx, &made);
	made = (struct gdm_export){ .fd = -1 };
}

TEST(faults_watch_host, "If an allocation fails, GDMABUF_WATCH_HOST fails and leaves no watch.")
{
	struct operation op = { .run = run_watch_host, .undo = undo_watch, .pins = 1 };
	struct gdm_export first;

	fault_test_begin();
	/*
	 * Takes slot 0, for which the context's list of watches allocates nothing.  For other slots
	 * the list tries an allocation twice, so one failure is not enough: faults_watch_host_node.
	 */
	EXPECT_EQ(gdm_watch_host(ctx, memory, LENGTH_HOST, &first), 0);
	watches_held = 1;
	made = (struct gdm_export){ .fd = -1 };
	fail_all(&op);
	watches_held = 0;
	EXPECT_EQ(gdm_drop(ctx, &first), 0);
	fault_test_end();
}

/* ---- contexts ---- */

static int opened = -1;

static int fault_run_open(void)
{
	opened = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);
	return opened < 0 ? -errno : 0;
}

static void undo_open(void)
{
	if (opened >= 0)
		close(opened);
	opened = -1;
}

TEST(faults_open, "If an allocation fails, open() fails.")
{
	struct operation op = { .run = fault_run_open, .undo = undo_open };

	fault_test_begin();
	fail_all(&op);
	fault_test_end();
}

static void *status_page = MAP_FAILED;

static int run_status(void)
{
	status_page = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, ctx, 0);
	return status_page == MAP_FAILED ? -errno : 0;
}

static void undo_status(void)
{
	if (status_page != MAP_FAILED)
		munmap(status_page, 4 * PAGE);
	status_page = MAP_FAILED;
}

TEST(faults_status, "If an allocation fails, mmap() of the status page fails.")
{
	struct operation op = { .run = run_status, .undo = undo_status };

	fault_test_begin();
	fail_all(&op);
	fault_test_end();
}

static void prepare_gpu(void)
{
	EXPECT_EQ(run_export_gpu(), 0);
}

static void prepare_host(void)
{
	EXPECT_EQ(run_export_host(), 0);
}

static int run_query(void)
{
	struct gdmabuf_query q = { .size = sizeof(q), .fd = made.fd };

	return gdm_call(ctx, GDMABUF_QUERY, &q);
}

static int run_stats(void)
{
	struct gdmabuf_stats s = { .size = sizeof(s) };

	return gdm_call(ctx, GDMABUF_STATS, &s);
}

static int run_drop(void)
{
	int err = gdm_drop(ctx, &made);

	return err == -EBUSY ? 0 : err;
}

static int run_free(void)
{
	/* The driver calls back from the free, and gdmabuf has to let go without memory. */
	return mockgpu_try_free(gpu, va, 0);
}

static void undo_free(void)
{
	close_made();
	mockgpu_try_free(gpu, va, 0);
	va = mockgpu_alloc(gpu, LENGTH_GPU, MOCK_SCATTER);
}

/* Expects that @op succeeds although allocations fail, or makes no allocation. */
static void never_fails(const struct operation *op)
{
	int n, err, injected = 1;

	for (n = 1; injected; n++) {
		EXPECT(n < MAX_FAULTS);
		if (op->prepare)
			op->prepare();
		set_fail_nth(n);
		err = op->run();
		injected = was_injected();
		set_fail_nth(0);
		/* A copy of the argument from user space may fail. */
		EXPECT(!err || (err == -EFAULT && injected));
		op->undo();
		nothing_is_pinned();
	}
	printf("# %d failures injected\n", n - 2);
}

/* Calls that free or report, and the flags of the earlier export. */
struct memoryless_call {
	const char *name;
	uint32_t flags;
	struct operation op;
};

static const struct memoryless_call memoryless_calls[] = {
	{ "query", 0, { .run = run_query, .prepare = prepare_gpu, .undo = undo_export } },
	{ "stats", 0, { .run = run_stats, .undo = undo_export } },
	{ "drop", GDMABUF_KEEP, { .run = run_drop, .prepare = prepare_gpu, .undo = undo_export } },
	{ "free", 0, { .run = run_free, .prepare = prepare_gpu, .undo = undo_free } },
	{ "free_kept",
	  GDMABUF_KEEP,
	  { .run = run_free, .prepare = prepare_gpu, .undo = undo_free } },
	{ "free_revocable",
	  GDMABUF_REVOCABLE,
	  { .run = run_free, .prepare = prepare_gpu, .undo = undo_free } },
};

TEST_EACH(faults_need_none, struct memoryless_call, memoryless_calls,
	  "A call that reports or frees needs no memory.")
{
	flags = row->flags;
	fault_test_begin();
	never_fails(&row->op);
	fault_test_end();
}

/* ---- mappings ---- */

static unsigned char *view;
static size_t view_length;

static int run_map(void)
{
	view = dmabuf_map(made.fd, view_length, PROT_READ | PROT_WRITE);
	return view ? 0 : -errno;
}

static int run_map_and_read(void)
{
	int err = run_map();

	for (size_t i = 0; !err && i < view_length; i += PAGE)
		(void)*(volatile unsigned char *)(view + i);
	return err;
}

static void undo_map(void)
{
	if (view)
		munmap(view, view_length);
	view = NULL;
	undo_export();
}

static void fail_maps(int (*run)(void), void (*prepare)(void), size_t length, uint32_t with)
{
	struct operation op = { .run = run, .prepare = prepare, .undo = undo_map };

	flags = with;
	view_length = length;
	fault_test_begin();
	fail_all(&op);
	fault_test_end();
}

TEST(faults_map_gpu, "If an allocation fails, mmap() of a dma-buf of GPU memory fails.")
{
	fail_maps(run_map, prepare_gpu, LENGTH_GPU, 0);
}

TEST(faults_map_host, "If an allocation fails, mmap() of a dma-buf of host memory fails.")
{
	fail_maps(run_map, prepare_host, LENGTH_HOST, 0);
}

TEST(faults_map_revocable, "If an allocation fails, mmap() of a revocable dma-buf fails.")
{
	fail_maps(run_map_and_read, prepare_gpu, LENGTH_GPU, GDMABUF_REVOCABLE);
}

/* ---- devices; vmap() is left out, as the dma-buf core warns when vmap() fails ---- */

static uint32_t mode, attach_flags;

static int fault_run_import(void)
{
	struct gdmabuf_importer_map map;
	int err = test_importer_attach(importer, made.fd, mode, attach_flags,
				       GDMABUF_IMPORTER_BIDIRECTIONAL);

	return err ? err : test_importer_map(importer, &map);
}

static void undo_import(void)
{
	importer_call(importer, GDMABUF_IMPORTER_UNMAP, 0);
	importer_call(importer, GDMABUF_IMPORTER_DETACH, 0);
	undo_export();
}

static void fail_imports(void (*prepare)(void), uint32_t with_mode, uint32_t with_flags)
{
	struct operation op = { .run = fault_run_import, .prepare = prepare, .undo = undo_import };

	flags = 0;
	mode = with_mode;
	attach_flags = with_flags;
	importer = test_importer_open();
	fault_test_begin();
	fail_all(&op);
	fault_test_end();
	close(importer);
}

TEST(faults_import_gpu, "If an allocation fails, a device's import of GPU memory fails.")
{
	fail_imports(prepare_gpu, GDMABUF_IMPORTER_STATIC, 0);
}

TEST(faults_import_gpu_platform,
     "If an allocation fails, a platform device's import of GPU memory fails.")
{
	fail_imports(prepare_gpu, GDMABUF_IMPORTER_STATIC, GDMABUF_IMPORTER_PLATFORM_DEVICE);
}

TEST(faults_import_gpu_dynamic,
     "If an allocation fails, a dynamic importer's import of GPU memory fails.")
{
	fail_imports(prepare_gpu, GDMABUF_IMPORTER_DYNAMIC, GDMABUF_IMPORTER_PEER2PEER);
}

TEST(faults_import_host, "If an allocation fails, a device's import of host memory fails.")
{
	fail_imports(prepare_host, GDMABUF_IMPORTER_STATIC, 0);
}

/* ---- xarray entries of several nodes ---- */

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		test_skip("%s: %s", path, strerror(errno));
	close(fd);
}

/* Allocations of xarray nodes by this process fail after the first @space bytes. */
static void fail_nodes_after(const char *space)
{
	static const char *const settings[][2] = {
		{ "/sys/kernel/slab/radix_tree_node/failslab", "1" },
		{ "/proc/self/make-it-fail", "1" },
		{ "/sys/kernel/debug/failslab/cache-filter", "Y" },
		{ "/sys/kernel/debug/failslab/task-filter", "Y" },
		{ "/sys/kernel/debug/failslab/ignore-gfp-wait", "N" },
		{ "/sys/kernel/debug/failslab/verbose", "0" },
		{ "/sys/kernel/debug/failslab/times", "-1" },
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		write_text(settings[i][0], settings[i][1]);
	write_text("/sys/kernel/debug/failslab/space", space);
	write_text("/sys/kernel/debug/failslab/probability", "100");
}

/* Allocations after fail_nodes_after() and before the end of the failures may fail. */
static int open_node_probability(void)
{
	return open("/sys/kernel/debug/failslab/probability", O_WRONLY | O_CLOEXEC);
}

static void end_node_failures(void)
{
	write_text("/sys/kernel/debug/failslab/cache-filter", "N");
	write_text("/sys/kernel/slab/radix_tree_node/failslab", "0");
}

enum { NODE = 576 }; /* bytes of a node */

static void export_without_nodes(void *arg)
{
	unsigned char *huge = huge_pages_new(1, 0);
	int nodes = *(int *)arg, probability, err;
	char space[16];

	if (!huge)
		_exit(77);
	probability = open_node_probability();
	snprintf(space, sizeof(space), "%d", nodes * NODE + 1);
	ctx = gdm_open();
	fail_nodes_after(space);
	become_user(HUGE_PAGE);
	err = gdm_export_host(ctx, huge, PAGE, 0, NULL);
	EXPECT_EQ(write(probability, "0", 1), 1);
	_exit(err && err != -ENOMEM);
}

struct node_count {
	const char *name;
	int nodes;
};

static const struct node_count node_counts[] = {
	{ "0", 0 }, { "1", 1 }, { "2", 2 }, { "3", 3 }, { "4", 4 },
};

TEST_EACH(faults_memlock_nodes, struct node_count, node_counts,
	  "If an xarray entry of several nodes gets only some of the nodes, an export leaves no "
	  "node behind.")
{
	int nodes = row->nodes, status;

	close(gdm_open());
	status = in_child(export_without_nodes, &nodes);
	end_node_failures();
	if (status == 77)
		test_skip("no huge pages, or no failures of one cache");
	EXPECT_EQ(status, 0);
}

static int watch_without_nodes(int own, struct gdm_export *watch)
{
	int probability = open_node_probability(), err;

	fail_nodes_after("1");
	err = gdm_watch_host(own, memory, LENGTH_HOST, watch);
	EXPECT_EQ(write(probability, "0", 1), 1);
	close(probability);
	end_node_failures();
	return err;
}

static void watch_host_without_nodes(void)
{
	struct gdm_export first, failed, next;
	int own = gdm_open();

	memory = pages_new(LENGTH_HOST, 1);
	/* Takes slot 0, for which the list needs no node. */
	EXPECT_EQ(gdm_watch_host(own, memory, LENGTH_HOST, &first), 0);
	EXPECT_EQ(watch_without_nodes(own, &failed), -ENOMEM);
	EXPECT_EQ(gdm_stats(own).out_host_watches, 1);
	/* An invalidation finds all watches of the range, so a freed watch, too. */
	EXPECT_EQ(madvise(memory, PAGE, MADV_DONTNEED), 0);
	EXPECT(!gdm_is_valid(gdm_status(own), &first));
	EXPECT_EQ(gdm_watch_host(own, memory, LENGTH_HOST, &next), 0);
	EXPECT_EQ(next.slot, 1);
}

TEST(faults_watch_host_node,
     "If a context's list of watches gets no memory, GDMABUF_WATCH_HOST fails with ENOMEM and "
     "leaves no watch.")
{
	test_in_child(watch_host_without_nodes);
}
