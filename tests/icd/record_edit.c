/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_edit FILE SETTING...: changes a record (icd/facts/facts.h), as if climport-probe had found something else.
 *
 *	device=N	the settings behind are of this device, or of the first
 *	name=TEXT	host=METHOD	dma_buf=METHOD	best=0
 *	fatal=N		the driver died of the image with this number
 *	count=N		the record has so many devices
 *	open=1		the last device has ended the worker
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/facts/facts.h"

/* The text behind "NAME=", or NULL: another setting. */
static const char *edit_value(const char *setting, const char *name)
{
	const size_t length = strlen(name);

	return !strncmp(setting, name, length) && setting[length] == '=' ? setting + length + 1
									 : NULL;
}

static void edit_method(struct facts_type *type, const char *method)
{
	snprintf(type->method, sizeof(type->method), "%s", method);
	type->align = 4096;
}

static bool edit_facts(struct facts *facts, const char *setting)
{
	const char *value;

	if ((value = edit_value(setting, "name")))
		snprintf(facts->name, sizeof(facts->name), "%s", value);
	else if ((value = edit_value(setting, "host")))
		edit_method(&facts->type[IMPORT_HOST], value);
	else if ((value = edit_value(setting, "dma_buf")))
		edit_method(&facts->type[IMPORT_DMABUF], value);
	else if ((value = edit_value(setting, "best")))
		facts->is_best = *value == '1';
	else if ((value = edit_value(setting, "fatal")))
		facts->images[atoi(value)].found = IMAGE_FATAL;
	return value;
}

int main(int argc, char **argv)
{
	static struct facts_record record;
	unsigned int device = 0;
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, &record, sizeof(record));

	if (n < 0 || !facts_are_valid(&record, (size_t)n))
		return 1;
	for (int i = 2; i < argc; i++) {
		const char *number = edit_value(argv[i], "device"),
			   *count = edit_value(argv[i], "count");

		record.is_open |= edit_value(argv[i], "open") != NULL;

		if (number)
			device = (unsigned int)atoi(number);
		else if (count)
			record.count = (unsigned int)atoi(count);
		else if (!record.is_open && !edit_facts(&record.device[device], argv[i]))
			return 1;
	}
	facts_seal(&record);
	record.progress.layout *= !record.is_open;
	n = (ssize_t)facts_size(&record);
	return pwrite(fd, &record, (size_t)n, 0) != n || ftruncate(fd, n);
}
