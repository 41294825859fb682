/* SPDX-License-Identifier: Apache-2.0 */
#include "edge.h"

#include <stdlib.h>

const char edge_source[] =
	"int brightness(__global const uchar *frame, uint pitch, int x, int y)\n"
	"{\n"
	"	return frame[y * pitch + 2 * x];\n"
	"}\n"
	"\n"
	"__kernel void edge(__global const uchar *frame, uint pitch, __global uchar4 *out)\n"
	"{\n"
	"	int x = get_global_id(0), width = get_global_size(0);\n"
	"	int y = get_global_id(1), height = get_global_size(1);\n"
	"	int left = max(x - 1, 0), right = min(x + 1, width - 1);\n"
	"	int above = max(y - 1, 0), below = min(y + 1, height - 1);\n"
	"	int nw = brightness(frame, pitch, left, above);\n"
	"	int n = brightness(frame, pitch, x, above);\n"
	"	int ne = brightness(frame, pitch, right, above);\n"
	"	int w = brightness(frame, pitch, left, y);\n"
	"	int e = brightness(frame, pitch, right, y);\n"
	"	int sw = brightness(frame, pitch, left, below);\n"
	"	int s = brightness(frame, pitch, x, below);\n"
	"	int se = brightness(frame, pitch, right, below);\n"
	"	int dx = ne + 2 * e + se - nw - 2 * w - sw;\n"
	"	int dy = sw + 2 * s + se - nw - 2 * n - ne;\n"
	"	int edge = min((int)(abs(dx) + abs(dy)), 255);\n"
	"	int u = edge * (frame[y * pitch + (x & ~1) * 2 + 1] - 128) >> 7;\n"
	"	int v = edge * (frame[y * pitch + (x & ~1) * 2 + 3] - 128) >> 7;\n"
	"	int4 rgb = edge + (int4)(359 * v, -88 * u - 183 * v, 454 * u, 0) / 256;\n"
	"	out[y * width + x] = convert_uchar4(clamp((int4)(rgb.xyz, 255), 0, 255));\n"
	"}\n";

/* The frame, continued beyond its borders with their own pixels. */
struct source {
	const unsigned char *frame;
	size_t pitch;
	int width, height;
};

static int edge_pixel_at(const struct source *s, int x, int y)
{
	x = x < 0 ? 0 : x < s->width ? x : s->width - 1;
	y = y < 0 ? 0 : y < s->height ? y : s->height - 1;
	return s->frame[(size_t)y * s->pitch + 2 * (size_t)x];
}

static int edge_steepness(const struct source *s, int x, int y)
{
	static const int weight[] = { 1, 2, 1 };
	int dx = 0, dy = 0, sum;

	for (int i = -1; i <= 1; i++) {
		dx += weight[i + 1] *
		      (edge_pixel_at(s, x + 1, y + i) - edge_pixel_at(s, x - 1, y + i));
		dy += weight[i + 1] *
		      (edge_pixel_at(s, x + i, y + 1) - edge_pixel_at(s, x + i, y - 1));
	}
	sum = abs(dx) + abs(dy);
	return sum < 255 ? sum : 255;
}

static unsigned char edge_clamp(int value)
{
	return value < 0 ? 0 : value > 255 ? 255 : (unsigned char)value;
}

static void edge_pixel(unsigned char *rgba, int edge, int u, int v)
{
	u = edge * (u - 128) >> 7;
	v = edge * (v - 128) >> 7;
	rgba[0] = edge_clamp(edge + 359 * v / 256);
	rgba[1] = edge_clamp(edge + (-88 * u - 183 * v) / 256);
	rgba[2] = edge_clamp(edge + 454 * u / 256);
	rgba[3] = 255;
}

void edge_reference(unsigned char *rgba, const unsigned char *frame, size_t pitch,
		    unsigned int width, unsigned int height)
{
	const struct source s = { frame, pitch, (int)width, (int)height };

	for (int y = 0; y < s.height; y++) {
		const unsigned char *row = frame + (size_t)y * pitch;

		for (int x = 0; x < s.width; x++, rgba += 4)
			edge_pixel(rgba, edge_steepness(&s, x, y), row[x / 2 * 4 + 1],
				   row[x / 2 * 4 + 3]);
	}
}

void edge_local_size(unsigned int width, size_t local[2])
{
	local[0] = 64;
	local[1] = 1;
	while (width % local[0])
		local[0] /= 2;
}
