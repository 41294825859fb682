/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"

#include <math.h>
#include <string.h>

#include "util/utf8.h"

#define COLUMNS 2
#define PANEL_WIDTH 600
#define HEADER 70
#define LEFT 70
#define RIGHT 20
#define TOP 50
#define HEIGHT 300
#define WIDTH (PANEL_WIDTH - LEFT - RIGHT)
#define LEGEND (TOP + HEIGHT + 62)
#define LEGEND_ROW 20
#define NOTE "font-style=\"italic\""
#define PANEL_HEIGHT (LEGEND + PLOT_LINES / 2 * LEGEND_ROW + 20)

struct axis {
	double low, high; /* logarithms, base 2 */
	double from, to;  /* places of low and high on the page */
};

struct frame {
	FILE *file;
	struct axis x, y;
};

/*
 * Readers who see no red or no green can distinguish the first eight (Okabe, Ito 2008); the others
 * differ in lightness, and every series has another marker.
 */
static const char *const colours[PLOT_SERIES] = {
	"#000000", "#e69f00", "#009e73", "#0072b2", "#56b4e9", "#cc79a7",
	"#d55e00", "#777777", "#7b3294", "#8c564b", "#b5b500", "#004d33",
};

static struct plot_line *line_of(struct plot *plot, unsigned int series, const char *name)
{
	for (size_t i = 0; i < plot->count; i++)
		if (!strcmp(plot->lines[i].name, name))
			return &plot->lines[i];
	if (plot->count == PLOT_LINES)
		return NULL;
	plot->lines[plot->count].name = name;
	plot->lines[plot->count].series = series % PLOT_SERIES;
	return &plot->lines[plot->count++];
}

void plot_add(struct plot *plot, unsigned int series, const char *name, double x, double y)
{
	struct plot_line *line;

	if (!(x > 0 && y > 0 && isfinite(x) && isfinite(y)))
		return;
	line = line_of(plot, series, name);
	if (!line || line->count == PLOT_POINTS)
		return;
	line->x[line->count] = x;
	line->y[line->count++] = y;
}

