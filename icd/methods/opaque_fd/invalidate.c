/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/invalidate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "util/descriptor.h"
#include "util/lock.h"
#include "util/log.h"

struct invalidate {
	struct import_invalidate base; /* first */
	struct invalidate *next;
	atomic_uint refs;      /* 1 for the list, and regions */
	_Atomic(cl_mem) ready; /* to be released by the next invalidation, or NULL */
	atomic_bool dropped;   /* nothing is made ready any more */
	cl_context context;
	struct import_region *page;
	struct descriptor_own own; /* of the page */
};

LOCK_DEFINE(invalidate_lock, LOCK_LAST); /* the list */
static struct invalidate *invalidates GUARDED_BY(invalidate_lock);

/* A buffer over the page; NULL, too, if the program has closed the descriptor. */
static cl_mem invalidate_make(struct invalidate *r)
{
	cl_int err;
	cl_mem mem;

	if (!descriptor_is_own(&r->own))
		return NULL;
	mem = opaque_fd_buffer(r->context, CL_MEM_READ_ONLY, r->own.fd, r->page->size, &err);
	return err ? NULL : mem;
}

static int invalidate_run(struct import_invalidate *base)
{
	struct invalidate *r = (struct invalidate *)base;
	cl_mem mem = atomic_exchange(&r->ready, NULL);

	if (!mem)
		mem = invalidate_make(r);
	if (!mem)
		return log_errno(EIO, "the device's cache of host memory cannot be invalidated");
	next.clReleaseMemObject(mem);
	return 0;
}

static void invalidate_set_unready(struct invalidate *r)
{
	cl_mem mem = atomic_exchange(&r->ready, NULL);

	if (mem)
		next.clReleaseMemObject(mem);
}

/* Called for a command during the enqueue: the queue keeps the context. */
static void invalidate_prepare(struct import_invalidate *base)
{
	struct invalidate *r = (struct invalidate *)base;
	cl_mem unused;

	if (atomic_load(&r->ready) || atomic_load(&r->dropped))
		return;
	unused = atomic_exchange(&r->ready, invalidate_make(r));
	if (unused)
		next.clReleaseMemObject(unused);
	if (atomic_load(&r->dropped))
		invalidate_set_unready(r);
}

static void invalidate_free(struct invalidate *r)
{
	invalidate_set_unready(r);
	descriptor_own_close(&r->own);
	import_put(r->page);
	free(r);
}

static void invalidate_put(struct import_invalidate *base)
{
	struct invalidate *r = (struct invalidate *)base;

	if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
		invalidate_free(r);
}

void invalidate_drop_context(cl_context context)
{
	struct invalidate **link, *r;

	lock_acquire(&invalidate_lock);
	for (link = &invalidates; *link && (*link)->context != context;)
		link = &(*link)->next;
	r = *link;
	if (r)
		*link = r->next;
	lock_release(&invalidate_lock);
	if (!r)
		return;
	atomic_store(&r->dropped, true);
	invalidate_set_unready(r);
	invalidate_put(&r->base);
}

/* An exporter whose memory is cached: the unmapping of any such memory drops the lines of all. */
static unsigned int invalidate_exporter(void)
{
	unsigned int id = 0;

	while (id < IMPORT_EXPORTERS - 1 && !import_exporter_get(id)->is_cached)
		id++;
	return id;
}

static int invalidate_create(cl_context context, const unsigned char *uuid,
			     struct invalidate **invalidate)
{
	const unsigned int exporter = invalidate_exporter();
	struct invalidate *r = calloc(1, sizeof(*r));
	struct import_opaque opaque;
	int ret;

	if (!r)
		return log_errno(ENOMEM, "no memory for an import");
	ret = import_sample(exporter, uuid, &r->page);
	if (ret)
		goto err_free;
	ret = import_opaque(r->page, uuid, 1u << exporter, &opaque);
	if (ret)
		goto err_put;
	descriptor_own(&r->own, opaque.fd);
	r->base = (struct import_invalidate){ invalidate_run, invalidate_prepare, invalidate_put };
	r->context = context;
	r->refs = 1;
	*invalidate = r;
	return 0;

err_put:
	import_put(r->page);
err_free:
	free(r);
	return ret;
}

static struct invalidate *invalidate_find(cl_context context) REQUIRES(invalidate_lock)
{
	struct invalidate *r = invalidates;

	while (r && r->context != context)
		r = r->next;
	if (r)
		atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
	return r;
}

/* Returns @made, or the record of a faster thread for the context. */
static struct invalidate *invalidate_publish(struct invalidate *made)
{
	struct invalidate *r;

	lock_acquire(&invalidate_lock);
	r = invalidate_find(made->context);
	if (!r) {
		atomic_fetch_add_explicit(&made->refs, 1, memory_order_relaxed);
		made->next = invalidates;
		invalidates = r = made;
	}
	lock_release(&invalidate_lock);
	if (r != made)
		invalidate_free(made);
	return r;
}

int invalidate_get(cl_context context, const unsigned char uuid[IMPORT_UUID_SIZE],
		   struct import_invalidate **invalidate)
{
	struct invalidate *r;
	int ret;

	lock_acquire(&invalidate_lock);
	r = invalidate_find(context);
	lock_release(&invalidate_lock);
	if (!r) {
		ret = invalidate_create(context, uuid, &r);
		if (ret)
			return ret;
		r = invalidate_publish(r);
	}
	*invalidate = &r->base;
	return 0;
}
