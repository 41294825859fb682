/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz SECONDS [SEED]: calls of the modules at random, by several threads and their children; then
 * nothing may be left of it.  Needs gdmabuf; uses gdmabuf_mock and gdmabuf_importer if they are
 * there.  The kernel says whether it minded.
 */
#include "../../kmod/importer/importer.h"
#include "../../kmod/mock/mock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/dma-buf.h>
#include <linux/gdmabuf.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PAGE = 4096, ARENA_PAGES = 2048, TABLE = 24, CHILD_CALLS = 60 };

/* The longest copy of the GPU.  As many bytes before and behind the arena are never accessible. */
enum { COPY_MAX = 0x20000 };

/* What there is to use, by all threads; -1 or 0 is nothing. */
static atomic_int contexts[4], gpus[2], importers[4], buffers[TABLE], fences[8];
static int sockets[2]; /* descriptors on their way between threads and processes */
static _Atomic uint64_t allocations[TABLE]; /* of the GPU */
static _Atomic uint64_t pins[TABLE];	    /* slot << 32 | generation */
static _Atomic uint64_t views[TABLE];	    /* address | pages, of mappings */
static unsigned char *arena;
static atomic_long calls;
static time_t end;

static _Thread_local uint64_t state;

static uint64_t fuzz_any64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t fuzz_any(uint32_t n)
{
	return (uint32_t)(fuzz_any64() >> 20) % n;
}

static uint64_t fuzz_any_edge(void)
{
	static const uint64_t edges[] = {
		0,
		1,
		2,
		0xfff,
		0x1000,
		0xffff,
		0x10000,
		0x20000,
		INT_MAX,
		1ULL << 31,
		UINT_MAX,
		1ULL << 32,
		1ULL << 43,
		(1ULL << 43) - 0x1000,
		0x7ffffffff000,
		0x800000000000,
		0xffff888000000000,
		0xfffffffff0000000,
		-0x10000ULL,
		-0x1000ULL,
		UINT64_MAX,
	};
	uint64_t value = edges[fuzz_any(sizeof(edges) / sizeof(edges[0]))];

	switch (fuzz_any(8)) {
	case 0:
		return fuzz_any64();
	case 1:
		return value + fuzz_any(3) - 1;
	case 2:
		return fuzz_any64() >> fuzz_any(64);
	}
	return value;
}

#define ANY_OF(table) atomic_load(&(table)[fuzz_any(sizeof(table) / sizeof((table)[0]))])
#define PLACE_IN(table) (&(table)[fuzz_any(sizeof(table) / sizeof((table)[0]))])

static void set_fd(atomic_int *place, int fd)
{
	int old = atomic_exchange(place, fd);

	if (old >= 0)
		close(old);
}

static int fuzz_any_fd(void)
{
	switch (fuzz_any(12)) {
	case 0:
		return ANY_OF(contexts);
	case 1:
		return ANY_OF(importers);
	case 2:
		return (int)fuzz_any_edge();
	case 3:
		return ANY_OF(fences);
	}
	return ANY_OF(buffers);
}

/* ---- memory that may not be there ---- */

static _Thread_local sigjmp_buf jump;
static _Thread_local volatile sig_atomic_t may_fault;

static void fuzz_on_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (!may_fault) {
		/* The process ends here: printf() from a signal handler is the lesser evil. */
		printf("signal %d at address %p\n", number, info->si_addr);
		fflush(stdout);
		signal(number, SIG_DFL);
		raise(number);
	}
	siglongjmp(jump, 1);
}

static void fuzz_touch(volatile unsigned char *p, int write)
{
	if (!sigsetjmp(jump, 0)) {
		may_fault = 1;
		if (write)
			*p = (unsigned char)write;
		else
			(void)*p;
	}
	may_fault = 0;
}

/* In the arena, of which some ranges are not mapped, or read-only. */
static unsigned char *arena_at(size_t *length)
{
	uint32_t from = fuzz_any(ARENA_PAGES), pages = 1 + fuzz_any(fuzz_any(8) ? 32 : ARENA_PAGES);

	if (pages > ARENA_PAGES - from)
		pages = ARENA_PAGES - from;
	*length = (size_t)pages * PAGE;
	return arena + (size_t)from * PAGE;
}

