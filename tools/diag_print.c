/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a report.  What has been printed is marked as printed, and is not printed again. */
#include "diag_report.h"

#include <stdlib.h>
#include <string.h>

#include "terminal.h"

#define UNDER_MARK 8 /* the column of a fact's sentence */

static const struct {
	const char *mark;
	enum terminal_colour colour;
} diag_marks[] = { { "stop", COLOUR_BAD }, { "note", COLOUR_DOUBT }, { "ok", COLOUR_GOOD } };
#define DIAG_MARKS (sizeof(diag_marks) / sizeof(diag_marks[0]))

static const struct {
	const char *verb, *otherwise; /* said where there are no reasons */
	const char *before;	      /* the reasons */
	enum terminal_colour colour;
} diag_verdicts[] = {
	[DIAG_CANNOT] = { "cannot reach", "", "", COLOUR_BAD },
	[DIAG_MAY] = { "may reach", "", "nothing known stops it, but ", COLOUR_DOUBT },
	[DIAG_CAN] = { "can reach", "nothing stops it", "", COLOUR_GOOD },
};

static bool diag_same_verdict(const struct diag_section *a, const struct diag_section *b)
{
	return b->has_verdict && !b->printed && a->gpu == b->gpu && a->verdict == b->verdict &&
	       !strcmp(a->reasons.text, b->reasons.text);
}

/* The peers of all sections with the verdict of @first, "A, B and C".  The caller frees the text. */
static char *diag_peers(struct diag_report *report, const struct diag_section *first)
{
	const struct diag_section *last = first;
	size_t size;
	char *text;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	for (size_t i = 0; i < report->count; i++)
		if (diag_same_verdict(first, &report->sections[i]))
			last = &report->sections[i];
	for (size_t i = 0; i < report->count; i++) {
		struct diag_section *s = &report->sections[i];

		if (!diag_same_verdict(first, s))
			continue;
		if (s != first)
			fputs(s == last ? " and " : ", ", stream);
		fputs(s->peer->address, stream);
	}
	fclose(stream);
	return text;
}

static void diag_print_verdict(FILE *out, struct diag_report *report,
			       const struct diag_section *first)
{
	const char *begin = terminal_colour(out, diag_verdicts[first->verdict].colour);
	const char *end = terminal_colour(out, COLOUR_NONE), *reasons = first->reasons.text;
	char *peers = diag_peers(report, first);

	terminal_line(out, UNDER_MARK, "verdict: %s %s%s%s the memory of %s: %s%s.",
		      peers ? peers : "a device", begin, diag_verdicts[first->verdict].verb, end,
		      first->gpu->address, diag_verdicts[first->verdict].before,
		      *reasons ? reasons : diag_verdicts[first->verdict].otherwise);
	free(peers);
	for (size_t i = 0; i < report->count; i++)
		if (&report->sections[i] != first && diag_same_verdict(first, &report->sections[i]))
			report->sections[i].printed = true;
}

/* A GPU that no device could reach, as there is none. */
static void diag_print_alone(FILE *out, const struct diag_section *s)
{
	terminal_line(out, UNDER_MARK,
		      "verdict: no other device is present that could reach the memory of %s%s%s.",
		      s->gpu->address, *s->reasons.text ? ", and no device could reach it: " : "",
		      s->reasons.text);
}

static void diag_print_verdicts(FILE *out, struct diag_report *report)
{
	size_t gpus = 0;

	for (size_t i = 0; i < report->count; i++) {
		struct diag_section *s = &report->sections[i];

		gpus += s->scope == DIAG_GPU;
		if (!s->has_verdict || s->printed)
			continue;
		if (s->peer)
			diag_print_verdict(out, report, s);
		else
			diag_print_alone(out, s);
		s->printed = true;
	}
	if (!gpus)
		terminal_line(out, UNDER_MARK,
			      "verdict: there is no GPU: no PCI device of class 03 or 12 has a "
			      "prefetchable memory BAR.");
}

static struct diag_fact *diag_find(const struct diag_section *s, const struct diag_fact *fact)
{
	for (size_t i = 0; i < s->count; i++)
		if (!s->facts[i].printed && s->facts[i].mark == fact->mark && fact->text &&
		    s->facts[i].text && !strcmp(s->facts[i].text, fact->text))
			return &s->facts[i];
	return NULL;
}

