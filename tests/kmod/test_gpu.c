/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory as dma-bufs: the provider that is shipped, on the mock of NVIDIA's driver. */
#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 8 * GPU_PAGE };

static unsigned char bytes[LENGTH];

/* What a test has to begin with. */
struct setup {
	int gpu, ctx;
	uint64_t va;
	const volatile uint32_t *status;
	struct mock_stats before;
};

static struct setup gpu_test_begin_flags(uint32_t flags)
{
	struct setup s = { .gpu = mockgpu_open() };

	s.ctx = gdm_open();
	s.status = gdm_status(s.ctx);
	EVENTUALLY(mockgpu_stats(s.gpu).pins == 0 && mockgpu_stats(s.gpu).persistent == 0);
	s.before = mockgpu_stats(s.gpu);
	s.va = mockgpu_alloc(s.gpu, LENGTH, flags);
	pattern_fill(bytes, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	return s;
}

static struct setup gpu_test_begin(void)
{
	return gpu_test_begin_flags(0);
}

/* How many things need the provider. */
static int provider_users(void)
{
	FILE *f = fopen("/sys/module/gdmabuf_nvidia/refcnt", "r");
	int n = -1;

	EXPECT(f);
	EXPECT_EQ(fscanf(f, "%d", &n), 1);
	fclose(f);
	return n;
}

/* Nothing is left of it: no pin, no memory, no BAR space, nobody that needs the provider. */
static void gpu_test_end(struct setup *s)
{
	static const struct mock_config works;

	munmap((void *)(uintptr_t)s->status, 4 * PAGE);
	close(s->ctx);
	mockgpu_config(s->gpu, &works);
	mockgpu_try_free(s->gpu, s->va, 0);
	EVENTUALLY(mockgpu_stats(s->gpu).pins == 0 && mockgpu_stats(s->gpu).persistent == 0);
	EXPECT_EQ(mockgpu_stats(s->gpu).pages_pinned, 0);
	EXPECT_EQ(mockgpu_stats(s->gpu).pages_used, s->before.pages_used);
	EVENTUALLY(provider_users() == 0);
	close(s->gpu);
}

static struct gdm_export gpu_export(const struct setup *s, uint32_t flags)
{
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(s->ctx, s->va, LENGTH, flags, &e), 0);
	return e;
}

/* SIGSEGV or SIGBUS when a child of the same memory touches it; or 0. */
static volatile unsigned char *touched;

static void gpu_touch(void *arg)
{
	(void)arg;
	(void)*touched;
}

static sigjmp_buf *fault_jump;

static void gpu_on_fault(int signal)
{
	siglongjmp(*fault_jump, signal);
}

/* The signal that reading @p gives in this process, or 0. */
static int fault_of(const volatile unsigned char *p)
{
	struct sigaction action = { .sa_handler = gpu_on_fault }, old_bus, old_segv;
	sigjmp_buf jump;
	int signal;

	sigaction(SIGBUS, &action, &old_bus);
	sigaction(SIGSEGV, &action, &old_segv);
	fault_jump = &jump;
	signal = sigsetjmp(jump, 1);
	if (!signal)
		(void)*p;
	sigaction(SIGBUS, &old_bus, NULL);
	sigaction(SIGSEGV, &old_segv, NULL);
	return signal;
}

TEST(gpu_caps, "With a provider the capabilities name it, and its page size.")
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int gpu = mockgpu_open(), ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, GDMABUF_CAPS, &caps), 0);
	EXPECT(caps.out_caps & GDMABUF_CAP_GPU);
	EXPECT_EQ(caps.out_gpu_page_size, GPU_PAGE);
	EXPECT(!strcmp(caps.out_provider, "nvidia"));
	close(ctx);
	close(gpu);
}

TEST(gpu_basic,
     "What the CPU reads through the dma-buf is the GPU's memory, and what it writes gets there.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT(view);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	for (size_t i = 0; i < LENGTH; i++)
		view[i] = (unsigned char)~pattern_at(i);
	mockgpu_read(s.gpu, s.va, bytes, LENGTH);
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = (unsigned char)~bytes[i];
	EXPECT_EQ(pattern_mismatches(bytes, LENGTH), 0);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_scattered, "Memory that is scattered in the BAR is one range of the dma-buf.")
{
	struct setup s = gpu_test_begin_flags(MOCK_SCATTER);
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	view = mmap(NULL, 3 * GPU_PAGE, PROT_READ, MAP_SHARED, e.fd, GPU_PAGE + PAGE);
	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, bytes + GPU_PAGE + PAGE, 3 * GPU_PAGE), 0);
	munmap(view, 3 * GPU_PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_small, "A part of an allocation is exported, of one GPU page or more.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e;
	unsigned char *view;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 2 * GPU_PAGE, GPU_PAGE, 0, &e), 0);
	view = dmabuf_map(e.fd, GPU_PAGE, PROT_READ);
	EXPECT_EQ(memcmp(view, bytes + 2 * GPU_PAGE, GPU_PAGE), 0);
	munmap(view, GPU_PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_unaligned, "EINVAL for a range that is not of whole GPU pages.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + PAGE, GPU_PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, GPU_PAGE + PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 0, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_gpu(s.ctx, -(uint64_t)GPU_PAGE, 2 * GPU_PAGE, 0, NULL), -EINVAL);
	gpu_test_end(&s);
}

TEST(gpu_beyond, "EFAULT for a range that ends beyond the allocation.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH + GPU_PAGE, 0, NULL), -EFAULT);
	gpu_test_end(&s);
}

TEST(gpu_freed, "EFAULT for memory that was freed.")
{
	struct setup s = gpu_test_begin();

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), -EFAULT);
	gpu_test_end(&s);
}

