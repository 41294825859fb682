/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the test's process, for imports. */
#include "fixture.h"

#include <sys/mman.h>

static struct {
	void *at;
	size_t size;
} mapped[64];
static int num_mapped;

unsigned char *pages_map(size_t count)
{
	size_t size = count * PAGE;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(at != MAP_FAILED && num_mapped < 64);
	mapped[num_mapped].at = at;
	mapped[num_mapped++].size = size;
	return at;
}

void pages_free(void)
{
	while (num_mapped) {
		num_mapped--;
		munmap(mapped[num_mapped].at, mapped[num_mapped].size);
	}
}

/* The kernel places no mapping at so low an address unless asked to. */
unsigned char *pages_hole(void)
{
	return (unsigned char *)(uintptr_t)0x100000;
}
