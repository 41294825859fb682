/* SPDX-License-Identifier: Apache-2.0 */
/* What is alive: imports and derived objects, arguments of kernels, queues, events. */
#include "mutants.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 4096, QUEUES = 256, EVENTS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mutant_object *live;
static unsigned int imports_live, imports_ever;

static struct {
	cl_kernel kernel;
	cl_uint index;
	cl_mem mem;
} arguments[ARGUMENTS];

static cl_command_queue queues[QUEUES];
static unsigned int queue_count;
static cl_event recent_events[EVENTS];
static size_t event_count;

static struct mutant_object **objects_object_at(cl_mem mem)
{
	struct mutant_object **at = &live;

	while (*at && (*at)->mem != mem)
		at = &(*at)->later;
	return at;
}

struct mutant_object *mutant_find(cl_mem mem)
{
	struct mutant_object *found = NULL;

	if (!mem)
		return NULL;
	pthread_mutex_lock(&lock);
	found = *objects_object_at(mem);
	pthread_mutex_unlock(&lock);
	return found;
}

static void objects_object_unlink(cl_mem mem)
{
	struct mutant_object **at = objects_object_at(mem);

	if (!*at)
		return;
	imports_live -= (*at)->shape == SHAPE_IMPORT;
	*at = (*at)->later;
}

/* A parent that is not known lies below an object of the driver's own: the object is plain. */
struct mutant_object *mutant_add(cl_mem mem, enum mutant_shape shape, cl_mem parent,
				 cl_mem_flags flags)
{
	struct mutant_object *object = calloc(1, sizeof(*object)), *above = mutant_find(parent);

	if (!object)
		abort();
	if (above)
		*object = *above;
	object->parent = above;
	object->mem = mem;
	object->shape = shape;
	object->flags = flags;
	object->by_properties = object->parent_released = object->used_by_kernel = false;
	pthread_mutex_lock(&lock);
	objects_object_unlink(mem);
	object->later = live;
	live = object;
	if (shape == SHAPE_IMPORT) {
		imports_live++;
		object->number = ++imports_ever;
	}
	pthread_mutex_unlock(&lock);
	return object;
}

void mutant_forget(cl_mem mem)
{
	pthread_mutex_lock(&lock);
	objects_object_unlink(mem);
	for (size_t i = 0; i < ARGUMENTS; i++)
		if (arguments[i].mem == mem)
			arguments[i].mem = NULL;
	pthread_mutex_unlock(&lock);
}

/* @visit may not call functions of this file. */
void mutant_each(void (*visit)(struct mutant_object *, void *), void *arg)
{
	pthread_mutex_lock(&lock);
	for (struct mutant_object *object = live; object; object = object->later)
		visit(object, arg);
	pthread_mutex_unlock(&lock);
}

unsigned int mutant_count_live(void)
{
	return imports_live;
}

struct mutant_object *mutant_root(struct mutant_object *object)
{
	while (object && object->parent)
		object = object->parent;
	return object;
}

cl_uint mutant_references(cl_mem mem)
{
	cl_uint count = 0;

	mutant_next.clGetMemObjectInfo(mem, CL_MEM_REFERENCE_COUNT, sizeof(count), &count, NULL);
	return count;
}

/* A plain argument takes the place of an object. */
void mutant_set_argument(cl_kernel kernel, cl_uint index, cl_mem mem)
{
	size_t room = ARGUMENTS;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ARGUMENTS; i++) {
		if (arguments[i].kernel == kernel && arguments[i].index == index) {
			room = i;
			break;
		}
		if (room == ARGUMENTS && !arguments[i].mem)
			room = i;
	}
	if (room < ARGUMENTS) {
		arguments[room].kernel = kernel;
		arguments[room].index = index;
		arguments[room].mem = mem;
	}
	pthread_mutex_unlock(&lock);
}

cl_mem mutant_argument(cl_kernel kernel)
{
	cl_mem found = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ARGUMENTS && !found; i++)
		if (arguments[i].kernel == kernel)
			found = arguments[i].mem;
	pthread_mutex_unlock(&lock);
	return found;
}

void mutant_add_queue(cl_command_queue queue)
{
	if (queue && queue_count < QUEUES)
		queues[queue_count++] = queue;
}

unsigned int mutant_queue_number(cl_command_queue queue)
{
	for (unsigned int i = 0; i < queue_count; i++)
		if (queues[i] == queue)
			return i + 1;
	return 0;
}

void mutant_add_event(cl_event event)
{
	pthread_mutex_lock(&lock);
	recent_events[event_count++ % EVENTS] = event;
	pthread_mutex_unlock(&lock);
}

bool mutant_has_event(cl_event event)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < EVENTS && !found; i++)
		found = recent_events[i] == event;
	pthread_mutex_unlock(&lock);
	return found;
}
