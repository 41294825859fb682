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
	const char *reasons = first->reasons.text;
	char *peers = diag_peers(report, first);
	struct terminal_text t;

	terminal_begin(&t, out, UNDER_MARK);
	terminal_add(&t, COLOUR_NONE, "verdict: %s ", peers ? peers : "a device");
	terminal_add(&t, diag_verdicts[first->verdict].colour, "%s",
		     diag_verdicts[first->verdict].verb);
	terminal_add(&t, COLOUR_NONE, " the memory of %s: %s%s.", first->gpu->address,
		     diag_verdicts[first->verdict].before,
		     *reasons ? reasons : diag_verdicts[first->verdict].otherwise);
	terminal_end(&t);
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

/* Addresses, with commas. */
struct diag_list {
	char *text;
	size_t size, count;
	FILE *stream; /* NULL: no memory */
};

static void diag_list_open(struct diag_list *list)
{
	*list = (struct diag_list){ 0 };
	list->stream = open_memstream(&list->text, &list->size);
}

static void diag_list_add(struct diag_list *list, const char *word)
{
	if (list->stream)
		fprintf(list->stream, "%s%s", list->count++ ? ", " : "", word);
}

/* Prints "GPU with A, B" below a fact, unless the list is empty, and ends the list. */
static void diag_list_print(FILE *out, struct diag_list *list, const char *gpu)
{
	if (!list->stream)
		return;
	fclose(list->stream);
	if (list->count)
		terminal_line(out, UNDER_MARK + 2, "%*s- %s with %s", UNDER_MARK, "", gpu,
			      list->text);
	free(list->text);
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
	struct terminal_text t;

	if (*titled)
		return;
	terminal_begin(&t, out, 4);
	terminal_add(&t, COLOUR_BOLD, "%s", title);
	terminal_end(&t);
	*titled = true;
}

static void diag_print_fact(FILE *out, size_t mark, const char *text)
{
	struct terminal_text t;

	terminal_begin(&t, out, UNDER_MARK);
	terminal_add(&t, COLOUR_NONE, "  ");
	terminal_add(&t, diag_marks[mark].colour, "%-5s", diag_marks[mark].mark);
	terminal_add(&t, COLOUR_NONE, " %s", text ? text : "");
	terminal_end(&t);
}

/* Whether all sections have the fact; then the fact is marked as printed. */
static bool diag_take_common(struct diag_report *report, enum diag_scope scope,
			     const struct diag_fact *fact)
{
	const struct diag_fact kept = *fact;

	for (size_t i = 0; i < report->count; i++)
		if (report->sections[i].scope == scope && !diag_find(&report->sections[i], &kept))
			return false;
	for (size_t i = 0; i < report->count; i++)
		if (report->sections[i].scope == scope)
			diag_find(&report->sections[i], &kept)->printed = true;
	return true;
}

/* What all sections of the scope have, if there are several. */
static void diag_print_common(FILE *out, struct diag_report *report, enum diag_scope scope,
			      const char *title)
{
	struct diag_section *first = NULL;
	bool titled = false;
	size_t several = 0;

	for (size_t i = report->count; i-- > 0;)
		if (report->sections[i].scope == scope) {
			first = &report->sections[i];
			several++;
		}
	for (size_t mark = 0; several > 1 && mark < DIAG_MARKS; mark++)
		for (size_t i = 0; i < first->count; i++) {
			struct diag_fact *fact = &first->facts[i];

			if (fact->printed || strcmp(fact->mark, diag_marks[mark].mark) ||
			    !diag_take_common(report, scope, fact))
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

/* Whether all pairs with @gpu and @peer, where these are given, have the fact, if several are. */
static bool diag_pairs_have(struct diag_report *report, const struct pci_device *gpu,
			    const struct pci_device *peer, const struct diag_fact *fact)
{
	size_t several = 0;

	for (size_t i = 0; i < report->count; i++) {
		const struct diag_section *s = &report->sections[i];

		if (s->scope != DIAG_PAIR || (gpu && s->gpu != gpu) || (peer && s->peer != peer))
			continue;
		if (!diag_find(s, fact))
			return false;
		several++;
	}
	return several > 1;
}

/* The devices of which all pairs have the fact: "every GPU with A, B".  Marks the pairs' facts. */
static void diag_print_peers(FILE *out, struct diag_report *report, const struct diag_fact *fact)
{
	struct diag_list list;

	diag_list_open(&list);
	for (size_t i = 0; i < report->count; i++) {
		const struct pci_device *peer = report->sections[i].peer;

		if (!peer || !diag_pairs_have(report, NULL, peer, fact))
			continue;
		diag_list_add(&list, peer->address);
		for (size_t k = 0; k < report->count; k++)
			if (report->sections[k].peer == peer)
				diag_find(&report->sections[k], fact)->printed = true;
	}
	diag_list_print(out, &list, "every GPU");
}

/* The other pairs, a line for each GPU. */
static void diag_print_gpus(FILE *out, struct diag_report *report, const struct diag_fact *fact)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct pci_device *gpu = report->sections[i].gpu;
		const bool all = diag_pairs_have(report, gpu, NULL, fact);
		struct diag_list list;

		if (report->sections[i].scope != DIAG_GPU)
			continue;
		diag_list_open(&list);
		for (size_t k = 0; k < report->count; k++) {
			const struct diag_section *s = &report->sections[k];
			struct diag_fact *found;

			found = s->scope == DIAG_PAIR && s->gpu == gpu ? diag_find(s, fact) : NULL;
			if (!found)
				continue;
			if (!all || !list.count)
				diag_list_add(&list, all ? "every device" : s->peer->address);
			found->printed = true;
		}
		diag_list_print(out, &list, gpu->address);
	}
}

