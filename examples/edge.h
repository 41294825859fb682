/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An edge filter on YUYV frames: the brightness's gradient (Sobel), drawn in the frame's own
 * colour on black.  The result is RGBA, rows without gaps.
 */
#ifndef EXAMPLES_EDGE_H
#define EXAMPLES_EDGE_H

#include <stddef.h>

/*
 * __kernel void edge(__global const uchar *frame, uint pitch, __global uchar4 *out),
 * global size width x height.
 */
extern const char edge_source[];

/* An independent implementation on the CPU: every byte equals the kernel's. */
void edge_reference(unsigned char *rgba, const unsigned char *frame, size_t pitch,
		    unsigned int width, unsigned int height);

/* A local size for a picture of this width: PoCL compiles the kernel for each local size. */
void edge_local_size(unsigned int width, size_t local[2]);

#endif
