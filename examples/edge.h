/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An edge filter on YUYV frames: how steep the brightness is (Sobel), drawn in
 * the frame's own colour on black.  RGBA comes out, rows without gaps.
 */
#ifndef EXAMPLES_EDGE_H
#define EXAMPLES_EDGE_H

#include <stddef.h>

/*
 * __kernel void edge(__global const uchar *frame, uint pitch, __global uchar4 *out),
 * global size width x height.
 */
extern const char edge_source[];

/* The same on the CPU, written on its own; every byte is the same. */
void edge_reference(unsigned char *rgba, const unsigned char *frame, size_t pitch, unsigned int width,
		    unsigned int height);

/* A local size for a picture so wide: PoCL compiles for each one. */
void edge_local_size(unsigned int width, size_t local[2]);

#endif