static void fuzz_remap(void)
{
	static const int advice[] = { MADV_DONTNEED,  MADV_FREE,     MADV_HUGEPAGE, MADV_NOHUGEPAGE,
				      MADV_DONTFORK,  MADV_DOFORK,   MADV_COLD,	    MADV_PAGEOUT,
				      MADV_MERGEABLE, MADV_WILLNEED, MADV_REMOVE };
	size_t length;
	unsigned char *at = arena_at(&length), *to;
	int fd;

	switch (fuzz_any(8)) {
	case 0:
		munmap(at, length);
		break;
	case 1:
	case 2:
		(void)mmap(at, length, PROT_READ | PROT_WRITE,
			   MAP_FIXED | MAP_ANONYMOUS | (fuzz_any(4) ? MAP_PRIVATE : MAP_SHARED), -1,
			   0);
		break;
	case 3:
		mprotect(at, length, (int)fuzz_any(4));
		break;
	case 4:
		to = arena + (size_t)fuzz_any(ARENA_PAGES - length / PAGE + 1) * PAGE;
		mremap(at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		break;
	case 5:
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		if (fd >= 0 && !ftruncate(fd, (off_t)length / (1 + fuzz_any(2))))
			(void)mmap(at, length, PROT_READ | PROT_WRITE,
				   MAP_FIXED | (fuzz_any(2) ? MAP_PRIVATE : MAP_SHARED), fd, 0);
		close(fd);
		break;
	case 6:
		madvise(at, length, advice[fuzz_any(sizeof(advice) / sizeof(advice[0]))]);
		break;
	default:
		for (size_t i = 0; i < length; i += PAGE)
			fuzz_touch(at + i, (int)fuzz_any(2));
	}
}

/* ---- gdmabuf ---- */

/* A pointer to @size bytes of @command; sometimes none. */
static void *fuzz_pick_argument(void *command)
{
	switch (fuzz_any(60)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)fuzz_any_edge();
	}
	return command;
}

static uint32_t size_of(uint32_t size)
{
	return fuzz_any(20) ? size : (uint32_t)fuzz_any_edge() % 200;
}

static uint32_t fuzz_any_flags(uint32_t known)
{
	return fuzz_any(30) ? (uint32_t)fuzz_any64() & known : (uint32_t)fuzz_any_edge();
}

static void random_ioctl(void)
{
	uint64_t words[40];
	uint32_t size = fuzz_any(2) ? (uint32_t)fuzz_any_edge() : fuzz_any(sizeof(words));
	uint32_t command = _IO('G', 0x80 + fuzz_any(11));

	for (int i = 0; i < 40; i++)
		words[i] = fuzz_any(2) ? fuzz_any_edge() : 0;
	memcpy(words, &size, sizeof(size));
	if (!fuzz_any(10))
		command = (uint32_t)fuzz_any64();
	ioctl(fuzz_any(5) ? ANY_OF(contexts) : fuzz_any_fd(), command, fuzz_pick_argument(words));
}

