/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The property parser, compared with a model.  The list of properties is a heap block that ends
 * with the terminator or with the wrong pair, so the address sanitizer finds a read behind the
 * block.
 *
 * Input: each byte is an index into numbers[]; 255 means that the next eight bytes are a number.
 */
#include "fuzz_properties.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "icd/calls/properties.h"

#define MAX_NUMBERS 64

static const cl_import_properties_arm numbers[] = {
	CL_IMPORT_TYPE_ARM,
	CL_IMPORT_TYPE_HOST_ARM,
	CL_IMPORT_TYPE_DMA_BUF_ARM,
	CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM,
	CL_TRUE,
	CL_FALSE,
	CL_IMPORT_TYPE_PROTECTED_ARM,
	CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM,
	CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM,
	CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM,
	2,
	-1,
	INTPTR_MIN,
	INTPTR_MAX,
	(cl_import_properties_arm)((uint64_t)CL_IMPORT_TYPE_ARM << 32),
	(cl_import_properties_arm)((uint64_t)1 << 32 | CL_IMPORT_TYPE_ARM),
};

static size_t model_decode(cl_import_properties_arm *list, const uint8_t *data, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size && n < MAX_NUMBERS; n++) {
		if (data[i] != 255) {
			list[n] = numbers[data[i++] % (sizeof(numbers) / sizeof(*numbers))];
			continue;
		}
		if (size - i < 9)
			break;
		memcpy(&list[n], &data[i + 1], 8);
		i += 9;
	}
	return n / 2 * 2;
}

/*
 * The expected result.  @readable counts the numbers that the parser may read: the pairs before the
 * terminator, or the pairs up to the first mistake.
 */
struct model {
	cl_int err;
	size_t readable;
	bool dma_buf;
	int consistency; /* -1: not given */
};

static bool is_pair_right(struct model *m, unsigned *seen, const cl_import_properties_arm *pair)
{
	unsigned bit = pair[0] == CL_IMPORT_TYPE_ARM		 ? 1
		       : pair[0] == CL_IMPORT_TYPE_PROTECTED_ARM ? 4
								 : 2;

	if (bit == 2 && pair[0] != CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM)
		return false;
	if (*seen & bit)
		return false;
	*seen |= bit;
	if (bit == 1) {
		m->dma_buf = pair[1] == CL_IMPORT_TYPE_DMA_BUF_ARM;
		return m->dma_buf || pair[1] == CL_IMPORT_TYPE_HOST_ARM;
	}
	if (bit == 4)
		return pair[1] == CL_FALSE;
	m->consistency = (int)pair[1];
	return pair[1] == CL_TRUE || pair[1] == CL_FALSE;
}

static struct model model_of(const cl_import_properties_arm *list, size_t n)
{
	struct model m = { CL_SUCCESS, 0, false, -1 };
	unsigned seen = 0;

	for (size_t i = 0; i < n && list[i]; i += 2) {
		m.readable = i + 2;
		if (!is_pair_right(&m, &seen, &list[i])) {
			m.err = CL_INVALID_PROPERTY;
			return m;
		}
	}
	m.readable++; /* the terminator */
	if (!m.dma_buf && m.consistency >= 0)
		m.err = CL_INVALID_PROPERTY;
	return m;
}

static void fuzz_expect(bool right)
{
	if (!right)
		abort();
}

static void fuzz_expect_like(const struct model *m, const struct properties *p)
{
	static const enum consistency of[] = { CONSISTENCY_DEFAULT, CONSISTENCY_APPLICATION,
					       CONSISTENCY_RUNTIME };

	fuzz_expect(p->type == (m->dma_buf ? IMPORT_DMABUF : IMPORT_HOST));
	fuzz_expect(p->consistency == of[m->consistency + 1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cl_import_properties_arm all[MAX_NUMBERS + 1] = { 0 }, *exact;
	struct properties out, before;
	struct model m;
	size_t n = model_decode(all, data, size);
	cl_int err;

	all[n] = 0;
	m = model_of(all, n);
	exact = malloc(m.readable * sizeof(*exact));
	memcpy(exact, all, m.readable * sizeof(*exact));
	memset(&out, 0x5a, sizeof(out));
	memcpy(&before, &out, sizeof(out));
	err = properties_parse(exact, &out);
	fuzz_expect(err == m.err);
	if (err)
		fuzz_expect(!memcmp(&before, &out, sizeof(out)));
	else
		fuzz_expect_like(&m, &out);
	free(exact);
	return 0;
}
