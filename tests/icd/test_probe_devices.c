/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Platforms with several devices, whose tests end or hold up the process that tests: the driver crashes, exits or
 * hangs, or others end the process.  The preloaded part of the driver says what happens, and writes down which
 * process tested which device.
 */
#include "probe.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEVICES 3
#define PLATFORM (1 << DEVICES) /* in bits of devices */
#define SETTINGS 3
#define PROCESSES 16

/* What the program has: "NAME=VALUE" each, and what it does before it loads the layer. */
static const char *devices_settings[SETTINGS];
static void (*devices_prepare)(void);

static void devices_begin(const char *first, const char *second, const char *third)
{
	probe_create_cache();
	devices_settings[0] = first;
	devices_settings[1] = second;
	devices_settings[2] = third;
	devices_prepare = NULL;
}

/* As if the driver had been repaired. */
static void devices_mend(void)
{
	memset(devices_settings, 0, sizeof(devices_settings));
}

static bool devices_set_up(void)
{
	setenv("STUB_DEVICES", "3", 1);
	setenv("STUB_PRELOADED", "1", 1);
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	setenv("LD_PRELOAD", PRELOADED_PATH, 1);
	for (int i = 0; i < SETTINGS && devices_settings[i]; i++)
		putenv((char *)(uintptr_t)devices_settings[i]);
	if (devices_prepare)
		devices_prepare();
	return dlopen(PRELOADED_PATH, RTLD_NOW | RTLD_GLOBAL);
}

/* Bits of the devices with the name of the extension, and the platform's. */
static int devices_query(void)
{
	cl_device_id devices[DEVICES];
	int bits = 0;
	cl_uint count;

	if (!devices_set_up())
		return -1;
	bits = probe_platform_reports() ? PLATFORM : 0;
	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, DEVICES, devices, &count))
		return -1;
	for (cl_uint i = 0; i < count; i++) {
		char text[4096] = "";

		clGetDeviceInfo(devices[i], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
		bits |= strstr(text, "cl_arm_import_memory_host") ? 1 << i : 0;
	}
	return bits;
}

static int devices_query_kept(void)
{
	setenv("CLIMPORT_PROBE", "off", 1);
	return devices_query();
}

/* 0, or the amount of the error. */
static int devices_import_on(cl_device_id device)
{
	static unsigned char memory[4096] __attribute__((aligned(4096)));
	__typeof__(&clImportMemoryARM) import =
		(__typeof__(&clImportMemoryARM))clGetExtensionFunctionAddressForPlatform(
			probe_get_platform(), "clImportMemoryARM");
	cl_int err;
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	cl_mem mem;

	if (!context)
		return -err;
	mem = import(context, CL_MEM_READ_WRITE, NULL, memory, sizeof(memory), &err);
	if (mem)
		clReleaseMemObject(mem);
	clReleaseContext(context);
	return -err;
}

/* Imports on the devices 0 and 1.  The error of the second. */
static int devices_import_two(void)
{
	cl_device_id devices[2];

	if (!devices_set_up() ||
	    clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 2, devices, NULL) ||
	    devices_import_on(devices[0]))
		return -1;
	return devices_import_on(devices[1]);
}

static FILE *devices_open_tested(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/tested", probe_cache);
	return fopen(path, "re");
}

/* The devices that were tested, in bits; and the number of processes that tested them. */
static int devices_tested(int *processes)
{
	FILE *file = devices_open_tested();
	int bits = 0, device, pid, before[PROCESSES], i;

	*processes = 0;
	while (file && fscanf(file, "%d %d", &device, &pid) == 2) {
		bits |= 1 << device;
		for (i = 0; i < *processes && before[i] != pid; i++)
			;
		EXPECT(i < PROCESSES);
		before[i] = pid;
		*processes += i == *processes;
	}
	if (file)
		fclose(file);
	return bits;
}

static void expect_tested(int devices, int by_processes)
{
	int processes;

	EXPECT_EQ(devices_tested(&processes), devices);
	EXPECT_EQ(processes, by_processes);
}

static void devices_forget_tested(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/tested", probe_cache);
	unlink(path);
}

