/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of host memory that the program has registered, through the layer. */
#include "opaque_rm_fixture.h"
#include "process.h"

#include <CL/climport.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static unsigned char *registered_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static void registered_import_once(void *p)
{
	cl.clReleaseMemObject(fixture_import_host(0, p, PAGE));
}

/* The first import runs the self-test and makes the objects of the process. */
static void registered_use_stub(void)
{
	unsigned char *p = registered_map(PAGE);

	opaque_begin();
	registered_import_once(p);
	opaque_rm_settle(0);
	munmap(p, PAGE);
	fake_rm.pins_made = 0;
	fake_rm.bytes_pinned = 0;
}

static void registered_open(void)
{
	opaque_rm_reset();
	registered_use_stub();
}

static unsigned char *registered_make(size_t size, struct climport_registration *r)
{
	unsigned char *p = registered_map(size);

	EXPECT_EQ(climport_register(p, size, 0, r, sizeof(*r)), 0);
	return p;
}

static void registered_release(struct climport_registration *r)
{
	void *base = (void *)r->base;

	climport_unregister(r);
	munmap(base, r->length);
}

static void registered_close(void)
{
	opaque_rm_settle(0);
	opaque_rm_close();
}

TEST(registered_context,
     "Imports of a registration pin nothing when a context that is still retained was released.")
{
	struct climport_registration r;
	unsigned char *p;

	registered_open();
	p = registered_make(4 * PAGE, &r);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(cl.clRetainContext(fix.context), CL_SUCCESS);
		registered_import_once(p + i * PAGE);
		EXPECT_EQ(cl.clReleaseContext(fix.context), CL_SUCCESS);
	}
	EXPECT_EQ(fake_rm.pins_made, 1);
	registered_release(&r);
	registered_close();
}

/* The number of contexts that the driver has. */
static bool registered_are_contexts(void *count)
{
	return stub_live(STUB_CONTEXT) == *(long *)count;
}

static void registered_import_into(cl_context context, void *p)
{
	cl_mem mem = fix.import(context, 0, NULL, p, PAGE, NULL);

	EXPECT(mem);
	cl.clReleaseMemObject(mem);
}

