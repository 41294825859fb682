/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporters of opaque descriptors: a row each, in exporter.c.  Code outside of this folder knows
 * an exporter by the number of the row, and by the facts of import_exporter_get().
 */
#ifndef IMPORT_OPAQUE_FD_EXPORTER_H
#define IMPORT_OPAQUE_FD_EXPORTER_H

#include "import/import.h"

/* Results of self-tests have the names. */
enum opaque_exporter_id { OPAQUE_BY_CUDA, OPAQUE_BY_RM, OPAQUE_EXPORTERS };
_Static_assert((int)OPAQUE_EXPORTERS == IMPORT_EXPORTERS, "a fact for each row");

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

	/* @size is set; and @is_on_device, if the facts say has_device_memory. */
	int (*sample)(const unsigned char *uuid, struct opaque_sample *sample);
	void (*sample_free)(struct opaque_sample *sample);
};

const struct opaque_exporter *opaque_exporter_get(unsigned int id);

#endif
