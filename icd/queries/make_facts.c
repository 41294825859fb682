/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/make_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/facts/store.h"
#include "icd/methods/method.h"
#include "icd/objects/device.h"
#include "icd/probe/proof.h"
#include "icd/selftest/selftest.h"
#include "icd/text.h"

#define LIMIT_S 10	   /* of a device's tests: some milliseconds, and the start of a driver */
#define COMPILE_LIMIT_S 60 /* where a compiler runs: PoCL's took 21 s on a loaded machine */

static bool facts_write(int fd, const char *text)
{
	const size_t length = strlen(text);

	return write(fd, text, length) == (ssize_t)length;
}

/* A driver that hangs is ended by SIGALRM. */
static void facts_limit(cl_device_id device)
{
	alarm(selftest_needs_compiler(device) ? COMPILE_LIMIT_S : LIMIT_S);
}

/* The section's first line is in the file before a test. */
static bool facts_write_name(int fd, cl_device_id device, unsigned int number)
{
	char line[FACTS_NAME_SIZE + 32], name[FACTS_NAME_SIZE];

	device_name_in_record(device, name);
	snprintf(line, sizeof(line), "device %u %s\n", number, name);
	return facts_write(fd, line);
}

/* The caller frees the section of a device; NULL: no memory. */
static char *facts_format_device(const struct device *device)
{
	char *text = malloc(FACTS_SECTION_SIZE);

	if (text && facts_format(&device->facts, 0, text, FACTS_SECTION_SIZE) < FACTS_SECTION_SIZE)
		return text;
	free(text);
	return NULL;
}

static bool facts_write_section(int fd, const struct device *device)
{
	char *text = facts_format_device(device);
	const bool written = text && facts_write(fd, strchr(text, '\n') + 1);

	free(text);
	return written;
}

/* What the test has found stands behind the line that it has begun. */
static bool facts_run_danger(int fd, struct device *device, const struct method_danger *danger)
{
	char *before = facts_format_device(device), *after = NULL;
	bool written = before && dprintf(fd, "test %s\n", danger->name) > 0;

	if (written) {
		facts_limit(device->id);
		danger->run(device);
		after = facts_format_device(device);
	}
	written = after;
	if (written) {
		facts_keep_changes(before, after);
		written = facts_write(fd, after);
	}
	free(after);
	free(before);
	return written;
}

/* From the test with a number on, which are the tests that the driver may not survive, to the end of the section. */
static bool facts_run_dangers(int fd, struct device *device, unsigned int number)
{
	const struct method_danger *danger;
	bool written = true;

	while (written && (danger = method_danger(device, number++)))
		written = facts_run_danger(fd, device, danger);
	alarm(LIMIT_S);
	return written && facts_write(fd, FACTS_END);
}

static bool facts_make_section(int fd, cl_device_id id, unsigned int number)
{
	struct device *device;
	bool made;

	if (!facts_write_name(fd, id, number))
		return false;
	facts_limit(id);
	device = device_test(id, NULL);
	made = device && facts_write_section(fd, device) && facts_run_dangers(fd, device, 0);
	free(device);
	return made;
}

/* The device has ended an earlier worker.  If a dangerous test did, the tests behind it are left. */
static bool facts_end_section(int fd, cl_device_id id, const struct facts *known)
{
	struct device *device;
	bool made;

	if (!known->begun)
		return facts_write(fd, FACTS_END);
	device = device_test(id, known);
	made = device && facts_run_dangers(fd, device, known->begun);
	free(device);
	return made;
}

/* What earlier processes have written to the file.  The caller frees the text; NULL: no memory. */
static char *facts_read(int fd)
{
	char *text = calloc(1, FACTS_TEXT_SIZE + 1);
	ssize_t n = text ? pread(fd, text, FACTS_TEXT_SIZE, 0) : 0;

	(void)n;
	return text;
}

/* What earlier workers have found, with a last section that may not have ended.  The caller frees it. */
static struct facts_record *facts_parse_begun(const char *text)
{
	char *ended = text_create("%s%s", text, FACTS_END);
	struct facts_record *record = ended ? facts_parse(ended) : NULL;

	free(ended);
	return record ? record : facts_parse(text);
}

static bool facts_make_sections(cl_platform_id platform, int fd, const char *text)
{
	struct facts_record *known = facts_parse_begun(text);
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);
	cl_uint i = facts_count_sections(text);
	bool made = known;

	if (made && known && known->count > i && i < count) {
		made = facts_end_section(fd, devices[i], &known->device[i]);
		i++;
	}
	for (; i < count && i < FACTS_DEVICES && made; i++)
		made = facts_make_section(fd, devices[i], i);
	free(devices);
	free(known);
	return made;
}

static bool facts_make_rest(cl_platform_id platform, int fd)
{
	char *text = facts_read(fd);
	const bool made = text && facts_make_sections(platform, fd, text);

	free(text);
	text = made ? facts_read(fd) : NULL;
	if (text)
		facts_keep(platform, text);
	free(text);
	return made;
}

cl_int CL_API_CALL facts_make(cl_platform_id platform, const char *key, int fd)
{
	if (!proof_is_platform(platform, key))
		return CL_INVALID_PLATFORM;
	return facts_make_rest(platform, fd) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}
