/* SPDX-License-Identifier: Apache-2.0 */
/* What import/ itself calls of regions as opaque descriptors: import_opaque() and what follows it in import.h. */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_H
#define IMPORT_OPAQUE_FD_OPAQUE_H

#include "import/import.h"

struct cache_stats;

/* The sum of all registrations. */
void opaque_stats(struct cache_stats *sum);

#endif
