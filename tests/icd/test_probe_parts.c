/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Platforms with several devices: each device is tested in a process of its own, at once with the others.
 * The preloaded part of the driver says what happens in a test, and writes down what was tested.
 */
#include "probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEVICES 3
#define CROWD "9" /* devices: more than probe processes test at once */
#define FEW_PROCESSES 1000
#define PLATFORM (1 << DEVICES) /* in bits of devices */

/* Variables of the program. */
static const char *parts_name, *parts_value, *parts_signal, *parts_error;
static const char *parts_lacks, *parts_last, *parts_waits, *parts_ahead, *parts_hangs;
static const char *parts_devices; /* the number */

static bool parts_meet; /* each test waits for the others */

/* Bits of the devices with the name of the extension, and the platform's. */
static int parts_query(void)
{
	cl_device_id devices[DEVICES];
	int bits = probe_platform_reports() ? PLATFORM : 0;
	cl_uint count;

	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, DEVICES, devices, &count))
		return -1;
	for (cl_uint i = 0; i < count; i++) {
		char text[4096] = "";

		clGetDeviceInfo(devices[i], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
		bits |= strstr(text, "cl_arm_import_memory_host") ? 1 << i : 0;
	}
	return bits;
}

static void parts_set_if(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
}

static void parts_set(const char *devices)
{
	setenv("STUB_DEVICES", devices, 1);
	setenv("STUB_PRELOADED", "1", 1);
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	setenv("LD_PRELOAD", PRELOADED_PATH, 1);
	if (parts_meet)
		setenv("PRELOADED_MEETS", devices, 1);
	if (parts_name)
		setenv(parts_name, parts_value, 1);
	parts_set_if("PRELOADED_SIGNAL", parts_signal);
	parts_set_if("PRELOADED_ERROR", parts_error);
	parts_set_if("PRELOADED_LACKS", parts_lacks);
	parts_set_if("PRELOADED_HANGS", parts_hangs);
	parts_set_if("PRELOADED_LAST", parts_last);
	parts_set_if("PRELOADED_WAITS", parts_waits);
	parts_set_if("PRELOADED_AHEAD", parts_ahead);
}

static bool parts_load(void)
{
	return dlopen(PRELOADED_PATH, RTLD_NOW | RTLD_GLOBAL);
}

/* Without native kernels, so that probe processes alone test devices. */
static int parts_program(void)
{
	setenv("STUB_NO_NATIVE_KERNEL", "1", 1);
	parts_set(parts_devices);
	return parts_load() ? parts_query() : -1;
}

static int parts_program_crowd(void)
{
	parts_set(CROWD);
	return parts_load() ? probe_platform_reports() : -1;
}

static int parts_program_kept(void)
{
	setenv("CLIMPORT_PROBE", "off", 1);
	return parts_program();
}

static void parts_begin(bool meet, const char *name, const char *value)
{
	probe_create_cache();
	parts_meet = meet;
	parts_name = name;
	parts_value = value;
	parts_signal = parts_error = NULL;
	parts_lacks = parts_last = parts_waits = parts_ahead = parts_hangs = NULL;
	parts_devices = "3";
}

/* The devices that were tested, in bits. */
static int parts_tested(void)
{
	char path[128];
	int bits = 0, c;
	FILE *file;

	snprintf(path, sizeof(path), "%s/tested", probe_cache);
	file = fopen(path, "re");
	while (file && (c = fgetc(file)) != EOF)
		bits |= c == '\n' ? 0 : 1 << (c - '0');
	if (file)
		fclose(file);
	return bits;
}

static void parts_make_old(void)
{
	char command[256];

	snprintf(command, sizeof(command), "touch -d '2 hours ago' %s/climport/results/*",
		 probe_cache);
	EXPECT_EQ(system(command), 0);
}

static void parts_forget_tested(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/tested", probe_cache);
	unlink(path);
}

/* The probe processes that have tested devices. */
static size_t parts_processes(void)
{
	char pattern[128];
	glob_t found = { 0 };
	size_t count;

	snprintf(pattern, sizeof(pattern), "%s/worker.*", probe_cache);
	count = glob(pattern, GLOB_NOSORT, NULL, &found) ? 0 : found.gl_pathc;
	globfree(&found);
	return count;
}

/* What is kept by probe processes. */
static int parts_find_out(void)
{
	probe_run_to_end(parts_program, NULL);
	return probe_run_program(parts_program_kept);
}

TEST(all, "A platform with several devices has answers for all devices.")
{
	parts_begin(false, NULL, NULL);
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	EXPECT_EQ(parts_tested(), 7);
}

