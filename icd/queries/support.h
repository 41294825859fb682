/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of memory for devices and platforms, for programs that only ask.  An answer
 * compiles nothing in the caller.  An answer for a platform starts no thread of the driver in the
 * caller: the answer is kept, or a probe process makes and keeps the answer (probe.h).
 */
#ifndef ICD_QUERIES_SUPPORT_H
#define ICD_QUERIES_SUPPORT_H

#include <stddef.h>

#include "icd/cl_compat.h"
#include "icd/facts/store.h"
#include "import/import.h"

/* By a method of the layer: 1 << enum import_type.  Besides: */
#define TAKES_IMAGE2D (1u << IMPORT_TYPES) /* the layer makes 2D images on imports */
#define TAKES_EXTERNAL \
	(1u << (IMPORT_TYPES + 1)) /* dma-bufs by cl_khr_external_memory, which the driver lacks */

/* 0 for an unknown device, also if unknown for the moment. */
unsigned int support_of_device(cl_device_id device);

/* The bits that every device of a platform has. */
unsigned int support_of_all(cl_platform_id platform);

/*
 * The bits that a device of a platform has.
 * @wait: FACTS_KEPT as soon as there is a platform, so a later query needs no system call.  The program may enter a
 *	sandbox meanwhile, and the sandbox may forbid system calls.
 */
unsigned int support_of_platform(cl_platform_id platform, enum facts_wait wait);

#endif /* ICD_QUERIES_SUPPORT_H */