TEST(gpu_two_mappings, "Two mappings of one dma-buf show the same memory.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *a = dmabuf_map(e.fd, LENGTH, PROT_READ | PROT_WRITE);
	unsigned char *b = dmabuf_map(e.fd, LENGTH, PROT_READ);

	a[GPU_PAGE + 3] = 200;
	EXPECT_EQ(b[GPU_PAGE + 3], 200);
	munmap(a, LENGTH);
	EXPECT_EQ(b[GPU_PAGE + 3], 200);
	munmap(b, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_mapping_outlives_descriptor,
     "A mapping stays after the descriptor and the context are closed.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	close(e.fd);
	close(s.ctx);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	s.ctx = gdm_open();
	gpu_test_end(&s);
}

TEST(gpu_hold_after_free,
     "HOLD: after cudaFree the dma-buf keeps the memory, which nobody else gets.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	uint64_t other;

	mockgpu_free(s.gpu, s.va);
	other = mockgpu_alloc(s.gpu, LENGTH, 0);
	EXPECT_EQ(other, s.va);
	memset(bytes, 0xee, LENGTH);
	mockgpu_write(s.gpu, other, bytes, LENGTH);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_free_is_seen, "HOLD: cudaFree changes the status word before it returns.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT(gdm_is_valid(s.status, &e));
	mockgpu_free(s.gpu, s.va);
	EXPECT(!gdm_is_valid(s.status, &e));
	EXPECT_EQ(gdm_query(s.ctx, e.fd).out_state, GDMABUF_STALE);
	EXPECT_EQ(gdm_stats(s.ctx).out_stale, 1);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_free_by_thread, "HOLD: the same when another thread of the driver calls back.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT_EQ(mockgpu_try_free(s.gpu, s.va, MOCK_FREE_BY_THREAD), 0);
	EXPECT(!gdm_is_valid(s.status, &e));
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_sub_free,
     "Freeing a part of a block of CUDA's is not seen, as the pages stay the block's.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT_EQ(mockgpu_try_free(s.gpu, s.va, MOCK_FREE_SUB), 0);
	EXPECT(gdm_is_valid(s.status, &e));
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_free_kept, "A pin that is kept and idle goes when its memory is freed.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_KEEP);

	close(e.fd);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 1);
	mockgpu_free(s.gpu, s.va);
	EVENTUALLY(gdm_stats(s.ctx).out_gpu_pins == 0);
	EVENTUALLY(mockgpu_stats(s.gpu).pages_used == s.before.pages_used);
	gpu_test_end(&s);
}

TEST(gpu_va_reuse, "After free and alloc at the same address an export is of the new memory.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export old = gpu_export(&s, GDMABUF_KEEP), new;
	unsigned char *view;

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(mockgpu_alloc(s.gpu, LENGTH, 0), s.va);
	memset(bytes, 0x77, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	new = gpu_export(&s, 0);
	view = dmabuf_map(new.fd, LENGTH, PROT_READ);
	EXPECT_EQ(memcmp(view, bytes, LENGTH), 0);
	munmap(view, LENGTH);
	EXPECT(gdm_is_valid(s.status, &new));
	EXPECT(!gdm_is_valid(s.status, &old));
	close(old.fd);
	close(new.fd);
	gpu_test_end(&s);
}

TEST(gpu_hit, "A range within a pin costs no pin of the driver's.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0), part;
	uint32_t gets = mockgpu_stats(s.gpu).gets;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + GPU_PAGE, GPU_PAGE, 0, &part), 0);
	EXPECT_EQ(mockgpu_stats(s.gpu).gets, gets);
	close(e.fd);
	close(part.fd);
	gpu_test_end(&s);
}

TEST(gpu_unwatched,
     "An unwatched export is one pin, stale from the beginning, which no other takes.")
{
	struct setup s = gpu_test_begin();
	uint32_t gets = mockgpu_stats(s.gpu).gets;
	struct gdm_export e = gpu_export(&s, GDMABUF_UNWATCHED), other;

	EXPECT_EQ(mockgpu_stats(s.gpu).gets, gets + 1);
	EXPECT(!gdm_is_valid(s.status, &e));
	EXPECT_EQ(gdm_query(s.ctx, e.fd).out_state, GDMABUF_STALE);
	other = gpu_export(&s, GDMABUF_UNWATCHED);
	EXPECT(other.slot != e.slot);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 2);
	close(e.fd);
	close(other.fd);
	gpu_test_end(&s);
}

TEST(gpu_unwatched_after_free, "The pages of an unwatched export stay when the memory is freed.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_UNWATCHED);

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 1);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_unwatched_refused, "EOPNOTSUPP for an unwatched export that is revocable.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, GPU_PAGE, GDMABUF_UNWATCHED | GDMABUF_REVOCABLE, &e),
		  -EOPNOTSUPP);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	gpu_test_end(&s);
}

TEST(gpu_drop, "GDMABUF_DROP gives a kept pin back to the driver, with its watch.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_KEEP);

	close(e.fd);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 1);
	EXPECT_EQ(gdm_drop(s.ctx, &e), 0);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 0);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 0);
	gpu_test_end(&s);
}

/* ---- REVOCABLE ---- */

