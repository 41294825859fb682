/* SPDX-License-Identifier: Apache-2.0 */
/* Plots with two logarithmic axes, several in one SVG file.  Knows nothing of what is plotted. */
#ifndef TOOLS_PLOT_H
#define TOOLS_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PLOT_LINES 8
#define PLOT_POINTS 16

struct plot_line {
	const char *name;
	size_t count;
	double x[PLOT_POINTS], y[PLOT_POINTS];
};

struct plot {
	const char *title, *x_label, *y_label;
	bool bytes;  /* x is a size; it is a number otherwise */
	double mark; /* x of a vertical line; 0: none */
	char mark_text[64];
	size_t count;
	struct plot_line lines[PLOT_LINES];
};

/*
 * A point of the line with this name, which is new if there is none; x in rising order.  The
 * name stays the caller's.  Left out: values that have no logarithm, and what exceeds the limits.
 */
void plot_add(struct plot *plot, const char *line, double x, double y);

/* Writes an SVG document; plots without points are left out.  Who owns @file sees its errors. */
void plot_write(FILE *file, const char *title, const char *subtitle, const struct plot *plots,
		size_t count);

#endif /* TOOLS_PLOT_H */
