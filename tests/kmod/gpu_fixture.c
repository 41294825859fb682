/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned char bytes[LENGTH];

struct setup gpu_test_begin_flags(uint32_t flags)
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

struct setup gpu_test_begin(void)
{
	return gpu_test_begin_flags(0);
}

int provider_users(void)
{
	FILE *f = fopen("/sys/module/gdmabuf_nvidia/refcnt", "r");
	int n = -1;

	EXPECT(f);
	EXPECT_EQ(fscanf(f, "%d", &n), 1);
	fclose(f);
	return n;
}

void gpu_test_end(struct setup *s)
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

struct gdm_export gpu_export(const struct setup *s, uint32_t flags)
{
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(s->ctx, s->va, LENGTH, flags, &e), 0);
	return e;
}

int pins_go(int gpu)
{
	for (int i = 0; mockgpu_stats(gpu).pins + mockgpu_stats(gpu).persistent && i < 6000; i++)
		usleep(5000); /* time: between two looks */
	return !mockgpu_stats(gpu).pins && !mockgpu_stats(gpu).persistent;
}