TEST(gpu_revocable_free,
     "REVOCABLE: after cudaFree a mapping gives SIGBUS, and there is no new one.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(fault_of(view), SIGBUS);
	EXPECT_EQ(fault_of(view + LENGTH - 1), SIGBUS);
	EXPECT(!dmabuf_map(e.fd, LENGTH, PROT_READ));
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(gdm_query(s.ctx, e.fd).out_state, GDMABUF_STALE | GDMABUF_REVOKED);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_used, s.before.pages_used);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_canary,
     "REVOCABLE: what other memory holds in the same place of the BAR is not seen.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	EXPECT_EQ(view[0], pattern_at(0));
	EXPECT_EQ(mockgpu_try_free(s.gpu, s.va, MOCK_FREE_BY_THREAD), 0);
	EXPECT_EQ(mockgpu_alloc(s.gpu, LENGTH, 0), s.va);
	memset(bytes, 0x42, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	for (size_t i = 0; i < LENGTH; i += PAGE)
		EXPECT_EQ(fault_of(view + i), SIGBUS);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_split,
     "REVOCABLE: parts of a mapping that was split and moved give SIGBUS as well.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ), *moved;

	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view + GPU_PAGE, GPU_PAGE);
	moved = mremap(view + 4 * GPU_PAGE, GPU_PAGE, GPU_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       pages_new(GPU_PAGE, 0));
	EXPECT(moved != MAP_FAILED);
	EXPECT_EQ(moved[5], pattern_at(4 * GPU_PAGE + 5));
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(fault_of(view), SIGBUS);
	EXPECT_EQ(fault_of(moved), SIGBUS);
	EXPECT_EQ(fault_of(view + 6 * GPU_PAGE), SIGBUS);
	munmap(view, LENGTH);
	munmap(moved, GPU_PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_part,
     "REVOCABLE: a part of a pin, and a part of its mapping, are the right pages.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE), part;
	unsigned char *view;

	EXPECT_EQ(
		gdm_export_gpu(s.ctx, s.va + 2 * GPU_PAGE, 4 * GPU_PAGE, GDMABUF_REVOCABLE, &part),
		0);
	EXPECT_EQ(part.slot, e.slot);
	view = mmap(NULL, GPU_PAGE, PROT_READ, MAP_SHARED, part.fd, GPU_PAGE + PAGE);
	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, bytes + 3 * GPU_PAGE + PAGE, GPU_PAGE), 0);
	munmap(view, GPU_PAGE);
	close(e.fd);
	close(part.fd);
	gpu_test_end(&s);
}

static unsigned char *map_part(const struct gdm_export *e)
{
	unsigned char *view = dmabuf_map(e->fd, 2 * GPU_PAGE, PROT_READ);

	return view && view[0] == pattern_at(0) ? view : NULL;
}

/* Each counts with 2 MiB, of those that revocable_map_mb allows. */
enum { MAPPINGS = 8 };

static void fill_and_empty(const struct gdm_export *e)
{
	unsigned char *views[MAPPINGS];

	for (int i = 0; i < MAPPINGS; i++)
		EXPECT((views[i] = map_part(e)));
	EXPECT(!map_part(e));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(munmap(views[0] + PAGE, PAGE), -1);
	EXPECT_EQ(errno, ENOMEM);
	/* Room for another one's second part. */
	munmap(views[0], 2 * GPU_PAGE);
	EXPECT_EQ(mprotect(views[1], PAGE, PROT_NONE), 0);
	EXPECT(!map_part(e));
	for (int i = 1; i < MAPPINGS; i++)
		munmap(views[i], 2 * GPU_PAGE);
}

TEST(gpu_revocable_mappings,
     "ENOMEM for mapping more revocable memory than revocable_map_mb, and for splitting a mapping "
     "then; what is unmapped, in parts as well, does not count.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *views[MAPPINGS + 1];
	char old[16];

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	for (int round = 0; round < 3; round++)
		fill_and_empty(&e);
	close(e.fd);
	e = gpu_export(&s, 0);
	for (int i = 0; i <= MAPPINGS; i++)
		EXPECT((views[i] = map_part(&e)));
	for (int i = 0; i <= MAPPINGS; i++)
		munmap(views[i], 2 * GPU_PAGE);
	parameter_set("gdmabuf", "revocable_map_mb", old);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_mappings_contexts,
     "The limit is for all contexts of a user together: their pins are taken by the same free.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e;
	unsigned char *views[MAPPINGS];
	int contexts[MAPPINGS + 1];
	char old[16];

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	for (int i = 0; i <= MAPPINGS; i++) {
		contexts[i] = gdm_open();
		EXPECT_EQ(gdm_export_gpu(contexts[i], s.va, LENGTH, GDMABUF_REVOCABLE, &e), 0);
		if (i < MAPPINGS)
			EXPECT((views[i] = map_part(&e)));
		else
			EXPECT(!map_part(&e));
		close(e.fd);
	}
	parameter_set("gdmabuf", "revocable_map_mb", old);
	for (int i = 0; i < MAPPINGS; i++)
		munmap(views[i], 2 * GPU_PAGE);
	for (int i = 0; i <= MAPPINGS; i++)
		close(contexts[i]);
	gpu_test_end(&s);
}

static unsigned char *mapped[2 * MAPPINGS];

/* Maps what there is room for.  How many there were. */
static int map_all(const struct gdm_export *e)
{
	int n = 0;

	while (n < 2 * MAPPINGS && (mapped[n] = map_part(e)))
		n++;
	return n;
}

static void unmap_all(int n)
{
	while (n--)
		munmap(mapped[n], 2 * GPU_PAGE);
}

/* Says so when nothing more can be mapped; ends when it is told to, or with its parent. */
static void map_all_as_user(const struct gdm_export *e, int socket)
{
	char n;

	become_user(0);
	n = (char)map_all(e);
	if (write(socket, &n, 1) == 1 && read(socket, &n, 1) == 1)
		_exit(0);
	_exit(1);
}