static void devices_make_old(void)
{
	char command[256];

	snprintf(command, sizeof(command), "touch -d '2 hours ago' %s/climport/results/*",
		 probe_cache);
	EXPECT_EQ(system(command), 0);
}

/* What the program sees that starts the probe. */
static int devices_find_out(void)
{
	return probe_run_to_end(devices_query, NULL);
}

TEST(all, "One process tests all devices of a platform, and the record is kept.")
{
	devices_begin(NULL, NULL, NULL);
	EXPECT_EQ(devices_find_out(), PLATFORM | 7);
	expect_tested(7, 1);
	EXPECT_EQ(probe_run_program(devices_query_kept), PLATFORM | 7);
}

static const struct death {
	const char *name, *dies, *how;
	int survivors, processes; /* those that tested devices */
} deaths[] = {
	{ "of_the_first", "PRELOADED_DIES=1", NULL, PLATFORM | 6, 2 },
	{ "of_the_middle", "PRELOADED_DIES=2", NULL, PLATFORM | 5, 2 },
	{ "of_the_last", "PRELOADED_DIES=4", NULL, PLATFORM | 3, 1 },
	{ "of_two", "PRELOADED_DIES=3", NULL, PLATFORM | 4, 3 },
	{ "of_all", "PRELOADED_DIES=7", NULL, 0, 3 },
	{ "by_segv", "PRELOADED_DIES=2", "PRELOADED_SIGNAL=11", PLATFORM | 5, 2 },
	{ "by_exit", "PRELOADED_DIES=2", "PRELOADED_STATUS=3", PLATFORM | 5, 2 },
	{ "by_good_exit", "PRELOADED_DIES=2", "PRELOADED_STATUS=0", PLATFORM | 5, 2 },
	{ "hangs", "PRELOADED_HANGS=2", NULL, PLATFORM | 5, 2 },
	{ "stays", "PRELOADED_HANGS=2", "PRELOADED_STAYS=1", PLATFORM | 5, 2 },
};

TEST_EACH(death, struct death, deaths,
	  "If the driver dies or hangs in the test of a device, the other devices have the "
	  "extension, "
	  "and no other process asks for an hour.")
{
	devices_begin(row->dies, row->how, NULL);
	EXPECT_EQ(devices_find_out(), row->survivors);
	expect_tested(7, row->processes);
	devices_mend();
	devices_forget_tested();
	EXPECT_EQ(devices_find_out(), row->survivors);
	expect_tested(0, 0);
	devices_make_old();
	EXPECT_EQ(devices_find_out(), PLATFORM | 7);
	devices_make_old();
	EXPECT_EQ(probe_run_program(devices_query_kept), PLATFORM | 7);
}

TEST(death_asked, "If the driver dies when it is asked about a device, the other devices have the "
		  "extension, and no other process asks for an hour.")
{
	devices_begin("PRELOADED_DIES_ASKED=2", NULL, NULL);
	EXPECT_EQ(devices_find_out(), PLATFORM | 5);
	expect_tested(5, 2);
	devices_mend();
	devices_forget_tested();
	EXPECT_EQ(devices_find_out(), PLATFORM | 5);
	expect_tested(0, 0);
}

TEST(replaced, "That the driver dies of a device does not hold for another device in its place.")
{
	char command[256];

	devices_begin("PRELOADED_DIES=2", NULL, NULL);
	EXPECT_EQ(devices_find_out(), PLATFORM | 5);
	devices_mend();
	snprintf(command, sizeof(command), EDIT_PATH " %s/climport/results/* device=1 name=other",
		 probe_cache);
	EXPECT_EQ(system(command), 0);
	EXPECT_EQ(devices_find_out(), PLATFORM | 7);
}

TEST(exchanged, "A worker that finds other devices than the one before it makes no record.")
{
	devices_begin(NULL, NULL, NULL);
	probe_install_layer("XDG_CACHE_HOME=/proc/nothing " PROBE_ANSWERS "; " EDIT_PATH
			    " /dev/fd/3 name=other open=1; exec " PROBE_ANSWERS);
	EXPECT_EQ(probe_run_answered(probe_silent_with_installed), 0);
	EXPECT_EQ(probe_count_kept(), 0);
}