static void export_any(int is_gpu)
{
	union {
		struct gdmabuf_export e;
		uint64_t words[16];
	} c = { .e.size = size_of(sizeof(struct gdmabuf_export)) };
	size_t length;
	unsigned char *at = arena_at(&length);
	int wild = !fuzz_any(6);

	c.e.address = is_gpu ? ANY_OF(allocations) + 0x10000ULL * fuzz_any(fuzz_any(3) ? 1 : 16)
			     : (uintptr_t)at;
	c.e.length = is_gpu ? 0x10000ULL * fuzz_any(18) : length;
	c.e.flags = fuzz_any_flags(is_gpu ? GDMABUF_KEEP | GDMABUF_REVOCABLE |
						    (fuzz_any(4) ? 0 : GDMABUF_UNWATCHED)
					  : GDMABUF_KEEP | GDMABUF_READ_ONLY);
	if (wild) {
		/* Memory of ours that is not the arena's is not written to. */
		c.e.flags |= GDMABUF_READ_ONLY;
		c.e.address = fuzz_any(2) ? fuzz_any_edge() : (uintptr_t)&c & -(uintptr_t)PAGE;
		c.e.length = fuzz_any(2) ? fuzz_any_edge() : (uint64_t)PAGE * fuzz_any(4);
		if (is_gpu)
			c.e.flags &= ~GDMABUF_READ_ONLY;
	}
	if (!fuzz_any(30))
		c.e.reserved = (uint32_t)fuzz_any_edge();
	if (ioctl(ANY_OF(contexts), is_gpu ? GDMABUF_EXPORT_GPU : GDMABUF_EXPORT_HOST,
		  fuzz_pick_argument(&c.e)))
		return;
	atomic_store(PLACE_IN(pins), (uint64_t)c.e.out_slot << 32 | c.e.out_generation);
	set_fd(PLACE_IN(buffers), c.e.out_fd);
}

static void use_pin(void)
{
	uint64_t id = fuzz_any(10) ? ANY_OF(pins) : fuzz_any_edge();
	struct gdmabuf_pin_id c = {
		.size = size_of(sizeof(c)),
		.flags = fuzz_any(30) ? 0 : (uint32_t)fuzz_any_edge(),
		.slot = (uint32_t)(id >> 32),
		.generation = (uint32_t)id,
	};

	ioctl(ANY_OF(contexts), GDMABUF_DROP, fuzz_pick_argument(&c));
}

static void use_context(void)
{
	union {
		struct gdmabuf_caps caps;
		struct gdmabuf_query query;
		struct gdmabuf_budget budget;
		struct gdmabuf_stats stats;
		struct gdmabuf_diag diag;
		uint64_t words[32];
	} c = { 0 };
	int ctx = ANY_OF(contexts);

	switch (fuzz_any(5)) {
	case 0:
		c.caps.size = size_of(sizeof(c.caps));
		ioctl(ctx, GDMABUF_CAPS, fuzz_pick_argument(&c));
		break;
	case 1:
		c.query.size = size_of(sizeof(c.query));
		c.query.fd = fuzz_any_fd();
		ioctl(ctx, GDMABUF_QUERY, fuzz_pick_argument(&c));
		break;
	case 2:
		c.budget.size = size_of(sizeof(c.budget));
		c.budget.kind = fuzz_any(10) ? 1 + fuzz_any(2) : (uint32_t)fuzz_any_edge();
		c.budget.bytes = fuzz_any_edge();
		ioctl(ctx, GDMABUF_BUDGET, fuzz_pick_argument(&c));
		break;
	case 3:
		c.stats.size = size_of(sizeof(c.stats));
		ioctl(ctx, GDMABUF_STATS, fuzz_pick_argument(&c));
		break;
	default:
		c.diag.size = size_of(sizeof(c.diag));
		c.diag.gpu = fuzz_any(2) ? fuzz_any(8) << 3 : (uint32_t)fuzz_any_edge();
		c.diag.peer = fuzz_any(2) ? fuzz_any(8) << 3 : (uint32_t)fuzz_any_edge();
		ioctl(ctx, GDMABUF_DIAG, fuzz_pick_argument(&c));
	}
}

static void open_close(void)
{
	int fd;

	switch (fuzz_any(8)) {
	case 0:
		set_fd(PLACE_IN(contexts), open("/dev/gdmabuf", O_RDWR | O_CLOEXEC));
		break;
	case 1:
		set_fd(PLACE_IN(importers), open("/dev/gdmabuf_importer", O_RDWR | O_CLOEXEC));
		break;
	case 2:
		if (!fuzz_any(20))
			set_fd(PLACE_IN(gpus), open("/dev/gdmabuf_mock", O_RDWR | O_CLOEXEC));
		break;
	case 3:
		fd = dup(ANY_OF(buffers));
		set_fd(PLACE_IN(buffers), fd);
		break;
	default:
		set_fd(PLACE_IN(buffers), -1);
	}
}