static void diag_print_title(FILE *out, const char *title, bool *titled)
{
	if (!*titled)
		terminal_line(out, 4, "%s%s%s", terminal_colour(out, COLOUR_BOLD), title,
			      terminal_colour(out, COLOUR_NONE));
	*titled = true;
}

static void diag_print_fact(FILE *out, size_t mark, const char *text)
{
	terminal_line(out, UNDER_MARK, "  %s%-5s%s %s",
		      terminal_colour(out, diag_marks[mark].colour), diag_marks[mark].mark,
		      terminal_colour(out, COLOUR_NONE), text ? text : "");
}

/* All sections of a scope; those of @gpu alone, unless @gpu is NULL. */
static bool diag_is_among(const struct diag_section *s, enum diag_scope scope,
			  const struct pci_device *gpu)
{
	return s->scope == scope && (!gpu || s->gpu == gpu);
}

/* Whether all sections have the fact; then the fact is marked as printed. */
static bool diag_take_common(struct diag_report *report, enum diag_scope scope,
			     const struct pci_device *gpu, const struct diag_fact *fact)
{
	const struct diag_fact kept = *fact;

	for (size_t i = 0; i < report->count; i++)
		if (diag_is_among(&report->sections[i], scope, gpu) &&
		    !diag_find(&report->sections[i], &kept))
			return false;
	for (size_t i = 0; i < report->count; i++)
		if (diag_is_among(&report->sections[i], scope, gpu))
			diag_find(&report->sections[i], &kept)->printed = true;
	return true;
}

/* What all sections of the scope have, if there are several. */
static void diag_print_common(FILE *out, struct diag_report *report, enum diag_scope scope,
			      const struct pci_device *gpu, const char *title)
{
	struct diag_section *first = NULL;
	bool titled = false;
	size_t several = 0;

	for (size_t i = report->count; i-- > 0;)
		if (diag_is_among(&report->sections[i], scope, gpu)) {
			first = &report->sections[i];
			several++;
		}
	for (size_t mark = 0; several > 1 && mark < DIAG_MARKS; mark++)
		for (size_t i = 0; i < first->count; i++) {
			struct diag_fact *fact = &first->facts[i];

			if (fact->printed || strcmp(fact->mark, diag_marks[mark].mark) ||
			    !diag_take_common(report, scope, gpu, fact))
				continue;
			diag_print_title(out, title, &titled);
			diag_print_fact(out, mark, fact->text);
		}
}

/* What has not been printed of a section. */
static void diag_print_rest(FILE *out, const struct diag_section *s, const char *title)
{
	bool titled = false;

	for (size_t mark = 0; mark < DIAG_MARKS; mark++)
		for (size_t i = 0; i < s->count; i++) {
			if (s->facts[i].printed || strcmp(s->facts[i].mark, diag_marks[mark].mark))
				continue;
			diag_print_title(out, title, &titled);
			diag_print_fact(out, mark, s->facts[i].text);
		}
}

static void diag_print_section(FILE *out, struct diag_report *report, const struct diag_section *s)
{
	char title[128] = "machine";

	if (s->scope == DIAG_GPU)
		snprintf(title, sizeof(title), "GPU %s (%04x:%04x)", s->gpu->address,
			 s->gpu->vendor, s->gpu->id);
	if (s->scope == DIAG_PAIR)
		snprintf(title, sizeof(title), "GPU %s and %s %s (%04x:%04x)", s->gpu->address,
			 pci_kind(s->peer), s->peer->address, s->peer->vendor, s->peer->id);
	diag_print_rest(out, s, title);
	if (s->scope != DIAG_GPU)
		return;
	snprintf(title, sizeof(title), "GPU %s and every device", s->gpu->address);
	diag_print_common(out, report, DIAG_PAIR, s->gpu, title);
}

void diag_print(FILE *out, struct diag_report *report)
{
	diag_print_verdicts(out, report);
	for (size_t i = 0; i < report->count; i++) {
		const struct diag_section *s = &report->sections[i];

		diag_print_section(out, report, s);
		if (s->scope != DIAG_MACHINE)
			continue;
		diag_print_common(out, report, DIAG_GPU, NULL, "every GPU");
		diag_print_common(out, report, DIAG_PAIR, NULL, "every GPU and device");
	}
}
