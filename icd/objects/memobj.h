/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects that are imports, and memory objects that are made from imports.
 *
 * An import's record is in the table while the application can name the object.  When the memory may go, a
 * destructor callback decides: the driver alone knows when the last command that uses an object is done.
 */
#ifndef ICD_OBJECTS_MEMOBJ_H
#define ICD_OBJECTS_MEMOBJ_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/objects/handle_table.h"
#include "import/import.h"

struct backing;
struct method_ops;

struct memobj {
	struct handle_record record; /* handles: the application's references, and children */
	cl_mem handle;
	cl_context context;	      /* of the import; the context's record may be gone */
	struct import_region *region; /* held, by the import's record */
	size_t origin;		      /* bytes from region->addr */
	bool is_managed; /* of an import: not the application keeps a dma-buf consistent */
	bool external;	 /* of cl_khr_external_memory: the program acquires and releases it */
	cl_mem_properties *
		properties; /* with which such an object was created, freed with the record; or NULL */
	struct memobj *parent; /* held; NULL for an import */
	bool hides_parent;     /* the driver does not know the parent: the layer answers */
	const struct method_ops *method; /* by which the driver took the import */
	struct backing
		*backing; /* of an import: struct method_buffer's, a use as long as the record */
	size_t offset;	  /* the same */
};

extern struct handle_table memobj_table;

/* Whether any import is alive.  If not, and no bracket is open, every call goes straight to the driver. */
static inline bool memobj_live(void)
{
	return handle_table_any(&memobj_table);
}

/* Whether @mem is an import, or made from one.  No lock; nanoseconds. */
static inline bool memobj_is_known(cl_mem mem)
{
	return handle_table_has(&memobj_table, mem);
}

/* A reference to the record of @mem, or NULL.  Ends with memobj_put(). */
struct memobj *memobj_get(cl_mem mem);
void memobj_put(struct memobj *obj);

/* The import that @obj is made from, or @obj if @obj is an import; borrowed. */
const struct memobj *memobj_import(const struct memobj *obj);

/* Whether a device acquires the object before a command uses it: struct method_ops, enqueue_edge. */
bool memobj_needs_acquire(const struct memobj *obj);

/* Whether commands that use the object need a bracket, or an acquire. */
bool memobj_needs_access(const struct memobj *obj);

/* Whether a command of a command buffer, which has neither, may use the object: the application keeps it consistent. */
bool memobj_is_recordable(const struct memobj *obj);

/* The imports that a command uses, held: those whose commands need a bracket, or an acquire. */
#define MEMOBJ_LIST_MAX 64

struct memobj_list {
	size_t count, left_out; /* with any left out, the command must not be enqueued */
	struct memobj *objs[MEMOBJ_LIST_MAX];
};

/* Adds an import, and takes over the reference. */
void memobj_list_take(struct memobj_list *list, struct memobj *obj);

/* Adds @mem if it is an import that needs access. */
void memobj_list_add(struct memobj_list *list, cl_mem mem);

/* Drops the imports, and empties the list. */
void memobj_list_put(struct memobj_list *list);

/* The driver's root object of an import, which is acquired: the handle, or its backing buffer. */
cl_mem memobj_root(const struct memobj *import);

/*
 * Holds a region until the driver has destroyed @mem.  Host memory that is the application's (is_borrowed) needs no
 * hold, unless import_opaque() keeps something of it.  Returns CL_SUCCESS or the driver's error; then nothing is held.
 */
cl_int memobj_hold_until_destroyed(cl_mem mem, struct import_region *region);

/*
 * @mem, a buffer of a test's, which holds the region until the driver has destroyed it.  NULL: @mem is NULL, or is
 * released, and @err is set.
 */
cl_mem memobj_holding(cl_mem mem, struct import_region *region, cl_int *err);

/* Where the record of an import goes: its region has room (struct import_desc). */
static inline struct memobj *memobj_of(struct import_region *region)
{
	return (struct memobj *)(region + 1);
}

/**
 * memobj_add - record an object that the application is about to get
 * @obj: of an import memobj_of(), else allocated; obj->parent is held by the caller
 *
 * Holds obj->parent.  On success takes over @obj with its backing buffer, its properties and, of an import, its region; the
 * region of another object is held by the parent.
 *
 * Returns CL_SUCCESS or CL_OUT_OF_HOST_MEMORY, logged.
 */
cl_int memobj_add(struct memobj *obj);

/* The application retains @mem, perhaps an import. */
static inline void memobj_retain(cl_mem mem)
{
	handle_table_retain(&memobj_table, mem);
}

/**
 * memobj_release - the application releases @mem
 * @import: set to the record of the import, @mem or a parent of @mem, if the import leaves the
 *	table; else NULL.  Valid as long as the returned record.
 *
 * Returns a reference if the handle was the last, to be put when the driver's object is released;
 * else NULL.
 */
struct memobj *memobj_release(cl_mem mem, const struct memobj **import);

#endif /* ICD_OBJECTS_MEMOBJ_H */
