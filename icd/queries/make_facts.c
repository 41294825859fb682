/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a platform: made in climport-probe alone, which the tests of a driver may end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"
#include "icd/probe/identity.h"
#include "icd/probe/interface.h"

struct facts_file {
	int fd; /* -1: none, in a program that tests the driver itself */
	bool with_images;
	bool is_written; /* all that was written so far */
	struct facts_record *record;
};

/* All that is known: climport-probe sees that the tests go on, and a later worker what this one has found. */
static void facts_write(struct facts_file *file)
{
	const size_t size = facts_size(file->record);

	file->record->progress.steps++;
	if (file->fd >= 0 && file->is_written)
		file->is_written = pwrite(file->fd, file->record, size, 0) == (ssize_t)size;
}

/*
 * The tests that the driver may not survive, but those that earlier processes have begun.  While one runs, the file
 * says that the driver has not survived it.
 */
static void facts_run_dangers(struct facts_file *file, struct facts *section, struct device *device)
{
	for (unsigned int danger = device->facts.begun; danger < DANGERS && file->is_written;
	     danger++) {
		if (!method_has_danger(device, danger))
			continue;
		device->facts.begun = danger + 1;
		*section = device->facts;
		method_expect_death(section, danger);
		facts_write(file);
		method_run_danger(device, danger);
		*section = device->facts;
	}
}

/*
 * Whether others have ended a probe process, which says nothing of the driver: who stops a service may
 * send its signal to each process.  A filter of system calls sends SIGSYS, and the filter is the
 * application's, as is a limit on files.
 */
static bool facts_is_lost(int status)
{
	static const unsigned long signals = 1ul << SIGHUP | 1ul << SIGINT | 1ul << SIGQUIT |
					     1ul << SIGKILL | 1ul << SIGUSR1 | 1ul << SIGUSR2 |
					     1ul << SIGTERM | 1ul << SIGSYS | 1ul << SIGXFSZ;

	if (status == PROBE_STATUS_HANGS)
		return false;
	return WIFSIGNALED(status) ? signals >> WTERMSIG(status) & 1
				   : WEXITSTATUS(status) >= PROBE_STATUS_LOST;
}

/* A sentence. */
static void facts_describe_end(int status, char *text, size_t size)
{
	if (facts_is_lost(status))
		snprintf(text, size, "the test was ended by others");
	else if (status == PROBE_STATUS_HANGS)
		snprintf(text, size, "the driver hangs in the tests of this device");
	else if (WIFSIGNALED(status))
		snprintf(text, size, "the driver crashes in the tests of this device: %s",
			 sigdescr_np(WTERMSIG(status)));
	else
		snprintf(text, size,
			 "the driver ends the process in the tests of this device, status %d",
			 WEXITSTATUS(status));
}

/* The device has ended an earlier process, in a test that it was not sure to survive, or it takes nothing. */
static void facts_note_end(struct facts_record *record, int status)
{
	struct facts *facts = &record->device[record->count - 1];
	const bool is_lost = facts_is_lost(status);

	facts->is_unknown |= is_lost;
	record->has_died |= !is_lost;
	facts->is_best = false;
	if (facts->is_tested)
		return;
	for (int i = 0; i < IMPORT_TYPES; i++) {
		facts->type[i] = (struct facts_type){ .method = "-" };
		facts_describe_end(status, facts->type[i].why, sizeof(facts->type[i].why));
	}
	facts->has_images = true; /* there are no imports */
}

/* Written before the driver is asked about the device, which it may not survive: the next worker goes on with the others. */
static struct facts *facts_begin_section(struct facts_file *file, cl_device_id id)
{
	struct facts *section = &file->record->device[file->record->count++];

	device_name_in_record(id, section->name);
	file->record->is_open = true;
	facts_write(file);
	return section;
}

/* False: no memory. */
static bool facts_test(struct facts_file *file, struct facts *section, cl_device_id id)
{
	struct device *device = device_create(id);

	if (!device)
		return false;
	if (section->is_tested) {
		method_recall(device, section, "");
	} else {
		method_probe(device);
		device->facts.is_tested = true;
		device->facts.has_images = file->with_images;
		*section = device->facts;
	}
	facts_run_dangers(file, section, device);
	device_free(device);
	return true;
}

/*
 * A worker that dies before it has written anything is the last.  If each of a device's tests hung, they would take minutes: after
 * one, the section ends.
 */
static void facts_make_section(struct facts_file *file, cl_device_id id, int status)
{
	struct facts_record *record = file->record;
	const bool is_new = !record->is_open;
	struct facts *section = is_new ? facts_begin_section(file, id)
				       : &record->device[record->count - 1];

	if (!is_new)
		facts_note_end(record, status);
	if (is_new || (section->is_tested && status != PROBE_STATUS_HANGS))
		file->is_written &= facts_test(file, section, id);
	record->is_open = false;
	facts_write(file);
}

/* False: the devices of an earlier process are no more those of this one. */
static bool facts_are_of(const struct facts_record *record, const cl_device_id *devices,
			 cl_uint count)
{
	char name[FACTS_NAME_SIZE];

	if (record->count > count)
		return false;
	for (cl_uint i = 0; i < record->count; i++) {
		device_name_in_record(devices[i], name);
		if (strcmp(name, record->device[i].name) != 0)
			return false;
	}
	return true;
}

/* False: something could not be tested, or written. */
static bool facts_make_rest(struct facts_file *file, cl_platform_id platform, int status)
{
	struct facts_record *record = file->record;
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);

	record->limits = identity_limits();
	file->is_written = facts_are_of(record, devices, count);
	for (cl_uint i = record->count - record->is_open;
	     i < count && i < FACTS_DEVICES && file->is_written; i++)
		facts_make_section(file, devices[i], status);
	free(devices);
	facts_seal(record);
	facts_write(file);
	return file->is_written;
}

size_t facts_make_here(cl_platform_id platform, bool with_images, struct facts_record *record)
{
	struct facts_file file = { .fd = -1, .with_images = with_images, .record = record };

	return facts_make_rest(&file, platform, 0) ? facts_size(record) : 0;
}

cl_int CL_API_CALL facts_make(cl_platform_id platform, const char *key, bool with_images, int fd,
			      int status)
{
	struct facts_file file = { .fd = fd, .with_images = with_images };
	unsigned long long own;
	bool is_kept, is_made;

	if (!identity_platform(platform, &own, &is_kept) || own != strtoull(key, NULL, 16))
		return CL_INVALID_PLATFORM;
	file.record = calloc(1, sizeof(*file.record));
	is_made = file.record && pread(fd, file.record, sizeof(*file.record), 0) >= 0 &&
		  facts_make_rest(&file, platform, status);
	if (is_made && is_kept && file.record->is_whole)
		kept_write(own, file.record);
	free(file.record);
	return is_made ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}
