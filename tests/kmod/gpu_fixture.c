/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

unsigned char bytes[LENGTH];

struct setup gpu_test_begin_flags(uint32_t flags)
{
	struct setup s = { .gpu = mockgpu_open() };

	s.ctx = gdm_open();
	EVENTUALLY(mockgpu_stats(s.gpu).pins == 0);
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

void gpu_test_end(struct setup *s)
{
	static const struct mock_config works;

	close(s->ctx);
	mockgpu_config(s->gpu, &works);
	mockgpu_try_free(s->gpu, s->va);
	EXPECT_EQ(mockgpu_stats(s->gpu).pins, 0);
	EXPECT_EQ(mockgpu_stats(s->gpu).pages_pinned, 0);
	EXPECT_EQ(mockgpu_stats(s->gpu).pages_used, s->before.pages_used);
	EXPECT_EQ(gdm_module_users("gdmabuf_nvidia"), 0);
	close(s->gpu);
}

int gpu_export(const struct setup *s)
{
	int fd;

	EXPECT_EQ(gdm_export_gpu(s->ctx, s->va, LENGTH, 0, &fd), 0);
	return fd;
}

int in_child_with_quota(void (*body)(void *arg), void *arg)
{
	int status;

	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	status = in_child(body, arg);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	return status;
}
