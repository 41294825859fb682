/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of 8 bits a channel: RGBA, four bytes a pixel, rows without gaps; A is ignored. */
#ifndef EXAMPLES_PICTURE_H
#define EXAMPLES_PICTURE_H

#include <stddef.h>

/*
 * Writes a PNG file straight from @rgba.  Returns 0 or -errno; -EIO if libpng
 * finds fault.  Nothing is left of a file that could not be completed.
 */
int picture_write(const char *path, const unsigned char *rgba, unsigned int width,
		  unsigned int height);

/* YUYV as cameras give it (BT.601, 16 to 235), @pitch bytes from row to row. */
void picture_from_yuyv(unsigned char *rgba, const unsigned char *yuyv, size_t pitch,
		       unsigned int width, unsigned int height);

#endif
