/* SPDX-License-Identifier: Apache-2.0 */
/* Plots with two logarithmic axes, several in one SVG file, of any data. */
#ifndef TOOLS_PLOT_H
#define TOOLS_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PLOT_LINES 8
#define PLOT_SERIES 12 /* numbers of series: each has a colour and a marker of its own */
#define PLOT_POINTS 16

struct plot_line {
	const char *name;
	unsigned int series;
	size_t count;
	double x[PLOT_POINTS], y[PLOT_POINTS];
};

struct plot {
	const char *title, *x_label, *y_label;
	bool bytes;	    /* x is a size, otherwise a number */
	double mark;	    /* x of a vertical line; 0: no line */
	char mark_text[64]; /* stands above the frame, where no line is */
	size_t count;
	struct plot_line lines[PLOT_LINES];
};

/*
 * Adds a point to the line @line, and the line if the name is new; x in rising order.  A @series
 * has the same colour in every plot, and is one line of a plot at most.  The name stays the caller's.  Left out: values without a logarithm, and points beyond the limits.
 */
void plot_add(struct plot *plot, unsigned int series, const char *line, double x, double y);

/* Writes an SVG document without plots that have no points.  The caller checks @file for errors. */
void plot_write(FILE *file, const char *title, const char *subtitle, const struct plot *plots,
		size_t count);

#endif /* TOOLS_PLOT_H */
