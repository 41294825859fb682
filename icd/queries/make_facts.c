/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/make_facts.h"

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

struct facts_file {
	int fd; /* -1: none, in a program that tests the driver itself */
	bool with_images;
	bool is_written; /* all that was written so far */
	struct facts_record *record;
};

static void facts_write(struct facts_file *file, const void *part, size_t size)
{
	const off_t at = (const char *)part - (const char *)file->record;

	if (file->fd >= 0 && file->is_written)
		file->is_written = pwrite(file->fd, part, size, at) == (ssize_t)size;
}

/* climport-probe sees that the tests go on. */
static void facts_step(struct facts_file *file)
{
	file->record->progress.steps++;
	facts_write(file, file->record, offsetof(struct facts_record, device));
}

static struct facts *facts_section(const struct facts_file *file)
{
	return &file->record->device[file->record->count - 1];
}

static void facts_write_section(struct facts_file *file)
{
	facts_write(file, facts_section(file), sizeof(struct facts));
}

static void facts_end_section(struct facts_file *file)
{
	file->record->is_open = false;
	facts_step(file);
}

/*
 * The tests that the driver may not survive, but those that earlier processes have begun.  While one runs, the file
 * says that the driver has not survived it.
 */
static void facts_run_dangers(struct facts_file *file, struct device *device)
{
	struct facts *section = facts_section(file);
	unsigned int danger;

	while (file->is_written &&
	       (danger = method_danger(device, device->facts.begun)) != METHOD_NO_DANGER) {
		device->facts.begun = danger + 1;
		*section = device->facts;
		method_expect_death(section, danger);
		facts_write_section(file);
		facts_step(file);
		method_run_danger(device, danger);
		*section = device->facts;
		facts_write_section(file);
	}
}

static void facts_make_section(struct facts_file *file, cl_device_id id)
{
	struct facts *section = &file->record->device[file->record->count++];
	struct device *device;

	device_name_in_record(id, section->name);
	file->record->is_open = true;
	facts_write_section(file);
	facts_step(file);
	device = device_test(id, NULL);
	if (device) {
		memcpy(device->facts.name, section->name, sizeof(section->name));
		device->facts.is_tested = true;
		device->facts.has_images = file->with_images;
		*section = device->facts;
		facts_write_section(file);
		facts_run_dangers(file, device);
	}
	file->is_written &= device != NULL;
	facts_end_section(file);
	device_free(device);
}

/* A sentence. */
static void facts_describe_end(int status, char *text, size_t size)
{
	if (probe_status_is_lost(status))
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
static void facts_note_end(struct facts *facts, int status)
{
	const bool is_lost = probe_status_is_lost(status);

	facts->is_unknown |= is_lost;
	facts->has_died |= !is_lost;
	facts->is_best = false;
	if (facts->is_tested)
		return;
	for (int i = 0; i < IMPORT_TYPES; i++) {
		facts->type[i] = (struct facts_type){ .method = "-" };
		facts_describe_end(status, facts->type[i].why, sizeof(facts->type[i].why));
	}
	facts->has_images = true; /* there are no imports */
}

/* If each of a device's tests hung, they would take minutes: after one, the section ends. */
static void facts_resume_section(struct facts_file *file, cl_device_id id, int status)
{
	struct facts *facts = facts_section(file);
	const bool goes_on = facts->is_tested && status != PROBE_STATUS_HANGS;
	struct device *device;

	facts_note_end(facts, status);
	facts_write_section(file);
	device = goes_on ? device_test(id, facts) : NULL;
	if (device)
		facts_run_dangers(file, device);
	file->is_written &= device || !goes_on;
	facts_end_section(file);
	device_free(device);
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

static void facts_make_rest(struct facts_file *file, cl_platform_id platform, int status)
{
	struct facts_record *record = file->record;
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);

	file->is_written = facts_are_of(record, devices, count);
	if (file->is_written && record->is_open)
		facts_resume_section(file, devices[record->count - 1], status);
	while (record->count < count && record->count < FACTS_DEVICES && file->is_written)
		facts_make_section(file, devices[record->count]);
	free(devices);
}

static cl_int facts_make_record(struct facts_file *file, cl_platform_id platform,
				unsigned long long key, bool is_kept, int status)
{
	struct facts_record *record = file->record;

	if (pread(file->fd, record, sizeof(*record), 0) < 0)
		return CL_OUT_OF_RESOURCES;
	record->limits = identity_limits();
	facts_make_rest(file, platform, status);
	facts_seal(record);
	facts_write(file, record, facts_size(record));
	if (file->is_written && is_kept && record->is_whole)
		kept_write(key, record);
	return file->is_written ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

size_t facts_make_here(cl_platform_id platform, bool with_images, struct facts_record *record)
{
	struct facts_file file = { .fd = -1, .with_images = with_images, .record = record };

	facts_make_rest(&file, platform, 0);
	facts_seal(record);
	return file.is_written ? facts_size(record) : 0;
}

cl_int CL_API_CALL facts_make(cl_platform_id platform, const char *key, bool with_images, int fd,
			      int status)
{
	struct facts_file file = { .fd = fd, .with_images = with_images };
	unsigned long long own;
	bool is_kept;
	cl_int err;

	if (!identity_platform(platform, &own, &is_kept) || own != strtoull(key, NULL, 16))
		return CL_INVALID_PLATFORM;
	file.record = calloc(1, sizeof(*file.record));
	err = file.record ? facts_make_record(&file, platform, own, is_kept, status)
			  : CL_OUT_OF_RESOURCES;
	free(file.record);
	return err;
}
