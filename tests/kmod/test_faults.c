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

enum { LENGTH_GPU = 3 * GPU_PAGE, MAX_FAULTS = 2000 };
#define LENGTH_HOST (40 * PAGE)

static int gpu = -1, ctx = -1, importer = -1, fail_nth = -1;
static uint64_t va;
static unsigned char *memory;
static long long watches_held; /* by the test, all the time */

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
}

static void nothing_is_pinned(void)
{
	EXPECT_EQ(gdm_read_total("gpu-bytes"), 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), 0);
	EXPECT_EQ(gdm_read_total("watches"), watches_held);
	EXPECT_EQ(mockgpu_stats(gpu).pins, 0);
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

static int made = -1;
static uint32_t flags;

static void undo_export(void)
{
	if (made >= 0)
		close(made);
	made = -1;
}

static int run_export_gpu(void)
{
	return gdm_export_gpu(ctx, va, LENGTH_GPU, 0, &made);
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

/* ---- watches ---- */

static struct gdm_watch watch;

static int run_watch_host(void)
{
	return gdm_watch_host(ctx, memory, LENGTH_HOST, &watch);
}

static void undo_watch(void)
{
	if (watch.generation)
		gdm_unwatch(ctx, &watch);
	watch = (struct gdm_watch){ 0 };
}

TEST(faults_watch_host, "If an allocation fails, GDMABUF_WATCH_HOST fails and leaves no watch.")
{
	struct operation op = { .run = run_watch_host, .undo = undo_watch, .pins = 1 };
	struct gdm_watch first;

	fault_test_begin();
	/* Not the context's first watch: faults_watch_first. */
	EXPECT_EQ(gdm_watch_host(ctx, memory, LENGTH_HOST, &first), 0);
	watches_held = 1;
	fail_all(&op);
	watches_held = 0;
	EXPECT_EQ(gdm_unwatch(ctx, &first), 0);
	fault_test_end();
}

/* The first watch makes the status page, and has the kernel report changes of the memory. */
static void open_again(void)
{
	close(ctx);
	ctx = gdm_open();
}

TEST(faults_watch_first,
     "If an allocation fails, a context's first GDMABUF_WATCH_HOST fails and leaves no watch.")
{
	struct operation op = {
		.run = run_watch_host,
		.prepare = open_again,
		.undo = undo_watch,
		.pins = 1,
	};

	fault_test_begin();
	fail_all(&op);
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
	status_page = mmap(NULL, STATUS_BYTES, PROT_READ, MAP_SHARED, ctx, 0);
	return status_page == MAP_FAILED ? -errno : 0;
}

static void undo_status(void)
{
	if (status_page != MAP_FAILED)
		munmap(status_page, STATUS_BYTES);
	status_page = MAP_FAILED;
}

TEST(faults_status, "If an allocation fails, mmap() of the status page fails.")
{
	struct operation op = {
		.run = run_status,
		.prepare = open_again,
		.undo = undo_status,
	};

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

static int run_caps(void)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	return gdm_call(ctx, GDMABUF_CAPS, &caps);
}

static void fault_undo_nothing(void)
{
}

static void prepare_watch(void)
{
	EXPECT_EQ(run_watch_host(), 0);
}

static int run_unwatch(void)
{
	int err = gdm_unwatch(ctx, &watch);

	if (!err)
		watch.generation = 0;
	return err;
}

static int fault_run_close(void)
{
	undo_export();
	return 0;
}

/* Changes the memory, of which a watch learns. */
static int run_change(void)
{
	return madvise(memory, PAGE, MADV_DONTNEED) ? -errno : 0;
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

static const struct memoryless_call {
	const char *name;
	struct operation op;
} memoryless_calls[] = {
	{ "caps", { .run = run_caps, .undo = fault_undo_nothing } },
	{ "unwatch", { .run = run_unwatch, .prepare = prepare_watch, .undo = undo_watch } },
	{ "change", { .run = run_change, .prepare = prepare_watch, .undo = undo_watch } },
	{ "close_gpu", { .run = fault_run_close, .prepare = prepare_gpu, .undo = undo_export } },
	{ "close_host", { .run = fault_run_close, .prepare = prepare_host, .undo = undo_export } },
};

TEST_EACH(faults_need_none, struct memoryless_call, memoryless_calls,
	  "A call that reports or frees needs no memory.")
{
	flags = 0;
	fault_test_begin();
	never_fails(&row->op);
	fault_test_end();
}

/* ---- mappings ---- */

static unsigned char *view;
static size_t view_length;

static int run_map(void)
{
	view = dmabuf_map(made, view_length, PROT_READ | PROT_WRITE);
	return view ? 0 : -errno;
}

static void undo_map(void)
{
	if (view)
		munmap(view, view_length);
	view = NULL;
	undo_export();
}

static void fail_maps(void (*prepare)(void), size_t length)
{
	struct operation op = { .run = run_map, .prepare = prepare, .undo = undo_map };

	flags = 0;
	view_length = length;
	fault_test_begin();
	fail_all(&op);
	fault_test_end();
}

TEST(faults_map_gpu, "If an allocation fails, mmap() of a dma-buf of GPU memory fails.")
{
	fail_maps(prepare_gpu, LENGTH_GPU);
}

TEST(faults_map_host, "If an allocation fails, mmap() of a dma-buf of host memory fails.")
{
	fail_maps(prepare_host, LENGTH_HOST);
}

/* ---- devices; vmap() is left out, as the dma-buf core warns when vmap() fails ---- */

static uint32_t mode, attach_flags;

static int fault_run_import(void)
{
	struct gdmabuf_importer_map map;
	int err = test_importer_attach(importer, made, mode, attach_flags,
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
	fail_imports(prepare_gpu, GDMABUF_IMPORTER_DYNAMIC, GDMABUF_IMPORTER_PEER2PEER);
}

TEST(faults_import_gpu_platform,
     "If an allocation fails, a platform device's import of GPU memory fails.")
{
	fail_imports(prepare_gpu, GDMABUF_IMPORTER_PINNED,
		     GDMABUF_IMPORTER_PEER2PEER | GDMABUF_IMPORTER_PLATFORM_DEVICE);
}

TEST(faults_import_host, "If an allocation fails, a device's import of host memory fails.")
{
	fail_imports(prepare_host, GDMABUF_IMPORTER_STATIC, 0);
}

/* ---- nodes of a context's list of watches ---- */

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

static int watch_without_nodes(int own, struct gdm_watch *failed)
{
	int probability = open_node_probability(), err;

	fail_nodes_after("1");
	err = gdm_watch_host(own, memory, LENGTH_HOST, failed);
	EXPECT_EQ(write(probability, "0", 1), 1);
	close(probability);
	end_node_failures();
	return err;
}

/* The slots of a node.  The list tries an allocation twice, so one failure is not enough. */
enum { NODE_SLOTS = 64 };

static void watch_host_without_nodes(void)
{
	struct gdm_watch last, failed, next;
	long long before = gdm_read_total("watches");
	int own = gdm_open();

	memory = pages_new(LENGTH_HOST, 1);
	for (int i = 0; i < NODE_SLOTS; i++)
		EXPECT_EQ(gdm_watch_host(own, memory, LENGTH_HOST, &last), 0);
	EXPECT_EQ(watch_without_nodes(own, &failed), -ENOMEM);
	EXPECT_EQ(gdm_read_total("watches"), before + NODE_SLOTS);
	/* An invalidation finds all watches of the range, so a freed watch, too. */
	EXPECT_EQ(madvise(memory, PAGE, MADV_DONTNEED), 0);
	EXPECT(!gdm_is_current(gdm_status(own), &last));
	EXPECT_EQ(gdm_watch_host(own, memory, LENGTH_HOST, &next), 0);
	EXPECT_EQ(next.slot, NODE_SLOTS);
}

TEST(faults_watch_host_node,
     "If a context's list of watches gets no memory, GDMABUF_WATCH_HOST fails with ENOMEM and "
     "leaves no watch.")
{
	test_in_child(watch_host_without_nodes);
}
