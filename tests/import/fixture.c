/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "util/log.h"

void fixture_expect_log(const char *words)
{
	if (!strstr(log_last(), words))
		fprintf(stderr, "# logged: %s\n", log_last());
	EXPECT(strstr(log_last(), words));
}

int fixture_export_dmabuf(uintptr_t addr, size_t size, struct cuda_export *out)
{
	struct cuda_range memory;
	int err = cuda_identify(addr, &memory);

	return err ? err : cuda_export_dmabuf(&memory, addr, size, out);
}

int fixture_export_opaque(uintptr_t addr, size_t size, const unsigned char uuid[CUDA_UUID_SIZE],
			  struct cuda_export *out)
{
	struct cuda_range memory;
	int err = cuda_identify(addr, &memory);

	return err ? err : cuda_export_opaque(&memory, addr, size, uuid, out);
}