/* ---- mappings of dma-bufs and the status page ---- */

static void view_set(uint64_t view)
{
	uint64_t old = atomic_exchange(PLACE_IN(views), view);

	if (old)
		munmap((void *)(uintptr_t)(old & -(uint64_t)PAGE), (old & (PAGE - 1)) * PAGE);
}

/* Only those that nobody else can unmap while it is used: others may have mapped there since. */
static void fuzz_view_map(void)
{
	uint32_t pages = 1 + fuzz_any(fuzz_any(2) ? 16 : 64);
	off_t offset = fuzz_any(3)    ? 0
		       : fuzz_any(10) ? (off_t)fuzz_any(64) * PAGE
				      : (off_t)(fuzz_any_edge() & ~4095ULL);
	void *p = mmap(NULL, (size_t)pages * PAGE, (int)fuzz_any(4),
		       fuzz_any(8) ? MAP_SHARED : MAP_PRIVATE,
		       fuzz_any(4)   ? ANY_OF(buffers)
		       : fuzz_any(3) ? ANY_OF(importers)
				     : ANY_OF(contexts),
		       offset);

	if (p == MAP_FAILED)
		return;
	for (uint32_t i = fuzz_any(4); i < pages; i += 1 + fuzz_any(8))
		fuzz_touch((unsigned char *)p + (size_t)i * PAGE, (int)fuzz_any(2));
	view_set((uintptr_t)p | pages);
}

static void view_use(void)
{
	_Atomic uint64_t *place = PLACE_IN(views);
	uint64_t view = atomic_exchange(place, 0), zero = 0;
	unsigned char *p = (unsigned char *)(uintptr_t)(view & -(uint64_t)PAGE);
	size_t pages = view & (PAGE - 1), half = pages / 2 * PAGE;

	if (!view)
		return;
	for (size_t i = fuzz_any(4); i < pages; i += 1 + fuzz_any(8))
		fuzz_touch(p + i * PAGE, (int)fuzz_any(2));
	switch (fuzz_any(8)) {
	case 0:
		if (half) {
			munmap(p + half, pages * PAGE - half);
			pages /= 2;
		}
		break;
	case 1:
		mprotect(p, pages * PAGE, (int)fuzz_any(4));
		break;
	case 2:
		madvise(p, pages * PAGE, (int)fuzz_any(26));
		break;
	case 3: {
		void *moved = mremap(p, pages * PAGE, (pages + fuzz_any(2)) * PAGE, MREMAP_MAYMOVE);

		if (moved != MAP_FAILED)
			p = moved;
		break;
	}
	case 4: {
		/* A second mapping of the same. */
		void *twin = mremap(p, 0, pages * PAGE, MREMAP_MAYMOVE);

		if (twin != MAP_FAILED) {
			fuzz_touch(twin, 0);
			munmap(twin, pages * PAGE);
		}
		break;
	}
	}
	if (!atomic_compare_exchange_strong(place, &zero, (uintptr_t)p | pages))
		munmap(p, pages * PAGE);
}

/* ---- the GPU and the importer ---- */

