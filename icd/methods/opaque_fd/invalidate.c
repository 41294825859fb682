/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/invalidate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "icd/objects/context.h"
#include "util/descriptor.h"
#include "util/lock.h"
#include "util/log.h"

struct invalidate {
	struct import_bracket base; /* first */
	struct invalidate *next;    /* under the lock, as the two below */
	unsigned int refs;	    /* regions, and 1 if kept */
	bool is_kept;	       /* for the context, until the application releases the context */
	_Atomic(cl_mem) ready; /* to be released by the next invalidation; NULL unless kept */
	cl_context context;
	unsigned char uuid[IMPORT_UUID_SIZE];
	struct import_region *page;
	struct descriptor_own own; /* of the page */
};

LOCK_DEFINE(invalidate_lock, LOCK_LAST); /* the list of all records */
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

static int invalidate_begin(struct import_bracket *base)
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

static void invalidate_free(struct invalidate *r)
{
	descriptor_own_close(&r->own);
	import_put(r->page);
	free(r);
}

static void invalidate_unlink(struct invalidate *r) REQUIRES(invalidate_lock)
{
	struct invalidate **link = &invalidates;

	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
}

/* May be called in a callback of the driver: a record that is not kept has no buffer. */
static void invalidate_put(struct import_bracket *base)
{
	struct invalidate *r = (struct invalidate *)base;
	bool is_last;

	lock_acquire(&invalidate_lock);
	is_last = !--r->refs;
	if (is_last)
		invalidate_unlink(r);
	lock_release(&invalidate_lock);
	if (is_last)
		invalidate_free(r);
}

/* Ends the keeping of a record of @context, and takes over the reference; NULL: there is none. */
static struct invalidate *invalidate_take_kept(cl_context context)
{
	struct invalidate *r;

	lock_acquire(&invalidate_lock);
	r = invalidates;
	while (r && (r->context != context || !r->is_kept))
		r = r->next;
	if (r)
		r->is_kept = false;
	lock_release(&invalidate_lock);
	return r;
}

void invalidate_drop_context(cl_context context)
{
	struct invalidate *r;

	while ((r = invalidate_take_kept(context))) {
		invalidate_set_unready(r);
		invalidate_put(&r->base);
	}
}

/* The application may release the context meanwhile. */
static void invalidate_keep(struct invalidate *r)
{
	lock_acquire(&invalidate_lock);
	r->refs += !r->is_kept;
	r->is_kept = true;
	lock_release(&invalidate_lock);
	if (!context_is_owned(r->context))
		invalidate_drop_context(r->context);
}

/*
 * Makes the next buffer while the kernel runs.  In a context that the application has released
 * nobody would release the buffer: the next invalidation makes one.
 */
static void invalidate_enqueued(struct import_bracket *base)
{
	struct invalidate *r = (struct invalidate *)base;
	cl_mem unused;

	if (atomic_load(&r->ready) || !context_is_owned(r->context))
		return;
	unused = atomic_exchange(&r->ready, invalidate_make(r));
	if (unused)
		next.clReleaseMemObject(unused);
	invalidate_keep(r);
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
	r->base = (struct import_bracket){ invalidate_begin, invalidate_enqueued, invalidate_put };
	r->context = context;
	memcpy(r->uuid, uuid, sizeof(r->uuid));
	r->refs = 1;
	*invalidate = r;
	return 0;

err_put:
	import_put(r->page);
err_free:
	free(r);
	return ret;
}

/* A reference. */
static struct invalidate *invalidate_find(cl_context context, const unsigned char *uuid)
	REQUIRES(invalidate_lock)
{
	struct invalidate *r = invalidates;

	while (r && (r->context != context || memcmp(r->uuid, uuid, sizeof(r->uuid))))
		r = r->next;
	if (r)
		r->refs++;
	return r;
}

/* Returns @made, or the record of a faster thread for the context. */
static struct invalidate *invalidate_publish(struct invalidate *made)
{
	struct invalidate *r;

	lock_acquire(&invalidate_lock);
	r = invalidate_find(made->context, made->uuid);
	if (!r) {
		made->next = invalidates;
		invalidates = r = made;
	}
	lock_release(&invalidate_lock);
	if (r != made)
		invalidate_free(made);
	return r;
}

int invalidate_get(cl_context context, const unsigned char uuid[IMPORT_UUID_SIZE],
		   struct import_bracket **bracket)
{
	struct invalidate *r;
	int ret;

	lock_acquire(&invalidate_lock);
	r = invalidate_find(context, uuid);
	lock_release(&invalidate_lock);
	if (!r) {
		ret = invalidate_create(context, uuid, &r);
		if (ret)
			return ret;
		r = invalidate_publish(r);
	}
	invalidate_keep(r);
	*bracket = &r->base;
	return 0;
}
