/* SPDX-License-Identifier: Apache-2.0 */
#include "diag_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "terminal.h"

#define UNDER_MARK 8 /* the column of a fact's sentence */

static const struct {
	const char *word;
	enum terminal_colour colour;
} diag_marks[] = {
	[STOP] = { "stop", COLOUR_BAD },
	[NOTE] = { "note", COLOUR_DOUBT },
	[OK] = { "ok", COLOUR_GOOD },
};

static const struct {
	const char *word, *before; /* the reasons */
	enum terminal_colour colour;
} diag_verdicts[] = {
	[DIAG_CANNOT] = { "cannot", "", COLOUR_BAD },
	[DIAG_MAY] = { "may", "nothing known stops it, but ", COLOUR_DOUBT },
	[DIAG_CAN] = { "can", "nothing stops it", COLOUR_GOOD },
};

void add_reason(struct reasons *reasons, const char *reason)
{
	size_t used = strlen(reasons->text);

	snprintf(reasons->text + used, sizeof(reasons->text) - used, "%s%s", used ? "; " : "",
		 reason);
}

/* @list with room for another element of @size bytes after @count.  No memory ends the program. */
static void *diag_grow(void *list, size_t count, size_t size)
{
	list = reallocarray(list, count + 1, size);
	if (!list) {
		perror("climport: diag");
		exit(1);
	}
	return list;
}

void diag_say(struct machine *m, enum diag_mark mark, const char *format, ...)
{
	struct diag_fact fact = { .owner = m->owner, .mark = mark };
	va_list args;

	va_start(args, format);
	fact.text = terminal_format(format, args);
	va_end(args);
	if (!fact.text)
		return;
	m->facts = diag_grow(m->facts, m->fact_count, sizeof(fact));
	m->facts[m->fact_count++] = fact;
}

void diag_judge(struct machine *m, enum diag_verdict verdict, const struct reasons *reasons)
{
	m->judgements = diag_grow(m->judgements, m->judgement_count, sizeof(*m->judgements));
	m->judgements[m->judgement_count++] =
		(struct diag_judgement){ m->owner, verdict, *reasons, false };
}

void diag_free(struct machine *m)
{
	for (size_t i = 0; i < m->fact_count; i++)
		free(m->facts[i].text);
	free(m->facts);
	free(m->judgements);
	for (size_t i = 0; i < m->count; i++)
		free(m->devices[i].path);
	free(m->devices);
}

/* Peers with the same verdict share a sentence. */
static void diag_print_verdict(FILE *out, struct machine *m, struct diag_judgement *first)
{
	const char *address = first->owner.gpu->address, *reasons = first->reasons.text;
	struct terminal_text t;

	terminal_begin(&t, out, UNDER_MARK);
	terminal_add(&t, COLOUR_NONE, "verdict: ");
	for (struct diag_judgement *j = first; j < m->judgements + m->judgement_count; j++) {
		if (j->owner.gpu != first->owner.gpu || j->verdict != first->verdict ||
		    strcmp(j->reasons.text, reasons))
			continue;
		terminal_add(&t, COLOUR_NONE, "%s%s", j == first ? "" : ", ",
			     j->owner.peer->address);
		j->printed = true;
	}
	terminal_add(&t, COLOUR_NONE, " ");
	terminal_add(&t, diag_verdicts[first->verdict].colour, "%s",
		     diag_verdicts[first->verdict].word);
	terminal_add(&t, COLOUR_NONE, " reach the memory of %s: %s%s.", address,
		     diag_verdicts[first->verdict].before, reasons);
	terminal_end(&t);
}

static void diag_print_verdicts(FILE *out, struct machine *m)
{
	for (size_t i = 0; i < m->judgement_count; i++) {
		struct diag_judgement *j = &m->judgements[i];

		if (j->owner.peer && !j->printed)
			diag_print_verdict(out, m, j);
		else if (!j->owner.peer)
			terminal_line(out, UNDER_MARK,
				      "verdict: no other device is present that could reach the "
				      "memory of %s%s%s.",
				      j->owner.gpu->address,
				      *j->reasons.text ? ", and no device could reach it: " : "",
				      j->reasons.text);
	}
	if (!m->gpus)
		terminal_line(out, UNDER_MARK,
			      "verdict: there is no GPU: no PCI device of class 03 or 12 has a "
			      "prefetchable memory BAR.");
}

static bool diag_fact_is_same(const struct diag_fact *a, const struct diag_fact *b)
{
	return !a->owner.gpu == !b->owner.gpu && !a->owner.peer == !b->owner.peer &&
	       a->mark == b->mark && !strcmp(a->text, b->text);
}