TEST(at_once, "The devices of a platform are tested at once: each test waits for the others.")
{
	parts_begin(true, NULL, NULL);
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	EXPECT_EQ(parts_tested(), 7);
}

TEST(one_waits,
     "Of the processes that have tested a device, one lives until the last device is tested.")
{
	parts_begin(true, "PRELOADED_LAST", "2");
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	EXPECT_EQ(parts_tested(), 7);
}

static const struct crowd {
	const char *name, *lacks_native_kernels;
	size_t processes;
} crowds[] = {
	{ "native", "0", 1 },
	{ "compiled", "1", 9 },
};

TEST_EACH(crowd, struct crowd, crowds,
	  "More than eight devices have a process for all, if no test is compiled; else a process "
	  "each.")
{
	parts_begin(false, "STUB_NO_NATIVE_KERNEL", row->lacks_native_kernels);
	probe_run_to_end(parts_program_crowd, NULL);
	EXPECT_EQ(parts_tested(), 0x1ff);
	EXPECT_EQ(parts_processes(), row->processes);
}

static const struct death {
	const char *name, *dies, *signal;
	int survivors;
} deaths[] = {
	{ "first", "1", NULL, 6 },
	{ "second", "2", NULL, 5 },
	{ "last", "4", NULL, 3 },
	{ "but_one", "3", NULL, 4 },
	{ "too_slow", "2", "14" /* SIGALRM */, 5 },
};

TEST_EACH(death, struct death, deaths,
	  "If the driver dies of the test of a device, the other devices have the extension.")
{
	parts_begin(false, "PRELOADED_DIES", row->dies);
	parts_signal = row->signal;
	EXPECT_EQ(parts_find_out(), PLATFORM | row->survivors);
	EXPECT_EQ(parts_tested(), 7);
}

TEST(death_forgotten, "That the driver dies of a device is believed for an hour.")
{
	parts_begin(false, "PRELOADED_DIES", "2");
	EXPECT_EQ(parts_find_out(), PLATFORM | 5);
	parts_name = NULL;
	parts_forget_tested();
	EXPECT_EQ(probe_run_to_end(parts_program, NULL), PLATFORM | 5);
	EXPECT_EQ(parts_tested(), 0);
	parts_make_old();
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	parts_make_old();
	EXPECT_EQ(probe_run_program(parts_program_kept), PLATFORM | 7);
}

static const struct end {
	const char *name, *dies, *signal;
} ends[] = {
	{ "killed", "2", "9" /* SIGKILL */ },	  { "first_killed", "1", "9" },
	{ "interrupted", "2", "2" /* SIGINT */ }, { "terminated", "4", "15" /* SIGTERM */ },
	{ "filtered", "4", "31" /* SIGSYS */ },
};

TEST_EACH(lost, struct end, ends,
	  "If the test of a device is ended from outside, nothing is kept of the platform.")
{
	parts_begin(false, "PRELOADED_DIES", row->dies);
	parts_signal = row->signal;
	EXPECT(!(parts_find_out() & PLATFORM));
	EXPECT_EQ(parts_tested(), 7);
	parts_name = NULL;
	parts_forget_tested();
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
}

TEST(all_die, "If the driver dies of every device, no device has the extension, and no other "
	      "process asks for an hour.")
{
	parts_begin(false, "PRELOADED_DIES", "7");
	EXPECT_EQ(parts_find_out(), 0);
	EXPECT_EQ(parts_tested(), 7);
	parts_forget_tested();
	EXPECT_EQ(probe_run_to_end(parts_program, NULL), 0);
	EXPECT_EQ(parts_tested(), 0);
}

TEST(chosen, "Devices that CLIMPORT_DEVICE does not choose are not tested.")
{
	parts_begin(false, "CLIMPORT_DEVICE", "1");
	EXPECT_EQ(parts_find_out(), PLATFORM | 2);
	EXPECT_EQ(parts_tested(), 2);
}

TEST(other_platform, "No device of a platform that CLIMPORT_PLATFORM does not choose is tested.")
{
	parts_begin(false, "CLIMPORT_PLATFORM", "1");
	EXPECT_EQ(probe_run_to_end(parts_program, NULL), 0);
	EXPECT_EQ(parts_tested(), 0);
}

TEST(alone, "A probe process that can start no worker tests every device itself.")
{
	parts_begin(false, "PRELOADED_REFUSES", "0xff");
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	EXPECT_EQ(parts_tested(), 7);
	EXPECT_EQ(parts_processes(), 1);
}

TEST(one_by_one,
     "If a worker cannot be started while others run, it is started when these have ended.")
{
	parts_begin(false, "PRELOADED_REFUSES", "2");
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	EXPECT_EQ(parts_processes(), DEVICES);
}

