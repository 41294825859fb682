/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/make_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/facts/store.h"
#include "icd/objects/method.h"
#include "icd/objects/device.h"
#include "icd/probe/probe.h"
#include "icd/selftest/selftest.h"
#include "icd/text.h"

#define LIMIT_S 10	   /* of a device's tests: some milliseconds, and the start of a driver */
#define COMPILE_LIMIT_S 60 /* where a compiler runs: PoCL's took 21 s on a loaded machine */

struct facts_file {
	int fd;
	bool with_images;
	bool is_written; /* all that was written so far */
};

static void facts_write(struct facts_file *file, const char *text)
{
	const size_t length = strlen(text);

	file->is_written = file->is_written && write(file->fd, text, length) == (ssize_t)length;
}

/* A driver that hangs is ended by SIGALRM. */
static void facts_limit(cl_device_id device, bool has_kernels)
{
	alarm(has_kernels || selftest_needs_compiler(device) ? COMPILE_LIMIT_S : LIMIT_S);
}

/* The section's first line is in the file before a test. */
static void facts_write_name(struct facts_file *file, cl_device_id device, unsigned int number)
{
	char name[FACTS_NAME_SIZE];

	device_name_in_record(device, name);
	file->is_written &= dprintf(file->fd, "device %u %s\n", number, name) > 0;
}

/* The caller frees the section of a device; NULL: no memory. */
static char *facts_format_device(struct facts_file *file, const struct device *device)
{
	char *text = malloc(FACTS_SECTION_SIZE);

	if (text && facts_format(&device->facts, 0, text, FACTS_SECTION_SIZE) < FACTS_SECTION_SIZE)
		return text;
	free(text);
	file->is_written = false;
	return NULL;
}

static void facts_write_section(struct facts_file *file, const struct device *device)
{
	char *text = facts_format_device(file, device);

	if (text)
		facts_write(file, strchr(text, '\n') + 1);
	free(text);
}

/* What the test has found stands behind the line that it has begun. */
static void facts_run_danger(struct facts_file *file, struct device *device,
			     const struct method_danger *danger)
{
	char *before = facts_format_device(file, device), *after;

	file->is_written &= dprintf(file->fd, "test %s\n", danger->name) > 0;
	if (file->is_written) {
		facts_limit(device->id, device->facts.has_images);
		danger->run(device, danger->image);
		after = facts_format_device(file, device);
		if (after) {
			facts_keep_changes(before, after);
			facts_write(file, after);
		}
		free(after);
	}
	free(before);
}

/* The tests that the driver may not survive, but those that earlier processes have begun. */
static void facts_end_section(struct facts_file *file, struct device *device)
{
	const struct method_danger *danger;
	unsigned int number = device->facts.begun;

	while (file->is_written && (danger = method_danger(device, number++)))
		facts_run_danger(file, device, danger);
	alarm(LIMIT_S);
	facts_write(file, FACTS_END);
}

static void facts_make_section(struct facts_file *file, cl_device_id id, unsigned int number)
{
	struct device *device;

	facts_write_name(file, id, number);
	facts_limit(id, false);
	device = device_test(id, NULL);
	if (device) {
		if (file->with_images)
			method_expect_images(device);
		facts_write_section(file, device);
		facts_end_section(file, device);
	}
	file->is_written &= device != NULL;
	free(device);
}

/* The device has ended an earlier process: if that was not a dangerous test, the device takes nothing. */
static void facts_resume_section(struct facts_file *file, cl_device_id id,
				 const struct facts *known)
{
	struct device *device = known->begun ? device_test(id, known) : NULL;

	if (device)
		facts_end_section(file, device);
	else
		facts_write(file, FACTS_END);
	free(device);
}

/* What earlier processes have written to the file.  The caller frees the text; NULL: no memory. */
static char *facts_read(int fd)
{
	char *text = calloc(1, FACTS_TEXT_SIZE + 1);
	ssize_t n = text ? pread(fd, text, FACTS_TEXT_SIZE, 0) : 0;

	(void)n;
	return text;
}

/* With a last section that may not have ended.  The caller frees the record. */
static struct facts_record *facts_parse_begun(const char *text)
{
	char *ended = text_create("%s%s", text, FACTS_END);
	struct facts_record *record = ended ? facts_parse(ended) : NULL;

	free(ended);
	return record ? record : facts_parse(text);
}

static void facts_make_rest(struct facts_file *file, cl_platform_id platform, const char *text)
{
	struct facts_record *known = facts_parse_begun(text);
	cl_uint count, i = facts_count_sections(text);
	cl_device_id *devices = device_list(platform, &count);

	file->is_written = known;
	if (known && known->count > i && i < count) {
		facts_resume_section(file, devices[i], &known->device[i]);
		i++;
	}
	for (; i < count && i < FACTS_DEVICES && file->is_written; i++)
		facts_make_section(file, devices[i], i);
	free(devices);
	free(known);
}

cl_int CL_API_CALL facts_make(cl_platform_id platform, const char *key, bool with_images, int fd)
{
	struct facts_file file = { .fd = fd, .with_images = with_images };
	char *text;

	if (!probe_is_platform(platform, key))
		return CL_INVALID_PLATFORM;
	text = facts_read(fd);
	if (text)
		facts_make_rest(&file, platform, text);
	free(text);
	text = file.is_written ? facts_read(fd) : NULL;
	if (text)
		facts_keep(platform, text);
	free(text);
	return file.is_written ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}
