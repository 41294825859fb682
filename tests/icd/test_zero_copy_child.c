/* SPDX-License-Identifier: Apache-2.0 */
/* A child of fork() uses what its parent knows of the driver, and tests nothing. */
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
		_exit(run());
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static unsigned char *child_memory;
static cl_mem parents;

static int child_imports(void)
{
	cl_int err = 1;

	return !fix.import(fix.context, CL_MEM_READ_ONLY, NULL, child_memory + PAGE + 4, 100,
			   &err) ||
	       err;
}

static int child_makes_image(void)
{
	cl_int err = 1;
	cl_mem image = fixture_try_image(CL_MEM_READ_WRITE, parents, &err);

	if (image)
		cl.clReleaseMemObject(image);
	return err;
}

TEST(child, "In a child, imports work if the parent has imported anything, and images of which the "
	    "parent has made one alike.")
{
	zero_copy_open(STUB_NUM_OPTIONS, 0);
	child_memory = pages_map(2);
	parents = fixture_import_host(0, child_memory, PAGE);
	EXPECT_EQ(zero_copy_run_child(child_imports), 0);
	EXPECT_EQ(child_makes_image(), 0);
	EXPECT_EQ(zero_copy_run_child(child_makes_image), 0);
	cl.clReleaseMemObject(parents);
	fixture_close();
}
