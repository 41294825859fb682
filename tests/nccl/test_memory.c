/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory, over the transport of loopback.c and the fake libcuda, whose device addresses no
 * CPU can touch.
 */
#include "CL/climport.h"
#include "fake_cuda.h"
#include "harness.h"
#include "loopback.h"
#include "pair.h"
#include "process.h"
#include "versions.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define COMPUTE_MAJOR 75      /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define DMA_BUF_SUPPORTED 124 /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
#define EXPORT "cuMemGetHandleForAddressRange"

static struct plugin plugin;
static struct pair pair;
static int descriptors_before;
static struct fake_cuda_held held_before;

static struct loopback_counts counts_now(void)
{
	/* Not in the plugin's version script of the core's: a symbol of the test build. */
	void *function = dlsym(plugin.library, "loopback_counts");
	loopback_counts_fn counts;

	EXPECT(function);
	memcpy(&counts, &function, sizeof(counts));
	return counts();
}

/* A GPU of compute capability 9 with a context, and the plugin not yet loaded. */
static void gpu_begin(void)
{
	static void *context;
	struct climport_registration r;

	if (!access("/dev/gdmabuf", F_OK))
		test_skip("/dev/gdmabuf is there");
	unsetenv("LOOPBACK_REFUSES");
	unsetenv("LOOPBACK_FLUSHES");
	unsetenv("CLIMPORT_NET_OWN_EXPORT");
	fake_cuda_reset(2);
	if (!context)
		context = fake_cuda_context_create(0);
	fake_cuda_set_current(context);
	/* What the library opens once. */
	EXPECT(climport_register(NULL, 1, 0, &r, sizeof(r)));
	fake_cuda_reset(2);
	fake_cuda_set_current(context);
	fake_cuda_set_attribute(0, COMPUTE_MAJOR, 9);
	held_before = fake_cuda_held();
}

static void memory_begin(int version)
{
	gpu_begin();
	EXPECT(plugin_load(&plugin, PLUGIN_LOOPBACK, version));
	EXPECT_EQ(plugin_init(&plugin), 0);
	pair_open(&pair, &plugin);
	EXPECT_EQ(counts_now().mappings, 0);
	descriptors_before = process_count_descriptors();
}

static void memory_end(void)
{
	struct climport_stats stats;

	climport_invalidate(NULL, SIZE_MAX);
	EXPECT_EQ(counts_now().mappings, 0);
	EXPECT_EQ(process_count_descriptors(), descriptors_before);
	EXPECT_EQ(climport_get_stats(&stats, sizeof(stats)), 0);
	EXPECT_EQ(stats.bytes_pinned, 0);
	pair_close(&pair);
	EXPECT_EQ(counts_now().connections, 0);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	plugin_unload(&plugin);
}

static void *cuda_pointer(uintptr_t address)
{
	return (void *)address; // NOLINT(performance-no-int-to-ptr)
}

static void *memory_register(void *comm, void *data, size_t size)
{
	void *mhandle = NULL;

	EXPECT_EQ(plugin_register(&plugin, comm, data, size, NCCL_PTR_CUDA, &mhandle), 0);
	return mhandle;
}

static void memory_deregister(void *comm, void *mhandle)
{
	EXPECT_EQ(plugin_table(&plugin)->deregMr(comm, mhandle), 0);
}

static void memory_exchange(void *from, size_t size, void *from_mhandle, void *to, size_t room,
			    void *to_mhandle)
{
	void *receive = pair_receive(&pair, to, room, to_mhandle);
	void *send = pair_send(&pair, from, size, from_mhandle);

	EXPECT_EQ(pair_finish(&pair, send, receive), size);
}

/* The bytes at a CUDA address in the dma-buf of the address. */
static void registration_read(uintptr_t address, void *bytes, size_t size)
{
	struct climport_registration r;

	EXPECT_EQ(climport_register(cuda_pointer(address), size, 0, &r, sizeof(r)), 0);
	EXPECT_EQ(pread(r.fd, bytes, size, (off_t)(r.offset + (address - (uintptr_t)r.base))),
		  size);
	climport_unregister(&r);
}

