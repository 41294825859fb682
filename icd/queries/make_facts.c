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

static void facts_test_device(cl_device_id id, struct facts *facts)
{
	const struct device *device = device_get(id);

	memset(facts, 0, sizeof(*facts));
	method_get_facts(device, facts);
}

static bool facts_write(int fd, const char *text)
{
	const size_t length = strlen(text);

	return write(fd, text, length) == (ssize_t)length;
}

/* A section without its first line, which is in the file already. */
static bool facts_write_section(int fd, const struct facts *facts, unsigned int number)
{
	char *text = malloc(FACTS_SECTION_SIZE);
	const bool written = text &&
			     facts_format(facts, number, text, FACTS_SECTION_SIZE) <
				     FACTS_SECTION_SIZE &&
			     facts_write(fd, strchr(text, '\n') + 1);

	free(text);
	return written;
}

/* A driver that hangs is ended by SIGALRM. */
static bool facts_make_section(int fd, cl_device_id device, unsigned int number)
{
	char line[FACTS_NAME_SIZE + 32], name[FACTS_NAME_SIZE];
	struct facts facts;

	device_name_in_record(device, name);
	snprintf(line, sizeof(line), "device %u %s\n", number, name);
	if (!facts_write(fd, line))
		return false;
	alarm(selftest_needs_compiler(device) ? COMPILE_LIMIT_S : LIMIT_S);
	facts_test_device(device, &facts);
	alarm(LIMIT_S);
	return facts_write_section(fd, &facts, number);
}

/* What earlier processes have written to the file.  The caller frees the text; NULL: no memory. */
static char *facts_read(int fd)
{
	char *text = calloc(1, FACTS_TEXT_SIZE + 1);
	ssize_t n = text ? pread(fd, text, FACTS_TEXT_SIZE, 0) : 0;

	(void)n;
	return text;
}

static bool facts_make_rest(cl_platform_id platform, int fd)
{
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);
	char *text = facts_read(fd);
	bool made = text;

	for (cl_uint i = text ? facts_count_sections(text) : 0;
	     i < count && i < FACTS_DEVICES && made; i++)
		made = facts_make_section(fd, devices[i], i);
	free(text);
	free(devices);
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
