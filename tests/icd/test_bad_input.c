/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong arguments of clImportMemoryARM, on drivers of each method but opaque_fd (test_opaque_bad.c). */
#include "bad_input.h"

/* Methods, as the stub's driver decides them. */
static const struct bad_driver {
	const char *name;
	enum bad_memory memory;
	bool is_khr, is_gpu, pages_alone;
	long devices;
} drivers[] = {
	{ "host_ptr", BAD_HOST, false, false, false, 1 },
	{ "host_ptr_gpu", BAD_HOST, false, true, false, 1 },
	{ "host_ptr_pages", BAD_HOST, false, false, true, 1 },
	{ "host_ptr_two", BAD_HOST, false, false, false, 2 },
	{ "host_ptr_dma_buf", BAD_DMA_BUF, false, false, false, 1 },
	{ "khr_host", BAD_HOST, true, true, false, 1 },
	{ "khr_dma_buf", BAD_DMA_BUF, true, true, false, 1 },
};

static void bad_driver_open(const struct bad_driver *driver)
{
	fixture_reset();
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_DEVICES, driver->devices);
	stub_set(STUB_GPU, driver->is_gpu);
	stub_set(STUB_NO_NATIVE_KERNEL, driver->is_gpu);
	stub_set(STUB_PAGES_ALONE, driver->pages_alone);
	stub_set(STUB_COPYING, driver->is_khr ? 3 : 0);
	stub_set(STUB_KHR_DMABUF, driver->is_khr ? STUB_KHR_WORKS : STUB_KHR_NONE);
	fixture_open();
}

TEST_EACH(refused, struct bad_driver, drivers,
	  "A wrong argument has the same error whatever the method, leaves nothing, and does no "
	  "harm to the next import.")
{
	for (size_t i = 0; i < bad_input_count; i++) {
		if (!(bad_inputs[i].of & row->memory))
			continue;
		printf("# %s\n", bad_inputs[i].name);
		bad_driver_open(row);
		bad_input_expect(&bad_inputs[i], row->memory);
		fixture_close();
	}
}