/* A fact of some pairs is printed once, with the pairs. */
static void diag_print_pairs(FILE *out, struct diag_report *report)
{
	bool titled = false;

	for (size_t mark = 0; mark < DIAG_MARKS; mark++)
		for (size_t i = 0; i < report->count; i++) {
			const struct diag_section *s = &report->sections[i];

			for (size_t k = 0; s->scope == DIAG_PAIR && k < s->count; k++) {
				const struct diag_fact fact = s->facts[k];

				if (fact.printed || !fact.text ||
				    strcmp(fact.mark, diag_marks[mark].mark))
					continue;
				diag_print_title(out, "GPU and device", &titled);
				diag_print_fact(out, mark, fact.text);
				diag_print_peers(out, report, &fact);
				diag_print_gpus(out, report, &fact);
			}
		}
}

static void diag_print_section(FILE *out, const struct diag_section *s)
{
	char title[128] = "machine";

	if (s->scope == DIAG_GPU)
		snprintf(title, sizeof(title), "GPU %s (%04x:%04x)", s->gpu->address,
			 s->gpu->vendor, s->gpu->id);
	if (s->scope == DIAG_PAIR)
		snprintf(title, sizeof(title), "GPU %s and %s %s (%04x:%04x)", s->gpu->address,
			 pci_kind(s->peer), s->peer->address, s->peer->vendor, s->peer->id);
	diag_print_rest(out, s, title);
}

static void diag_print_sections(FILE *out, struct diag_report *report, enum diag_scope scope)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->sections[i].scope == scope)
			diag_print_section(out, &report->sections[i]);
}

/* The devices of several pairs: a line for each. */
static void diag_print_devices(FILE *out, const struct diag_report *report)
{
	bool titled = false;

	for (size_t i = 0; i < report->count; i++) {
		const struct pci_device *peer = report->sections[i].peer;
		size_t first = 0;

		while (report->sections[first].peer != peer)
			first++;
		if (!peer || first != i)
			continue;
		diag_print_title(out, "devices", &titled);
		terminal_line(out, UNDER_MARK, "  %s  %s (%04x:%04x)", peer->address,
			      pci_kind(peer), peer->vendor, peer->id);
	}
}

static size_t diag_count_pairs(const struct diag_report *report)
{
	size_t pairs = 0;

	for (size_t i = 0; i < report->count; i++)
		pairs += report->sections[i].scope == DIAG_PAIR;
	return pairs;
}

void diag_print(FILE *out, struct diag_report *report)
{
	diag_print_verdicts(out, report);
	diag_print_sections(out, report, DIAG_MACHINE);
	diag_print_common(out, report, DIAG_GPU, "every GPU");
	diag_print_sections(out, report, DIAG_GPU);
	if (diag_count_pairs(report) <= 1) {
		diag_print_sections(out, report, DIAG_PAIR);
		return;
	}
	diag_print_devices(out, report);
	diag_print_common(out, report, DIAG_PAIR, "every GPU and device");
	diag_print_pairs(out, report);
}
