/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of host memory that the program has registered, through the layer. */
#include "opaque_rm_fixture.h"

#include <CL/climport.h>
#include <sys/mman.h>
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
static void registered_open(void)
{
	unsigned char *p = registered_map(PAGE);

	opaque_rm_reset();
	unsetenv("CLIMPORT_KEEP_HOST");
	opaque_rm_open();
	registered_import_once(p);
	opaque_rm_settle(0);
	munmap(p, PAGE);
	fake_rm.pins_made = 0;
}

static unsigned char *registered_make(size_t size, struct climport_registration *r)
{
	unsigned char *p = registered_map(size);

	EXPECT_EQ(climport_register(p, size, r), 0);
	return p;
}

static void registered_end(struct climport_registration *r)
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
	registered_end(&r);
	registered_close();
}
