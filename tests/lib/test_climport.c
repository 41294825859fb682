/* SPDX-License-Identifier: Apache-2.0 */
/* climport_export_dmabuf() and related functions: each sentence of <CL/climport.h>. */
#include "export_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

LIB_TEST(device_memory,
	 "CUDA memory is exported as a dma-buf, and offset is the position of the range.")
{
	uintptr_t p = fake_cuda_alloc(0, 3 * PAGE);
	struct climport_dmabuf d;

	memory_set(p + 5000, 33);
	d = climport_export(p + 5000, 100, 0);
	EXPECT_EQ(d.offset, 5000 % PAGE);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 33);
	EXPECT(fcntl(d.fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	close(d.fd);
	fake_cuda_free(p);
}

TEST_EACH(within_page, struct flags_row, flag_rows,
	  "Memory that begins within a page is exported with the whole page.")
{
	struct climport_dmabuf d;
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, 1000);
	EXPECT(p % PAGE);
	memory_set(p, 44);
	d = climport_export(p, 1000, row->flags);
	EXPECT_EQ(d.offset, p % PAGE);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 44);
	close(d.fd);
	climport_invalidate(address_to_pointer(p), 1000);
	fake_cuda_free(p);
	fixture_end();
}

static void set_current(int device)
{
	static void *context;

	if (context)
		fake_cuda_context_destroy(context);
	context = device < 0 ? NULL : fake_cuda_context_create(device);
	fake_cuda_set_current(context);
}

static void expect_retains(uintptr_t p, int first, int second)
{
	int before[] = { fake_cuda_retains(0), fake_cuda_retains(1) };

	close(climport_export(p, PAGE, 0).fd);
	EXPECT_EQ(fake_cuda_retains(0) - before[0], first);
	EXPECT_EQ(fake_cuda_retains(1) - before[1], second);
}

LIB_TEST(no_context,
	 "An export makes no context, and uses the memory's context or a current context.")
{
	const struct fake_cuda_segment segment = { 1, G, 1 };
	uintptr_t p = fake_cuda_alloc(1, PAGE), vmm = fake_cuda_vmm(&segment, 1);

	for (int current = -1; current < 2; current++) {
		set_current(current);
		expect_retains(p, 0, 0);
	}
	expect_retains(vmm, 0, 0);
	/*
	 * VMM memory has no context.  If no context of the device is current, the export holds
	 * the primary context.
	 */
	set_current(0);
	expect_retains(vmm, 0, 1);
	set_current(-1);
	expect_retains(vmm, 0, 1);
	fake_cuda_free(p);
	fake_cuda_vmm_free(vmm);
}

static void free_and_reuse(void *address)
{
	fake_cuda_free(*(uintptr_t *)address);
	fake_cuda_alloc_at(0, 2 * PAGE, *(uintptr_t *)address);
}

TEST_EACH(freed_meanwhile, struct flags_row, flag_rows,
	  "If the memory is freed and the address reused during the export, the error is -ENODEV.")
{
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, 2 * PAGE);
	fake_cuda_at(EXPORT, 1, free_and_reuse, &p);
	EXPECT_EQ(climport_export_error(p, PAGE, row->flags), -ENODEV);
	fake_cuda_free(p);
	fixture_end();
}

LIB_TEST(outlives, "A dma-buf keeps the memory's bytes after a free.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_dmabuf d;

	memory_set(p, 9);
	d = climport_export(p, PAGE, 0);
	fake_cuda_free(p);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 9);
	close(d.fd);
}

LIB_TEST(segments, "A range of several allocations is exported whole, and never kept.")
{
	const struct fake_cuda_segment two[] = { { 0, G, 1 }, { 0, G, 1 } };
	uintptr_t p = fake_cuda_vmm(two, 2);
	struct climport_dmabuf d;

	memory_set(p + G, 6);
	for (int i = 1; i < 3; i++) {
		d = climport_export(p + G - PAGE, 2 * PAGE, CLIMPORT_KEEP);
		EXPECT_EQ(dmabuf_read_byte(&d, PAGE), 6);
		close(d.fd);
		EXPECT_EQ(fake_cuda_calls(EXPORT), i);
	}
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_vmm_free(p);
}

LIB_TEST(half_owned, "If only a part of a range is memory of the device, the error is -EFAULT.")
{
	const struct fake_cuda_segment one = { 0, G, 1 }, other[] = { { 0, G, 1 }, { 1, G, 1 } };
	uintptr_t p = fake_cuda_vmm(&one, 1);

	EXPECT_EQ(climport_export_error(p, G + 1, 0), -EFAULT);
	EXPECT_EQ(climport_export_error(p + G - 1, 2, CLIMPORT_KEEP), -EFAULT);
	fake_cuda_vmm_free(p);
	p = fake_cuda_vmm(other, 2);
	EXPECT_EQ(climport_export_error(p, 2 * G, 0), -EFAULT);
	fake_cuda_vmm_free(p);
}

