/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs in a child of fork(): the child uses the proofs of the parent, and makes no proof. */
#include "zero_copy.h"

#include <sys/wait.h>
#include <unistd.h>

/*
 * Runs @run in a child.  The driver's threads exist in the parent only, so the child's commands
 * never end.
 */
static int zero_copy_run_child(int (*run)(void))
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(TEST_HANG_S);
		stub_set(STUB_HANG, 1);
		fix.notices = 0;
		_exit(run());
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_refused_as_child(unsigned long calls)
{
	if (fix.notices == 1 && strstr(fix.notice, "child of fork()") &&
	    stub_calls("clCreateContext") == calls)
		return true;
	printf("# %u messages: %s\n", fix.notices, fix.notice);
	return false;
}

static unsigned char *child_memory;
static cl_mem parents;

/* The parent has proved the import's class. */
static int import_proved(void)
{
	cl_int err = 1;

	return !fix.import(fix.context, 0, NULL, child_memory, PAGE, &err) || err;
}

static int import_unproved(void)
{
	const unsigned long calls = stub_calls("clCreateContext");
	cl_int err = 1;

	fix.import(fix.context, 0, NULL, child_memory + 4, 100, &err);
	return err != CL_INVALID_OPERATION || !is_refused_as_child(calls);
}

static int image_unproved(void)
{
	const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = 4,
				     .image_height = 4,
				     .mem_object = parents };
	const unsigned long calls = stub_calls("clCreateContext");
	cl_int err = 1;

	cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err);
	return err != CL_INVALID_OPERATION || !is_refused_as_child(calls);
}

TEST(child,
     "In a child of the process that made a context, imports of unproved classes are refused at "
     "once.")
{
	zero_copy_open(STUB_NUM_OPTIONS, 0);
	child_memory = pages_map(2);
	/* No class is proved yet, nor the device. */
	EXPECT_EQ(zero_copy_run_child(import_unproved), 0);
	parents = fixture_import_host(0, child_memory, PAGE);
	EXPECT_EQ(zero_copy_run_child(import_proved), 0);
	EXPECT_EQ(zero_copy_run_child(import_unproved), 0);
	EXPECT_EQ(zero_copy_run_child(image_unproved), 0);
	/* The parent can still prove. */
	cl.clReleaseMemObject(fixture_import_host(0, child_memory + 4096, 100));
	cl.clReleaseMemObject(parents);
	fixture_close();
}
