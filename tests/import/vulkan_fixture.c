/* SPDX-License-Identifier: Apache-2.0 */
#include "vulkan_fixture.h"

#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const unsigned char uuid_1[16] = { 1 }, uuid_2[16] = { 2 }, uuid_unknown[16] = { 9 };

int step_spawn(const char *name, int step)
{
	char program[] = "/proc/self/exe", number[16], *argv[] = { program, strdup(name), NULL };
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	snprintf(number, sizeof(number), "%d", step);
	setenv(STEP, number, 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, 2, 1);
	if (!posix_spawn(&pid, program, &actions, NULL, argv, environ))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	unsetenv(STEP);
	free(argv[1]);
	return status;
}

int step_number(void)
{
	return atoi(getenv(STEP));
}

bool step_is_fresh(void)
{
	return getenv(STEP);
}

void step_run_fresh(const char *name, const char *row_name)
{
	char test[128];
	int status;

	snprintf(test, sizeof(test), "%s%s%s", name, row_name ? "_" : "", row_name ? row_name : "");
	status = step_spawn(test, 1);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		test_skip("the new process skipped the test");
	EXPECT_EQ(status, 0);
}

char *vulkan_map_host(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

int vulkan_import_on(const unsigned char *uuid, void *p, size_t size, struct imported *out)
{
	return vulkan_import_host(uuid, p, size, &out->memory, &out->fd);
}

void imported_drop(struct imported *imported)
{
	close(imported->fd);
	vulkan_free(imported->memory);
}

void import_works(void)
{
	char *p = vulkan_map_host(SIZE);
	struct fake_opaque opaque;
	struct imported in;

	EXPECT_EQ(vulkan_import_on(uuid_1, p, SIZE, &in), 0);
	EXPECT(fake_opaque_read(in.fd, &opaque));
	EXPECT(opaque.memory == p);
	imported_drop(&in);
	munmap(p, SIZE);
}

int try_import(void *p, size_t size)
{
	struct imported in;
	int ret = vulkan_import_on(uuid_1, p, size, &in);

	if (!ret)
		imported_drop(&in);
	return ret;
}

void expect_clean(unsigned int devices)
{
	EXPECT_EQ(fake_vulkan()->memories, 0);
	EXPECT_EQ(fake_vulkan()->devices, devices);
	EXPECT_EQ(fake_vulkan()->misuses, 0);
}

bool is_loaded(void)
{
	void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library)
		dlclose(library);
	return library;
}
