/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of climport diag: a line for each fact, marked ok, note or stop, with the remedy.
 */
#ifndef TOOLS_DIAG_REPORT_H
#define TOOLS_DIAG_REPORT_H

#include <stdio.h>

#include "diag_pci.h"

#define MIB (1ull << 20)

/* Short reasons, for a verdict. */
struct reasons {
	char text[512];
};

struct machine {
	FILE *out;
	const char *root;
	struct pci_device *devices;
	size_t count;
	int gdmabuf; /* descriptor or -1 */
	enum answer p2pdma;
	struct reasons nvidia; /* reasons that stop all NVIDIA GPUs */
};

void add_reason(struct reasons *reasons, const char *reason);
void diag_say(const struct machine *m, const char *mark, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* In GiB or MiB; returns @text. */
const char *size_text(unsigned long long bytes, char *text, size_t size);

/* diag_machine.c: opens gdmabuf, and fills in @p2pdma and @nvidia. */
void report_machine(struct machine *m);

/* diag_gpu.c: adds to @stops the reasons that stop all peers of the GPU. */
void report_gpu_alone(const struct machine *m, const struct pci_device *gpu, struct reasons *stops);

/* diag_pair.c: facts and verdict.  1 if a reason stops the pair. */
int report_pair(const struct machine *m, const struct pci_device *gpu,
		const struct pci_device *peer, const struct reasons *gpu_stops);

#endif
