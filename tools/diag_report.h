/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of climport diag.  A fact is a sentence with its remedy, marked ok, note or stop.  A
 * section has the facts of the machine, of a GPU, or of a pair: a GPU and a device that would reach
 * the GPU's memory.  A verdict is for a pair.
 *
 * All is collected first, and printed by diag_print(): verdicts, then sections.  A fact that all
 * GPUs or all pairs have is printed once.
 */
#ifndef TOOLS_DIAG_REPORT_H
#define TOOLS_DIAG_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "diag_pci.h"

#define MIB (1ull << 20)

/* Short reasons, for a verdict. */
struct reasons {
	char text[512];
};

enum diag_scope { DIAG_MACHINE, DIAG_GPU, DIAG_PAIR };
enum diag_verdict { DIAG_CANNOT, DIAG_MAY, DIAG_CAN };

struct diag_fact {
	const char *mark;
	char *text;
	bool printed;
};

struct diag_section {
	enum diag_scope scope;
	const struct pci_device *gpu, *peer; /* NULL where the scope has none */
	struct diag_fact *facts;
	size_t count;
	enum diag_verdict verdict; /* of a pair, or of a GPU without peers */
	struct reasons reasons;
	bool has_verdict, printed;
};

struct diag_report {
	struct diag_section *sections;
	size_t count;
};

struct machine {
	struct diag_report *report;
	const char *root;
	struct pci_device *devices;
	size_t count;
	enum answer p2pdma;
	struct reasons nvidia; /* reasons that stop all NVIDIA GPUs */
};

void add_reason(struct reasons *reasons, const char *reason);
/* Begins a section; the facts that follow are the section's. */
void diag_begin(const struct machine *m, enum diag_scope scope, const struct pci_device *gpu,
		const struct pci_device *peer);
/* Adds a fact to the last section. */
void diag_say(const struct machine *m, const char *mark, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The verdict of the last section. */
void diag_judge(const struct machine *m, enum diag_verdict verdict, const struct reasons *reasons);
/* diag_print.c */
void diag_print(FILE *out, struct diag_report *report);
void diag_free(struct diag_report *report);
/* In GiB or MiB; returns @text. */
const char *size_text(unsigned long long bytes, char *text, size_t size);

/* diag_machine.c: fills in @p2pdma and @nvidia. */
void report_machine(struct machine *m);

/* diag_gpu.c: adds to @stops the reasons that stop all peers of the GPU. */
void report_gpu_alone(const struct machine *m, const struct pci_device *gpu, struct reasons *stops);

/* diag_pair.c: facts and verdict.  1 if a reason stops the pair. */
int report_pair(const struct machine *m, const struct pci_device *gpu,
		const struct pci_device *peer, const struct reasons *gpu_stops);

#endif
