/* SPDX-License-Identifier: Apache-2.0 */
#include "diag_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void add_reason(struct reasons *reasons, const char *reason)
{
	size_t used = strlen(reasons->text);

	snprintf(reasons->text + used, sizeof(reasons->text) - used, "%s%s", used ? "; " : "",
		 reason);
}

/* @list with room for another element of @size bytes behind @count.  No memory ends the program. */
static void *diag_grow(void *list, size_t count, size_t size)
{
	list = reallocarray(list, count + 1, size);
	if (!list) {
		perror("climport: diag");
		exit(1);
	}
	return list;
}

static struct diag_section *diag_last(const struct machine *m)
{
	return &m->report->sections[m->report->count - 1];
}

void diag_begin(const struct machine *m, enum diag_scope scope, const struct pci_device *gpu,
		const struct pci_device *peer)
{
	struct diag_report *report = m->report;

	report->sections = diag_grow(report->sections, report->count, sizeof(*report->sections));
	report->sections[report->count++] =
		(struct diag_section){ .scope = scope, .gpu = gpu, .peer = peer };
}

void diag_say(const struct machine *m, const char *mark, const char *format, ...)
{
	struct diag_section *section = diag_last(m);
	struct diag_fact fact = { .mark = mark };
	va_list args;

	va_start(args, format);
	if (vasprintf(&fact.text, format, args) < 0)
		fact.text = NULL;
	va_end(args);
	section->facts = diag_grow(section->facts, section->count, sizeof(fact));
	section->facts[section->count++] = fact;
}

void diag_judge(const struct machine *m, enum diag_verdict verdict, const struct reasons *reasons)
{
	struct diag_section *section = diag_last(m);

	section->has_verdict = true;
	section->verdict = verdict;
	section->reasons = *reasons;
}

void diag_free(struct diag_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		for (size_t k = 0; k < report->sections[i].count; k++)
			free(report->sections[i].facts[k].text);
		free(report->sections[i].facts);
	}
	free(report->sections);
}

const char *size_text(unsigned long long bytes, char *text, size_t size)
{
	if (bytes >= 1024 * MIB && !(bytes % (1024 * MIB)))
		snprintf(text, size, "%llu GiB", bytes >> 30);
	else
		snprintf(text, size, "%llu MiB", bytes >> 20);
	return text;
}
