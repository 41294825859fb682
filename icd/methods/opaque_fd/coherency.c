/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test takes a page of host memory with a descriptor of the exporter, and creates two
 * buffers over the page: the device sees the host's memory, or does not.
 *
 * To make and to release a context takes a fifth of a second (NVIDIA 580), so a session serves all
 * exporters.  After a test that has not passed, the next test gets a new session: a kernel may have
 * ended the context.
 */
#include "icd/methods/opaque_fd/coherency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/selftest.h"
#include "util/shortage.h"

#define ROUNDS 256 /* by chance, other programs may evict the device's cache */

enum coherency {
	UNKNOWN,	 /* for lack of memory perhaps */
	EXPORTS_NOTHING, /* no exporter, or no descriptor of host memory */
	COPIES,		 /* the device does not see the host's memory */
	COHERENT,	 /* zero copy */
};

struct coherency_test {
	const struct opaque_device *opaque;
	struct session *session; /* NULL: none yet, or no more */
	enum coherency found[IMPORT_EXPORTERS];
};

struct coherency_sample {
	struct import_region *region;
	struct import_opaque opaque;
};

/* The region is held until the driver has destroyed the buffer. */
static cl_mem coherency_buffer(cl_context context, bool reader, void *arg, cl_int *err)
{
	const struct coherency_sample *s = arg;
	cl_mem mem =
		opaque_fd_buffer(context, CL_MEM_READ_WRITE, s->opaque.fd, s->region->size, err);

	(void)reader;
	return memobj_holding(mem, s->region, err);
}

static cl_int coherency_begin(struct coherency_test *t)
{
	if (t->session)
		return CL_SUCCESS;
	t->session = calloc(1, sizeof(*t->session));
	return t->session ? session_begin(t->session, &t->opaque->id, 1, false)
			  : CL_OUT_OF_HOST_MEMORY;
}

static void coherency_end(struct coherency_test *t)
{
	session_free(t->session);
	t->session = NULL;
}

static enum coherency coherency_test_sample(struct coherency_test *t, struct coherency_sample *s)
{
	const struct selftest_memory memory = {
		.bytes = s->region->addr,
		.create = coherency_buffer,
		.rounds = ROUNDS,
		.apart = true,
		.arg = s,
	};
	cl_int result = coherency_begin(t);

	if (!result)
		result = rounds_run_on_all(t->session, &memory);
	if (result != 1)
		coherency_end(t);
	if (selftest_is_transient(result))
		return UNKNOWN;
	return result == 1 ? COHERENT : COPIES;
}

/* A shortage says nothing about the exporter. */
static enum coherency coherency_test_exporter(struct coherency_test *t, unsigned int exporter)
{
	struct coherency_sample s;
	enum coherency found;
	int ret = import_sample(exporter, t->opaque->uuid, &s.region);

	if (ret)
		return shortage_is(ret) ? UNKNOWN : EXPORTS_NOTHING;
	ret = import_opaque(s.region, t->opaque->uuid, &s.region->opaque, &s.opaque);
	found = shortage_is(ret) ? UNKNOWN : EXPORTS_NOTHING;
	if (!ret) {
		found = coherency_test_sample(t, &s);
		close(s.opaque.fd);
	}
	import_put(s.region);
	return found;
}

static const char *coherency_describe(enum coherency found)
{
	static const char *const says[] = {
		[UNKNOWN] = "untested",
		[EXPORTS_NOTHING] = "no descriptor",
		[COPIES] = "copied",
		[COHERENT] = "zero copy by self-test",
	};

	return says[found];
}

/* Exporters of any pages come first in a sentence. */
static void coherency_explain(const struct coherency_test *t, char *why, size_t size)
{
	const char *between = "";
	size_t used = 0;

	for (int i = IMPORT_EXPORTERS - 1; i >= 0 && used < size; i--) {
		used += (size_t)snprintf(why + used, size - used, "%s%s: %s", between,
					 import_exporter_get(i)->memory,
					 coherency_describe(t->found[i]));
		between = "; ";
	}
}

bool coherency_test(struct device *device, struct method *method)
{
	struct coherency_test t = { .opaque = opaque_device_get(device) };

	if (!t.opaque) {
		snprintf(method->why, sizeof(method->why), "the device has no CL_DEVICE_UUID_KHR");
		return false;
	}
	device->facts.exporters = 0;
	for (unsigned int i = 0; i < IMPORT_EXPORTERS; i++) {
		t.found[i] = coherency_test_exporter(&t, i);
		device->facts.exporters |= (t.found[i] == COHERENT) << i;
		method->unknown |= t.found[i] == UNKNOWN;
	}
	coherency_end(&t);
	coherency_explain(&t, method->why, sizeof(method->why));
	return device->facts.exporters;
}
