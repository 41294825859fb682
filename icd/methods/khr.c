/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method khr: dma-bufs by cl_khr_external_memory_dma_buf.  The method takes no memory yet.  The
 * row is the last of the table: a refusal then names the extension of the device.
 */
#include <stdio.h>

#include "icd/methods/method.h"

#define EXTENSION "cl_khr_external_memory_dma_buf"

/* A self-test that hangs, or could not run, is the better reason for a refusal. */
static bool khr_probe(const struct device *device, const char *extensions, enum import_type type,
		      struct method *method)
{
	(void)device;
	if (type == IMPORT_DMABUF && has_word(extensions, EXTENSION) && !method->untested &&
	    !method->hangs)
		snprintf(method->why, sizeof(method->why),
			 "the device takes dma-bufs by %s, which climport does not use yet",
			 EXTENSION);
	return false;
}

const struct method_ops method_khr_ops = {
	.name = "khr",
	.probe = khr_probe,
};
