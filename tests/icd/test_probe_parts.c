/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Platforms with several devices: each device is tested in a process of its own, at once with the others.
 * The preloaded part of the driver says what happens in a test, and writes down what was tested.
 */
#include "probe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES 3
#define PLATFORM (1 << DEVICES) /* in bits of devices */

/* A variable of the program. */
static const char *parts_name, *parts_value;

static bool parts_meet; /* each test waits for the others */

/* Bits of the devices with the name of the extension, and the platform's. */
static int parts_query(void)
{
	cl_device_id devices[DEVICES];
	int bits = probe_platform_reports() ? PLATFORM : 0;

	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, DEVICES, devices, NULL))
		return -1;
	for (int i = 0; i < DEVICES; i++) {
		char text[4096] = "";

		clGetDeviceInfo(devices[i], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
		bits |= strstr(text, "cl_arm_import_memory_host") ? 1 << i : 0;
	}
	return bits;
}

/* Without native kernels, so that probe processes alone test devices. */
static int parts_program(void)
{
	char number[4];

	snprintf(number, sizeof(number), "%d", DEVICES);
	setenv("STUB_DEVICES", number, 1);
	setenv("STUB_NO_NATIVE_KERNEL", "1", 1);
	setenv("STUB_PRELOADED", "1", 1);
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	setenv("LD_PRELOAD", PRELOADED_PATH, 1);
	if (parts_meet)
		setenv("PRELOADED_MEETS", number, 1);
	if (parts_name)
		setenv(parts_name, parts_value, 1);
	return dlopen(PRELOADED_PATH, RTLD_NOW | RTLD_GLOBAL) ? parts_query() : -1;
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
}

/* What is kept after a query: on a busy machine a probe may answer late. */
static int parts_find_out(void)
{
	int bits;

	probe_run_program(parts_program);
	for (int i = 0; i < 600; i++) {
		bits = probe_run_program(parts_program_kept);
		if (bits)
			return bits;
		usleep(100000);
	}
	return bits;
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

static const struct death {
	const char *name, *dies;
	int survivors;
} deaths[] = {
	{ "first", "1", 6 },
	{ "second", "2", 5 },
	{ "last", "4", 3 },
	{ "but_one", "3", 4 },
};

TEST_EACH(death, struct death, deaths,
	  "If the driver dies of the test of a device, the other devices have the extension.")
{
	parts_begin(false, "PRELOADED_DIES", row->dies);
	EXPECT_EQ(parts_find_out(), PLATFORM | row->survivors);
	EXPECT_EQ(parts_tested(), 7);
}

static void parts_make_old(void)
{
	char command[256];

	snprintf(command, sizeof(command), "touch -d '2 hours ago' %s/climport/results/*",
		 probe_cache);
	EXPECT_EQ(system(command), 0);
}

TEST(death_forgotten, "That the driver dies of a device is believed for an hour.")
{
	parts_begin(false, "PRELOADED_DIES", "2");
	EXPECT_EQ(parts_find_out(), PLATFORM | 5);
	parts_name = NULL;
	EXPECT_EQ(probe_run_program(parts_program), PLATFORM | 5);
	parts_make_old();
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	parts_make_old();
	EXPECT_EQ(probe_run_program(parts_program_kept), PLATFORM | 7);
}

TEST(all_die, "If the driver dies of every device, no device has the extension, and no other "
	      "process asks for an hour.")
{
	char path[128];

	parts_begin(false, "PRELOADED_DIES", "7");
	EXPECT_EQ(probe_run_program(parts_program), 0);
	for (int i = 0; i < 600 && probe_count_kept() < 3; i++)
		usleep(100000);
	snprintf(path, sizeof(path), "%s/tested", probe_cache);
	unlink(path);
	EXPECT_EQ(probe_run_program(parts_program), 0);
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
	EXPECT_EQ(probe_run_program(parts_program), 0);
	EXPECT_EQ(parts_tested(), 0);
}

TEST(alone, "A probe process that can start no worker tests every device itself.")
{
	parts_begin(false, "PRELOADED_ALONE", "1");
	EXPECT_EQ(parts_find_out(), PLATFORM | 7);
	EXPECT_EQ(parts_tested(), 7);
}
