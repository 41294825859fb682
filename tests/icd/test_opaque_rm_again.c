/* SPDX-License-Identifier: Apache-2.0 */
/* Self-tests of the method opaque_fd that could not run, or hung, and run again. */
#include "clock_ahead.h"
#include "opaque_rm_fixture.h"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define HOUR 3600 /* seconds */

/* No other method than opaque_fd is zero copy. */
static void again_open_with_cache(void)
{
	opaque_rm_reset();
	stub_set(STUB_COPYING, 1);
	setenv("CLIMPORT_PROBE", "off", 1);
	fixture_open();
}

static void again_open(void)
{
	again_open_with_cache();
	setenv("XDG_CACHE_HOME", "/proc/none", 1);
}

/* From now on no context can be created: self-tests create contexts, and imports do not. */
static void again_begin_shortage(void)
{
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail("clCreateContext", 1, CL_OUT_OF_RESOURCES);
}

static void again_end_shortage(void)
{
	stub_fail(NULL, 0, CL_SUCCESS);
	stub_set(STUB_FAULT_STAYS, 0);
}

static void again_expect_import(unsigned char *p)
{
	cl_mem mem = fixture_import_host(0, p, PAGE);

	opaque_rm_expect_coherent(mem, p);
	cl.clReleaseMemObject(mem);
}

/* Also the next call fails, and so on. */
static void again_fail_cuda(void *nothing)
{
	(void)nothing;
	fake_cuda_fail("cuMemCreate", 1, 2);
	fake_cuda_at("cuMemCreate", 1, again_fail_cuda, NULL);
}

static void again_import(void)
{
	again_expect_import(pages_map(1));
}

static void again_query(void)
{
	fixture_device_reports(fix.device[0], "cl_arm_import_memory");
}

/* Calls of the program that look at the results of a device again. */
static const struct again_look {
	const char *name;
	void (*look)(void);
} again_looks[] = { { "import", again_import }, { "query", again_query } };

TEST_EACH(
	rm_stays_proved, struct again_look, again_looks,
	"If CUDA's memory could not be tested, and RM's memory is proved, RM's memory is imported "
	"also after a shortage in later self-tests.")
{
	again_open();
	again_fail_cuda(NULL);
	row->look();
	again_expect_import(pages_map(1));
	again_begin_shortage();
	for (int i = 0; i < 5; i++) {
		row->look();
		again_expect_import(pages_map(1));
		clock_ahead += HOUR;
	}
	again_end_shortage();
	again_expect_import(pages_map(1));
	fake_cuda_at(NULL, 0, NULL, NULL);
	opaque_rm_close();
}

TEST(rm_one_test,
     "An import whose self-tests lack resources tests each exporter once, and fails with "
     "CL_OUT_OF_RESOURCES and a sentence.")
{
	unsigned long contexts;

	again_open();
	again_begin_shortage();
	contexts = stub_calls("clCreateContext");
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "could not be tested"));
	EXPECT(strstr(fix.notice, "any pages by RM: untested"));
	EXPECT(stub_calls("clCreateContext") - contexts <= 3); /* CUDA, RM, and host_ptr */
	again_end_shortage();
	again_import();
	opaque_rm_close();
}

TEST(rm_two_imports, "An import works at once after a shortage in the first two imports.")
{
	again_open();
	again_begin_shortage();
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
			  CL_OUT_OF_RESOURCES);
	again_end_shortage();
	again_import();
	opaque_rm_close();
}

TEST(rm_short_patience, "After a short shortage, however many imports failed meanwhile, an import "
			"works some seconds later.")
{
	again_open();
	again_begin_shortage();
	for (int i = 0; i < 50; i++)
		EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
			  CL_OUT_OF_RESOURCES);
	again_end_shortage();
	clock_ahead += 20;
	again_import();
	opaque_rm_close();
}

static pthread_barrier_t again_start;

struct again_first {
	pthread_t thread;
	unsigned char *page;
	cl_int err;
};

static void *again_import_at_start(void *arg)
{
	struct again_first *first = arg;

	pthread_barrier_wait(&again_start);
	fix.import(fix.context, 0, NULL, first->page, PAGE, &first->err);
	return NULL;
}

TEST(rm_threads, "After a shortage in the first imports of several threads, an import works some "
		 "seconds later.")
{
	struct again_first first[THREADS];

	again_open();
	again_begin_shortage();
	pthread_barrier_init(&again_start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		first[i].page = pages_map(1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&first[i].thread, NULL, again_import_at_start, &first[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(first[i].thread, NULL);
		EXPECT_EQ(first[i].err, CL_OUT_OF_RESOURCES);
	}
	pthread_barrier_destroy(&again_start);
	again_end_shortage();
	clock_ahead += 10;
	again_import();
	opaque_rm_close();
}

/* The driver hangs in the first import.  Waits for the limit of a self-test pass quickly. */
static void again_hang(void)
{
	const unsigned long contexts = stub_calls("clCreateContext");

	stub_set(STUB_HANG, 1);
	clock_behind_ms = 95;
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "the self-test did not end"));
	EXPECT_EQ(stub_calls("clCreateContext"), contexts + 1);
}

static void again_end_hang(int threads)
{
	clock_behind_ms = 0;
	stub_set(STUB_HANG, 0);
	EXPECT(process_settles(process_threads_at_most, &threads));
}

TEST(rm_hang_ends,
     "If a driver hangs in a self-test, the import tests nothing more, and the device "
     "is refused until the self-test ends after all.")
{
	unsigned long contexts;
	int threads;

	again_open();
	threads = process_count_threads();
	again_hang();
	contexts = stub_calls("clCreateContext");
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	EXPECT_EQ(stub_calls("clCreateContext"), contexts);
	again_end_hang(threads);
	again_import();
	opaque_rm_close();
}

TEST(rm_hang_of_an_hour, "A device whose self-test has hung for an hour is tested again.")
{
	int threads;

	again_open();
	threads = process_count_threads();
	again_hang();
	clock_ahead += HOUR + 1;
	again_hang();
	again_end_hang(threads);
	again_import();
	opaque_rm_close();
}

TEST(rm_hang_is_kept, "For an hour, a later process does not wait for a self-test that hung.")
{
	unsigned long contexts;
	int threads;

	again_open_with_cache();
	threads = process_count_threads();
	again_hang();
	again_end_hang(threads);
	fixture_close();
	fixture_open();
	contexts = stub_calls("clCreateContext");
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "the self-test did not end"));
	EXPECT_EQ(stub_calls("clCreateContext"), contexts);
	opaque_rm_close();
}
