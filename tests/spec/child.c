/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a test. */
#include "child.h"

#include <stdarg.h>
#include <unistd.h>

#include "channel.h"
#include "kernels.h"
#include "queues.h"
#include "spec.h"
#include "substitute.h"

/* For the address sanitizer: PoCL loses four bytes with each 1D image made from a buffer. */
const char *__lsan_default_suppressions(void);

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\n";
}

void spec_note(const char *format, ...)
{
	char text[sizeof((struct message){ 0 }.text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	channel_send(MESSAGE_NOTE, 0, text);
}

bool spec_note_wrong_byte(size_t i, unsigned int is, unsigned int expected)
{
	spec_note("byte %zu is %u, expected %u", i, is, expected);
	return spec_note_driver();
}

bool spec_note_driver(void)
{
	atomic_store(&opencl_note->data_is_wrong, true);
	return false;
}

static void child_send_call(void)
{
	char call[200];

	opencl_describe_note(opencl_note, call, sizeof(call));
	channel_send(MESSAGE_CALL, 0, call);
}

/* A driver that copies at the enqueue and at the end would not see the bytes of the host. */
static void child_expect_late_bytes(cl_mem mem, unsigned char *memory, size_t size)
{
	cl_event gate = queues_create_gate(), done = NULL;

	kernels_add_after(mem, size, 10, gate, &done);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	spec_fill_memory(memory, size, 3);
	queues_open_gate(gate);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, size, 13));
}

/*
 * The driver's own buffers are the memory itself: kernels and host see each other's bytes.  The memory
 * lies in its page as the memory of the test: some drivers copy what does not begin a page.
 */
static void child_expect_sharing(void)
{
	unsigned char *memory = spec_map_pages(2) + substitute_offset(spec.page);
	cl_int error = 1;
	cl_mem mem = clCreateBuffer(spec.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
				    spec.page, memory, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	expect_shared(released_later(mem), memory, 16);
	child_expect_late_bytes(mem, memory, 16);
}

/* If the driver's own buffers are copies, the helpers of kernels.h alone keep them equal. */
static bool child_is_comparable(bool plain)
{
	const struct test sharing = { .run = child_expect_sharing };
	const char *why;

	if (!plain || !atomic_load(&opencl_note->has_commands))
		return true;
	return test_judge(&sharing, &why) == TEST_PASSED;
}

static void child_send_failure(bool plain, const char *why)
{
	int data = atomic_load(&opencl_note->data_is_wrong) ? DATA_IS_WRONG : 0;

	child_send_call();
	channel_send(MESSAGE_RESULT, TEST_FAILED, why);
	if (data && child_is_comparable(plain))
		data |= DATA_IS_COMPARABLE;
	channel_send(MESSAGE_DATA, data, "");
}

static void child_call_and_undo(const void *test)
{
	need_extension_of(((const struct test *)test)->says);
	test_call(test);
	undo_all();
}

static void child_undo(void)
{
	undo_all();
}

/* A test that skips after queries alone has left the process as it was. */
static bool child_may_go_on(const struct run *run, enum test_result result)
{
	if (run->together)
		return result != TEST_FAILED || !run->afresh;
	return result == TEST_SKIPPED && !atomic_load(&opencl_note->has_effects);
}

/* Whether another test may use the process. */
static bool child_run_test(const struct test *test, const struct run *run)
{
	const struct test whole = { .run_row = child_call_and_undo, .row = test };
	const struct test rest = { .run = child_undo };
	enum test_result result;
	const char *why;

	opencl_reset_note();
	channel_send(MESSAGE_BEGIN, 0, test->name);
	result = test_judge(&whole, &why);
	if (result == TEST_FAILED)
		child_send_failure(run->plain, why);
	else
		channel_send(MESSAGE_RESULT, result, why);
	test_judge(&rest, &why);
	return child_may_go_on(run, result);
}

/* False if there is nothing to test; the runner then knows why. */
static bool child_open(const struct run *run)
{
	enum nothing kind = NOTHING_TO_TEST;
	const char *why = spec_open(run, &kind);

	if (why)
		channel_send(MESSAGE_NOTHING, kind, why);
	return !why;
}

static void child_describe(void)
{
	char about[sizeof((struct message){ 0 }.text)];
	const cl_version version = spec.has_arm ? spec.version : spec.external_version;

	snprintf(about, sizeof(about),
		 "platform %s, device %s, driver %s, OpenCL %u.%u, version %u.%u.%u, %s",
		 spec.platform_name, spec.device_name, spec.driver_version,
		 CL_VERSION_MAJOR(spec.device_version), CL_VERSION_MINOR(spec.device_version),
		 CL_VERSION_MAJOR(version), CL_VERSION_MINOR(version), CL_VERSION_PATCH(version),
		 spec_implementation());
	channel_send(MESSAGE_PLATFORM, 0, spec.platform_name);
	channel_send(MESSAGE_ABOUT, 0, about);
}

void child_run(const struct run *run, struct test *const *tests, size_t count)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (run->plain)
		unsetenv("OPENCL_LAYERS");
	if (!child_open(run))
		return;
	if (!count)
		child_describe();
	for (size_t i = 0; i < count; i++)
		if (!child_run_test(tests[i], run))
			break;
	kernels_close();
	spec_close();
	channel_send(MESSAGE_END, 0, "");
}