TEST(import, "An import on a device of which the driver dies is CL_INVALID_PROPERTY, and imports "
	     "on others work.")
{
	devices_begin("PRELOADED_DIES=2", NULL, NULL);
	EXPECT_EQ(probe_run_to_end(devices_import_two, NULL), -CL_INVALID_PROPERTY);
}

static const struct unknown {
	const char *name, *what, *how;
	int known, processes;
} unknowns[] = {
	{ "killed", "PRELOADED_DIES=2", "PRELOADED_SIGNAL=9", PLATFORM | 5, 2 },
	{ "first_killed", "PRELOADED_DIES=1", "PRELOADED_SIGNAL=9", PLATFORM | 6, 2 },
	{ "interrupted", "PRELOADED_DIES=2", "PRELOADED_SIGNAL=2", PLATFORM | 5, 2 },
	{ "terminated", "PRELOADED_DIES=4", "PRELOADED_SIGNAL=15", PLATFORM | 3, 1 },
	{ "filtered", "PRELOADED_DIES=4", "PRELOADED_SIGNAL=31", PLATFORM | 3, 1 },
	{ "file_too_large", "PRELOADED_DIES=4", "PRELOADED_SIGNAL=25", PLATFORM | 3, 1 },
	{ "lacks_memory", "PRELOADED_LACKS=2", NULL, PLATFORM | 5, 1 },
};

TEST_EACH(
	unknown, struct unknown, unknowns,
	"If others end the test of a device, or memory is short, the program has what is known of "
	"the other devices; nothing is kept, and the next process asks again.")
{
	devices_begin(row->what, row->how, NULL);
	EXPECT_EQ(devices_find_out(), row->known);
	expect_tested(7, row->processes);
	EXPECT_EQ(probe_run_program(devices_query_kept), 0);
	devices_mend();
	EXPECT_EQ(devices_find_out(), PLATFORM | 7);
}

TEST(import_unknown, "An import on a device of which nothing is known now is CL_OUT_OF_RESOURCES, "
		     "and imports on others work.")
{
	devices_begin("PRELOADED_DIES=2", "PRELOADED_SIGNAL=9", NULL);
	EXPECT_EQ(probe_run_to_end(devices_import_two, NULL), -CL_OUT_OF_RESOURCES);
}

TEST(orphan, "If climport-probe is killed, its worker is, too, and nothing is kept.")
{
	devices_begin("PRELOADED_ORPHANS=2", "PRELOADED_HANGS=2", NULL);
	EXPECT_EQ(devices_find_out(),
		  0); /* and no process is left, for which the call would wait */
	devices_mend();
	EXPECT_EQ(probe_run_program(devices_query_kept), 0);
	EXPECT_EQ(devices_find_out(), PLATFORM | 7);
}

static void devices_ignore_children(void)
{
	signal(SIGCHLD, SIG_IGN);
}

TEST(death_ignored, "A program that ignores SIGCHLD learns of deaths all the same.")
{
	devices_begin("PRELOADED_DIES=2", NULL, NULL);
	devices_prepare = devices_ignore_children;
	EXPECT_EQ(devices_find_out(), PLATFORM | 5);
	EXPECT_EQ(probe_run_program(devices_query_kept), PLATFORM | 5);
}

static void devices_limit(void)
{
	const struct rlimit few = { 64, 64 };

	setrlimit(RLIMIT_NOFILE, &few);
}

static void devices_filter(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	const struct sock_fprog filter = { 1, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static const struct restriction {
	const char *name;
	void (*enter)(void);
} restrictions[] = { { "limit", devices_limit }, { "filter", devices_filter } };

TEST_EACH(death_with, struct restriction, restrictions,
	  "If the driver dies of a device in a process with a resource limit or a system call "
	  "filter, that "
	  "is believed for processes with the same limits and as many filters.")
{
	devices_begin("PRELOADED_DIES=2", NULL, NULL);
	devices_prepare = row->enter;
	EXPECT_EQ(devices_find_out(), PLATFORM | 5);
	devices_mend();
	devices_forget_tested();
	EXPECT_EQ(devices_find_out(), PLATFORM | 5);
	expect_tested(0, 0);
	devices_prepare = NULL;
	EXPECT_EQ(devices_find_out(), PLATFORM | 7);
}
