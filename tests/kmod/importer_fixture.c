/* SPDX-License-Identifier: Apache-2.0 */
#include "importer_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned char bytes[LENGTH];

struct setup import_test_begin(uint32_t alloc_flags)
{
	struct setup s = { .gpu = mockgpu_open(),
			   .ctx = gdm_open(),
			   .importer = test_importer_open() };

	s.va = mockgpu_alloc(s.gpu, LENGTH, alloc_flags);
	pattern_fill(bytes, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, &s.fd), 0);
	return s;
}

void import_test_end(struct setup *s)
{
	close(s->importer);
	close(s->fd);
	close(s->ctx);
	mockgpu_try_free(s->gpu, s->va);
	EXPECT_EQ(mockgpu_stats(s->gpu).pins, 0);
	close(s->gpu);
}

struct setup setup_host(unsigned char *p, uint32_t flags)
{
	struct setup s = { .gpu = mockgpu_open(),
			   .ctx = gdm_open(),
			   .importer = test_importer_open() };

	EXPECT_EQ(gdm_export_host(s.ctx, p, LENGTH, flags, &s.fd), 0);
	return s;
}

int import_attach(const struct setup *s, uint32_t mode, uint32_t flags)
{
	return test_importer_attach(s->importer, s->fd, mode, flags,
				    GDMABUF_IMPORTER_BIDIRECTIONAL);
}

int attach_and_map(const struct setup *s, struct gdmabuf_importer_attach arg)
{
	struct gdmabuf_importer_map map;
	int err;

	arg.fd = s->fd;
	err = ioctl(s->importer, GDMABUF_IMPORTER_ATTACH, &arg) ? -errno : 0;
	if (!err)
		err = test_importer_map(s->importer, &map);
	importer_call(s->importer, GDMABUF_IMPORTER_DETACH, 0);
	return err;
}
