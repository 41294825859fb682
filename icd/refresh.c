/* SPDX-License-Identifier: Apache-2.0 */
#include "refresh.h"

#include <errno.h>
#include <stdlib.h>

#include "import/lock.h"
#include "import/log.h"
#include "layer.h"
#include "opaque_proof.h"

struct refresh {
	struct import_refresh base; /* first */
	struct refresh *next;
	unsigned int refs; /* refresh_lock */
	cl_context context;
	struct import_region *page;
	struct import_opaque opaque;
};

static struct lock refresh_lock = LOCK_INIT; /* the list; taken last */
static struct refresh *refreshes GUARDED_BY(refresh_lock);

static int refresh_run(struct import_refresh *base)
{
	const struct refresh *r = (const struct refresh *)base;
	cl_int err;
	cl_mem mem =
		opaque_fd_buffer(r->context, CL_MEM_READ_ONLY, r->opaque.fd, r->page->size, &err);

	if (err)
		return log_errno(
			EIO, "the device cannot be made to read host memory anew: error %d", err);
	next.clReleaseMemObject(mem);
	return 0;
}

static void refresh_free(struct refresh *r)
{
	import_put(r->page);
	free(r);
}

static void refresh_put(struct import_refresh *base)
{
	struct refresh *r = (struct refresh *)base, **link;
	bool last;

	lock_acquire(&refresh_lock);
	last = !--r->refs;
	for (link = &refreshes; last && *link != r;)
		link = &(*link)->next;
	if (last)
		*link = r->next;
	lock_release(&refresh_lock);
	if (last)
		refresh_free(r);
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
	r->base = (struct import_refresh){ refresh_run, refresh_put };
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

static struct refresh *find(cl_context context) REQUIRES(refresh_lock)
{
	struct refresh *r = refreshes;

	while (r && r->context != context)
		r = r->next;
	if (r)
		r->refs++;
	return r;
}

/* The one that the context has by now, or this. */
static struct refresh *publish(struct refresh *made)
{
	struct refresh *r;

	lock_acquire(&refresh_lock);
	r = find(made->context);
	if (!r) {
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
	r = find(context);
	lock_release(&refresh_lock);
	if (!r) {
		ret = refresh_create(context, uuid, &r);
		if (ret)
			return ret;
		r = publish(r);
	}
	*refresh = &r->base;
	return 0;
}
