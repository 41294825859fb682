/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped pointers whose access has to be ended: START comes with a map, END with its unmap.
 *
 * A mapping is a pointer into a region, and a bracket.  Until the driver has taken an unmap, the
 * bracket is the map's, which knows whether START has succeeded; then the bracket is the unmap's,
 * which ends the map's access.  If an application maps a pointer several times, each map has a
 * mapping.
 */
#ifndef ICD_ACCESS_MAPPING_H
#define ICD_ACCESS_MAPPING_H

#include "icd/access/bracket.h"

struct mapping;

/*
 * A mapping whose pointer is not known yet, before the driver maps: a map that the driver has
 * enqueued needs a record.  @map: a bracket that begins access.  NULL: no memory.
 */
struct mapping *mapping_create(struct bracket *map);

/* The application is about to get @ptr.  Gives @mapping up. */
void mapping_add(struct mapping *mapping, const void *ptr);

/* The application gets no pointer: access ends at once.  Gives @mapping up. */
void mapping_cancel(struct mapping *mapping);

/*
 * The driver has taken an unmap of @ptr.  @unmap: the bracket, before bracket_end().  The bracket
 * will end the access of a map of @ptr, if a map has begun.
 */
void mapping_unmap(const void *ptr, struct bracket *unmap);

/*
 * The application has released the import: access for maps without an unmap ends, and for maps
 * whose unmap has failed, which some drivers do not tell (PoCL 3.1).
 */
void mapping_release(const struct import_region *region);

/* The driver has destroyed the import: no unmap is in a queue. */
void mapping_forget(const struct import_region *region);

#endif /* ICD_ACCESS_MAPPING_H */