static double plot_place(const struct axis *axis, double value)
{
	return axis->from +
	       (log2(value) - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static void plot_text(FILE *file, double x, double y, const char *style, const char *string)
{
	fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	for (size_t length; *string; string += length ? length : 1) {
		length = utf8_length(string);
		if (!length)
			fputs("&#xfffd;", file);
		else if (strchr("<>&", *string))
			fprintf(file, "&#%d;", *string);
		else if ((unsigned char)*string >= ' ')
			fwrite(string, 1, length, file);
	}
	fputs("</text>\n", file);
}

static void plot_rule(FILE *file, double x1, double y1, double x2, double y2, const char *style)
{
	fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
		y2, style);
}

static void plot_number(char string[32], double value, bool bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	for (; bytes && value >= 1024 && unit < 4; unit++)
		value /= 1024;
	if (bytes)
		snprintf(string, 32, "%g %s", value, units[unit]);
	else
		snprintf(string, 32, "%g", value);
}

/* A range with some room around the points, at least a decade. */
static void plot_fit(struct axis *axis, double low, double high, double at_least)
{
	double middle = (log2(low) + log2(high)) / 2;
	double half = (log2(high) - log2(low)) / 2 + 0.3;

	half = fmax(half, at_least / 2);
	axis->low = middle - half;
	axis->high = middle + half;
}

static void plot_range(const struct plot *plot, struct frame *f)
{
	double x1 = HUGE_VAL, x2 = 0, y1 = HUGE_VAL, y2 = 0;

	for (size_t i = 0; i < plot->count; i++)
		for (size_t k = 0; k < plot->lines[i].count; k++) {
			x1 = fmin(x1, plot->lines[i].x[k]);
			x2 = fmax(x2, plot->lines[i].x[k]);
			y1 = fmin(y1, plot->lines[i].y[k]);
			y2 = fmax(y2, plot->lines[i].y[k]);
		}
	plot_fit(&f->x, x1, x2, 2);
	plot_fit(&f->y, y1, y2, log2(10));
}

static void x_tick(const struct frame *f, double value, bool label, bool bytes)
{
	double x = plot_place(&f->x, value);
	char string[32];

	plot_rule(f->file, x, f->y.from, x, f->y.to, "stroke=\"#dddddd\"");
	plot_number(string, value, bytes);
	if (label)
		plot_text(f->file, x, f->y.from + 18, "text-anchor=\"middle\"", string);
}

/* At powers of 4, as the sizes are. */
static void x_ticks(const struct frame *f, bool bytes)
{
	int first = (int)ceil(f->x.low / 2), last = (int)floor(f->x.high / 2);

	for (int i = first; i <= last; i++)
		x_tick(f, exp2(2 * i), last - first < 7 || !((last - i) % 2), bytes);
}

static void y_tick(const struct frame *f, double value, bool label)
{
	double y = plot_place(&f->y, value);
	char string[32];

	if (log2(value) < f->y.low || log2(value) > f->y.high)
		return;
	plot_rule(f->file, f->x.from, y, f->x.to, y,
		  label ? "stroke=\"#cccccc\"" : "stroke=\"#eeeeee\"");
	plot_number(string, value, false);
	if (label)
		plot_text(f->file, f->x.from - 6, y + 4, "text-anchor=\"end\"", string);
}

static void y_ticks(const struct frame *f)
{
	int first = (int)floor(f->y.low / log2(10)), last = (int)ceil(f->y.high / log2(10));
	bool few = f->y.high - f->y.low < 2.2 * log2(10);

	for (int i = first; i <= last; i++) {
		y_tick(f, pow(10, i), true);
		y_tick(f, 2 * pow(10, i), few);
		y_tick(f, 5 * pow(10, i), few);
	}
}

/* A different shape for each series, for prints without colour: six shapes, filled and hollow. */
static void plot_marker(FILE *file, unsigned int series, double x, double y)
{
	static const char *const shapes[] = {
		"M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
		"M-4,-4h8v8h-8z",
		"M0,-5l5,9h-10z",
		"M0,-5l5,5l-5,5l-5,-5z",
		"M0,5l5,-9h-10z",
		"M-5,-2h3v-3h4v3h3v4h-3v3h-4v-3h-3z",
	};

	fprintf(file,
		"<path transform=\"translate(%.1f,%.1f)\" d=\"%s\" fill=\"%s\" stroke=\"%s\" "
		"stroke-width=\"1.5\"/>\n",
		x, y, shapes[series % 6], series < 6 ? colours[series] : "white", colours[series]);
}

static void plot_draw_line(const struct frame *f, const struct plot_line *line)
{
	fprintf(f->file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
		colours[line->series]);
	for (size_t i = 0; i < line->count; i++)
		fprintf(f->file, "%.1f,%.1f ", plot_place(&f->x, line->x[i]),
			plot_place(&f->y, line->y[i]));
	fputs("\"/>\n", f->file);
	for (size_t i = 0; i < line->count; i++)
		plot_marker(f->file, line->series, plot_place(&f->x, line->x[i]),
			    plot_place(&f->y, line->y[i]));
}

static void plot_legend(const struct frame *f, const struct plot_line *line, size_t which)
{
	size_t row = which / 2, column = which % 2;
	double x = LEFT + (double)column * WIDTH / 2;
	double y = LEGEND + (double)row * LEGEND_ROW;
	char style[64];

	snprintf(style, sizeof(style), "stroke=\"%s\" stroke-width=\"2\"", colours[line->series]);
	plot_rule(f->file, x, y - 4, x + 28, y - 4, style);
	plot_marker(f->file, line->series, x + 14, y - 4);
	plot_text(f->file, x + 36, y, "", line->name);
}

/* A line through the frame, and its text above the frame, on the side that has more room. */
static void plot_mark(const struct frame *f, const struct plot *plot)
{
	double x = plot_place(&f->x, plot->mark);
	bool right = x < (f->x.from + f->x.to) / 2;

	plot_rule(f->file, x, f->y.from, x, f->y.to - 14,
		  "stroke=\"#444444\" stroke-dasharray=\"5,4\"");
	plot_text(f->file, right ? x + 6 : x - 6, f->y.to - 5,
		  right ? NOTE : NOTE " text-anchor=\"end\"", plot->mark_text);
}

static void plot_labels(const struct plot *plot, FILE *file)
{
	char turned[96];

	snprintf(turned, sizeof(turned), "text-anchor=\"middle\" transform=\"rotate(-90 18 %d)\"",
		 TOP + HEIGHT / 2);
	plot_text(file, LEFT, 24, "font-weight=\"bold\" font-size=\"15\"", plot->title);
	plot_text(file, LEFT + WIDTH / 2.0, TOP + HEIGHT + 38, "text-anchor=\"middle\"",
		  plot->x_label);
	plot_text(file, 18, TOP + HEIGHT / 2.0, turned, plot->y_label);
}

static void plot_panel(FILE *file, const struct plot *plot, size_t number)
{
	struct frame f = {
		.file = file,
		.x = { .from = LEFT, .to = LEFT + WIDTH },
		.y = { .from = TOP + HEIGHT, .to = TOP },
	};

	plot_range(plot, &f);
	fprintf(file, "<g transform=\"translate(%zu,%zu)\">\n", number % COLUMNS * PANEL_WIDTH,
		HEADER + number / COLUMNS * PANEL_HEIGHT);
	plot_labels(plot, file);
	x_ticks(&f, plot->bytes);
	y_ticks(&f);
	fprintf(file,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
		"stroke=\"#444444\"/>\n",
		LEFT, TOP, WIDTH, HEIGHT);
	for (size_t i = 0; i < plot->count; i++) {
		plot_draw_line(&f, &plot->lines[i]);
		plot_legend(&f, &plot->lines[i], i);
	}
	if (plot->mark > 0)
		plot_mark(&f, plot);
	fputs("</g>\n", file);
}

void plot_write(FILE *file, const char *title, const char *subtitle, const struct plot *plots,
		size_t count)
{
	size_t shown = 0, rows, width = (size_t)COLUMNS * PANEL_WIDTH, height;

	for (size_t i = 0; i < count; i++)
		shown += !!plots[i].count;
	rows = (shown + COLUMNS - 1) / COLUMNS;
	height = HEADER + rows * PANEL_HEIGHT;
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
		"viewBox=\"0 0 %zu %zu\" font-family=\"DejaVu Sans, Helvetica, Arial, "
		"sans-serif\" font-size=\"12\" fill=\"#222222\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		width, height, width, height);
	plot_text(file, LEFT, 30, "font-size=\"18\" font-weight=\"bold\"", title);
	plot_text(file, LEFT, 52, "", subtitle);
	shown = 0;
	for (size_t i = 0; i < count; i++)
		if (plots[i].count)
			plot_panel(file, &plots[i], shown++);
	fputs("</svg>\n", file);
}