TEST(registered_queue_context,
     "A context that a queue alone keeps alive keeps no pages of a registration, and goes with the "
     "queue.")
{
	struct climport_registration r;
	cl_command_queue queue;
	cl_context context;
	unsigned char *p;
	long contexts;

	registered_open();
	contexts = stub_live(STUB_CONTEXT);
	p = registered_make(4 * PAGE, &r);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	registered_import_into(context, p);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	opaque_rm_settle(0);
	registered_import_into(context, p + PAGE);
	opaque_rm_settle(0);
	EXPECT_EQ(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
	EXPECT(process_settles(registered_are_contexts, &contexts));
	registered_release(&r);
	registered_close();
}

TEST(registered_queue_context_part,
     "In a context that a queue alone keeps alive, an import of a registration pins its own pages.")
{
	struct climport_registration r;
	cl_command_queue queue;
	cl_context context;
	unsigned char *p;
	size_t before;
	cl_mem mem;

	registered_open();
	before = fake_rm_held().bytes;
	p = registered_make(4 * PAGE, &r);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	mem = fix.import(context, 0, NULL, p + PAGE, PAGE, NULL);
	EXPECT(mem);
	EXPECT_EQ(fake_rm_held().bytes - before, PAGE);
	cl.clReleaseMemObject(mem);
	cl.clReleaseCommandQueue(queue);
	registered_release(&r);
	registered_close();
}

static cl_context registered_context_to_release;

static void registered_release_meanwhile(void)
{
	cl_context context = registered_context_to_release;

	registered_context_to_release = NULL;
	if (context)
		cl.clReleaseContext(context);
}

TEST(registered_context_released,
     "A context that the application releases during an import keeps no pages of a registration.")
{
	struct climport_registration r;
	cl_command_queue queue;
	cl_context context;
	unsigned char *p;

	registered_open();
	p = registered_make(4 * PAGE, &r);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	registered_context_to_release = context;
	fake_rm.hook_name = "pin";
	fake_rm.hook = registered_release_meanwhile;
	registered_import_into(context, p);
	fake_rm.hook = NULL;
	EXPECT(!registered_context_to_release);
	opaque_rm_settle(0);
	cl.clReleaseCommandQueue(queue);
	registered_release(&r);
	registered_close();
}

TEST(registered_queue_context_again,
     "If the application retains a context that a queue kept alive, imports of a registration pin "
     "the registration once, until the release.")
{
	struct climport_registration r;
	cl_command_queue queue;
	cl_context context;
	unsigned char *p;

	registered_open();
	p = registered_make(4 * PAGE, &r);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(cl.clRetainContext(context), CL_SUCCESS);
	for (int i = 0; i < 4; i++)
		registered_import_into(context, p + i * PAGE);
	EXPECT_EQ(fake_rm.pins_made, 1);
	opaque_rm_settle(1);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	opaque_rm_settle(0);
	cl.clReleaseCommandQueue(queue);
	registered_release(&r);
	registered_close();
}

TEST(registered_many, "A hundred registrations that are imported in turn are each pinned once.")
{
	enum { COUNT = 100 };
	struct climport_registration r[COUNT];

	registered_open();
	for (int i = 0; i < COUNT; i++)
		registered_make(2 * PAGE, &r[i]);
	for (int i = 0; i < 3 * COUNT; i++)
		registered_import_once((void *)r[i % COUNT].base);
	EXPECT_EQ(fake_rm.pins_made, COUNT);
	for (int i = 0; i < COUNT; i++)
		registered_release(&r[i]);
	registered_close();
}

static void registered_import_in(cl_context context, void *p)
{
	cl_int err;
	cl_mem mem = fix.import(context, 0, NULL, p, PAGE, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(mem);
}

static void registered_make_contexts(int count, cl_context *context)
{
	cl_int err;

	for (int i = 0; i < count; i++) {
		context[i] = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
		EXPECT_EQ(err, CL_SUCCESS);
	}
}

TEST(registered_descriptors, "Buffers of registrations in all contexts together take an eighth of "
			     "the program's descriptors "
			     "at most.")
{
	enum { CONTEXTS = 8, COUNT = 20, LIMIT = 400 };
	struct climport_registration r[COUNT];
	cl_context context[CONTEXTS];
	struct rlimit before;

	registered_open();
	registered_make_contexts(CONTEXTS, context);
	for (int i = 0; i < COUNT; i++)
		registered_make(2 * PAGE, &r[i]);
	process_limit_descriptors(LIMIT, &before);
	for (int i = 0; i < 2 * CONTEXTS * COUNT; i++)
		registered_import_in(context[i % CONTEXTS], (void *)r[i / CONTEXTS % COUNT].base);
	opaque_rm_settle(LIMIT / 8);
	setrlimit(RLIMIT_NOFILE, &before);
	for (int i = 0; i < COUNT; i++)
		registered_release(&r[i]);
	for (int i = 0; i < CONTEXTS; i++)
		cl.clReleaseContext(context[i]);
	registered_close();
}

enum { REGISTERED_LIMIT = 160, REGISTERED_SHARE = REGISTERED_LIMIT / 8 };

static void registered_fill_share(struct climport_registration *r, struct rlimit *before)
{
	for (int i = 0; i < REGISTERED_SHARE; i++)
		registered_make(2 * PAGE, &r[i]);
	process_limit_descriptors(REGISTERED_LIMIT, before);
	for (int i = 0; i < REGISTERED_SHARE; i++)
		registered_import_once((void *)r[i].base);
	EXPECT_EQ(fake_rm.pins_made, REGISTERED_SHARE);
}

static void registered_empty_share(struct climport_registration *r, const struct rlimit *before)
{
	setrlimit(RLIMIT_NOFILE, before);
	for (int i = 0; i < REGISTERED_SHARE; i++)
		registered_release(&r[i]);
	registered_close();
}

TEST(registered_oldest,
     "A registration beyond the share takes the place of the least recently imported one.")
{
	struct climport_registration r[REGISTERED_SHARE], next;
	struct rlimit before;

	registered_open();
	registered_fill_share(r, &before);
	registered_import_once((void *)r[0].base);
	registered_make(2 * PAGE, &next);
	for (int i = 0; i < 2; i++) {
		registered_import_once((void *)next.base);
		registered_import_once((void *)r[0].base);
		for (int j = 2; j < REGISTERED_SHARE; j++)
			registered_import_once((void *)r[j].base);
	}
	EXPECT_EQ(fake_rm.pins_made, REGISTERED_SHARE + 1);
	opaque_rm_settle(REGISTERED_SHARE);
	registered_release(&next);
	registered_empty_share(r, &before);
}

TEST(registered_used,
     "Imports that are alive leave the share of the buffers without imports alone.")
{
	struct climport_registration r[REGISTERED_SHARE], used[4];
	struct rlimit before;
	cl_mem mem[4];

	registered_open();
	registered_fill_share(r, &before);
	for (int i = 0; i < 4; i++)
		mem[i] = fixture_import_host(0, registered_make(2 * PAGE, &used[i]), PAGE);
	opaque_rm_settle(REGISTERED_SHARE + 2 * 4);
	for (int i = 0; i < REGISTERED_SHARE; i++)
		registered_import_once((void *)r[i].base);
	EXPECT_EQ(fake_rm.pins_made, REGISTERED_SHARE + 4);
	for (int i = 0; i < 4; i++)
		cl.clReleaseMemObject(mem[i]);
	opaque_rm_settle(REGISTERED_SHARE);
	for (int i = 0; i < 4; i++)
		registered_release(&used[i]);
	opaque_rm_settle(REGISTERED_SHARE - 4);
	registered_empty_share(r, &before);
}

TEST(registered_share_again, "The buffers of a released context give their part of the share back.")
{
	struct climport_registration r[REGISTERED_SHARE];
	struct rlimit before;

	cl_context other;

	registered_open();
	registered_make_contexts(1, &other);
	registered_fill_share(r, &before);
	cl.clReleaseContext(fix.context);
	opaque_rm_settle(0);
	for (int i = 0; i < 2 * REGISTERED_SHARE; i++)
		registered_import_in(other, (void *)r[i % REGISTERED_SHARE].base);
	EXPECT_EQ(fake_rm.pins_made, 2 * REGISTERED_SHARE);
	fix.context = other;
	registered_empty_share(r, &before);
}

TEST(registered_in_turn,
     "Of more registrations than the share that are imported in turn, most imports pin their own "
     "pages alone.")
{
	enum { COUNT = 4 * REGISTERED_SHARE, PAGES = 100 };
	struct climport_registration r[COUNT];
	struct rlimit before;

	registered_open();
	for (int i = 0; i < COUNT; i++)
		registered_make(PAGES * PAGE, &r[i]);
	process_limit_descriptors(REGISTERED_LIMIT, &before);
	for (int i = 0; i < 10 * COUNT; i++)
		registered_import_once((void *)r[i % COUNT].base);
	EXPECT(fake_rm.bytes_pinned < COUNT * 3 * PAGES * PAGE);
	EXPECT(fake_rm.pins_made < 9 * COUNT);
	setrlimit(RLIMIT_NOFILE, &before);
	for (int i = 0; i < COUNT; i++)
		registered_release(&r[i]);
	registered_close();
}

#define RM_NO_MEMORY 0x51

static int registered_room; /* for memory, of RM */

static void registered_refuse_pin(void)
{
	bool is_full = fake_rm_held().memories >= registered_room;

	fake_rm.fail_status = RM_NO_MEMORY;
	fake_rm.fail_times = 1;
	fake_rm.fail_call = is_full ? fake_rm.matched + 1 : 0;
}

static void registered_limit_room(int room)
{
	registered_room = fake_rm_held().memories + room;
	fake_rm.fail_name = fake_rm.hook_name = "pin";
	fake_rm.hook = registered_refuse_pin;
}

/* Memory that the program has registered, or not. */
static const struct registered_next {
	const char *name;
	bool is_registered;
} registered_nexts[] = { { "registered", true }, { "plain", false } };

TEST_EACH(
	registered_no_room, struct registered_next, registered_nexts,
	"Where NVIDIA's resource manager has no room for another pin, registrations that no import "
	"uses make room.")
{
	enum { ROOM = 5, COUNT = 12 };
	struct climport_registration r[COUNT], next;
	unsigned char *p;

	registered_open();
	for (int i = 0; i < COUNT; i++)
		registered_make(2 * PAGE, &r[i]);
	p = row->is_registered ? registered_make(2 * PAGE, &next) : registered_map(2 * PAGE);
	registered_limit_room(ROOM);
	for (int i = 0; i < COUNT; i++)
		registered_import_once((void *)r[i].base);
	registered_import_once(p);
	for (int i = 0; i < COUNT; i++)
		registered_release(&r[i]);
	if (row->is_registered)
		registered_release(&next);
	registered_close();
}

TEST(registered_no_room_used, "Where NVIDIA's resource manager has no room for another pin, an "
			      "import fails if imports use all "
			      "registrations.")
{
	struct climport_registration r;
	unsigned char *p;
	cl_mem used;
	cl_int err;

	registered_open();
	used = fixture_import_host(0, registered_make(2 * PAGE, &r), PAGE);
	p = registered_map(PAGE);
	registered_limit_room(0);
	EXPECT(!fix.import(fix.context, 0, NULL, p, PAGE, &err));
	EXPECT_EQ(err, CL_OUT_OF_HOST_MEMORY);
	cl.clReleaseMemObject(used);
	registered_import_once(p);
	registered_release(&r);
	registered_close();
}

static const struct registered_shortage {
	const char *name, *function;
	cl_int code;
} registered_shortages[] = {
	{ "resources", "clCreateBufferWithProperties", CL_OUT_OF_RESOURCES },
	{ "host_memory", "clCreateBufferWithProperties", CL_OUT_OF_HOST_MEMORY },
	{ "allocation", "clCreateBufferWithProperties", CL_MEM_OBJECT_ALLOCATION_FAILURE },
	{ "cuda", "clCreateBufferWithProperties", 2 },
	{ "sub_buffer", "clCreateSubBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE },
};

TEST_EACH(
	registered_short_driver, struct registered_shortage, registered_shortages,
	"Where the driver has no room for another buffer, a registration that no import uses makes "
	"room.")
{
	struct climport_registration idle, next;

	registered_open();
	registered_import_once(registered_make(2 * PAGE, &idle));
	opaque_rm_settle(1);
	registered_make(2 * PAGE, &next);
	stub_fail(row->function, 1, row->code);
	cl.clReleaseMemObject(fixture_import_host(0, (void *)next.base, 2 * PAGE));
	EXPECT(stub_failed());
	opaque_rm_settle(1);
	registered_import_once((void *)next.base);
	EXPECT_EQ(fake_rm.pins_made, 2);
	registered_release(&idle);
	registered_release(&next);
	registered_close();
}

static const cl_mem_flags registered_flags[] = {
	CL_MEM_READ_WRITE,
	CL_MEM_READ_ONLY,
	CL_MEM_WRITE_ONLY,
	CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY,
	CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS,
	CL_MEM_WRITE_ONLY | CL_MEM_HOST_WRITE_ONLY,
};

TEST(registered_flags,
     "Imports of a registration with different flags share a pin, and each has its own flags.")
{
	struct climport_registration r;
	unsigned char *p;

	registered_open();
	p = registered_make(4 * PAGE, &r);
	for (size_t i = 0; i < sizeof(registered_flags) / sizeof(*registered_flags); i++) {
		cl_mem mem = fixture_import_host(registered_flags[i], p, PAGE);

		EXPECT_EQ(opaque_query_size(mem, CL_MEM_FLAGS), registered_flags[i]);
		cl.clReleaseMemObject(mem);
	}
	EXPECT_EQ(fake_rm.pins_made, 1);
	registered_release(&r);
	registered_close();
}

static cl_mem registered_sub_buffer(cl_mem mem, cl_mem_flags flags, cl_int *err)
{
	const cl_buffer_region region = { 0, ALIGN };

	return cl.clCreateSubBuffer(mem, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, err);
}

TEST(registered_sub_buffer, "A sub-buffer of an import of a registration has the import's flags.")
{
	const cl_mem_flags flags = CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
	struct climport_registration r;
	cl_mem mem, sub;
	cl_int err;

	registered_open();
	mem = fixture_import_host(flags, registered_make(4 * PAGE, &r), PAGE);
	sub = registered_sub_buffer(mem, 0, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_FLAGS), flags);
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(mem);
	registered_release(&r);
	registered_close();
}

static const struct registered_exclusion {
	const char *name;
	cl_mem_flags import, sub;
} registered_exclusions[] = {
	{ "written", CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY },
	{ "read", CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE },
	{ "written_by_host", CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY },
	{ "read_by_host", CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY },
	{ "of_no_host", CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY },
};

TEST_EACH(
	registered_excluded, struct registered_exclusion, registered_exclusions,
	"CL_INVALID_VALUE for a sub-buffer with flags that the import of a registration excludes.")
{
	struct climport_registration r;
	cl_int err;
	cl_mem mem;

	registered_open();
	mem = fixture_import_host(row->import, registered_make(4 * PAGE, &r), PAGE);
	EXPECT(!registered_sub_buffer(mem, row->sub, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	cl.clReleaseMemObject(mem);
	registered_release(&r);
	registered_close();
}

TEST(registered_too_large,
     "If the driver makes no buffer of a whole registration, an import pins its own pages.")
{
	struct climport_registration r;
	unsigned char *p;
	cl_mem mem;

	registered_open();
	p = registered_make(64 * PAGE, &r);
	stub_fail("clCreateBufferWithProperties", 1, CL_INVALID_BUFFER_SIZE);
	mem = fixture_import_host(0, p, PAGE);
	EXPECT(stub_failed());
	stub_fail(NULL, 0, 0);
	opaque_rm_expect_coherent(mem, p);
	cl.clReleaseMemObject(mem);
	registered_release(&r);
	registered_close();
}

TEST(registered_beyond_buffers,
     "An import of a registration above CL_DEVICE_MAX_MEM_ALLOC_SIZE pins the import's own "
     "pages alone.")
{
	struct climport_registration r;
	unsigned char *p;
	cl_mem mem;

	opaque_rm_reset();
	stub_set(STUB_MAX_ALLOC, 16 * PAGE);
	registered_use_stub();
	p = registered_make(64 * PAGE, &r);
	mem = fixture_import_host(0, p + PAGE, 2 * PAGE);
	EXPECT_EQ(fake_rm.pins_made, 1);
	EXPECT_EQ(fake_rm.bytes_pinned, 2 * PAGE);
	opaque_rm_expect_coherent(mem, p + PAGE);
	cl.clReleaseMemObject(mem);
	registered_release(&r);
	registered_close();
}

static struct climport_registration registered_in_callback;

static void registered_end_by_unregister(void)
{
	climport_unregister(&registered_in_callback);
}

static void registered_end_by_invalidate(void)
{
	climport_invalidate(registered_in_callback.base, registered_in_callback.length);
}

static const struct registered_callback {
	const char *name;
	void (*end)(void);
} registered_callbacks[] = {
	{ "unregister", registered_end_by_unregister },
	{ "invalidate", registered_end_by_invalidate },
};

static void CL_CALLBACK registered_call_back(cl_mem mem, void *row)
{
	(void)mem;
	((const struct registered_callback *)row)->end();
}

/* The stub aborts if a callback calls the driver. */
TEST_EACH(registered_callback, struct registered_callback, registered_callbacks,
	  "A registration that ends in a destructor callback leaves the driver to another thread.")
{
	cl_mem other;
	cl_int err;
	unsigned char *p;

	registered_open();
	p = registered_make(4 * PAGE, &registered_in_callback);
	registered_import_once(p);
	other = cl.clCreateBuffer(fix.context, 0, PAGE, NULL, &err);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(other, registered_call_back, (void *)row),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(other), CL_SUCCESS);
	opaque_rm_settle(0);
	climport_unregister(&registered_in_callback);
	munmap(p, 4 * PAGE);
	registered_close();
}

/* A call on a thread with a cancellation pending, which the first cancellation point acts on. */
static cl_int (*registered_call)(void);
static cl_mem registered_mem;
static cl_context registered_context;

static cl_int registered_release_import(void)
{
	return cl.clReleaseMemObject(registered_mem);
}

static cl_int registered_release_context(void)
{
	return cl.clReleaseContext(registered_context);
}

static void *registered_run_cancelled(void *result)
{
	pthread_cancel(pthread_self());
	*(cl_int *)result = registered_call();
	pthread_testcancel();
	return NULL;
}

static void registered_cancel(cl_int (*call)(void))
{
	cl_int result = CL_INVALID_VALUE;
	pthread_t thread;
	void *end;

	registered_call = call;
	EXPECT_EQ(pthread_create(&thread, NULL, registered_run_cancelled, &result), 0);
	EXPECT_EQ(pthread_join(thread, &end), 0);
	EXPECT(end == PTHREAD_CANCELED);
	EXPECT_EQ(result, CL_SUCCESS);
}

/* The import starts inside a page: its buffer is a part of a hidden one, which has a descriptor. */
TEST(registered_cancelled_release,
     "A thread that is cancelled in clReleaseMemObject() has released the import.")
{
	unsigned char *p;

	registered_open();
	p = registered_map(2 * PAGE);
	registered_mem = fixture_import_host(0, p + ALIGN, PAGE);
	registered_cancel(registered_release_import);
	munmap(p, 2 * PAGE);
	registered_close();
}

TEST(registered_cancelled_context,
     "A thread that is cancelled in clReleaseContext() has released the context.")
{
	struct climport_registration r;
	unsigned char *p;
	long live;
	cl_int err;
	cl_mem mem;

	registered_open();
	p = registered_make(4 * PAGE, &r);
	live = stub_live(STUB_CONTEXT);
	registered_context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	mem = fix.import(registered_context, 0, NULL, p, PAGE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	registered_cancel(registered_release_context);
	EXPECT_EQ(stub_live(STUB_CONTEXT), live);
	registered_release(&r);
	registered_close();
}