static void use_gpu(void)
{
	int gpu = ANY_OF(gpus);
	struct mock_alloc alloc = { .length = 0x10000ULL * (1 + fuzz_any(16)),
				    .flags = fuzz_any(2) };
	struct mock_free release = { .flags = fuzz_any(4) };
	struct mock_config config = { 0 };
	struct mock_copy copy = {
		.va = ANY_OF(allocations),
		.user = (uintptr_t)arena + fuzz_any(ARENA_PAGES * PAGE),
		.length = fuzz_any(COPY_MAX),
		.to_gpu = fuzz_any(2),
	};
	uint64_t old;

	switch (fuzz_any(8)) {
	case 0:
	case 1:
	case 2:
		if (ioctl(gpu, MOCK_ALLOC, &alloc))
			return;
		old = atomic_exchange(PLACE_IN(allocations), alloc.va);
		release.va = old;
		if (old)
			ioctl(gpu, MOCK_FREE, &release);
		break;
	case 3:
		release.va = ANY_OF(allocations);
		ioctl(gpu, MOCK_FREE, &release);
		break;
	case 4:
		ioctl(gpu, MOCK_COPY, &copy);
		break;
	case 5:
		config.delay_us = fuzz_any(4) ? 0 : fuzz_any(200);
		config.fail_after = fuzz_any(2) ? ~0U : fuzz_any(20);
		config.fail_errno = fuzz_any(2) ? 0 : fuzz_any(2) ? -ENOMEM : -EINVAL;
		config.callback_in_get = !fuzz_any(10);
		config.page_size = fuzz_any(10) ? 0 : fuzz_any(3);
		config.version = fuzz_any(10) ? 0 : (uint32_t)fuzz_any_edge();
		config.ram = !fuzz_any(20);
		config.budget_pages = fuzz_any(3) ? 0 : 1 + fuzz_any(64);
		ioctl(gpu, MOCK_CONFIG, &config);
		break;
	default:
		/* It works again. */
		ioctl(gpu, MOCK_CONFIG, &config);
	}
}

static void use_importer(void)
{
	int importer = ANY_OF(importers);
	uint64_t bytes[64];
	struct gdmabuf_importer_attach attach = {
		.fd = fuzz_any_fd(),
		.mode = fuzz_any(30) ? fuzz_any(3) : (uint32_t)fuzz_any_edge(),
		.flags = fuzz_any_flags(3) | GDMABUF_IMPORTER_PLATFORM_DEVICE,
		.direction = fuzz_any(4),
		.max_segment = fuzz_any(2)   ? 0
			       : fuzz_any(4) ? 4096U << fuzz_any(8)
					     : (uint32_t)fuzz_any_edge(),
	};
	struct gdmabuf_importer_map map = { 0 };
	struct gdmabuf_importer_access access = {
		.offset = fuzz_any(2) ? fuzz_any(0x100000) : fuzz_any_edge(),
		.data = (uintptr_t)(fuzz_any(20) ? bytes : NULL),
		.length = fuzz_any(20) ? fuzz_any(sizeof(bytes)) : 0,
	};
	struct gdmabuf_importer_cpu cpu = { fuzz_any(4) };
	struct gdmabuf_importer_switch on = { fuzz_any(4) };

	memset(bytes, 0, sizeof(bytes));
	switch (fuzz_any(14)) {
	case 0:
	case 1:
	case 2:
	case 3:
		ioctl(importer, GDMABUF_IMPORTER_ATTACH, fuzz_pick_argument(&attach));
		break;
	case 4:
		ioctl(importer, GDMABUF_IMPORTER_DETACH);
		break;
	case 5:
	case 6:
	case 7:
		ioctl(importer, GDMABUF_IMPORTER_MAP, fuzz_pick_argument(&map));
		break;
	case 8:
		ioctl(importer, GDMABUF_IMPORTER_UNMAP);
		break;
	case 9:
		ioctl(importer, fuzz_any(2) ? GDMABUF_IMPORTER_VMAP : GDMABUF_IMPORTER_VUNMAP);
		break;
	case 10:
		ioctl(importer, fuzz_any(2) ? GDMABUF_IMPORTER_VREAD : GDMABUF_IMPORTER_VWRITE,
		      fuzz_pick_argument(&access));
		break;
	case 11:
		ioctl(importer, GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, &cpu);
		break;
	case 12:
		ioctl(importer, GDMABUF_IMPORTER_END_CPU_ACCESS, &cpu);
		break;
	default:
		ioctl(importer, GDMABUF_IMPORTER_FENCE, &on);
	}
}

/* ---- fences ---- */

