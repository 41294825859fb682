/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the devices around gdmabuf: the mock GPU and the importer; and brackets of dma-bufs. */
#include "../modules/importer/importer.h"
#include "../modules/mock/mock.h"
#include "calls.h"
#include "memory.h"
#include "shared.h"

#include <errno.h>
#include <linux/dma-buf.h>
#include <string.h>
#include <sys/ioctl.h>

void fuzz_use_gpu(void)
{
	int gpu = ANY_OF(shared.gpus);
	struct mock_alloc alloc = { .length = 0x10000ULL * (1 + fuzz_any(16)),
				    .flags = fuzz_any(2) };
	struct mock_free release = { 0 };
	struct mock_config config = { 0 };
	struct mock_copy copy = {
		.va = ANY_OF(shared.allocations),
		.user = (uintptr_t)arena + fuzz_any(FUZZ_ARENA),
		.length = fuzz_any(FUZZ_COPY_MAX),
		.to_gpu = fuzz_any(2),
	};
	uint64_t old;

	switch (fuzz_any(8)) {
	case 0:
	case 1:
	case 2:
		if (ioctl(gpu, MOCK_ALLOC, &alloc))
			return;
		old = atomic_exchange(PLACE_IN(shared.allocations), alloc.va);
		release.va = old;
		if (old)
			ioctl(gpu, MOCK_FREE, &release);
		break;
	case 3:
		release.va = ANY_OF(shared.allocations);
		ioctl(gpu, MOCK_FREE, &release);
		break;
	case 4:
		ioctl(gpu, MOCK_COPY, &copy);
		break;
	case 5:
		config.delay_us = fuzz_any(4) ? 0 : fuzz_any(200);
		config.fail_after = fuzz_any(2) ? ~0U : fuzz_any(20);
		config.fail_errno = fuzz_any(2) ? 0 : fuzz_any(2) ? -ENOMEM : -EINVAL;
		config.page_size = fuzz_any(10) ? 0 : fuzz_any(3);
		config.version = fuzz_any(10) ? 0 : (uint32_t)fuzz_any_edge();
		config.ram = !fuzz_any(20);
		config.budget_pages = fuzz_any(3) ? 0 : 1 + fuzz_any(64);
		config.fail_puts = fuzz_any(4) ? 0 : fuzz_any(8);
		ioctl(gpu, MOCK_CONFIG, &config);
		break;
	default:
		/* The GPU works again: every setting is 0. */
		ioctl(gpu, MOCK_CONFIG, &config);
	}
}

void fuzz_use_importer(void)
{
	int importer = ANY_OF(shared.importers);
	uint64_t bytes[64];
	struct gdmabuf_importer_attach attach = {
		.fd = fuzz_any_fd(),
		.mode = fuzz_any(30) ? fuzz_any(3) : (uint32_t)fuzz_any_edge(),
		.flags = fuzz_any_flags(1) | GDMABUF_IMPORTER_PLATFORM_DEVICE,
		.direction = fuzz_any(4),
		.max_segment = fuzz_any(2)   ? 0
			       : fuzz_any(4) ? (uint32_t)FUZZ_PAGE << fuzz_any(8)
					     : (uint32_t)fuzz_any_edge(),
	};
	struct gdmabuf_importer_map map = { 0 };
	struct gdmabuf_importer_access access = {
		.offset = fuzz_any(2) ? fuzz_any(0x100000) : fuzz_any_edge(),
		.data = (uintptr_t)(fuzz_any(20) ? bytes : NULL),
		.length = fuzz_any(20) ? fuzz_any(sizeof(bytes)) : 0,
	};
	struct gdmabuf_importer_cpu cpu = { fuzz_any(4) };

	memset(bytes, 0, sizeof(bytes));
	switch (fuzz_any(13)) {
	case 0:
	case 1:
	case 2:
	case 3:
		ioctl(importer, GDMABUF_IMPORTER_ATTACH, fuzz_any_argument(&attach));
		break;
	case 4:
		ioctl(importer, GDMABUF_IMPORTER_DETACH);
		break;
	case 5:
	case 6:
	case 7:
		ioctl(importer, GDMABUF_IMPORTER_MAP, fuzz_any_argument(&map));
		break;
	case 8:
		ioctl(importer, GDMABUF_IMPORTER_UNMAP);
		break;
	case 9:
		ioctl(importer, fuzz_any(2) ? GDMABUF_IMPORTER_VMAP : GDMABUF_IMPORTER_VUNMAP);
		break;
	case 10:
		ioctl(importer, fuzz_any(2) ? GDMABUF_IMPORTER_VREAD : GDMABUF_IMPORTER_VWRITE,
		      fuzz_any_argument(&access));
		break;
	case 11:
		ioctl(importer, GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, &cpu);
		break;
	default:
		ioctl(importer, GDMABUF_IMPORTER_END_CPU_ACCESS, &cpu);
	}
}

void fuzz_sync(void)
{
	struct dma_buf_sync sync = { fuzz_any(8) };

	ioctl(ANY_OF(shared.buffers), DMA_BUF_IOCTL_SYNC, &sync);
}
