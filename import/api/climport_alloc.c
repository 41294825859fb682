/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's allocator. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/alloc/memory.h"
#include "import/api/common.h"
#include "import/api/import_info.h"
#include "import/api/loader.h"
#include "util/cl_names.h"
#include "util/log.h"
#include "util/thread.h"

#define LARGEST_ALIGNMENT ((size_t)2 << 20)

/* How a device, or each device of a context, takes memory. */
struct alloc_takers {
	struct climport_import_info host, dmabuf;
	bool by_uuid_alone; /* no other host memory */
	size_t count;	    /* of devices */
};

/* A request for memory of a kind that climport chooses. */
struct alloc_request {
	size_t size, alignment;
	bool no_cpu;
	void **address;
	unsigned int *kind; /* may be NULL */
};

/* Kinds of memory, the best first. */
struct alloc_choice {
	unsigned int kind;
	const unsigned char *uuid; /* NULL: pages of any device */
};

#define ALLOC_CHOICES 3

struct alloc_choices {
	struct alloc_choice list[ALLOC_CHOICES];
	size_t count;
};

static int alloc_check_size(size_t size, size_t alignment)
{
	if (!size)
		return log_errno(EINVAL, "size is 0");
	if (alignment & (alignment - 1) || alignment > LARGEST_ALIGNMENT)
		return log_errno(EINVAL, "alignment %zu is no power of two up to 2 MiB", alignment);
	return 0;
}

static int alloc_check_request(unsigned int kind, size_t size, size_t alignment,
			       const unsigned char *uuid)
{
	int ret = climport_check_kind(kind);

	if (!ret)
		ret = alloc_check_size(size, alignment);
	if (!ret && kind == CLIMPORT_DEVICE && !uuid)
		ret = log_errno(ENODEV, "CLIMPORT_DEVICE memory needs the UUID of a device");
	return ret;
}

static int alloc_make(unsigned int kind, size_t size, size_t alignment, const unsigned char *uuid,
		      void **address)
{
	uintptr_t at;
	int ret = memory_alloc(kind == CLIMPORT_HOST ? MEMORY_HOST : MEMORY_DEVICE, size, alignment,
			       uuid, &at);

	if (!ret)
		*address = (void *)at;
	return ret;
}

PUBLIC int climport_alloc(unsigned int kind, size_t size, size_t alignment,
			  const unsigned char *uuid, void **address)
{
	int ret;
	THREAD_NO_CANCEL();

	climport_error_begin();
	ret = alloc_check_request(kind, size, alignment, uuid);
	if (!ret)
		ret = alloc_make(kind, size, alignment, uuid, address);
	return climport_error_end(ret);
}

static void alloc_choices_add(struct alloc_choices *choices, unsigned int kind,
			      const unsigned char *uuid)
{
	choices->list[choices->count++] = (struct alloc_choice){ kind, uuid };
}

static int alloc_choices_find(const struct alloc_takers *takers, bool no_cpu,
			      struct alloc_choices *choices)
{
	choices->count = 0;
	if (no_cpu && takers->dmabuf.by_uuid)
		alloc_choices_add(choices, CLIMPORT_DEVICE, takers->dmabuf.uuid);
	if (takers->host.by_uuid)
		alloc_choices_add(choices, CLIMPORT_HOST, takers->host.uuid);
	if (takers->host.method && !takers->by_uuid_alone)
		alloc_choices_add(choices, CLIMPORT_HOST, NULL);
	return choices->count
		       ? 0
		       : log_errno(EOPNOTSUPP, "the device takes no memory: %s", takers->host.why);
}

/* The driver has no such memory; other errors are the request's. */
static bool alloc_is_refusal(int ret)
{
	return ret == -ENODEV || ret == -EOPNOTSUPP;
}

static int alloc_choose(const struct alloc_takers *takers, const struct alloc_request *request)
{
	struct alloc_choices choices;
	const struct alloc_choice *choice = choices.list;
	size_t least = takers->host.address_alignment,
	       alignment = request->alignment > least ? request->alignment : least;
	int ret = alloc_choices_find(takers, request->no_cpu, &choices);
	bool is_last;

	if (ret)
		return ret;
	for (;; choice++) {
		log_hold();
		ret = alloc_make(choice->kind, request->size, alignment, choice->uuid,
				 request->address);
		is_last = choice == &choices.list[choices.count - 1] || !alloc_is_refusal(ret);
		log_resume(ret && is_last);
		if (is_last)
			break;
	}
	if (!ret && request->kind)
		*request->kind = choice->kind;
	return alloc_is_refusal(ret) ? -EOPNOTSUPP : ret;
}

