/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cl_mem objects that are imports, and those made from them.
 *
 * A record lives in the table as long as the application can name the object:
 * it counts the application's references itself, from 1 at creation, and takes
 * the record out before the driver's object can go.  So an address that the
 * driver uses again never finds an old record, whatever the driver does with
 * destructor callbacks.  Those decide only when the memory may go.
 */
#ifndef ICD_OBJECTS_MEMOBJ_H
#define ICD_OBJECTS_MEMOBJ_H

#include <stdatomic.h>
#include <stdbool.h>

#include "icd/cl_compat.h"
#include "import/import.h"

struct method_ops;

struct memobj {
	cl_mem handle;
	cl_context context;	      /* of the import; its record may be gone */
	struct import_region *region; /* held */
	size_t origin;		      /* bytes from region->addr */
	bool bracket; /* use has to be bracketed: dma-buf, consistency kept by the runtime */
	struct memobj *parent;		 /* held; NULL for an import */
	bool hides_parent;		 /* the driver does not know the parent: answered here */
	const struct method_ops *method; /* by which the driver took the import */
	void *hidden; /* of an import: struct method_buffer's, released with the record; or NULL */
	atomic_uint refs;     /* holders of the record */
	unsigned int handles; /* application's references, and children; memobj_lock */
};

/* Records in the table.  While there are none, every call goes straight on. */
extern atomic_uint memobj_count;

static inline bool memobj_live(void)
{
	return atomic_load_explicit(&memobj_count, memory_order_relaxed) != 0;
}

/* No lock; nanoseconds. */
bool memobj_is_import(cl_mem mem);

/* A reference to the record of @mem, or NULL.  Drop with memobj_put(). */
struct memobj *memobj_get(cl_mem mem);
/* The import that an object is made from, itself perhaps; borrowed. */
const struct memobj *memobj_import(const struct memobj *obj);
struct memobj *memobj_hold(struct memobj *obj);
void memobj_put(struct memobj *obj);

/**
 * memobj_watch - hold a region until the driver has destroyed @mem
 *
 * Returns CL_SUCCESS or the driver's error; then nothing is held.
 */
cl_int memobj_watch(cl_mem mem, struct import_region *region);

/**
 * memobj_watch_part - hold an object's memory and its parent's object until the driver has
 * destroyed @mem, which does not know its parent
 *
 * So the parent's destructor callbacks, the application's among them, come when no command uses
 * @mem any more.
 *
 * Returns CL_SUCCESS, or an error; then nothing is held.
 */
cl_int memobj_watch_part(cl_mem mem, const struct memobj *parent);

/**
 * memobj_add - record an object that the application is about to get
 * @like: its fields; @like->parent is held by the caller
 *
 * Holds like->region and like->parent.  like->hidden is taken over on success only.
 *
 * Returns CL_SUCCESS or CL_OUT_OF_HOST_MEMORY.
 */
cl_int memobj_add(const struct memobj *like);

#endif /* ICD_OBJECTS_MEMOBJ_H */
