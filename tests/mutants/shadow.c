/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports that are copies: the rows COPY of rows.h.  A shadow is memory that the driver gets instead
 * of the application's memory; a row tells when bytes go from the memory to the shadow and back.
 */
#include "mutants.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum how {
	COPY_AT_IMPORT,	    /* in, once */
	COPY_AT_ENDS,	    /* in at the import, out at the release */
	COPY_AT_ENQUEUE,    /* in when a command is enqueued, out when the host has waited */
	COPY_IN_ONLY,	    /* in when a command is enqueued */
	COPY_OUT_ONLY,	    /* in at the import, out when the host has waited */
	COPY_OUT_WHOLE,	    /* out when the host has waited, never in */
	COPY_IN_QUEUE,	    /* in and out by commands of the queue */
	COPY_PAGES_IN_QUEUE /* likewise; in at the enqueue, out as whole pages */
};

static const struct row {
	enum mutant mutant;
	enum mutant_import_when when;
	enum how how;
} rows[] = {
#define COPY(name, version, where, says, when, how) { MUTANT_##name, when, how },
#include "rows.h"
};

enum { COPIED_ABOVE = 96 << 20 };

unsigned char *mutant_shadow_memory;

static bool any_shadow;

static const struct row *shadow_row(void)
{
	static const struct row above_96_mib = { MUTANT_copied_above_96_mib, VALID,
						 COPY_AT_IMPORT };

	if (MUTANT(copied_above_96_mib))
		return &above_96_mib;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].mutant == mutant)
			return &rows[i];
	return NULL;
}

static bool shadow_is_wanted(const struct mutant_request *r)
{
	const struct row *row = shadow_row();

	if (!row || !r->context || !r->memory || !r->size)
		return false;
	if (MUTANT(copied_above_96_mib) && r->size <= COPIED_ABOVE)
		return false;
	return mutant_import_is(row->when, r);
}

/* The memory of a dma-buf is a mapping of the descriptor. */
static unsigned char *shadow_memory_of(const struct mutant_request *r)
{
	void *mapped;

	if (!mutant_is_dma_buf(r->properties))
		return r->memory;
	mapped = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, *(int *)r->memory, 0);
	return mapped == MAP_FAILED ? NULL : mapped;
}

/* The caller knows that climport's layer accepts the request. */
unsigned char *mutant_shadow_create(const struct mutant_request *r)
{
	const size_t in_page = (uintptr_t)r->memory % mutant_page();
	unsigned char *memory, *shadow;

	if (!shadow_is_wanted(r))
		return NULL;
	memory = shadow_memory_of(r);
	if (!memory)
		return NULL;
	shadow = mmap(NULL, r->size + 2 * mutant_page(), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shadow == MAP_FAILED)
		abort();
	shadow += in_page;
	if (shadow_row()->how != COPY_OUT_WHOLE)
		memcpy(shadow, memory, r->size);
	mutant_shadow_memory = memory;
	any_shadow = true;
	return shadow;
}

bool mutant_has_shadows(void)
{
	return any_shadow;
}

static bool shadow_is_how(enum how how)
{
	return any_shadow && shadow_row()->how == how;
}

static void shadow_copy_in(struct mutant_object *object, void *arg)
{
	(void)arg;
	if (object->shape == SHAPE_IMPORT && object->shadow)
		memcpy(object->shadow, object->memory, object->size);
}

static void shadow_copy_out(struct mutant_object *object, void *arg)
{
	(void)arg;
	if (object->shape == SHAPE_IMPORT && object->shadow && !(object->flags & CL_MEM_READ_ONLY))
		memcpy(object->memory, object->shadow, object->size);
}

static void shadow_copy_pages(struct mutant_object *object, bool in)
{
	const size_t in_page = (uintptr_t)object->memory % mutant_page();
	unsigned char *memory = object->memory - in_page, *shadow = object->shadow - in_page;
	const size_t size = object->size + in_page;

	if (in)
		memcpy(shadow, memory, size);
	else
		memcpy(memory, shadow, size);
}

static void shadow_copy_pages_in(struct mutant_object *object, void *arg)
{
	(void)arg;
	if (object->shape == SHAPE_IMPORT && object->shadow)
		shadow_copy_pages(object, true);
}

static void shadow_copy_pages_out(struct mutant_object *object, void *arg)
{
	(void)arg;
	if (object->shape == SHAPE_IMPORT && object->shadow && !(object->flags & CL_MEM_READ_ONLY))
		shadow_copy_pages(object, false);
}

void mutant_shadows_before_enqueue(void)
{
	if (shadow_is_how(COPY_AT_ENQUEUE) || shadow_is_how(COPY_IN_ONLY))
		mutant_each(shadow_copy_in, NULL);
}

void mutant_shadows_after_wait(void)
{
	if (shadow_is_how(COPY_AT_ENQUEUE) || shadow_is_how(COPY_OUT_ONLY) ||
	    shadow_is_how(COPY_OUT_WHOLE))
		mutant_each(shadow_copy_out, NULL);
}

bool mutant_shadows_in_queue(void)
{
	return shadow_is_how(COPY_IN_QUEUE) || shadow_is_how(COPY_PAGES_IN_QUEUE);
}

static void CL_CALLBACK shadow_run_copy(void *arg)
{
	const bool in = *(bool *)arg;

	if (shadow_is_how(COPY_PAGES_IN_QUEUE))
		mutant_each(in ? shadow_copy_pages_in : shadow_copy_pages_out, NULL);
	else
		mutant_each(in ? shadow_copy_in : shadow_copy_out, NULL);
}

void mutant_shadows_copy_in_queue(cl_command_queue queue, bool in, cl_uint num,
				  const cl_event *list, cl_event *done)
{
	if (mutant_driver.clEnqueueNativeKernel(queue, shadow_run_copy, &in, sizeof(in), 0, NULL,
						NULL, num, list, done))
		abort();
}

void mutant_shadow_release(struct mutant_object *object)
{
	if (object->shadow && shadow_is_how(COPY_AT_ENDS))
		shadow_copy_out(object, NULL);
}
