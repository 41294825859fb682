/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the application that are cancelled while RM is called. */
#include "opaque_rm_fixture.h"

#include <pthread.h>
#include <unistd.h>

#include "import/import.h"

/* Cancellation points of the C library are among what the fake stands for: open() is such. */
static void cancel_self(void)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

/* An import on a thread; what the import returned, if the import returned. */
static struct {
	enum import_type type;
	void *memory;
	cl_mem mem;
	bool returned;
} cancelled;

static void *cancel_import(void *unused)
{
	const cl_import_properties_arm *properties =
		cancelled.type == IMPORT_DMABUF ? fixture_dma_buf : NULL;

	cancelled.mem = fix.import(fix.context, 0, properties, cancelled.memory, PAGE, NULL);
	cancelled.returned = true;
	pthread_testcancel();
	return unused;
}

static void cancel_run(enum import_type type, void *memory)
{
	pthread_t thread;
	void *result;

	cancelled.type = type;
	cancelled.memory = memory;
	cancelled.mem = NULL;
	cancelled.returned = false;
	EXPECT_EQ(pthread_create(&thread, NULL, cancel_import, NULL), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(result == PTHREAD_CANCELED);
}

static const struct cancelled_call {
	const char *name, *call;
	enum import_type type;
} cancelled_calls[] = {
	{ "open_control", "open control", IMPORT_HOST },
	{ "version", "version", IMPORT_HOST },
	{ "client", "client", IMPORT_HOST },
	{ "uuid", "uuid", IMPORT_HOST },
	{ "cards", "cards", IMPORT_HOST },
	{ "open_device", "open device", IMPORT_HOST },
	{ "register", "register", IMPORT_HOST },
	{ "device", "device", IMPORT_HOST },
	{ "pin", "pin", IMPORT_HOST },
	{ "attach", "attach", IMPORT_DMABUF },
	{ "export", "export", IMPORT_HOST },
	{ "free", "free", IMPORT_HOST },
};

/* A client, a device with its anchor, and nothing of imports. */
static void cancel_expect_nothing_left(void)
{
	struct fake_rm_held held = fake_rm_held();

	EXPECT_EQ(held.clients, 1);
	EXPECT_EQ(held.devices, 1);
	EXPECT_EQ(held.objects, 0);
	EXPECT_EQ(held.memories, 1);
	EXPECT_EQ(held.files, 3);
}

TEST_EACH(cancelled, struct cancelled_call, cancelled_calls,
	  "A thread that is cancelled during a call of RM completes the import, and the import "
	  "leaves nothing behind.")
{
	unsigned char *p;
	int fd, before;

	opaque_rm_reset();
	fake_rm.exporter = "udmabuf";
	opaque_begin();
	p = pages_map(1);
	fd = fake_dmabuf_create("frame", PAGE);
	cl.clReleaseMemObject(fixture_import_host(0, p, PAGE));
	opaque_rm_settle(0);
	before = process_count_descriptors();
	opaque_rm_close_nodes();
	fake_rm.hook = cancel_self;
	fake_rm.hook_name = row->call;
	cancel_run(row->type, row->type == IMPORT_DMABUF ? (void *)&fd : p);
	fake_rm.hook_name = NULL;
	EXPECT(cancelled.returned);
	EXPECT(cancelled.mem);
	cl.clReleaseMemObject(cancelled.mem);
	opaque_rm_settle(0);
	cancel_expect_nothing_left();
	EXPECT_EQ(process_count_descriptors(), before);
	close(fd);
	opaque_rm_close();
}