LIB_TEST(no_range, "A size of 0, a wrapping range and an unknown flag are -EINVAL.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	for (unsigned int flags = 0; flags <= CLIMPORT_KEEP; flags += CLIMPORT_KEEP) {
		EXPECT_EQ(climport_export_error(p, 0, flags), -EINVAL);
		EXPECT_EQ(climport_export_error(p, SIZE_MAX, flags), -EINVAL);
		EXPECT_EQ(climport_export_error(p, 0 - p + 1, flags), -EINVAL);
	}
	EXPECT_EQ(climport_export_error(p, PAGE, 8), -EINVAL);
	EXPECT_EQ(climport_export_error(p, PAGE, ~0u), -EINVAL);
	EXPECT(climport_export_error(p, 0 - p - 1, CLIMPORT_KEEP) < 0);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 0);
	fake_cuda_free(p);
}

LIB_TEST(managed, "Managed memory moves, and is -EOPNOTSUPP for any flags.")
{
	uintptr_t p = fake_cuda_managed(0, PAGE);

	for (unsigned int flags = 0; flags < 8; flags++)
		EXPECT_EQ(climport_export_error(p, PAGE, flags), -EOPNOTSUPP);
	fake_cuda_free(p);
}

LIB_TEST(read_only, "A read-only dma-buf of CUDA memory is -EOPNOTSUPP.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_READ_ONLY), -EOPNOTSUPP);
	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_READ_ONLY | CLIMPORT_MAPPABLE),
		  -EOPNOTSUPP);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 0);
	fake_cuda_free(p);
}

LIB_TEST(no_module,
	 "If an export needs the module and the module is not loaded, the error is -ENXIO.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE), host = fake_cuda_host(0, PAGE);
	static char local[100];

	fixture_skip_with_module();
	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_MAPPABLE), -ENXIO);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 0);
	EXPECT_EQ(climport_export_error((uintptr_t)local, sizeof(local), 0), -ENXIO);
	EXPECT_EQ(climport_export_error((uintptr_t)local, sizeof(local), CLIMPORT_READ_ONLY),
		  -ENXIO);
	EXPECT_EQ(climport_export_error(host, PAGE, CLIMPORT_KEEP), -ENXIO);
	fake_cuda_set_attribute(0, 124, 0); /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
	EXPECT_EQ(climport_export_error(p, PAGE, 0), -ENXIO);
	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_KEEP), -ENXIO);
	fake_cuda_free(p);
	fake_cuda_free(host);
}

LIB_TEST(nothing_there, "A range without memory is -EFAULT.")
{
	fixture_skip_with_module();
	EXPECT_EQ(climport_export_error(0, PAGE, 0), -EFAULT);
	EXPECT_EQ(climport_export_error(PAGE, PAGE, CLIMPORT_READ_ONLY), -EFAULT);
}

TEST_EACH(every_failure, struct flags_row, flag_rows,
	  "If any call of CUDA fails, the export fails and leaves nothing.")
{
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, 2 * PAGE);
	for (int n = 1, failed = 1; failed; n++) {
		struct climport_dmabuf d = untouched;
		int ret;

		fake_cuda_fail(NULL, n, 999);
		ret = climport_export_dmabuf(address_to_pointer(p), PAGE, row->flags, &d,
					     sizeof(d));
		failed = fake_cuda_has_failed();
		fake_cuda_fail(NULL, 0, 0);
		EXPECT(!ret == (d.fd >= 0));
		if (ret)
			EXPECT(is_untouched(&d));
		else
			close(d.fd);
		climport_invalidate(address_to_pointer(p), PAGE);
		EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	}
	fake_cuda_free(p);
	fixture_end();
}

/* A thread that is cancelled, then exports, with a cancellation point in libcuda. */
struct cancelled {
	uintptr_t address;
	int ret;
	bool returned;
	struct climport_dmabuf dmabuf;
};

static void cancel_here(void *unused)
{
	(void)unused;
	pthread_testcancel();
}

static void *export_cancelled(void *arg)
{
	struct cancelled *c = arg;

	fake_cuda_at(NULL, 1, cancel_here, NULL);
	pthread_cancel(pthread_self());
	c->ret = climport_export_dmabuf(address_to_pointer(c->address), PAGE, CLIMPORT_KEEP,
					&c->dmabuf, sizeof(c->dmabuf));
	c->returned = true;
	pthread_testcancel();
	return NULL;
}

static void expect_export_despite_cancel(uintptr_t address)
{
	struct cancelled c = { .address = address, .dmabuf = untouched };
	pthread_t thread;
	void *result;

	EXPECT_EQ(pthread_create(&thread, NULL, export_cancelled, &c), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(c.returned);
	EXPECT(result == PTHREAD_CANCELED);
	EXPECT_EQ(c.ret, 0);
	close(c.dmabuf.fd);
}

LIB_TEST(cancelled, "A thread that is cancelled is not cancelled in an export.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	expect_export_despite_cancel(p);
	climport_invalidate(address_to_pointer(p), PAGE);
	fake_cuda_free(p);
}

LIB_TEST(cancelled_kept, "A thread that is cancelled is not cancelled in an export of kept memory.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	expect_export_despite_cancel(p);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 1);
	climport_invalidate(address_to_pointer(p), PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
}
