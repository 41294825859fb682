/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped pointers whose access has to be ended: START comes with a map, END with its unmap.
 *
 * A mapping is a pointer into a region and a bracket: the map's, which knows whether START has
 * succeeded, until the driver has taken an unmap; then the unmap's, which ends what the map's
 * began.  An application may map one pointer several times: each map has a mapping.
 */
#ifndef ICD_ACCESS_MAPPING_H
#define ICD_ACCESS_MAPPING_H

#include "icd/access/bracket.h"

struct mapping;

/*
 * A mapping of @ptr, not yet known to mapping_unmap().  @map: a bracket that begins access.
 * NULL: no memory.
 */
struct mapping *mapping_create(struct bracket *map, const void *ptr);

/* The application is about to get the pointer.  Gives @mapping up. */
void mapping_add(struct mapping *mapping);

/* The application does not get the pointer: what was begun ends at once.  Gives @mapping up. */
void mapping_cancel(struct mapping *mapping);

/*
 * The driver has taken an unmap of @ptr.  @unmap: its bracket, before bracket_end(); it will end
 * what one of the pointer's maps began, and nothing if none has.
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
