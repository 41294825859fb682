/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the kernel's types that the modules' arithmetic needs in user space. */
#ifndef TESTS_KMOD_SHIM_TYPES_H
#define TESTS_KMOD_SHIM_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef uint64_t phys_addr_t;

#endif
