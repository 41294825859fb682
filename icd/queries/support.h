/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices and platforms take, for programs that only ask.  An answer compiles nothing in
 * its caller, and that for a platform starts none of the driver's threads there: it is a kept
 * one, or a probe process makes and keeps it (probe.h).
 */
#ifndef ICD_QUERIES_SUPPORT_H
#define ICD_QUERIES_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"
#include "import/import.h"

/* By a way of this layer: 1 << enum import_type.  Besides: */
#define TAKES_IMAGE2D (1u << IMPORT_TYPES)	/* the layer makes 2D images on imports */
#define TAKES_NATIVE (1u << (IMPORT_TYPES + 1)) /* the driver has a type itself */

/* 0 for a device of which nothing is known this time. */
unsigned int support_of_device(cl_device_id device);

/* The same of any device of a platform. */
unsigned int support_of_platform(cl_platform_id platform);

/*
 * Looks for the kept answer, so that a later query needs no system call, which a sandbox that the
 * program enters meanwhile may forbid.
 */
void support_prepare(cl_platform_id platform);

/* Whether it is known that no device of the platform takes anything.  Asks no probe. */
bool support_nothing(cl_platform_id platform);

/**
 * support_probe - test all devices of a platform, and keep what is found: for the probe process
 * @key: of the platform that is asked for, in its parent
 * @answer: set to a line for the parent
 *
 * Returns CL_SUCCESS, or CL_INVALID_PLATFORM if @platform is another one.
 */
cl_int CL_API_CALL support_probe(cl_platform_id platform, const char *key, char *answer,
				 size_t size);

#endif /* ICD_QUERIES_SUPPORT_H */
