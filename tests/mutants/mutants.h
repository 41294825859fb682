/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutant is a way in which a driver of cl_arm_import_memory may be wrong.  rows.h lists the
 * mutants.  The variable MUTANT of the environment names the mutant that the layer is.
 *
 * The mutant lies above climport's layer (mutant_next) and is wrong in the one way.  A second layer
 * lies below climport's layer, for what only the driver does (mutant_driver):
 * OPENCL_LAYERS=BELOW:CLIMPORT:MUTANTS.
 *
 * A derived object is a sub-buffer or an image on an import.  An object is an import or a derived
 * object.
 */
#ifndef TESTS_MUTANTS_MUTANTS_H
#define TESTS_MUTANTS_MUTANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "below.h"

enum mutant {
	MUTANT_NONE,
#define USE(name, version, where, says, call, when, action) MUTANT_##name,
#define IMPORT(name, version, where, says, when, outcome) MUTANT_##name,
#define COPY(name, version, where, says, when, how) MUTANT_##name,
#define QUERY(name, version, where, says, shapes, param, answer) MUTANT_##name,
#define EXTERNAL(name, version, where, says, is_command, from, to) MUTANT_##name,
#define OTHER(name, version, where, says) MUTANT_##name,
#include "rows.h"
	MUTANT_COUNT
};

extern enum mutant mutant;
extern struct _cl_icd_dispatch mutant_next; /* climport's */

/* Whether the layer is the mutant @name of rows.h. */
#define MUTANT(name) (mutant == MUTANT_##name)

/* Sets of shapes are sums of bits. */
enum mutant_shape { SHAPE_IMPORT = 1, SHAPE_SUB = 2, SHAPE_IMAGE = 4, SHAPE_IMAGE_1D = 8 };

#define SHAPE_IMAGES (SHAPE_IMAGE | SHAPE_IMAGE_1D)
#define SHAPE_DERIVED (SHAPE_SUB | SHAPE_IMAGES)
#define SHAPE_ANY (SHAPE_IMPORT | SHAPE_DERIVED)

/* A record stays in memory after the object's end, since derived objects refer to the record. */
struct mutant_object {
	struct mutant_object *later;  /* in the list of live objects */
	struct mutant_object *parent; /* NULL for an import */
	enum mutant_shape shape;
	cl_mem mem;
	cl_context context;
	cl_mem_flags flags; /* that the application passed */
	unsigned char *memory;
	unsigned char *shadow; /* that the driver uses instead of the memory, or NULL */
	size_t size, origin;
	unsigned int number; /* of the import: 1 is the process's first */
	bool is_dma_buf, by_properties, parent_released, used_by_kernel;
	int fd, *fd_at;	      /* of a dma-buf */
	int own_fd;	      /* that the mutant holds, or 0 */
	const void *mapped;   /* the last map's pointer */
	unsigned char *saved; /* the first page's bytes at the import */
	bool is_ghost;	      /* a plain buffer at a freed address */
	bool had_sub, had_image;
	struct mutant_callback *callbacks;
};

/* objects.c; every function locks. */
struct mutant_object *mutant_find(cl_mem mem); /* NULL if @mem is no live object */
struct mutant_object *mutant_add(cl_mem mem, enum mutant_shape shape, cl_mem parent,
				 cl_mem_flags flags);
void mutant_forget(cl_mem mem);
void mutant_each(void (*visit)(struct mutant_object *, void *), void *arg);
unsigned int mutant_count_live(void); /* imports */
struct mutant_object *mutant_root(struct mutant_object *object);
cl_uint mutant_references(cl_mem mem);

/* The arguments of kernels that are objects. */
void mutant_set_argument(cl_kernel kernel, cl_uint index, cl_mem mem);
cl_mem mutant_argument(cl_kernel kernel); /* one of the objects, or NULL */

/* The queues in the order of their creation, from 1; 0 for a queue that is not known. */
void mutant_add_queue(cl_command_queue queue);
unsigned int mutant_queue_number(cl_command_queue queue);

/* Events of commands that use objects. */
void mutant_add_event(cl_event event);
bool mutant_has_event(cl_event event);

/* layer.c */
size_t mutant_page(void);
bool mutant_is_main_thread(void);
typedef cl_mem(CL_API_CALL *mutant_import_function)(cl_context, cl_mem_flags,
						    const cl_import_properties_arm *, void *,
						    size_t, cl_int *);
mutant_import_function mutant_next_import(cl_context context);

/* import.c */
cl_mem CL_API_CALL mutant_clImportMemoryARM(cl_context context, cl_mem_flags flags,
					    const cl_import_properties_arm *properties,
					    void *memory, size_t size, cl_int *errcode_ret);

void mutant_leak_mapping(void);

/* life.c: the context that the process made first, and its callback. */
cl_context mutant_first_context(void);
void mutant_tell_first_context(void);