/* What others wait for: signalled when an importer says so, or is closed. */
static void use_fence(void)
{
	struct dma_buf_export_sync_file out = { .flags = DMA_BUF_SYNC_READ << fuzz_any(2) };
	struct dma_buf_import_sync_file in = { .flags = DMA_BUF_SYNC_READ << fuzz_any(2) };
	struct gdmabuf_importer_switch on = { fuzz_any(3) };
	struct dma_buf_sync sync = { fuzz_any(8) };
	struct pollfd poll_fd = { .fd = ANY_OF(buffers), .events = (short)(POLLIN | POLLOUT) };

	switch (fuzz_any(8)) {
	case 0:
		ioctl(ANY_OF(importers), GDMABUF_IMPORTER_FENCE, &on);
		break;
	case 1:
	case 2:
		if (!ioctl(ANY_OF(buffers), DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &out))
			set_fd(PLACE_IN(fences), out.fd);
		break;
	case 3:
	case 4:
	case 5:
		in.fd = ANY_OF(fences);
		ioctl(ANY_OF(buffers), DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &in);
		break;
	case 6:
		poll(&poll_fd, 1, 0);
		break;
	default:
		ioctl(ANY_OF(buffers), DMA_BUF_IOCTL_SYNC, &sync);
	}
}

/* ---- descriptors on their way ---- */

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* A message of one byte, with room for a descriptor. */
struct fd_message {
	char byte;
	struct iovec data;
	struct msghdr header;
	union control control;
};

static void fd_message_init(struct fd_message *m)
{
	memset(m, 0, sizeof(*m));
	m->data = (struct iovec){ &m->byte, 1 };
	m->header = (struct msghdr){
		.msg_iov = &m->data,
		.msg_iovlen = 1,
		.msg_control = &m->control,
		.msg_controllen = sizeof(m->control),
	};
}

static void fd_send(void)
{
	struct fd_message m;
	int fd = fuzz_any_fd();

	fd_message_init(&m);
	m.control.header.cmsg_level = SOL_SOCKET;
	m.control.header.cmsg_type = SCM_RIGHTS;
	m.control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&m.control.header), &fd, sizeof(fd));
	sendmsg(sockets[0], &m.header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void fd_receive(void)
{
	struct fd_message m;
	int fd;

	fd_message_init(&m);
	if (recvmsg(sockets[1], &m.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1 ||
	    m.control.header.cmsg_len != CMSG_LEN(sizeof(int)))
		return;
	memcpy(&fd, CMSG_DATA(&m.control.header), sizeof(fd));
	set_fd(fuzz_any(4)   ? PLACE_IN(buffers)
	       : fuzz_any(2) ? PLACE_IN(contexts)
			     : PLACE_IN(importers),
	       fd);
}

static void pass_on(void)
{
	if (fuzz_any(2))
		fd_send();
	else
		fd_receive();
}

/* ---- threads and children ---- */

static void fuzz_spawn(void);
static void thread_once(void);
static _Thread_local int is_child;

static void call_any(void)
{
	atomic_fetch_add(&calls, 1);
	switch (fuzz_any(34)) {
	case 0:
	case 1:
		random_ioctl();
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		export_any(1);
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		export_any(0);
		break;
	case 10:
	case 11:
		use_pin();
		break;
	case 12:
	case 13:
		use_context();
		break;
	case 14:
	case 15:
		open_close();
		break;
	case 16:
	case 17:
	case 18:
		fuzz_view_map();
		break;
	case 19:
	case 20:
		view_use();
		break;
	case 21:
		view_set(0);
		break;
	case 22:
	case 23:
	case 24:
		fuzz_remap();
		break;
	case 25:
	case 26:
	case 27:
		use_gpu();
		break;
	case 28:
	case 29:
	case 30:
		use_importer();
		break;
	case 31:
		use_fence();
		break;
	case 32:
		pass_on();
		break;
	default:
		if (!is_child && !fuzz_any(16))
			fuzz_spawn();
		else if (!is_child && !fuzz_any(16))
			thread_once();
	}
}

static void *short_thread(void *arg)
{
	is_child = 1;
	state = (uintptr_t)arg | 1;
	for (int i = 0; i < CHILD_CALLS; i++)
		call_any();
	return NULL;
}

/* A thread that comes and goes. */
static void thread_once(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, short_thread, (void *)(uintptr_t)fuzz_any64()))
		pthread_join(thread, NULL);
}

