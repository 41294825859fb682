/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of opaque memory by a copy, as in NVIDIA's driver: a map copies the memory to a pointer of the
 * driver's, and an unmap of a map for writing copies the memory back.
 */
#include "internal.h"

struct staged {
	struct staged *next;
	unsigned char *pointer;
	size_t offset, size;
	bool is_written, is_mapped;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the lists, and their entries */

bool staged_is_used(struct mem *mem)
{
	return stub_get(STUB_OPAQUE_STAGED) && mem_root(mem)->opaque;
}

static void stub_staged_copy(struct op *op, const struct staged *s, bool is_out)
{
	unsigned char *data = op->mem[0]->data + s->offset;

	op->kind = OP_COPY;
	op->bytes = s->size;
	op->rows = op->slices = 1;
	op->src.at = is_out ? data : s->pointer;
	op->dst.at = is_out ? s->pointer : data;
}

/* The pointer lives as long as the object. */
void *staged_map(struct op *op, cl_map_flags flags, size_t offset, size_t size)
{
	struct staged *s = malloc(sizeof(*s));

	*s = (struct staged){ op->mem[0]->staged,
			      calloc(1, size),
			      offset,
			      size,
			      flags & ~(cl_map_flags)CL_MAP_READ,
			      true };
	pthread_mutex_lock(&lock);
	op->mem[0]->staged = s;
	pthread_mutex_unlock(&lock);
	stub_staged_copy(op, s, true);
	return s->pointer;
}

bool staged_unmap(struct op *op, void *pointer)
{
	struct staged *s;

	pthread_mutex_lock(&lock);
	s = op->mem[0]->staged;
	while (s && (s->pointer != pointer || !s->is_mapped))
		s = s->next;
	if (s)
		s->is_mapped = false;
	pthread_mutex_unlock(&lock);
	op->kind = OP_NOTHING;
	if (s && s->is_written)
		stub_staged_copy(op, s, false);
	return s;
}

void staged_destroy(struct mem *mem)
{
	while (mem->staged) {
		struct staged *s = mem->staged;

		mem->staged = s->next;
		free(s->pointer);
		free(s);
	}
}