TEST_EACH(cuda_pointer, struct version, versions,
	  "A message goes from the middle of a CUDA allocation into the middle of another.")
{
	uintptr_t from, to;
	void *from_mhandle, *to_mhandle;
	char bytes[1000];

	memory_begin(row->number);
	from = fake_cuda_alloc(0, 8 * PAGE);
	to = fake_cuda_alloc(0, 8 * PAGE);
	message_fill(fake_cuda_memory(from + 5000), sizeof(bytes), 3);
	from_mhandle = memory_register(pair.sender, cuda_pointer(from + 4900), 2000);
	to_mhandle = memory_register(pair.receiver, cuda_pointer(to + 3), 8 * PAGE - 3);
	memory_exchange(cuda_pointer(from + 5000), sizeof(bytes), from_mhandle,
			cuda_pointer(to + 9001), 2000, to_mhandle);
	registration_read(to + 9001, bytes, sizeof(bytes));
	EXPECT(message_is(bytes, sizeof(bytes), 3));
	registration_read(to + 9001 - 1, bytes, 1);
	EXPECT_EQ(bytes[0], 0);
	registration_read(to + 9001 + sizeof(bytes), bytes, 1);
	EXPECT_EQ(bytes[0], 0);
	memory_deregister(pair.sender, from_mhandle);
	memory_deregister(pair.receiver, to_mhandle);
	memory_end();
	fake_cuda_free(from);
	fake_cuda_free(to);
}

TEST(small_allocation,
     "A message goes into a small allocation, which shares its page with another.")
{
	uintptr_t other, to;
	void *mhandle, *host = NULL;
	char from[500], bytes[500];

	memory_begin(12);
	other = fake_cuda_alloc(0, 1000);
	to = fake_cuda_alloc(0, 1000);
	EXPECT(to % PAGE);
	message_fill(from, sizeof(from), 21);
	mhandle = memory_register(pair.receiver, cuda_pointer(to), 1000);
	EXPECT_EQ(plugin_register(&plugin, pair.sender, from, sizeof(from), NCCL_PTR_HOST, &host),
		  0);
	memory_exchange(from, sizeof(from), host, cuda_pointer(to + 100), 900, mhandle);
	registration_read(to + 100, bytes, sizeof(bytes));
	EXPECT(message_is(bytes, sizeof(bytes), 21));
	memory_deregister(pair.receiver, mhandle);
	memory_deregister(pair.sender, host);
	memory_end();
	fake_cuda_free(to);
	fake_cuda_free(other);
}

struct place {
	const char *name;
	size_t offset;
};

static const struct place places[] = { { "begin", 0 }, { "page", PAGE }, { "odd", PAGE + 100 } };

/* A memfd as a dma-buf of the core's: @size bytes at @offset, with the message of @seed. */
static int dmabuf_make(size_t offset, size_t size, unsigned int seed)
{
	int fd = memfd_create("core-dmabuf", MFD_CLOEXEC);
	char *bytes = malloc(size);

	EXPECT(fd >= 0 && bytes);
	EXPECT_EQ(ftruncate(fd, (off_t)(offset + size)), 0);
	message_fill(bytes, size, seed);
	EXPECT_EQ(pwrite(fd, bytes, size, (off_t)offset), size);
	free(bytes);
	return fd;
}

TEST_EACH(dmabuf, struct place, places,
	  "A message goes through the offset of the core's dma-buf, which the core closes at once.")
{
	const size_t size = 16 * PAGE;
	char *from, *to, bytes[300];
	int from_fd, to_fd, kept;
	void *from_mhandle, *to_mhandle;

	memory_begin(12);
	from = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(from != MAP_FAILED && to != MAP_FAILED);
	from_fd = dmabuf_make(row->offset, size, 11);
	to_fd = dmabuf_make(row->offset, size, 77);
	kept = dup(to_fd);
	EXPECT_EQ(plugin_table(&plugin)->regMrDmaBuf(pair.sender, from, size, NCCL_PTR_CUDA,
						     row->offset, from_fd, &from_mhandle),
		  0);
	EXPECT_EQ(plugin_table(&plugin)->regMrDmaBuf(pair.receiver, to, size, NCCL_PTR_CUDA,
						     row->offset, to_fd, &to_mhandle),
		  0);
	close(from_fd);
	close(to_fd);
	memory_exchange(from, sizeof(bytes), from_mhandle, to + 7000, 1000, to_mhandle);
	EXPECT_EQ(pread(kept, bytes, sizeof(bytes), (off_t)row->offset + 7000), sizeof(bytes));
	EXPECT(message_is(bytes, sizeof(bytes), 11));
	memory_deregister(pair.sender, from_mhandle);
	memory_deregister(pair.receiver, to_mhandle);
	close(kept);
	munmap(from, size);
	munmap(to, size);
	memory_end();
}