static int alloc_check_chosen(const struct alloc_request *request, uint64_t flags)
{
	int ret = climport_check_caller(flags, CLIMPORT_NO_CPU, 0, 0);

	if (!ret)
		ret = alloc_check_size(request->size, request->alignment);
	if (!ret && request->no_cpu && !request->kind)
		ret = log_errno(EINVAL, "CLIMPORT_NO_CPU needs a place for the kind, not NULL");
	return ret;
}

static int alloc_takers_read(cl_device_id device, bool no_cpu, struct alloc_takers *takers)
{
	int ret = import_info_read(device, CL_IMPORT_TYPE_HOST_ARM, &takers->host,
				   &takers->by_uuid_alone);

	if (!ret && no_cpu)
		ret = import_info_read(device, CL_IMPORT_TYPE_DMA_BUF_ARM, &takers->dmabuf, NULL);
	return ret;
}

PUBLIC int climport_alloc_for_device(cl_device_id device, size_t size, size_t alignment,
				     uint64_t flags, void **address, unsigned int *kind)
{
	const struct alloc_request request = { size, alignment, flags & CLIMPORT_NO_CPU, address,
					       kind };
	struct alloc_takers takers = { .count = 1 };
	int ret;
	THREAD_NO_CANCEL();

	climport_error_begin();
	ret = alloc_check_chosen(&request, flags);
	if (!ret)
		ret = alloc_takers_read(device, request.no_cpu, &takers);
	if (!ret)
		ret = alloc_choose(&takers, &request);
	return climport_error_end(ret);
}

/* Memory for the UUID of a device is for no other device. */
static int alloc_takers_add(struct alloc_takers *all, const struct alloc_takers *one)
{
	if (all->host.by_uuid != one->host.by_uuid ||
	    memcmp(all->host.uuid, one->host.uuid, sizeof(all->host.uuid)))
		return log_errno(EOPNOTSUPP,
				 "climport allocates no memory that all %zu devices of the "
				 "context can import: use a context for each device",
				 all->count);
	if (!one->host.method)
		all->host = one->host;
	all->by_uuid_alone |= one->by_uuid_alone;
	if (all->host.address_alignment < one->host.address_alignment)
		all->host.address_alignment = one->host.address_alignment;
	return 0;
}

static int alloc_takers_read_all(const cl_device_id *devices, bool no_cpu,
				 struct alloc_takers *takers)
{
	struct alloc_takers one;
	int ret = alloc_takers_read(devices[0], no_cpu, takers);

	for (size_t i = 1; !ret && i < takers->count; i++) {
		ret = alloc_takers_read(devices[i], false, &one);
		if (!ret)
			ret = alloc_takers_add(takers, &one);
	}
	return ret;
}

static int alloc_for_context(cl_context context, const struct alloc_request *request)
{
	struct alloc_takers takers = { 0 };
	cl_device_id *devices;
	cl_int err = context ? loader_context_devices(context, &devices, &takers.count)
			     : CL_INVALID_CONTEXT;
	int ret;

	if (err)
		return log_errno(err == CL_OUT_OF_HOST_MEMORY ? ENOMEM : EINVAL,
				 "the context has no devices: %s", cl_error_name(err));
	ret = alloc_takers_read_all(devices, request->no_cpu, &takers);
	free(devices);
	return ret ? ret : alloc_choose(&takers, request);
}

PUBLIC int climport_alloc_for_context(cl_context context, size_t size, size_t alignment,
				      uint64_t flags, void **address, unsigned int *kind)
{
	const struct alloc_request request = { size, alignment, flags & CLIMPORT_NO_CPU, address,
					       kind };
	int ret;
	THREAD_NO_CANCEL();

	climport_error_begin();
	ret = alloc_check_chosen(&request, flags);
	if (!ret)
		ret = alloc_for_context(context, &request);
	return climport_error_end(ret);
}

PUBLIC void climport_free(void *address)
{
	THREAD_NO_CANCEL();

	if (!address || memory_free((uintptr_t)address))
		return;
	fprintf(stderr, "climport_free: %p is not allocated\n", address);
	abort();
}
