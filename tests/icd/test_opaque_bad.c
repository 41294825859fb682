/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong arguments of clImportMemoryARM, on the method opaque_fd. */
#include "bad_input.h"
#include "opaque_rm_fixture.h"

static const struct bad_kind {
	const char *name;
	enum bad_memory memory;
} bad_kinds[] = { { "host", BAD_HOST }, { "dma_buf", BAD_DMA_BUF } };

TEST_EACH(bad_input, struct bad_kind, bad_kinds,
	  "A wrong argument has the same error as with the other methods, leaves nothing, and does "
	  "no harm to the next import.")
{
	for (size_t i = 0; i < bad_input_count; i++) {
		if (!(bad_inputs[i].of & row->memory))
			continue;
		printf("# %s\n", bad_inputs[i].name);
		opaque_rm_reset();
		fake_rm.exporter = "udmabuf";
		opaque_begin();
		bad_input_expect(&bad_inputs[i], row->memory);
		opaque_rm_close();
	}
}
