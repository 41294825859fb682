/* SPDX-License-Identifier: Apache-2.0 */
#include "refresh.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "import/lock.h"
#include "import/log.h"
#include "layer.h"
#include "opaque_proof.h"

struct refresh {
	struct import_refresh base; /* first */
	struct refresh *next;
	atomic_uint refs;      /* 1 for the list, and regions */
	_Atomic(cl_mem) ready; /* to be released by the next refresh, or NULL */
	atomic_bool dropped;   /* nothing is made ready any more */
	cl_context context;
	struct import_region *page;
	struct import_opaque opaque;
};

LOCK_DEFINE(refresh_lock, LOCK_LAST); /* the list */
static struct refresh *refreshes GUARDED_BY(refresh_lock);

/* A buffer over the page. */
static cl_mem refresh_make(const struct refresh *r)
{
	cl_int err;
	cl_mem mem =
		opaque_fd_buffer(r->context, CL_MEM_READ_ONLY, r->opaque.fd, r->page->size, &err);

	return err ? NULL : mem;
}

static int refresh_run(struct import_refresh *base)
{
	struct refresh *r = (struct refresh *)base;
	cl_mem mem = atomic_exchange(&r->ready, NULL);

	if (!mem)
		mem = refresh_make(r);
	if (!mem)
		return log_errno(EIO, "the device cannot be made to read host memory anew");
	next.clReleaseMemObject(mem);
	return 0;
}

static void refresh_set_unready(struct refresh *r)
{
	cl_mem mem = atomic_exchange(&r->ready, NULL);

	if (mem)
		next.clReleaseMemObject(mem);
}

/* Only on behalf of a command that is being enqueued: its queue keeps the context. */
static void refresh_prepare(struct import_refresh *base)
{
	struct refresh *r = (struct refresh *)base;
	cl_mem unused;

	if (atomic_load(&r->ready) || atomic_load(&r->dropped))
		return;
	unused = atomic_exchange(&r->ready, refresh_make(r));
	if (unused)
		next.clReleaseMemObject(unused);
	if (atomic_load(&r->dropped))
		refresh_set_unready(r);
}

static void refresh_free(struct refresh *r)
{
	refresh_set_unready(r);
	import_put(r->page);
	free(r);
}

static void refresh_put(struct import_refresh *base)
{
	struct refresh *r = (struct refresh *)base;

	if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
		refresh_free(r);
}

void refresh_drop_context(cl_context context)
{
	struct refresh **link, *r;

	lock_acquire(&refresh_lock);
	for (link = &refreshes; *link && (*link)->context != context;)
		link = &(*link)->next;
	r = *link;
	if (r)
		*link = r->next;
	lock_release(&refresh_lock);
	if (!r)
		return;
	atomic_store(&r->dropped, true);
	refresh_set_unready(r);
	refresh_put(&r->base);
}

static int refresh_create(cl_context context, const unsigned char *uuid, struct refresh **refresh)
{
	struct refresh *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return log_errno(ENOMEM, "no memory for an import");
	ret = import_sample(IMPORT_BY_VULKAN, uuid, &r->page);
	if (ret)
		goto err_free;
	ret = import_opaque(r->page, uuid, &r->opaque);
	if (ret)
		goto err_put;
	r->base = (struct import_refresh){ refresh_run, refresh_prepare, refresh_put };
	r->context = context;
	r->refs = 1;
	*refresh = r;
	return 0;

err_put:
	import_put(r->page);
err_free:
	free(r);
	return ret;
}

static struct refresh *refresh_find(cl_context context) REQUIRES(refresh_lock)
{
	struct refresh *r = refreshes;

	while (r && r->context != context)
		r = r->next;
	if (r)
		atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
	return r;
}

/* The one that the context has by now, or this. */
static struct refresh *refresh_publish(struct refresh *made)
{
	struct refresh *r;

	lock_acquire(&refresh_lock);
	r = refresh_find(made->context);
	if (!r) {
		atomic_fetch_add_explicit(&made->refs, 1, memory_order_relaxed);
		made->next = refreshes;
		refreshes = r = made;
	}
	lock_release(&refresh_lock);
	if (r != made)
		refresh_free(made);
	return r;
}

int refresh_get(cl_context context, const unsigned char uuid[IMPORT_UUID_SIZE],
		struct import_refresh **refresh)
{
	struct refresh *r;
	int ret;

	lock_acquire(&refresh_lock);
	r = refresh_find(context);
	lock_release(&refresh_lock);
	if (!r) {
		ret = refresh_create(context, uuid, &r);
		if (ret)
			return ret;
		r = refresh_publish(r);
	}
	*refresh = &r->base;
	return 0;
}