TEST(share, "Registrations of parts of an allocation share one export and one mapping.")
{
	uintptr_t p;
	void *mhandles[3];
	int exports, mapped;

	memory_begin(12);
	p = fake_cuda_alloc(0, 8 * PAGE);
	exports = fake_cuda_calls(EXPORT);
	mapped = counts_now().mapped;
	for (size_t i = 0; i < 3; i++)
		mhandles[i] = memory_register(i % 2 ? pair.sender : pair.receiver,
					      cuda_pointer(p + i * PAGE), PAGE + i);
	EXPECT_EQ(fake_cuda_calls(EXPORT), exports + 1);
	EXPECT_EQ(counts_now().mapped, mapped + 1);
	for (size_t i = 0; i < 3; i++) {
		EXPECT_EQ(counts_now().mappings, 1);
		memory_deregister(pair.sender, mhandles[i]);
	}
	memory_end();
	fake_cuda_free(p);
}

TEST(address_again, "Memory at an address that was used before gets a mapping of its own.")
{
	uintptr_t p;
	void *first, *second;
	char byte;

	memory_begin(12);
	p = fake_cuda_alloc(0, 2 * PAGE);
	first = memory_register(pair.sender, cuda_pointer(p), PAGE);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, 2 * PAGE, p), p);
	*(char *)fake_cuda_memory(p) = 42;
	second = memory_register(pair.sender, cuda_pointer(p), PAGE);
	EXPECT(first != second);
	EXPECT_EQ(counts_now().mappings, 2);
	registration_read(p, &byte, 1);
	EXPECT_EQ(byte, 42);
	memory_deregister(pair.sender, first);
	memory_deregister(pair.sender, second);
	memory_end();
	fake_cuda_free(p);
}

TEST(segments, "A range of two allocations side by side is registered as a whole.")
{
	const struct fake_cuda_segment segments[] = {
		{ .device = 0, .size = FAKE_CUDA_GRANULARITY, .handle_types = 1 },
		{ .device = 0, .size = FAKE_CUDA_GRANULARITY, .handle_types = 1 },
	};
	char to[200];
	uintptr_t p, middle;
	void *mhandle, *host = NULL;

	memory_begin(12);
	p = fake_cuda_vmm(segments, 2);
	middle = p + FAKE_CUDA_GRANULARITY;
	message_fill(fake_cuda_memory(middle), 100, 9);
	mhandle = memory_register(pair.sender, cuda_pointer(middle - PAGE), 2 * PAGE);
	EXPECT_EQ(plugin_register(&plugin, pair.receiver, to, sizeof(to), NCCL_PTR_HOST, &host), 0);
	memory_exchange(cuda_pointer(middle), 100, mhandle, to, sizeof(to), host);
	EXPECT(message_is(to, 100, 9));
	memory_deregister(pair.sender, mhandle);
	memory_deregister(pair.receiver, host);
	fake_cuda_vmm_free(p);
	memory_end();
}

#define MOST_REGISTRATIONS 512 /* of libclimport, or an eighth of the descriptors */

static size_t memory_more_than_registrations(void)
{
	struct rlimit descriptors;

	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	return 50 + (descriptors.rlim_cur / 8 < MOST_REGISTRATIONS ? descriptors.rlim_cur / 8
								   : MOST_REGISTRATIONS);
}

