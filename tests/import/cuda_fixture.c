/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_fixture.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <opaque.h>

unsigned char uuid0[CUDA_UUID_SIZE], uuid1[CUDA_UUID_SIZE];
struct fake_cuda_held held_before;
int fds_before;

void cuda_test_begin(void)
{
	fake_cuda_reset(2);
	fake_cuda_set_current(NULL);
	fake_cuda_uuid(0, uuid0);
	fake_cuda_uuid(1, uuid1);
	held_before = fake_cuda_held();
	fds_before = process_count_descriptors();
}

void expect_all_back(void)
{
	EXPECT(fake_cuda_holds(&held_before));
	EXPECT_EQ(process_count_descriptors(), fds_before);
}

struct cuda_range cuda_identify_range(uintptr_t addr)
{
	struct cuda_range range;

	EXPECT_EQ(cuda_identify(addr, &range), 0);
	return range;
}

uintptr_t one_segment(int device, int handle_types)
{
	struct fake_cuda_segment s = { device, G, handle_types };

	return fake_cuda_vmm(&s, 1);
}

void expect_opaque(const struct cuda_export *e, uintptr_t addr)
{
	struct fake_opaque o;

	EXPECT(fake_opaque_read(e->fd, &o));
	EXPECT((char *)o.memory + e->offset == fake_cuda_memory(addr));
	EXPECT_EQ(e->size, o.size);
	EXPECT_EQ(fcntl(e->fd, F_GETFD), FD_CLOEXEC);
	close(e->fd);
}
