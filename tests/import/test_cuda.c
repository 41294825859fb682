/* SPDX-License-Identifier: Apache-2.0 */
/* Which of an address's properties CUDA tells, from any thread and context. */
#include "cuda_fixture.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "import/nvidia/cuda/cuda_facts.h"

CUDA_TEST(none, "Memory unknown to CUDA is CUDA_NONE, without an error.")
{
	int local;
	struct cuda_range range = cuda_identify_range((uintptr_t)&local);

	EXPECT_EQ(range.kind, CUDA_NONE);
	EXPECT_EQ(range.device, -1);
	EXPECT_EQ(range.size, 0);
	EXPECT_EQ(cuda_buffer_id((uintptr_t)&local), 0);
	EXPECT_EQ(cuda_identify_range(0).kind, CUDA_NONE);
}

CUDA_TEST(uninitialized, "If a process has not initialized CUDA, no pointer is CUDA's, and the "
			 "question does not initialize CUDA.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);

	fake_cuda_uninitialize();
	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_NONE);
	EXPECT_EQ(cuda_buffer_id(p), 0);
	EXPECT_EQ(fake_cuda_calls("cuInit"), 0);
	fake_cuda_free(p);
}

CUDA_TEST(device,
	  "Memory of cuMemAlloc() has a device, an ordinal, a UUID, an allocation and a buffer id.")
{
	uintptr_t p = fake_cuda_alloc(1, MB);
	struct cuda_range range = cuda_identify_range(p + 1000);

	EXPECT_EQ(range.kind, CUDA_DEVICE);
	EXPECT_EQ(range.device, 1);
	EXPECT(!memcmp(range.uuid, uuid1, sizeof(uuid1)));
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, MB);
	EXPECT(range.buffer_id);
	EXPECT_EQ(cuda_buffer_id(p + MB - 1), range.buffer_id);
	fake_cuda_free(p);
	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_NONE);
	EXPECT_EQ(cuda_buffer_id(p), 0);
}

CUDA_TEST(managed, "Managed memory is recognised, and never exported.")
{
	uintptr_t p = fake_cuda_managed(0, MB);
	struct cuda_export out;

	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_MANAGED);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), -EOPNOTSUPP);
	fixture_expect_log("managed");
	EXPECT_EQ(fixture_export_opaque(p, MB, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("managed");
	EXPECT_EQ(fake_cuda_calls("cuMemGetHandleForAddressRange"), 0);
	fake_cuda_free(p);
}

CUDA_TEST(host, "Memory of cuMemHostAlloc() is host memory, and the range is the whole allocation.")
{
	uintptr_t p = fake_cuda_host(1, MB);
	struct cuda_range range = cuda_identify_range(p + 5);

	EXPECT_EQ(range.kind, CUDA_HOST);
	EXPECT_EQ(range.device, 1);
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, MB);
	fake_cuda_free(p);
}

CUDA_TEST(registered,
	  "Memory of cuMemHostRegister() is host memory, although CUDA knows no address range.")
{
	static char memory[10000];
	uintptr_t p = (uintptr_t)memory;
	struct cuda_range range;

	fake_cuda_host_register(0, memory, sizeof(memory));
	range = cuda_identify_range(p + 5);
	EXPECT_EQ(range.kind, CUDA_HOST);
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, sizeof(memory));
	fake_cuda_free(p);
}

CUDA_TEST(vmm, "A VMM address has the range of the mapped segment, and not of the reservation.")
{
	struct fake_cuda_segment s[] = { { 0, G, 1 }, { 0, 2 * G, 1 } };
	uintptr_t p = fake_cuda_vmm(s, 2);
	struct cuda_range range = cuda_identify_range(p + G + 77);

	EXPECT_EQ(range.kind, CUDA_DEVICE);
	EXPECT_EQ(range.base, p + G);
	EXPECT_EQ(range.size, 2 * G);
	EXPECT(range.buffer_id != cuda_buffer_id(p));
	EXPECT_EQ(cuda_identify_range(p + 3 * G).kind, CUDA_NONE);
	fake_cuda_vmm_free(p);
}

CUDA_TEST(host_vmm,
	  "VMM memory of the host is host memory of no device, despite the pointer's attributes.")
{
	uintptr_t p = one_segment(FAKE_CUDA_HOST_NUMA, 1);
	static const unsigned char zero[CUDA_UUID_SIZE];
	struct cuda_range range = cuda_identify_range(p + 1);

	EXPECT_EQ(range.kind, CUDA_HOST);
	EXPECT_EQ(range.device, -1);
	EXPECT_EQ(range.base, p);
	EXPECT_EQ(range.size, G);
	EXPECT(!memcmp(range.uuid, zero, sizeof(zero)));
	fake_cuda_vmm_free(p);
}