TEST(many, "More allocations than libclimport has registrations are registered at once.")
{
	const size_t count = memory_more_than_registrations();
	uintptr_t *addresses = calloc(count, sizeof(*addresses));
	void **mhandles = calloc(count, sizeof(*mhandles)), *host = NULL;
	char to[100];

	EXPECT(addresses && mhandles);
	memory_begin(12);
	for (size_t i = 0; i < count; i++) {
		addresses[i] = fake_cuda_alloc(0, PAGE);
		message_fill(fake_cuda_memory(addresses[i] + 100), sizeof(to), (unsigned int)i);
		mhandles[i] = memory_register(pair.sender, cuda_pointer(addresses[i]), PAGE);
	}
	EXPECT_EQ(plugin_register(&plugin, pair.receiver, to, sizeof(to), NCCL_PTR_HOST, &host), 0);
	memory_exchange(cuda_pointer(addresses[count - 1] + 100), sizeof(to), mhandles[count - 1],
			to, sizeof(to), host);
	EXPECT(message_is(to, sizeof(to), (unsigned int)count - 1));
	memory_deregister(pair.receiver, host);
	for (size_t i = 0; i < count; i++)
		memory_deregister(pair.sender, mhandles[i]);
	memory_end();
	for (size_t i = 0; i < count; i++)
		fake_cuda_free(addresses[i]);
	free(addresses);
	free(mhandles);
}

TEST(managed, "Managed memory, which moves, is refused, and nothing is left.")
{
	uintptr_t p;
	void *mhandle;

	memory_begin(12);
	p = fake_cuda_managed(0, 2 * PAGE);
	EXPECT(plugin_register(&plugin, pair.sender, cuda_pointer(p), PAGE, NCCL_PTR_CUDA,
			       &mhandle));
	EXPECT(!mhandle);
	memory_end();
	fake_cuda_free(p);
}

TEST(refused, "Memory that the device refuses is no registration, and no descriptor is left.")
{
	uintptr_t p;
	void *mhandle;
	int fd;

	memory_begin(12);
	p = fake_cuda_alloc(0, 2 * PAGE);
	fd = dmabuf_make(0, PAGE, 1);
	setenv("LOOPBACK_REFUSES", "1", 1);
	EXPECT(plugin_register(&plugin, pair.sender, cuda_pointer(p), PAGE, NCCL_PTR_CUDA,
			       &mhandle));
	EXPECT(plugin_table(&plugin)->regMrDmaBuf(pair.sender, cuda_pointer(p), PAGE, NCCL_PTR_CUDA,
						  0, fd, &mhandle));
	close(fd);
	memory_end();
	fake_cuda_free(p);
}

TEST_EACH(flush, struct version, versions, "A flush after a receive reads what was received.")
{
	uintptr_t p;
	void *mhandle, *request;
	int flushes;

	memory_begin(row->number);
	p = fake_cuda_alloc(0, 8 * PAGE);
	mhandle = memory_register(pair.receiver, cuda_pointer(p), 8 * PAGE);
	flushes = counts_now().flushes;
	EXPECT_EQ(plugin_flush(&plugin, pair.receiver, cuda_pointer(p + 5000), 100, mhandle,
			       &request),
		  0);
	EXPECT(!request || !pair_wait(&pair, request, NULL));
	EXPECT_EQ(counts_now().flushes, flushes + 1);
	memory_deregister(pair.receiver, mhandle);
	memory_end();
	fake_cuda_free(p);
}

static atomic_bool is_registering;

static void *register_run(void *memory)
{
	while (atomic_load(&is_registering))
		memory_deregister(pair.sender, memory_register(pair.sender, memory, PAGE));
	return NULL;
}

static void *fork_mhandle;

static void fork_deregister(void)
{
	alarm(TEST_HANG_S);
	memory_deregister(pair.receiver, fork_mhandle);
}

