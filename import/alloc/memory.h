/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that drivers can import: see climport_alloc() in <CL/climport.h>. */
#ifndef IMPORT_ALLOC_MEMORY_H
#define IMPORT_ALLOC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_kind { MEMORY_HOST, MEMORY_DEVICE };

/* Returns 0 or a negative errno, logged.  @uuid may be NULL for MEMORY_HOST. */
int memory_alloc(enum memory_kind kind, size_t size, size_t alignment, const unsigned char *uuid,
		 uintptr_t *address);

/* False, and nothing is done: @address is no live allocation. */
bool memory_free(uintptr_t address);

/*
 * Whether the device with @uuid has memory of the kind.  Loads the driver's library; allocates
 * nothing, and logs nothing.
 */
bool memory_is_possible(enum memory_kind kind, const unsigned char *uuid);

/* Bytes of all blocks. */
size_t memory_bytes(void);

#endif