TEST(gpu_revocable_mappings_others, "What another user has mapped of a user's revocable memory "
				    "takes away nothing of what the user "
				    "itself may map.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	int sockets[2], status, mine;
	char old[16], theirs;
	pid_t pid;

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		map_all_as_user(&e, sockets[1]);
	EXPECT_EQ(read(sockets[0], &theirs, 1), 1);
	mine = map_all(&e);
	parameter_set("gdmabuf", "revocable_map_mb", old);
	EXPECT_EQ(theirs, MAPPINGS);
	EXPECT_EQ(mine, MAPPINGS);
	EXPECT_EQ(write(sockets[0], &theirs, 1), 1);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	unmap_all(mine);
	close(sockets[0]);
	close(sockets[1]);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_mappings_freed, "Mappings of revocable memory that was freed do not count.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *freed[MAPPINGS];
	char old[16];

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	for (int i = 0; i < MAPPINGS; i++)
		EXPECT((freed[i] = map_part(&e)));
	mockgpu_free(s.gpu, s.va);
	close(e.fd);
	/* A part of one, too. */
	EXPECT_EQ(munmap(freed[0] + PAGE, PAGE), 0);
	EXPECT_EQ(mockgpu_alloc(s.gpu, LENGTH, 0), s.va);
	pattern_fill(bytes, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	e = gpu_export(&s, GDMABUF_REVOCABLE);
	EXPECT_EQ(map_all(&e), MAPPINGS);
	unmap_all(MAPPINGS);
	for (int i = 0; i < MAPPINGS; i++)
		munmap(freed[i], 2 * GPU_PAGE);
	EXPECT_EQ(map_all(&e), MAPPINGS);
	unmap_all(MAPPINGS);
	parameter_set("gdmabuf", "revocable_map_mb", old);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revoked_is_not_pinned, "Memory that was taken away does not count as pinned any more.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);

	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 1);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 0);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_bytes, 0);
	close(e.fd);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 0);
	gpu_test_end(&s);
}

TEST(gpu_failed_is_no_hit, "An export that fails at its end, on a pin that was there, is no hit.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	struct gdmabuf_export *arg = (void *)pages_new(PAGE, 0);

	*arg = (struct gdmabuf_export){ .size = sizeof(*arg), .address = s.va, .length = LENGTH };
	mprotect(arg, PAGE, PROT_READ);
	EXPECT_EQ(gdm_call(s.ctx, GDMABUF_EXPORT_GPU, arg), -EFAULT);
	EXPECT_EQ(gdm_stats(s.ctx).out_exports, 1);
	EXPECT_EQ(gdm_stats(s.ctx).out_hits, 0);
	munmap(arg, PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_is_apart, "Revocable exports and others never share a pin.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a = gpu_export(&s, 0), b = gpu_export(&s, GDMABUF_REVOCABLE);

	EXPECT(a.slot != b.slot);
	close(a.fd);
	close(b.fd);
	gpu_test_end(&s);
}

/* ---- processes ---- */

static void export_parents(void *arg)
{
	const struct setup *s = arg;
	int ctx = gdm_open();

	if (gdm_export_gpu(s->ctx, s->va, LENGTH, 0, NULL) != -EACCES)
		_exit(1);
	if (gdm_export_gpu(ctx, s->va, LENGTH, 0, NULL) != -EFAULT)
		_exit(2);
}

TEST(gpu_child_of_owner,
     "A child exports nothing by its parent's context (EACCES), nor its parent's memory (EFAULT).")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child(export_parents, &s), 0);
	gpu_test_end(&s);
}

TEST(gpu_child_has_no_mapping, "A child does not inherit mappings: SIGSEGV.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	touched = view;
	EXPECT_EQ(in_child(gpu_touch, NULL), 128 + SIGSEGV);
	EXPECT_EQ(view[0], pattern_at(0));
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

static void map_and_check(void *arg)
{
	unsigned char *view = dmabuf_map(*(int *)arg, LENGTH, PROT_READ);

	if (!view || pattern_mismatches(view, LENGTH))
		_exit(1);
}

TEST(gpu_child_maps,
     "A child maps the dma-buf it inherited, also after its parent freed the memory.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT_EQ(in_child(map_and_check, &e.fd), 0);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(in_child(map_and_check, &e.fd), 0);
	close(e.fd);
	gpu_test_end(&s);
}

static void receive_and_map(void *arg)
{
	int fd = receive_fd(((int *)arg)[1]);

	map_and_check(&fd);
}

TEST(gpu_passed, "A dma-buf passed by SCM_RIGHTS is mapped there.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	send_fd(sockets[0], e.fd);
	EXPECT_EQ(in_child(receive_and_map, sockets), 0);
	close(sockets[0]);
	close(sockets[1]);
	close(e.fd);
	gpu_test_end(&s);
}

static void receive_context(void *arg)
{
	int ctx = receive_fd(((int *)arg)[1]);

	if (gdm_export_gpu(ctx, 0x7f4000000000, GPU_PAGE, 0, NULL) != -EACCES)
		_exit(1);
}

TEST(gpu_context_passed, "EACCES for a context that was passed by SCM_RIGHTS.")
{
	struct setup s = gpu_test_begin();
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	send_fd(sockets[0], s.ctx);
	EXPECT_EQ(in_child(receive_context, sockets), 0);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

/* The second life of this program: see gpu_exec. */
__attribute__((constructor)) static void gpu_after_exec(void)
{
	const char *ctx = getenv("GDM_CONTEXT");

	if (ctx)
		_exit(gdm_export_gpu(atoi(ctx), 0x7f4000000000, GPU_PAGE, 0, NULL) == -EACCES ? 0
											      : 1);
}

static void exec_self(void *arg)
{
	char number[16];
	int ctx = gdm_open();

	(void)arg;
	snprintf(number, sizeof(number), "%d", ctx);
	setenv("GDM_CONTEXT", number, 1);
	fcntl(ctx, F_SETFD, 0);
	execl("/proc/self/exe", "exec", NULL);
	_exit(2);
}

TEST(gpu_exec, "EACCES for a context that was kept over execve().")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child(exec_self, NULL), 0);
	gpu_test_end(&s);
}

static void *export_in_thread(void *arg)
{
	const struct setup *s = arg;

	return (void *)(intptr_t)gdm_export_gpu(s->ctx, s->va, LENGTH, 0, NULL);
}

TEST(gpu_thread, "Any thread of the owner exports.")
{
	struct setup s = gpu_test_begin();
	pthread_t thread;
	void *err;

	EXPECT_EQ(pthread_create(&thread, NULL, export_in_thread, &s), 0);
	pthread_join(thread, &err);
	EXPECT(!err);
	gpu_test_end(&s);
}

/* A process that closes what it is sent, once the sender has closed its own. */
struct consumer {
	pid_t pid;
	int socket;
};