TEST(fork_registers, "A child of fork() deregisters, although a thread of its parent registered.")
{
	pthread_t thread;
	uintptr_t p;

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer has locks of its own at fork()");
	memory_begin(12);
	p = fake_cuda_alloc(0, 8 * PAGE);
	fork_mhandle = memory_register(pair.receiver, cuda_pointer(p), PAGE);
	atomic_store(&is_registering, true);
	EXPECT_EQ(pthread_create(&thread, NULL, register_run, cuda_pointer(p + 2 * PAGE)), 0);
	for (int i = 0; i < 100; i++)
		test_in_child(fork_deregister);
	atomic_store(&is_registering, false);
	pthread_join(thread, NULL);
	memory_deregister(pair.receiver, fork_mhandle);
	memory_end();
	fake_cuda_free(p);
}

TEST(no_cuda_call, "A message takes no call of CUDA's.")
{
	uintptr_t p;
	void *mhandle;
	int calls;

	memory_begin(12);
	p = fake_cuda_alloc(0, 8 * PAGE);
	mhandle = memory_register(pair.sender, cuda_pointer(p), 8 * PAGE);
	calls = fake_cuda_calls(NULL);
	for (size_t i = 0; i < 4; i++)
		memory_exchange(cuda_pointer(p), PAGE, mhandle, cuda_pointer(p + (i + 1) * PAGE),
				PAGE, mhandle);
	EXPECT_EQ(fake_cuda_calls(NULL), calls);
	memory_deregister(pair.sender, mhandle);
	memory_end();
	fake_cuda_free(p);
}

/* What the core is told at init. */
static int kinds_offered(void)
{
	struct nccl_net_properties_v12 properties;
	int descriptors;

	EXPECT(plugin_load(&plugin, PLUGIN_LOOPBACK, 12));
	descriptors = process_count_descriptors();
	EXPECT_EQ(plugin_init(&plugin), 0);
	EXPECT_EQ(plugin_properties(&plugin, 0, &properties), 0);
	EXPECT_EQ(counts_now().mappings, 0);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	climport_invalidate(NULL, SIZE_MAX);
	EXPECT_EQ(process_count_descriptors(), descriptors);
	EXPECT(fake_cuda_holds(&held_before));
	plugin_unload(&plugin);
	return properties.ptrSupport;
}

#define ALL_KINDS (NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF)

TEST(offer, "GPU memory is offered after a trial, which leaves nothing.")
{
	gpu_begin();
	EXPECT_EQ(kinds_offered(), ALL_KINDS);
}

TEST(offer_refused, "GPU memory is not offered if the device refuses the trial's memory.")
{
	gpu_begin();
	setenv("LOOPBACK_REFUSES", "1", 1);
	EXPECT_EQ(kinds_offered(), NCCL_PTR_HOST);
}

TEST(offer_no_dmabuf, "GPU memory is not offered if the driver makes no dma-bufs.")
{
	gpu_begin();
	fake_cuda_set_attribute(0, DMA_BUF_SUPPORTED, 0);
	EXPECT_EQ(kinds_offered(), NCCL_PTR_HOST);
}

TEST(offer_flush, "GPU memory is offered if the GPU needs a flush, and the device can flush.")
{
	gpu_begin();
	fake_cuda_set_attribute(0, COMPUTE_MAJOR, 8);
	setenv("LOOPBACK_FLUSHES", "1", 1);
	EXPECT_EQ(kinds_offered(), ALL_KINDS);
}

TEST(offer_no_flush, "GPU memory is not offered if the GPU needs a flush, and the device has none.")
{
	gpu_begin();
	fake_cuda_set_attribute(0, COMPUTE_MAJOR, 8);
	EXPECT_EQ(kinds_offered(), NCCL_PTR_HOST);
}

TEST(offer_no_context, "GPU memory is not offered to a thread without a GPU.")
{
	gpu_begin();
	fake_cuda_set_current(NULL);
	EXPECT_EQ(kinds_offered(), NCCL_PTR_HOST);
}

TEST(offer_own,
     "CLIMPORT_NET_OWN_EXPORT=1 offers CUDA pointers, and leaves no dma-buf to the core.")
{
	gpu_begin();
	setenv("CLIMPORT_NET_OWN_EXPORT", "1", 1);
	EXPECT_EQ(kinds_offered(), NCCL_PTR_HOST | NCCL_PTR_CUDA);
}
