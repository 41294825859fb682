/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of climport diag.  A fact is a sentence with its remedy, of the machine, of a GPU, or
 * of a pair: a GPU and a device that would reach the GPU's memory.  A verdict is for a pair.
 *
 * All is collected first, and printed by diag_print(): verdicts, then facts.  A fact that several GPUs
 * or pairs have is printed once.
 */
#ifndef TOOLS_DIAG_REPORT_H
#define TOOLS_DIAG_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "diag_pci.h"

#define MIB ((size_t)1 << 20)

/* Short reasons, for a verdict. */
struct reasons {
	char text[512];
};

enum diag_mark { STOP, NOTE, OK };
enum diag_verdict { DIAG_CANNOT, DIAG_MAY, DIAG_CAN };

/* Whose a fact or a verdict is.  No GPU: the machine's.  No peer: the GPU's. */
struct diag_owner {
	const struct pci_device *gpu, *peer;
};

struct diag_fact {
	struct diag_owner owner;
	enum diag_mark mark;
	char *text;
	bool printed;
};

struct diag_judgement {
	struct diag_owner owner; /* a GPU alone: there is no peer */
	enum diag_verdict verdict;
	struct reasons reasons;
	bool printed;
};

struct machine {
	const char *root;
	struct pci_device *devices;
	size_t count;
	enum answer p2pdma;
	struct reasons nvidia; /* reasons that stop all NVIDIA GPUs */

	struct diag_owner owner; /* of what is said now */
	size_t gpus, pairs;
	struct diag_fact *facts;
	size_t fact_count;
	struct diag_judgement *judgements;
	size_t judgement_count;
};

void add_reason(struct reasons *reasons, const char *reason);
void diag_say(struct machine *m, enum diag_mark mark, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void diag_judge(struct machine *m, enum diag_verdict verdict, const struct reasons *reasons);
void diag_print(FILE *out, struct machine *m);
void diag_print_json(FILE *out, struct machine *m);
void diag_free(struct machine *m);

/* diag_machine.c: fills in @p2pdma and @nvidia. */
void report_machine(struct machine *m);

/* diag_gpu.c: adds to @stops the reasons that stop all peers of the GPU. */
void report_gpu_alone(struct machine *m, const struct pci_device *gpu, struct reasons *stops);
/* Facts and verdict.  1 if a reason stops the pair. */
int report_pair(struct machine *m, const struct pci_device *gpu, const struct pci_device *peer,
		const struct reasons *gpu_stops);

#endif