/* shadow.c: imports that are copies. */
struct mutant_request;
extern unsigned char *mutant_shadow_memory; /* that the last shadow stands for */
unsigned char *mutant_shadow_create(const struct mutant_request *request);
bool mutant_has_shadows(void);
void mutant_shadows_before_enqueue(void);
void mutant_shadows_after_wait(void);
bool mutant_shadows_in_queue(void); /* whether commands of the queue copy */
void mutant_shadows_copy_in_queue(cl_command_queue queue, bool in, cl_uint num,
				  const cl_event *list, cl_event *done);
void mutant_shadow_release(struct mutant_object *object);

/* enqueue.c query.c derive.c life.c names.c: the functions that the layer offers. */
void mutant_offer_enqueue(struct _cl_icd_dispatch *offered);
void mutant_offer_query(struct _cl_icd_dispatch *offered);
void mutant_offer_derive(struct _cl_icd_dispatch *offered);
void mutant_offer_life(struct _cl_icd_dispatch *offered);
void mutant_offer_names(struct _cl_icd_dispatch *offered);

/* external.c: a function of cl_khr_external_memory, or NULL; an answer to a query of handle types, or 1. */
void mutant_offer_external(struct _cl_icd_dispatch *offered);
void *mutant_external_function(const char *name);
cl_int mutant_external_types(cl_uint param, size_t size, void *types, size_t *size_ret);

/* Offers mutant_NAME if the layer below has the function. */
#define MUTANT_OFFER(offered, name) ((offered)->name = mutant_next.name ? mutant_##name : NULL)

/* Of an import, before the layer decides. */
struct mutant_request {
	cl_context context;
	cl_mem_flags flags;
	const cl_import_properties_arm *properties;
	void *memory;
	size_t size;
	cl_int error; /* of climport's layer; CL_SUCCESS if climport imports */
};

enum mutant_import_when {
	/* what the text refuses */
	NULL_CONTEXT,
	NULL_MEMORY,
	SIZE_ZERO,
	TWO_ACCESSES,
	TWO_HOST_ACCESSES,
	FLAG_ALLOC,
	FLAG_COPY,
	FLAG_USE_AND_COPY,
	FLAG_UNKNOWN,
	FLAG_SVM,
	FLAG_KERNEL,
	PROPERTY_UNKNOWN,
	PROPERTY_UNKNOWN_SECOND,
	TYPE_UNKNOWN,
	TYPE_HIGH_BITS,
	TYPE_ZERO,
	HOLE_FIRST,
	HOLE_MIDDLE,
	HOLE_FAR,
	HOLE_LAST,
	HOLE_ALL,
	HOLE_READERS,
	HOLE_UNALIGNED,
	LOW_ADDRESS,
	KERNEL_ADDRESS,
	ADDRESS_OVERFLOW,
	SIZE_MAXIMUM,
	NOT_ACCESSIBLE,
	DMA_BUF_CLOSED,
	DMA_BUF_NEGATIVE,
	DMA_BUF_FILE,
	DMA_BUF_OTHER,
	DMA_BUF_TOO_LARGE,
	DMA_BUF_SIZE_ZERO,
	DMA_BUF_NULL,
	REFUSED,
	/* what the text allows */
	VALID,
	UNALIGNED,
	UNALIGNED_LINE,
	UNALIGNED_ODD,
	ODD_SIZE,
	ONE_BYTE,
	SMALL,
	LARGE,
	HUGE,
	SECOND,
	SAME_PAGES,
	SAME_PAGE_UNALIGNED,
	OTHER_ACCESS_SAME_PAGE,
	OF_A_FILE,
	OF_SHARED_MEMORY,
	ON_THE_STACK,
	IN_THE_HEAP,
	IN_THE_PROGRAM,
	UNTOUCHED,
	READ_ONLY_PAGES,
	READ_ONLY,
	WRITE_ONLY,
	NO_FLAGS,
	HOST_WRITE_ONLY,
	HOST_READ_ONLY,
	HOST_NO_ACCESS,
	USE_HOST_PTR,
	EMPTY_LIST,
	TYPE_LISTED,
	SECOND_CONTEXT,
	HUNDREDS,
	THREAD,
	AFTER_RELEASE,
	TWO_MAPPINGS,
	SEVERAL_DEVICES,
	ERROR_CODE_NULL,
	DMA_BUF,
	DMA_BUF_ZERO,
	DMA_BUF_PART,
	DMA_BUF_ODD_SIZE,
	DMA_BUF_TWICE,
	DMA_BUF_READ_ONLY,
	DMA_BUF_CONSISTENT,
	DMA_BUF_INCONSISTENT,
	DMA_BUF_TYPE_SECOND,
};

bool mutant_import_is(enum mutant_import_when when, const struct mutant_request *request);
bool mutant_is_dma_buf(const cl_import_properties_arm *properties);

#endif
