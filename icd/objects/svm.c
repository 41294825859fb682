/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/svm.h"

#include <stdint.h>
#include <stdlib.h>

#include "util/list.h"
#include "util/lock.h"
#include "util/log.h"

struct svm {
	struct list link;
	cl_context context;
	uintptr_t first;
	size_t size;
	bool is_going; /* a command that frees the memory is about to be enqueued */
};

LOCK_DEFINE(svm_lock, LOCK_LAST); /* the list */
static struct list svm_all GUARDED_BY(svm_lock) = LIST_INIT(svm_all);

bool svm_add(cl_context context, const void *memory, size_t size)
{
	struct svm *svm = malloc(sizeof(*svm));

	if (!svm) {
		log_error("no memory for the record of %zu bytes of SVM", size);
		return false;
	}
	*svm = (struct svm){ .context = context, .first = (uintptr_t)memory, .size = size };
	lock_acquire(&svm_lock);
	list_add(&svm_all, &svm->link);
	lock_release(&svm_lock);
	return true;
}

/* The record whose range has one of @size bytes at @first. */
static struct svm *svm_find(uintptr_t first, size_t size) REQUIRES(svm_lock)
{
	for (struct list *link = svm_all.next; link != &svm_all; link = link->next) {
		struct svm *svm = container_of(link, struct svm, link);

		if (svm->first <= first ? first - svm->first < svm->size
					: svm->first - first < size)
			return svm;
	}
	return NULL;
}

/* A record whose range begins at @memory; @context: NULL for any. */
static struct svm *svm_find_first(const void *memory, cl_context context, bool is_going)
	REQUIRES(svm_lock)
{
	for (struct list *link = svm_all.next; link != &svm_all; link = link->next) {
		struct svm *svm = container_of(link, struct svm, link);

		if (svm->first == (uintptr_t)memory && svm->is_going == is_going &&
		    (!context || svm->context == context))
			return svm;
	}
	return NULL;
}

void svm_remove(cl_context context, const void *memory)
{
	struct svm *svm;

	if (!context)
		return;
	lock_acquire(&svm_lock);
	svm = svm_find_first(memory, context, false);
	if (svm)
		list_remove(&svm->link);
	lock_release(&svm_lock);
	free(svm);
}

void svm_begin_free(cl_uint count, void *const *pointers)
{
	lock_acquire(&svm_lock);
	for (cl_uint i = 0; pointers && i < count; i++) {
		struct svm *svm = svm_find_first(pointers[i], NULL, false);

		if (svm)
			svm->is_going = true;
	}
	lock_release(&svm_lock);
}

static void svm_end_free_one(const void *memory, bool is_freed) REQUIRES(svm_lock)
{
	struct svm *svm = svm_find_first(memory, NULL, true);

	if (!svm)
		return;
	svm->is_going = false;
	if (!is_freed)
		return;
	list_remove(&svm->link);
	free(svm);
}

void svm_end_free(cl_uint count, void *const *pointers, cl_int err)
{
	lock_acquire(&svm_lock);
	for (cl_uint i = 0; pointers && i < count; i++)
		svm_end_free_one(pointers[i], !err);
	lock_release(&svm_lock);
}

bool svm_overlaps(const void *memory, size_t size)
{
	bool overlaps;

	lock_acquire(&svm_lock);
	overlaps = svm_find((uintptr_t)memory, size);
	lock_release(&svm_lock);
	return overlaps;
}