static void consumer_run(int socket)
{
	char byte;

	/* It has nothing but what it is sent. */
	close_range(3, (unsigned int)socket - 1, 0);
	close_range((unsigned int)socket + 1, ~0U, 0);

	while (read(socket, &byte, 1) == 1) {
		int fd = receive_fd(socket);

		if (read(socket, &byte, 1) != 1)
			break;
		close(fd);
		if (write(socket, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static struct consumer consumer_start(void)
{
	struct consumer c;
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	c.pid = fork();
	if (!c.pid) {
		close(sockets[0]);
		consumer_run(sockets[1]);
	}
	close(sockets[1]);
	c.socket = sockets[0];
	return c;
}

/* When it returns, the consumer has dropped the last reference to the dma-buf. */
static int consumer_closes_last(const struct consumer *c, int fd)
{
	char byte = 0;

	if (write(c->socket, &byte, 1) != 1)
		return -1;
	send_fd(c->socket, fd);
	close(fd);
	return write(c->socket, &byte, 1) == 1 && read(c->socket, &byte, 1) == 1 ? 0 : -1;
}

static void consumer_stop(const struct consumer *c)
{
	close(c->socket);
	waitpid(c->pid, NULL, 0);
}

TEST(gpu_last_close_elsewhere,
     "The last close in another process gives all pins back to the driver, "
     "while the memory lives on.")
{
	static const uint32_t flags[] = { 0, GDMABUF_REVOCABLE, GDMABUF_UNWATCHED };
	struct setup s = gpu_test_begin();
	struct consumer c = consumer_start();

	for (unsigned int i = 0; i < 30; i++) {
		struct gdm_export e = gpu_export(&s, flags[i % 3]);

		EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
		EVENTUALLY(mockgpu_stats(s.gpu).pins == 0 && mockgpu_stats(s.gpu).persistent == 0);
		EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	}
	EXPECT_EQ(mockgpu_stats(s.gpu).foreign_puts, s.before.foreign_puts);
	consumer_stop(&c);
	gpu_test_end(&s);
}

static void *wake_often(void *arg)
{
	for (;;)
		usleep(10000);
	return arg;
}

/* Sends dma-bufs, of which it keeps none.  One thread sleeps for good, another one wakes up often. */
static void sleeping_owner(int socket, int dmabufs)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, (size_t)dmabufs * GPU_PAGE, 0);
	struct gdm_export e;
	pthread_t thread;

	for (int i = 0; i < dmabufs; i++) {
		if (gdm_export_gpu(ctx, va + (uint64_t)i * GPU_PAGE, GPU_PAGE, GDMABUF_REVOCABLE,
				   &e))
			_exit(1);
		send_fd(socket, e.fd);
		close(e.fd);
	}
	pthread_create(&thread, NULL, wake_often, NULL);
	if (write(socket, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static int main_thread_sleeps(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	EXPECT(f);
	EXPECT_EQ(fscanf(f, "%*d %*s %c", &state), 1);
	fclose(f);
	return state == 'S';
}

/* However slow the machine is. */
static int pins_go(int gpu)
{
	for (int i = 0; mockgpu_stats(gpu).pins + mockgpu_stats(gpu).persistent && i < 6000; i++)
		usleep(5000);
	return !mockgpu_stats(gpu).pins && !mockgpu_stats(gpu).persistent;
}

TEST(gpu_last_close_sleeping_thread,
     "The same of an owner whose main thread sleeps for good, while another thread runs.")
{
	enum { DMABUFS = 8 };
	struct setup s = gpu_test_begin();
	int sockets[2], fds[DMABUFS];
	char byte;
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		sleeping_owner(sockets[1], DMABUFS);
	for (int i = 0; i < DMABUFS; i++)
		fds[i] = receive_fd(sockets[0]);
	EXPECT_EQ(read(sockets[0], &byte, 1), 1);
	EVENTUALLY(main_thread_sleeps(pid));
	for (int i = 0; i < DMABUFS; i++)
		close(fds[i]);
	EXPECT(pins_go(s.gpu));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

/* That threads of process @pid have, as the list of contexts says. */
static int calls_of(pid_t pid)
{
	FILE *f = fopen("/sys/kernel/debug/gdmabuf/contexts", "r");
	int process, calls = 0, n;
	char line[128];

	EXPECT(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "process %d, calls in threads that sleep: %d", &process, &n) ==
			    2 &&
		    process == pid)
			calls = n;
	fclose(f);
	return calls;
}

TEST(gpu_calls_listed, "The list of contexts names a process in which a call waits for a thread "
		       "that sleeps; stopping "
		       "and continuing the process ends the call.")
{
	struct setup s = gpu_test_begin();
	int sockets[2], fd, status;
	char byte;
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		sleeping_owner(sockets[1], 1);
	fd = receive_fd(sockets[0]);
	EXPECT_EQ(read(sockets[0], &byte, 1), 1);
	EVENTUALLY(main_thread_sleeps(pid));
	close(fd);
	EXPECT(pins_go(s.gpu));
	EXPECT_EQ(calls_of(pid), 1);
	kill(pid, SIGSTOP);
	EXPECT_EQ(waitpid(pid, &status, WUNTRACED), pid);
	EXPECT(WIFSTOPPED(status));
	kill(pid, SIGCONT);
	EVENTUALLY(calls_of(pid) == 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

TEST(gpu_last_close_after_context, "The same after the owner has closed its context.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	struct consumer c = consumer_start();

	close(s.ctx);
	EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
	EVENTUALLY(mockgpu_stats(s.gpu).pins == 0);
	s.ctx = gdm_open();
	consumer_stop(&c);
	gpu_test_end(&s);
}

TEST(gpu_last_close_after_free, "The same after the memory was freed: nobody keeps a watch.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	struct consumer c = consumer_start();

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
	EVENTUALLY(provider_users() == 0);
	consumer_stop(&c);
	gpu_test_end(&s);
}

TEST(gpu_cycles, "Cycles of export, pass on, close leave no pin, no reference and no BAR space.")
{
	const char *wanted = getenv("GDM_CYCLES");
	long cycles = wanted ? atol(wanted) : 2000;
	struct setup s = gpu_test_begin();
	struct consumer c = consumer_start();
	uint32_t most = 0;

	for (long i = 0; i < cycles; i++) {
		struct gdm_export e = gpu_export(&s, i % 2 ? GDMABUF_REVOCABLE : 0);

		EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
		if (mockgpu_stats(s.gpu).pages_pinned > most)
			most = mockgpu_stats(s.gpu).pages_pinned;
	}
	EVENTUALLY(mockgpu_stats(s.gpu).pages_pinned == 0 && provider_users() == 0);
	printf("# %ld cycles of export, pass on, close: left %u pins, %u persistent ones, %u pages "
	       "of the "
	       "BAR, %d references to the driver's module; at most %u pages in between\n",
	       cycles, mockgpu_stats(s.gpu).pins, mockgpu_stats(s.gpu).persistent,
	       mockgpu_stats(s.gpu).pages_pinned, provider_users(), most);
	consumer_stop(&c);
	gpu_test_end(&s);
}

static void pass_on_as_user(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, 40 * LENGTH, 0);
	struct consumer c = consumer_start();

	(void)arg;
	become_user(0);
	for (uint64_t i = 0; i < 40; i++) {
		struct gdm_export e;

		if (gdm_export_gpu(ctx, va + i * LENGTH, LENGTH, GDMABUF_REVOCABLE, &e))
			_exit(1);
		if (consumer_closes_last(&c, e.fd))
			_exit(2);
		if (mockgpu_stats(gpu).pages_pinned > (1 << 20) / GPU_PAGE)
			_exit(3);
	}
	consumer_stop(&c);
}

TEST(gpu_quota_passed_on, "No more than the quota stays pinned of what others close last.")
{
	struct setup s = gpu_test_begin();
	int user;

	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(pass_on_as_user, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(user, 0);
	gpu_test_end(&s);
}

static void export_and_send(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);
	struct gdm_export e;

	pattern_fill(bytes, LENGTH);
	mockgpu_write(gpu, va, bytes, LENGTH);
	if (gdm_export_gpu(ctx, va, LENGTH, 0, &e))
		_exit(1);
	send_fd(((int *)arg)[0], e.fd);
}

TEST(gpu_owner_exits,
     "The owner's end leaves the dma-buf as it is; the memory goes with the last close.")
{
	struct setup s = gpu_test_begin();
	uint32_t used = mockgpu_stats(s.gpu).pages_used;
	int sockets[2], fd;
	unsigned char *view;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	EXPECT_EQ(in_child(export_and_send, sockets), 0);
	fd = receive_fd(sockets[1]);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT(view);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	EVENTUALLY(mockgpu_stats(s.gpu).pages_used == used);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

/* ---- limits and faults ---- */

static void gpu_set_budget(const struct setup *s, uint32_t pages)
{
	struct mock_config config = { .budget_pages = pages };

	mockgpu_config(s->gpu, &config);
}

TEST(gpu_bar_exhausted, "ENOSPC when the BAR has no room; nothing stays pinned.")
{
	struct setup s = gpu_test_begin();

	gpu_set_budget(&s, 4);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), -ENOSPC);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	/* Five fit, but not the watch. */
	gpu_set_budget(&s, 5);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 5 * GPU_PAGE, 0, NULL), -ENOSPC);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, 0, NULL), 0);
	gpu_test_end(&s);
}

TEST(gpu_evicts, "Idle pins that are kept make room, least recently exported first.")
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

TEST(gpu_evicts_not_used, "What a dma-buf needs is not given up: ENOSPC.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a;

	gpu_set_budget(&s, 8);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, GDMABUF_KEEP, &a), 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 4 * GPU_PAGE, 4 * GPU_PAGE, 0, NULL), -ENOSPC);
	EXPECT(gdm_is_valid(s.status, &a));
	EXPECT_EQ(gdm_stats(s.ctx).out_evictions, 0);
	close(a.fd);
	/* It is still kept. */
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 1);
	gpu_test_end(&s);
}

