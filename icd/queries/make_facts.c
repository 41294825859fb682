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

/* The first line is in the file before a test. */
static void facts_write_name(struct facts_file *file, cl_device_id device, unsigned int number)
{
	char name[FACTS_NAME_SIZE];

	device_name_in_record(device, name);
	file->is_written &= dprintf(file->fd, "device %u %s\n", number, name) > 0;
}

static void facts_write_rest(struct facts_file *file, const struct facts *facts)
{
	char *text = malloc(FACTS_SECTION_SIZE);

	if (text && facts_format(facts, 0, text, FACTS_SECTION_SIZE) < FACTS_SECTION_SIZE)
		facts_write(file, strchr(text, '\n') + 1);
	else
		file->is_written = false;
	free(text);
}

/* A driver that does not survive a test is to blame for it: that is written before. */
static void facts_note_image(void *arg, unsigned int number, const struct image_rule *rule)
{
	char line[FACTS_LINE_SIZE];

	facts_format_image(number, rule, line);
	facts_write(arg, line);
	alarm(COMPILE_LIMIT_S);
}

static void facts_test_images(struct facts_file *file, const struct device *device,
			      struct image_rule *rules)
{
	alarm(COMPILE_LIMIT_S);
	if (method_test_images(device, rules, facts_note_image, file))
		facts_write(file, "best 0\n");
}

/* A driver that hangs is ended by SIGALRM. */
static void facts_make_section(struct facts_file *file, cl_device_id id, unsigned int number)
{
	const struct device *device;
	struct facts facts;

	facts_write_name(file, id, number);
	alarm(selftest_needs_compiler(id) ? COMPILE_LIMIT_S : LIMIT_S);
	device = device_get(id);
	method_get_facts(device, &facts);
	facts.has_images = file->with_images;
	facts_write_rest(file, &facts);
	if (device && file->with_images && file->is_written)
		facts_test_images(file, device, facts.images);
	alarm(LIMIT_S);
	facts_write(file, FACTS_END);
}

/* What earlier processes have written to the file.  The caller frees the text; NULL: no memory. */
static char *facts_read(int fd)
{
	char *text = calloc(1, FACTS_TEXT_SIZE + 1);
	ssize_t n = text ? pread(fd, text, FACTS_TEXT_SIZE, 0) : 0;

	(void)n;
	return text;
}

static bool facts_make_rest(cl_platform_id platform, bool with_images, int fd)
{
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);
	char *text = facts_read(fd);
	struct facts_file file = { fd, with_images, text };

	for (cl_uint i = text ? facts_count_sections(text) : 0;
	     i < count && i < FACTS_DEVICES && file.is_written; i++)
		facts_make_section(&file, devices[i], i);
	free(text);
	free(devices);
	text = file.is_written ? facts_read(fd) : NULL;
	if (text)
		facts_keep(platform, text);
	free(text);
	return file.is_written;
}

cl_int CL_API_CALL facts_make(cl_platform_id platform, const char *key, bool with_images, int fd)
{
	if (!proof_is_platform(platform, key))
		return CL_INVALID_PLATFORM;
	return facts_make_rest(platform, with_images, fd) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}
