/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMPORT_KINDS_RANGE_H
#define IMPORT_KINDS_RANGE_H

#include <stddef.h>
#include <stdint.h>

/* Logs why @size bytes at @address are no range, none or beyond the last address, and returns -EINVAL. */
int range_refuse(uintptr_t address, size_t size);

#endif /* IMPORT_KINDS_RANGE_H */