TEST(gpu_evicts_gpu_only, "Room in the BAR is not made of idle host memory.")
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

TEST(gpu_kinds_apart, "Host memory at an address that GPU memory has, too, is its own pin.")
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

TEST(gpu_evicts_for_slot, "Idle GPU memory makes room for a slot.")
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

TEST(gpu_evicts_others, "Idle pins of other processes make room, too.")
{
	struct setup s = gpu_test_begin();
	uint32_t pages = 10;
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, GDMABUF_KEEP, &e), 0);
	close(e.fd);
	EXPECT_EQ(in_child(export_beside, &pages), 0);
	EXPECT(!gdm_is_valid(s.status, &e));
	/* The page that was watched as well. */
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
     "Another process's idle pin stays if giving it up would free nothing now.")
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

/* Whether an export by another user, beside @kept pins of four pages, returns @err. */
static int other_user_gets(struct request r)
{
	int status;

	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	status = in_child(export_as_other_user, &r);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	return !status;
}

TEST(gpu_evicts_fairly,
     "Another user's idle pins make room only as far as that user has more than the "
     "one that asks.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a, b;

	/* With its watch each is five pages, and the other's six would be seven. */
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

TEST(gpu_evicts_no_more_than_owed, "Another user's idle pin that is longer than what that user has "
				   "more stays; a shorter one goes.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a, b;

	/* With its watch a is five pages, b three; the other's are three, and one more. */
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
	/* The watch's page counts, too. */
	if (gdm_export_gpu(ctx, va, MB, 0, NULL) != -EDQUOT)
		_exit(7);
	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, 0, NULL))
		_exit(2);
	/* It is given back: by the last close, and when the driver fails. */
	mockgpu_config(gpu, &fails);
	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, 0, NULL) != -EIO)
		_exit(3);
	mockgpu_config(gpu, &works);
	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, GDMABUF_KEEP, NULL))
		_exit(4);
	/* What is kept and idle makes room. */
	if (gdm_export_gpu(ctx, va + MB, MB - GPU_PAGE, 0, NULL))
		_exit(5);
	if (gdm_stats(ctx).out_evictions != 1)
		_exit(6);
}