CUDA_TEST(vmm_again,
	  "The handle of VMM memory is asked for once, for memory of a device and of the host.")
{
	uintptr_t p = one_segment(0, 1), host = one_segment(FAKE_CUDA_HOST_NUMA, 1);

	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(cuda_identify_range(p).kind, CUDA_DEVICE);
		EXPECT_EQ(cuda_identify_range(host).kind, CUDA_HOST);
		EXPECT_EQ(fake_cuda_calls("cuMemRetainAllocationHandle"), 2);
	}
	fake_cuda_vmm_free(p);
	fake_cuda_vmm_free(host);
}

CUDA_TEST(vmm_failed, "A handle that CUDA could not tell is asked for again.")
{
	uintptr_t host = one_segment(FAKE_CUDA_HOST_NUMA, 1);

	fake_cuda_fail("cuMemRetainAllocationHandle", 1, CUDA_OUT_OF_MEMORY);
	EXPECT_EQ(cuda_identify_range(host).kind, CUDA_DEVICE);
	EXPECT_EQ(cuda_identify_range(host).kind, CUDA_HOST);
	fake_cuda_fail("cuMemGetAllocationPropertiesFromHandle", 1, CUDA_OUT_OF_MEMORY);
	EXPECT_EQ(cuda_identify_range(host + 8192).kind, CUDA_DEVICE);
	EXPECT_EQ(cuda_identify_range(host + 8192).kind, CUDA_HOST);
	fake_cuda_vmm_free(host);
}

TEST(facts, "A fact is of one page of one allocation.")
{
	const uint64_t id = UINT64_C(1) << 60;
	const uintptr_t p = (uintptr_t)7 << 20;

	EXPECT_EQ(cuda_facts_get(id, p), 0);
	cuda_facts_add(id, p + 8, CUDA_FACT_ON_HOST);
	cuda_facts_add(id, p, CUDA_FACT_NO_SYNC);
	EXPECT_EQ(cuda_facts_get(id, p + 4095), CUDA_FACT_ON_HOST | CUDA_FACT_NO_SYNC);
	EXPECT_EQ(cuda_facts_get(id, p + 4096), 0);
	EXPECT_EQ(cuda_facts_get(id, p - 1), 0);
	EXPECT_EQ(cuda_facts_get(id + 1, p), 0);
	EXPECT_EQ(cuda_facts_get(0, 0), 0);
	cuda_facts_add(0, p, CUDA_FACT_ON_DEVICE);
	EXPECT_EQ(cuda_facts_get(0, p), 0);
}

TEST(facts_many, "Facts may be forgotten, and are never taken for those of other memory.")
{
	const uintptr_t p = (uintptr_t)9 << 20;
	unsigned int known = 0;

	for (uint64_t id = 1; id <= 5000; id++)
		cuda_facts_add(id << 32, p, id % 2 ? CUDA_FACT_ON_HOST : CUDA_FACT_ON_DEVICE);
	for (uint64_t id = 1; id <= 5000; id++) {
		unsigned int facts = cuda_facts_get(id << 32, p);

		known += facts > 0;
		if (facts)
			EXPECT_EQ(facts, id % 2 ? CUDA_FACT_ON_HOST : CUDA_FACT_ON_DEVICE);
	}
	EXPECT(known > 0);
}

CUDA_TEST(reuse, "An address that is allocated again has a new buffer id.")
{
	uintptr_t p = fake_cuda_alloc(0, MB);
	uint64_t id = cuda_buffer_id(p);

	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, MB, p), p);
	EXPECT(cuda_buffer_id(p) != id);
	EXPECT(cuda_buffer_id(p));
	fake_cuda_free(p);
}

CUDA_TEST(asks_no_context, "The kind of any pointer is found without a context.")
{
	uintptr_t p[] = { fake_cuda_alloc(1, MB), fake_cuda_managed(1, MB), fake_cuda_host(1, MB),
			  one_segment(1, 1), one_segment(FAKE_CUDA_HOST_NUMA, 1) };

	for (int i = 0; i < 5; i++)
		EXPECT(cuda_identify_range(p[i] + 1).kind != CUDA_NONE);
	EXPECT_EQ(fake_cuda_calls("cuDevicePrimaryCtxRetain"), 0);
	EXPECT_EQ(fake_cuda_calls("cuCtxPushCurrent_v2"), 0);
	for (int i = 0; i < 3; i++)
		fake_cuda_free(p[i]);
	fake_cuda_vmm_free(p[3]);
	fake_cuda_vmm_free(p[4]);
}