/* Which GPUs have the fact, or which devices with a GPU: a line for each GPU. */
static void diag_print_owners(FILE *out, struct machine *m, const struct diag_fact *first)
{
	const struct pci_device *gpu = NULL;
	struct terminal_text t;

	for (const struct diag_fact *f = first; f < m->facts + m->fact_count; f++) {
		if (!diag_fact_is_same(f, first))
			continue;
		if (f->owner.gpu != gpu) {
			if (gpu)
				terminal_end(&t);
			gpu = f->owner.gpu;
			terminal_begin(&t, out, UNDER_MARK + 2);
			terminal_add(&t, COLOUR_NONE, "%*s- %s%s", UNDER_MARK, "", gpu->address,
				     f->owner.peer ? " with " : "");
		} else {
			terminal_add(&t, COLOUR_NONE, ", ");
		}
		if (f->owner.peer)
			terminal_add(&t, COLOUR_NONE, "%s", f->owner.peer->address);
	}
	terminal_end(&t);
}

/* @of: GPUs or pairs that could have the fact.  If all have it, they are not listed. */
static void diag_print_fact(FILE *out, struct machine *m, struct diag_fact *first, size_t of)
{
	struct terminal_text t;
	size_t owners = 0;

	terminal_begin(&t, out, UNDER_MARK);
	terminal_add(&t, COLOUR_NONE, "  ");
	terminal_add(&t, diag_marks[first->mark].colour, "%-5s", diag_marks[first->mark].word);
	terminal_add(&t, COLOUR_NONE, " %s", first->text);
	terminal_end(&t);
	for (struct diag_fact *f = first; f < m->facts + m->fact_count; f++)
		if (diag_fact_is_same(f, first)) {
			f->printed = true;
			owners++;
		}
	if (owners < of)
		diag_print_owners(out, m, first);
}

static void diag_print_title(FILE *out, const char *title)
{
	struct terminal_text t;

	terminal_begin(&t, out, 4);
	terminal_add(&t, COLOUR_BOLD, "%s", title);
	terminal_end(&t);
}

/* The facts that are neither a GPU's nor a pair's, or a GPU's, or a pair's. */
static void diag_print_facts(FILE *out, struct machine *m, bool gpu, bool peer, size_t of,
			     const char *title)
{
	bool titled = false;

	for (enum diag_mark mark = STOP; mark <= OK; mark++)
		for (struct diag_fact *f = m->facts; f < m->facts + m->fact_count; f++) {
			if (f->printed || f->mark != mark || !f->owner.gpu == gpu ||
			    !f->owner.peer == peer)
				continue;
			if (!titled)
				diag_print_title(out, title);
			titled = true;
			diag_print_fact(out, m, f, of);
		}
}

/* The devices of several pairs: a line for each. */
static void diag_print_devices(FILE *out, const struct machine *m)
{
	diag_print_title(out, "devices");
	for (size_t i = 0; i < m->count; i++) {
		const struct pci_device *d = &m->devices[i];
		size_t pair = 0;

		while (pair < m->judgement_count && m->judgements[pair].owner.peer != d)
			pair++;
		if (pair < m->judgement_count)
			terminal_line(out, UNDER_MARK, "  %s  %s (%04x:%04x)", d->address,
				      pci_kind(d), d->vendor, d->id);
	}
}

void diag_print(FILE *out, struct machine *m)
{
	char gpu[128] = "GPUs", pair[128] = "GPU and device";

	for (size_t i = 0; i < m->judgement_count; i++) {
		const struct pci_device *g = m->judgements[i].owner.gpu,
					*p = m->judgements[i].owner.peer;

		if (m->gpus == 1)
			snprintf(gpu, sizeof(gpu), "GPU %s (%04x:%04x)", g->address, g->vendor,
				 g->id);
		if (m->pairs == 1 && p)
			snprintf(pair, sizeof(pair), "GPU %s and %s %s (%04x:%04x)", g->address,
				 pci_kind(p), p->address, p->vendor, p->id);
	}
	diag_print_verdicts(out, m);
	diag_print_facts(out, m, false, false, 1, "machine");
	diag_print_facts(out, m, true, false, m->gpus, gpu);
	if (m->pairs > 1)
		diag_print_devices(out, m);
	diag_print_facts(out, m, true, true, m->pairs, pair);
}

/* Opens an object.  The machine's has no GPU, and a GPU's no peer. */
static void diag_json_open(struct json *j, const struct diag_owner *owner)
{
	json_open(j, NULL, '{');
	json_string(j, "gpu", owner->gpu ? owner->gpu->address : NULL);
	json_string(j, "peer", owner->peer ? owner->peer->address : NULL);
}

void diag_print_json(FILE *out, struct machine *m)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_open(&j, "verdicts", '[');
	for (size_t i = 0; i < m->judgement_count; i++) {
		diag_json_open(&j, &m->judgements[i].owner);
		json_string(&j, "reach", diag_verdicts[m->judgements[i].verdict].word);
		json_string(&j, "reasons", m->judgements[i].reasons.text);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "facts", '[');
	for (size_t i = 0; i < m->fact_count; i++) {
		diag_json_open(&j, &m->facts[i].owner);
		json_string(&j, "mark", diag_marks[m->facts[i].mark].word);
		json_string(&j, "text", m->facts[i].text);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}
