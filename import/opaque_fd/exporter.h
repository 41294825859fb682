/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporters of opaque descriptors: a row each, in exporter.c.  Code outside of this folder knows
 * an exporter by the number of the row, and by the facts of import_exporter_get().
 */
#ifndef IMPORT_OPAQUE_FD_EXPORTER_H
#define IMPORT_OPAQUE_FD_EXPORTER_H

#include "import/import.h"

/* An exporter is asked before those with higher numbers.  Results of self-tests have the names. */
enum opaque_exporter_id { OPAQUE_BY_CUDA, OPAQUE_BY_RM, OPAQUE_BY_VULKAN, OPAQUE_EXPORTERS };
_Static_assert((int)OPAQUE_EXPORTERS == IMPORT_EXPORTERS, "a fact for each row");

/* What an exporter makes of memory. */
struct opaque_export {
	int fd;	      /* the caller's */
	void *memory; /* for the row's free(); NULL: a driver's buffer alone keeps the memory */
};

/* Memory of which the exporter makes descriptors: the host's, or the device's own. */
struct opaque_sample {
	void *addr;
	size_t size;
	bool is_on_device;
	void *memory; /* the row's */
};

/* Functions return 0 or a negative errno, logged. */
struct opaque_exporter {
	struct import_exporter facts;
	const char *by; /* the value of CLIMPORT_NVIDIA_BY that allows the exporter; NULL: any */

	/* @size is set; and @is_on_device, if the facts say has_device_memory. */
	int (*sample)(const unsigned char *uuid, struct opaque_sample *sample);
	void (*sample_free)(struct opaque_sample *sample);

	/* Whole pages of the host; NULL: memory of the exporter's own alone (opaque_cuda.h). */
	int (*import_host)(const unsigned char *uuid, void *addr, size_t size,
			   struct opaque_export *export);
	/* With import_host. */
	int (*import_dmabuf)(const unsigned char *uuid, int dmabuf, size_t size,
			     struct opaque_export *export);
	/* NULL: no @memory to free. */
	void (*free)(void *memory);

	/* Without free(): registrations of host memory may stay after their imports. */
	bool keeps_pages;
	/* NULL, or whether a device takes dma-bufs of any memory, of devices too. */
	bool (*takes_all_dmabufs)(const unsigned char *uuid);
};

const struct opaque_exporter *opaque_exporter_get(unsigned int id);

/*
 * The number of the first exporter of host pages that @exporters, a bit for each, allow.  If they
 * allow none, the last that the environment allows, whose refusal is the reason for the user.
 */
unsigned int opaque_exporter_choose(unsigned int exporters);

#endif