/* The process goes on when its first thread has ended. */
static void outlive_leader(void)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		if (!pthread_create(&thread, NULL, short_thread, (void *)(uintptr_t)fuzz_any64()))
			pthread_detach(thread);
	syscall(SYS_exit, 0);
}

/* This program again, with all descriptors: see fuzz_after_exec(). */
static void exec_again(void)
{
	char seed[24];

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)fuzz_any64());
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	for (int fd = 3; fd < 200; fd++)
		if (fuzz_any(4))
			fcntl(fd, F_SETFD, 0);
	execl("/proc/self/exe", "fuzz", "after-exec", seed, NULL);
	_exit(1);
}

/* Uses what it inherits, and leaves closing it to its end. */
static void fuzz_spawn(void)
{
	uint64_t seed = fuzz_any64();
	pid_t pid = fork();

	if (pid < 0)
		return;
	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	is_child = 1;
	state = seed | 1;
	/* Its parent's mappings are not its. */
	for (int i = 0; i < TABLE; i++)
		atomic_store(&views[i], 0);
	alarm(20);
	switch (fuzz_any(6)) {
	case 0:
		exec_again();
		break;
	case 1:
		outlive_leader();
		break;
	}
	for (int i = 0; i < CHILD_CALLS; i++)
		call_any();
	_exit(0);
}

static void *fuzz_in_thread(void *arg)
{
	state = (uintptr_t)arg;
	while (time(NULL) < end)
		call_any();
	return NULL;
}

/* Whoever waits for a fence is interrupted: it may be signalled by nobody else. */
static void on_nudge(int number)
{
	(void)number;
}

static void nudge_all(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	while (tasks && (task = readdir(tasks)))
		syscall(SYS_tgkill, getpid(), atoi(task->d_name), SIGUSR1);
	if (tasks)
		closedir(tasks);
}

/* A thread may wait for one of its own, which waits for a fence: all are nudged, to the last. */
static void nudge_until_ended(const pthread_t *threads)
{
	for (int ended = 0; ended < THREADS;)
		if (pthread_tryjoin_np(threads[ended], NULL)) {
			nudge_all();
			usleep(100000);
		} else {
			ended++;
		}
}