static const struct shortage {
	const char *name, *error;
} shortages[] = { { "dies", "0" }, { "has_no_answer", "-6" /* CL_OUT_OF_HOST_MEMORY */ } };

TEST_EACH(shortage, struct shortage, shortages,
	  "If the test of a device dies or has no result while others are tested, the device is "
	  "tested "
	  "again alone.")
{
	parts_begin(true, "PRELOADED_ROOM", "1");
	parts_error = row->error;
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
}

static int parts_program_limited(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NPROC, &limit))
		return -1;
	if (limit.rlim_max > FEW_PROCESSES)
		limit.rlim_cur = FEW_PROCESSES;
	return setrlimit(RLIMIT_NPROC, &limit) ? -1 : parts_program();
}

TEST(few_processes, "With a low limit of processes, one device is tested after the other.")
{
	parts_begin(false, "PRELOADED_ROOM", "1");
	probe_run_to_end(parts_program_limited, NULL);
	EXPECT_EQ(probe_run_program(parts_program_kept), PLATFORM | 7);
	EXPECT_EQ(parts_processes(), DEVICES);
}

static void parts_tell(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/told", probe_cache);
	close(creat(path, 0600));
}

static int parts_program_told(void)
{
	const int bits = parts_program();

	parts_tell();
	return bits;
}

/* The other devices have answered before the device lacks memory. */
static void parts_begin_slow(void)
{
	parts_begin(true, NULL, NULL);
	parts_lacks = "2";
	parts_last = "1";
	parts_ahead = "2";
	parts_waits = "3";
}

TEST(said_first,
     "If a device had no result, and another test of the device would take longer than a program "
     "waits, the program has the answers of the other devices before the test.")
{
	parts_begin_slow();
	EXPECT_EQ(probe_run_to_end(parts_program_told, NULL), PLATFORM | 5);
	EXPECT_EQ(parts_processes(), DEVICES + 1);
}

TEST(said_for_now, "What is said before another test of a device is not kept.")
{
	parts_begin_slow();
	EXPECT_EQ(probe_run_to_end(parts_program_told, NULL), PLATFORM | 5);
	EXPECT(!(probe_run_program(parts_program_kept) & PLATFORM));
	parts_lacks = NULL;
	parts_forget_tested();
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
}

/* Whether the lack of an answer is kept. */
static bool parts_has_no_answer(void)
{
	char command[128];

	snprintf(command, sizeof(command), "grep -rqs '^no answer' %s/climport", probe_cache);
	return !system(command);
}

static int parts_program_impatient(void)
{
	bool is_kept;

	if (parts_program())
		return 0;
	is_kept = parts_has_no_answer();
	parts_tell();
	return is_kept;
}

static bool parts_have_begun(void)
{
	return parts_processes() > 0;
}

/* The tests wait until the program has given up. */
static void parts_be_late(void)
{
	parts_waits = "0";
	EXPECT(probe_run_to_end(parts_program_impatient, parts_have_begun));
}

static const struct platform {
	const char *name, *devices, *lack;
} platforms[] = {
	{ "of_one_device", "1", "1" },
	{ "of_three_devices", "3", "2" },
	{ "without_results", "3", "7" },
};

TEST_EACH(late_moment, struct platform, platforms,
	  "If an answer is of the moment, and late, the next process asks again.")
{
	parts_begin(false, NULL, NULL);
	parts_devices = row->devices;
	parts_lacks = row->lack;
	parts_be_late();
	EXPECT(!parts_has_no_answer());
}

TEST(late_hang,
     "If the driver hangs in the test of a device, no process asks for an hour, though another "
     "device had no result.")
{
	parts_begin(false, "PRELOADED_DIES", "1");
	parts_signal = "14"; /* SIGALRM */
	parts_lacks = "2";
	parts_be_late();
	EXPECT(parts_has_no_answer());
}

TEST(time_is_over,
     "If a minute is over, no device is tested again: a device that died is taken to die.")
{
	parts_begin(true, "PRELOADED_DIES", "1");
	parts_last = "0";
	parts_ahead = "60";
	EXPECT_EQ(parts_find_out(), PLATFORM | 6);
	EXPECT_EQ(parts_processes(), DEVICES);
}

TEST(hang_is_over, "If a minute is over, a device that is still tested hangs.")
{
	parts_begin(true, "PRELOADED_DIES", "1");
	parts_devices = "2";
	parts_hangs = "2";
	parts_ahead = "60";
	EXPECT_EQ(parts_find_out(), 0);
	EXPECT_EQ(parts_processes(), 2);
}
