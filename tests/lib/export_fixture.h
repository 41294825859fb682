/* SPDX-License-Identifier: Apache-2.0 */
/* Exports for the tests of climport_export_dmabuf(). */
#ifndef TESTS_LIB_EXPORT_FIXTURE_H
#define TESTS_LIB_EXPORT_FIXTURE_H

#include "fixture.h"

/* The function of CUDA that makes a dma-buf. */
#define EXPORT "cuMemGetHandleForAddressRange"

/* An export that is not kept, and a kept export. */
static const struct flags_row {
	const char *name;
	unsigned int flags;
} flag_rows[] = {
	{ "plain", 0 },
	{ "kept", CLIMPORT_KEEP },
};

/* The outputs before an export. */
extern const struct climport_dmabuf untouched;
bool is_untouched(const struct climport_dmabuf *d);

void *address_to_pointer(uintptr_t address);

/* The error of an export; expects no change. */
int climport_export_error(uintptr_t address, size_t size, unsigned int flags);

/* An export that must succeed. */
struct climport_dmabuf climport_export(uintptr_t address, size_t size, unsigned int flags);

/* Byte @i of the exported range. */
int dmabuf_read_byte(const struct climport_dmabuf *d, size_t i);

void memory_set(uintptr_t address, unsigned char byte);

#endif