static void fuzz_begin(void)
{
	struct sigaction action = { .sa_sigaction = fuzz_on_fault,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };
	unsigned char *space;

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	action = (struct sigaction){ .sa_handler = on_nudge };
	sigaction(SIGUSR1, &action, NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		_exit(2);
	space = mmap(NULL, (size_t)ARENA_PAGES * PAGE + 2 * COPY_MAX, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arena = mmap(space + COPY_MAX, (size_t)ARENA_PAGES * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (space == MAP_FAILED || arena == MAP_FAILED)
		_exit(2);
	for (int i = 0; i < 4; i++) {
		atomic_store(&contexts[i], open("/dev/gdmabuf", O_RDWR | O_CLOEXEC));
		atomic_store(&importers[i], open("/dev/gdmabuf_importer", O_RDWR | O_CLOEXEC));
	}
	for (int i = 0; i < 2; i++)
		atomic_store(&gpus[i], open("/dev/gdmabuf_mock", O_RDWR | O_CLOEXEC));
	for (int i = 0; i < TABLE; i++)
		atomic_store(&buffers[i], -1);
	for (int i = 0; i < 8; i++)
		atomic_store(&fences[i], -1);
}

static void fuzz_close_all(void)
{
	for (int i = 0; i < TABLE; i++) {
		set_fd(&buffers[i], -1);
		uint64_t view = atomic_exchange(&views[i], 0);

		if (view)
			munmap((void *)(uintptr_t)(view & -(uint64_t)PAGE),
			       (view & (PAGE - 1)) * PAGE);
	}
	for (int i = 0; i < 4; i++) {
		set_fd(&importers[i], -1);
		set_fd(&contexts[i], -1);
	}
	for (int i = 0; i < 8; i++)
		set_fd(&fences[i], -1);
	for (int i = 0; i < 2; i++) {
		set_fd(&gpus[i], -1);
		close(sockets[i]);
	}
}

/* With descriptors of another life, whatever they are: they are this process's, the contexts are not. */
static int fuzz_after_exec(const char *seed)
{
	fuzz_begin();
	is_child = 1;
	state = strtoull(seed, NULL, 0) | 1;
	for (int fd = 3; fd < 200; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			atomic_store(fuzz_any(2)   ? PLACE_IN(buffers)
				     : fuzz_any(2) ? PLACE_IN(contexts)
						   : PLACE_IN(importers),
				     dup(fd));
	alarm(20);
	for (int i = 0; i < CHILD_CALLS; i++)
		call_any();
	return 0;
}

/* All of it, in a process of its own: what it forgets to close is closed at its end. */
static void fuzz_run(uint64_t seed)
{
	pthread_t threads[THREADS];

	fuzz_begin();
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(
			    &threads[i], NULL, fuzz_in_thread,
			    (void *)((uintptr_t)(seed * 0x9e3779b97f4a7c15ULL + i * 977) | 1)))
			_exit(2);
	nudge_until_ended(threads);
	fuzz_close_all();
	printf("%ld calls\n", atomic_load(&calls));
	fflush(NULL);
	_exit(0);
}

/* ---- what is left ---- */

/* Of the first section, which is the total.  -1: not known. */
static long long fuzz_read_counter(const char *name)
{
	char line[128], format[64];
	long long value = -1;
	FILE *f = fopen("/sys/kernel/debug/gdmabuf/contexts", "re");

	if (!f)
		return -1;
	snprintf(format, sizeof(format), "gdmabuf-%s: %%lld", name);
	while (value < 0 && fgets(line, sizeof(line), f))
		sscanf(line, format, &value);
	fclose(f);
	return value;
}

static int is_clean(int say)
{
	static const char *const names[] = { "host-pins", "host-bytes", "gpu-pins", "gpu-bytes" };
	struct mock_config works = { 0 };
	struct mock_stats stats = { 0 };
	int gpu = open("/dev/gdmabuf_mock", O_RDWR | O_CLOEXEC), clean = 1;

	for (int i = 0; i < 4; i++) {
		long long value = fuzz_read_counter(names[i]);

		clean &= !value;
		if (say && value)
			printf("%s: %lld are left\n", names[i], value);
	}
	if (gpu < 0)
		return clean;
	ioctl(gpu, MOCK_CONFIG, &works);
	clean &= !ioctl(gpu, MOCK_STATS, &stats);
	close(gpu);
	if (say)
		printf("GPU: %u pins, %u persistent, %u pages pinned, %u used, %u pins made\n",
		       stats.pins, stats.persistent, stats.pages_pinned, stats.pages_used,
		       stats.gets);
	return clean && !stats.pins && !stats.persistent && !stats.pages_pinned &&
	       !stats.pages_used;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	int status = -1, clean;
	pid_t pid;

	if (argc == 3 && !strcmp(argv[1], "after-exec"))
		return fuzz_after_exec(argv[2]);
	if (argc < 2) {
		fprintf(stderr, "usage: fuzz SECONDS [SEED]\n");
		return 2;
	}
	if (access("/dev/gdmabuf", R_OK | W_OK)) {
		printf("/dev/gdmabuf: %s\n", strerror(errno));
		return 77;
	}
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(NULL);
	end = time(NULL) + atoi(argv[1]);
	pid = fork();
	if (!pid)
		fuzz_run(seed);
	waitpid(pid, &status, 0);
	if (status)
		printf("the process that called ended with status %#x\n", (unsigned int)status);
	/* Until the last child's alarm: it may be one that has executed this program once more. */
	for (int i = 0; !(clean = is_clean(0)) && i < 60; i++)
		sleep(1);
	is_clean(1);
	printf("exports %lld, hits %lld, evictions %lld, stale %lld, revoked %lld\n",
	       fuzz_read_counter("exports"), fuzz_read_counter("hits"),
	       fuzz_read_counter("evictions"), fuzz_read_counter("stale"),
	       fuzz_read_counter("revoked"));
	return status || !clean;
}