TEST(gpu_quota,
     "EDQUOT beyond the user's quota, which what is idle or gone does not count against; "
     "CAP_SYS_RESOURCE lifts it.")
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
	/* With the watch's page it is one too much. */
	if (gdm_export_gpu(ctx, va + MB, MB, 0, NULL) != -EDQUOT)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
	if (gdm_export_gpu(other, va + MB, MB - GPU_PAGE, 0, NULL))
		_exit(4);
	if (gdm_stats(ctx).out_evictions != 4)
		_exit(5);
}

TEST(gpu_quota_not_in_vain, "An export beyond the user's quota drops nothing that is kept; for one "
			    "within it all contexts of the user make room.")
{
	int user;

	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(exceed_quota, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(user, 0);
}

static void exceed_quota_beside(void *arg)
{
	int gpu = *(int *)arg, ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, MB, 0);

	if (gdm_export_gpu(ctx, va, MB - GPU_PAGE, 0, NULL) != -EDQUOT)
		_exit(1);
}

/* Of 1 MiB it keeps 448 KiB, and 64 KiB are watched for it, which it alone gives back. */
static void keep_beside(void *arg)
{
	int gpu = mockgpu_open(), others = mockgpu_open(), ctx;
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);

	(void)arg;
	become_user(0);
	/* The context's quota is that of its opener. */
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, 7 * GPU_PAGE, GDMABUF_KEEP, NULL))
		_exit(1);
	if (in_child(exceed_quota_beside, &others))
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
}

TEST(gpu_quota_not_in_vain_beside, "What another process of the user keeps is not given up for an "
				   "export that needs the page that "
				   "is watched for it as well.")
{
	int user;

	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(keep_beside, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	EXPECT_EQ(user, 0);
}

static void gpu_expect_refused(struct mock_config config, int error)
{
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &config);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), error);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_REVOCABLE, NULL), error);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 0);
	gpu_test_end(&s);
}

TEST(gpu_other_version, "EINVAL for a page table of another major version.")
{
	int gpu = mockgpu_open();
	uint32_t major = mockgpu_stats(gpu).version >> 16;

	close(gpu);
	gpu_expect_refused((struct mock_config){ .version = 0x00030000 }, -EINVAL);
	gpu_expect_refused((struct mock_config){ .version = (3 - major) << 16 }, -EINVAL);
}

TEST(gpu_newer_minor, "A page table of a newer minor version of the driver's own major is read.")
{
	struct setup s = gpu_test_begin();
	struct mock_config config = { .version = mockgpu_stats(s.gpu).version + 1 };

	mockgpu_config(s.gpu, &config);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), 0);
	gpu_test_end(&s);
}

TEST(gpu_other_page_size, "EINVAL for a page table of other pages than of 64 KiB.")
{
	gpu_expect_refused((struct mock_config){ .page_size = 2 }, -EINVAL);
}

TEST(gpu_coherent, "EOPNOTSUPP for GPU memory that is RAM to the kernel.")
{
	gpu_expect_refused((struct mock_config){ .ram = 1 }, -EOPNOTSUPP);
}

TEST(gpu_driver_fails, "Errors of the driver, at either of its pins, leave nothing pinned.")
{
	static const struct {
		int theirs, ours;
	} errors[] = { { -EINVAL, -EFAULT }, { -524, -EOPNOTSUPP }, { -ENOMEM, -ENOSPC },
		       { -EIO, -EIO },	     { -EBUSY, -EBUSY },    { -ENODEV, -ENODEV } };

	for (unsigned int i = 0; i < 6; i++)
		for (uint32_t after = 0; after < 2; after++) {
			struct mock_config c = { .fail_errno = errors[i].theirs,
						 .fail_after = after };
			struct setup s = gpu_test_begin();

			mockgpu_config(s.gpu, &c);
			EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), errors[i].ours);
			EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
			gpu_test_end(&s);
		}
}

TEST(gpu_put_fails, "Memory that the driver fails to give back is given back later.")
{
	struct mock_config c = { .fail_puts = 2 };
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_UNWATCHED);

	mockgpu_config(s.gpu, &c);
	close(e.fd);
	EXPECT(pins_go(s.gpu));
	gpu_test_end(&s);
}

TEST(gpu_put_fails_while_owned, "A watch that the driver fails to give back is given back later, "
				"while its owner lives and the "
				"memory stays.")
{
	static const uint32_t flags[] = { 0, GDMABUF_REVOCABLE };
	struct mock_config c = { .fail_puts = 2 };
	struct setup s = gpu_test_begin();

	for (int i = 0; i < 2; i++) {
		struct gdm_export e = gpu_export(&s, flags[i]);

		mockgpu_config(s.gpu, &c);
		close(e.fd);
		EXPECT(pins_go(s.gpu));
		EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	}
	EXPECT_EQ(provider_users(), 0);
	gpu_test_end(&s);
}

static void close_unwatched(int gpu, int ctx, uint64_t va, struct mock_config c)
{
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(ctx, va, GPU_PAGE, GDMABUF_UNWATCHED, &e), 0);
	mockgpu_config(gpu, &c);
	close(e.fd);
}

/* As another user, since the page is charged for good. */
static void lose_page(void *arg)
{
	struct setup s = gpu_test_begin();
	uint32_t failed = s.before.failed_puts;
	int ctx;

	(void)arg;
	become_user(0);
	ctx = gdm_open();
	close_unwatched(s.gpu, ctx, s.va,
			(struct mock_config){ .fail_puts = ~0U, .fail_put_errno = -EIO });
	close_unwatched(s.gpu, ctx, s.va, (struct mock_config){ .fail_puts = 1 });
	/* The second is put again, after the first would have been. */
	EXPECT(pins_go(s.gpu));
	EXPECT_EQ(mockgpu_stats(s.gpu).failed_puts, failed + 2);
	EXPECT_EQ(provider_users(), 0);
}