static void cuda_use_all(uintptr_t p, uintptr_t v)
{
	struct cuda_export out;
	struct cuda_memory m;

	EXPECT_EQ(cuda_identify_range(p).kind, CUDA_DEVICE);
	EXPECT_EQ(fixture_export_dmabuf(p, MB, &out), 0);
	close(out.fd);
	EXPECT_EQ(fixture_export_dmabuf(v, G, &out), 0);
	close(out.fd);
	EXPECT_EQ(fixture_export_opaque(v, G, uuid1, &out), 0);
	close(out.fd);
	EXPECT_EQ(cuda_alloc(CUDA_HOST, uuid1, G, 0, &m), 0);
	EXPECT_EQ(cuda_identify_range(m.addr).kind, CUDA_HOST);
	cuda_free(&m);
}

static const struct context_row {
	const char *name;
	int device;
} contexts[] = {
	{ "none", -1 },
	{ "of_another_device", 0 },
	{ "of_the_device", 1 },
};

TEST_EACH(context, struct context_row, contexts,
	  "The current context of the thread is not changed.")
{
	uintptr_t p, v;
	void *context;

	cuda_test_begin();
	p = fake_cuda_alloc(1, MB);
	v = one_segment(1, 1);
	context = row->device < 0 ? NULL : fake_cuda_context_create(row->device);
	fake_cuda_set_current(context);
	cuda_use_all(p, v);
	EXPECT(fake_cuda_current() == context);
	fake_cuda_set_current(NULL);
	fake_cuda_context_destroy(context);
	fake_cuda_free(p);
	fake_cuda_vmm_free(v);
	expect_all_back();
}

enum operation { IDENTIFY, DMABUF, DMABUF_VMM, OPAQUE, ALLOC_DEVICE, ALLOC_HOST };

static const struct operation_row {
	const char *name;
	enum operation operation;
} operations[] = {
	{ "identify", IDENTIFY },	  { "dmabuf", DMABUF },
	{ "dmabuf_vmm", DMABUF_VMM },	  { "opaque", OPAQUE },
	{ "alloc_device", ALLOC_DEVICE }, { "alloc_host", ALLOC_HOST },
};

static const struct result_row {
	const char *name;
	int result;
} results[] = {
	{ "out_of_memory", CUDA_OUT_OF_MEMORY },
	{ "invalid_value", CUDA_INVALID_VALUE },
	{ "unknown_error", 999 },
};

static int operation_run(enum operation o, uintptr_t p, uintptr_t v)
{
	struct cuda_export out = { .fd = -1 };
	struct cuda_memory m = { 0 };
	struct cuda_range range;
	int err = 0;

	switch (o) {
	case IDENTIFY:
		return cuda_identify(v, &range);
	case DMABUF:
		err = fixture_export_dmabuf(p, MB, &out);
		break;
	case DMABUF_VMM:
		err = fixture_export_dmabuf(v, 2 * G, &out);
		break;
	case OPAQUE:
		err = fixture_export_opaque(v + G, G, uuid0, &out);
		break;
	case ALLOC_DEVICE:
		err = cuda_alloc(CUDA_DEVICE, uuid0, G, 0, &m);
		break;
	default:
		err = cuda_alloc(CUDA_HOST, uuid0, G, 0, &m);
	}
	EXPECT_EQ(out.fd >= 0 || m.size, !err && o != IDENTIFY);
	if (out.fd >= 0)
		close(out.fd);
	cuda_free(&m);
	return err;
}

static int fail_each(enum operation o, uintptr_t p, uintptr_t v, int result)
{
	struct fake_cuda_held before = fake_cuda_held();
	int failures = 0, n = 0, fds = process_count_descriptors(), err;

	do {
		fake_cuda_fail(NULL, ++n, result);
		err = operation_run(o, p, v);
		failures += err != 0;
		EXPECT(fake_cuda_holds(&before));
		EXPECT_EQ(process_count_descriptors(), fds);
		EXPECT(!fake_cuda_current());
	} while (fake_cuda_has_failed());
	EXPECT_EQ(err, 0);
	return failures;
}

TEST_EACH_PAIR(faults, struct operation_row, operations, struct result_row, results,
	       "A failed call of the driver leaks nothing, and the failure is reported or made "
	       "good.")
{
	struct fake_cuda_segment s[] = { { 0, G, 1 }, { 0, G, 1 } };
	uintptr_t p, v;
	int failures;

	cuda_test_begin();
	p = fake_cuda_alloc(0, MB);
	v = fake_cuda_vmm(s, 2);
	failures = fail_each(row->operation, p, v, column->result);
	EXPECT(failures >= (row->operation == IDENTIFY ? 0 : 3));
	fake_cuda_free(p);
	fake_cuda_vmm_free(v);
}

static void *cuda_use_in_thread(void *arg)
{
	uintptr_t p = fake_cuda_alloc(1, MB), v = one_segment(1, 1);

	for (int i = 0; i < 20; i++)
		cuda_use_all(p, v);
	fake_cuda_free(p);
	fake_cuda_vmm_free(v);
	return arg;
}

CUDA_TEST(threads, "Any thread may call, without effect on the other threads.")
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, cuda_use_in_thread, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
