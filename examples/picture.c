/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

static void write_rows(png_structp png, png_infop info, FILE *file, const unsigned char *rgba,
		       unsigned int width, unsigned int height)
{
	png_init_io(png, file);
	png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_set_compression_level(png, 3); /* the larger part of the time in an emulated machine */
	png_write_info(png, info);
	png_set_filler(png, 0, PNG_FILLER_AFTER);
	for (unsigned int y = 0; y < height; y++)
		png_write_row(png, rgba + (size_t)y * width * 4);
	png_write_end(png, info);
}

/* libpng reports errors with longjmp(). */
static int write_png(FILE *file, const unsigned char *rgba, unsigned int width, unsigned int height)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png ? png_create_info_struct(png) : NULL;

	if (!info || setjmp(png_jmpbuf(png))) {
		png_destroy_write_struct(&png, &info);
		return -EIO;
	}
	write_rows(png, info, file, rgba, width, height);
	png_destroy_write_struct(&png, &info);
	return 0;
}

int picture_write(const char *path, const unsigned char *rgba, unsigned int width,
		  unsigned int height)
{
	FILE *file = fopen(path, "we");
	int error;

	if (!file)
		return -errno;
	error = write_png(file, rgba, width, height);
	if (fclose(file) && !error)
		error = -errno;
	if (error)
		unlink(path);
	return error;
}

static unsigned char picture_clamp(int value)
{
	return value < 0 ? 0 : value > 255 ? 255 : (unsigned char)value;
}

static void yuv_to_rgba(unsigned char *rgba, int y, int u, int v)
{
	y = 298 * (y - 16) + 128;
	u -= 128;
	v -= 128;
	rgba[0] = picture_clamp((y + 409 * v) >> 8);
	rgba[1] = picture_clamp((y - 100 * u - 208 * v) >> 8);
	rgba[2] = picture_clamp((y + 516 * u) >> 8);
	rgba[3] = 255;
}

void picture_from_yuyv(unsigned char *rgba, const unsigned char *yuyv, size_t pitch,
		       unsigned int width, unsigned int height)
{
	for (unsigned int y = 0; y < height; y++) {
		const unsigned char *row = yuyv + y * pitch;

		for (size_t x = 0; x < width; x++, rgba += 4)
			yuv_to_rgba(rgba, row[2 * x], row[x / 2 * 4 + 1], row[x / 2 * 4 + 3]);
	}
}
