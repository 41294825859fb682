/* SPDX-License-Identifier: Apache-2.0 */
#include "opaque_rm_fixture.h"

#include <errno.h>
#include <unistd.h>

void opaque_rm_reset(void)
{
	opaque_reset();
	fake_gdmabuf.open_error = ENOENT;
}

void opaque_rm_close_nodes(void)
{
	int fd;

	for (int node = 0; node <= 1; node++)
		while ((fd = fake_rm_descriptor(node)) >= 0)
			close(fd);
}

void opaque_rm_close(void)
{
	fixture_close();
	EXPECT_EQ(fake_rm.misuses, 0);
	EXPECT_EQ(fake_rm_held().objects, 0);
	fake_rm.is_present = false;
}

void opaque_rm_expect_coherent(cl_mem mem, volatile unsigned char *p)
{
	for (int i = 0; i < 5; i++) {
		*p = (unsigned char)(20 * i);
		fixture_increment(mem);
		EXPECT_EQ(*p, 20 * i + 1);
	}
}

static bool opaque_rm_are_objects(void *count)
{
	return stub_live(STUB_MEM) == *(long *)count;
}

void opaque_rm_settle(long objects)
{
	EXPECT(process_settles(opaque_rm_are_objects, &objects));
}