TEST(gpu_put_fails_for_good, "Memory that the driver will not give back is asked for once, and the "
			     "provider can be unloaded.")
{
	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	EXPECT_EQ(in_child(lose_page, NULL), 0);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
}

TEST(gpu_put_fails_of_refused, "So is memory whose page table could not be read.")
{
	struct mock_config c = { .fail_puts = 2, .page_size = 2 };
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_UNWATCHED, NULL), -EINVAL);
	EXPECT(pins_go(s.gpu));
	gpu_test_end(&s);
}

TEST(gpu_put_fails_of_watch, "The provider cannot be unloaded while the driver has its callback, "
			     "after a failed export too.")
{
	struct mock_config c = { .fail_puts = 1, .page_size = 2 };
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_REVOCABLE, NULL), -EINVAL);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	EXPECT_EQ(provider_users(), 1);
	mockgpu_free(s.gpu, s.va);
	EVENTUALLY(provider_users() == 0);
	gpu_test_end(&s);
}

enum { IDLE_PINS = 300 };

/* Idle pins are given up one by one, a fifth of a second each, and are never enough. */
static void evict_for_long(int socket)
{
	struct mock_config c = { .delay_us = 200000, .budget_pages = 1 };
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, (IDLE_PINS + 1) * (size_t)GPU_PAGE, 0);
	struct gdm_export e;

	for (int i = 0; i < IDLE_PINS; i++) {
		if (gdm_export_gpu(ctx, va + (uint64_t)i * GPU_PAGE, GPU_PAGE, GDMABUF_KEEP, &e))
			_exit(1);
		close(e.fd);
	}
	mockgpu_config(gpu, &c);
	if (write(socket, "", 1) != 1)
		_exit(1);
	gdm_export_gpu(ctx, va + IDLE_PINS * (uint64_t)GPU_PAGE, GPU_PAGE, 0, NULL);
	_exit(0);
}

TEST(gpu_killed_in_eviction, "SIGKILL ends an export that gives up one idle pin after the other.")
{
	struct setup s = gpu_test_begin();
	int sockets[2], status = -1, waited;
	char byte;
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		evict_for_long(sockets[1]);
	EXPECT_EQ(read(sockets[0], &byte, 1), 1);
	while (mockgpu_stats(s.gpu).persistent == IDLE_PINS)
		usleep(5000);
	kill(pid, SIGKILL);
	/* It would take a minute. */
	for (waited = 0; !waitpid(pid, &status, WNOHANG) && waited < 3000; waited++)
		usleep(10000);
	EXPECT(waited < 3000);
	EXPECT_EQ(WTERMSIG(status), SIGKILL);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

TEST(gpu_freed_while_pinned, "EFAULT when the memory is freed while it is being pinned.")
{
	gpu_expect_refused((struct mock_config){ .callback_in_get = 1 }, -EFAULT);
}

static uint64_t to_free;
static int stop_freeing, freeing_gpu;

static void *free_always(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop_freeing, __ATOMIC_ACQUIRE)) {
		uint64_t va = __atomic_load_n(&to_free, __ATOMIC_ACQUIRE);

		if (va)
			mockgpu_try_free(freeing_gpu, va, 0);
	}
	return NULL;
}

TEST(gpu_freed_by_another_thread,
     "Memory that another thread frees while it is being exported: exported, or EFAULT.")
{
	enum { BIG = 16 << 20, ROUNDS = 300 };
	struct setup s = gpu_test_begin();
	pthread_t thread;

	freeing_gpu = s.gpu;
	stop_freeing = 0;
	EXPECT_EQ(pthread_create(&thread, NULL, free_always, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t va = mockgpu_alloc(s.gpu, BIG, 0);
		int err;

		__atomic_store_n(&to_free, va, __ATOMIC_RELEASE);
		err = gdm_export_gpu(s.ctx, va, BIG, i % 2 ? GDMABUF_REVOCABLE : 0, NULL);
		EXPECT(!err || err == -EFAULT);
		__atomic_store_n(&to_free, 0, __ATOMIC_RELEASE);
		mockgpu_try_free(s.gpu, va, 0);
	}
	__atomic_store_n(&stop_freeing, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	gpu_test_end(&s);
}

TEST(gpu_rmmod_busy, "Neither module can be unloaded while there is a dma-buf.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	close(s.ctx);
	EXPECT_EQ(syscall(SYS_delete_module, "gdmabuf_nvidia", O_NONBLOCK), -1);
	EXPECT(errno == EAGAIN || errno == EBUSY);
	EXPECT_EQ(syscall(SYS_delete_module, "gdmabuf", O_NONBLOCK), -1);
	EXPECT(errno == EAGAIN || errno == EBUSY);
	s.ctx = gdm_open();
	close(e.fd);
	gpu_test_end(&s);
}

/* The last: the pages stay. */
TEST(gpu_p2pdma_pages,
     "A BAR for which a driver made struct pages is exported, mapped and read as any.")
{
	struct setup s = gpu_test_begin_flags(MOCK_SCATTER);
	struct gdm_export e;
	unsigned char *view;

	if (ioctl(s.gpu, MOCK_ADD_PAGES)) {
		int err = errno;

		gpu_test_end(&s);
		test_skip("no struct pages for the BAR: %s", strerror(err));
	}
	for (int i = 0; i < 2; i++) {
		e = gpu_export(&s, i ? GDMABUF_REVOCABLE : 0);
		view = dmabuf_map(e.fd, LENGTH, PROT_READ | PROT_WRITE);
		EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
		view[0] = (unsigned char)pattern_at(0);
		munmap(view, LENGTH);
		close(e.fd);
	}
	gpu_test_end(&s);
}
