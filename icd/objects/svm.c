/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/svm.h"

#include <stdint.h>
#include <stdlib.h>

#include "util/list.h"
#include "util/lock.h"
#include "util/log.h"

struct svm {
	struct list link;
	uintptr_t first;
	size_t size;
};

LOCK_DEFINE(svm_lock, LOCK_LAST); /* the list */
static struct list svm_all GUARDED_BY(svm_lock) = LIST_INIT(svm_all);

bool svm_add(const void *memory, size_t size)
{
	struct svm *svm = malloc(sizeof(*svm));

	if (!svm) {
		log_error("no memory for the record of %zu bytes of SVM", size);
		return false;
	}
	svm->first = (uintptr_t)memory;
	svm->size = size;
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

void svm_remove(const void *memory)
{
	struct svm *svm;

	lock_acquire(&svm_lock);
	svm = svm_find((uintptr_t)memory, 1);
	if (svm && svm->first == (uintptr_t)memory)
		list_remove(&svm->link);
	else
		svm = NULL;
	lock_release(&svm_lock);
	free(svm);
}

bool svm_overlaps(const void *memory, size_t size)
{
	bool overlaps;

	lock_acquire(&svm_lock);
	overlaps = svm_find((uintptr_t)memory, size);
	lock_release(&svm_lock);
	return overlaps;
}
