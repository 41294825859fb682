/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[IMPORT_TYPES] = {
	[IMPORT_HOST] = "host",
	[IMPORT_DMABUF] = "dma_buf",
};

void facts_set_name(char name[FACTS_NAME_SIZE], const char *device, const char *driver)
{
	snprintf(name, FACTS_NAME_SIZE, "%.64s, driver %s", device ? device : "",
		 driver ? driver : "");
	for (char *c = name; *c; c++)
		if (*c == '\n')
			*c = ' ';
}

/* Behind @used bytes.  Returns the new length. */
static size_t facts_format_images(const struct facts *facts, char *text, size_t used, size_t size)
{
	char rule[IMAGE_RULE_LINE_SIZE];

	for (unsigned int i = 0; i < IMAGE_RULES && used < size; i++) {
		image_rule_format(&facts->images[i], rule);
		used += (size_t)snprintf(text + used, size - used, "image %u %s\n", i, rule);
	}
	return used;
}

size_t facts_format(const struct facts *facts, unsigned int number, char *text, size_t size)
{
	char rule[HOST_RULE_LINE_SIZE];
	size_t used = (size_t)snprintf(text, size, "device %u %s\n", number, facts->name);

	for (int i = 0; i < IMPORT_TYPES && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s %s %zu %s\n", type_names[i],
					 facts->type[i].method, facts->type[i].align,
					 facts->type[i].why);
	host_rule_format(&facts->rule, rule);
	if (used < size)
		used += (size_t)snprintf(text + used, size - used,
					 "unknown %d\nimage2d %d\nbest %d\nrule %s\nexporters %x\n"
					 "large_memory %d %s\nimages %d\n",
					 facts->is_unknown, facts->image2d, facts->is_best, rule,
					 facts->exporters, facts->takes_large, facts->large_why,
					 facts->has_images);
	return facts->has_images ? facts_format_images(facts, text, used, size) : used;
}

void facts_keep_changes(const char *before, char *after)
{
	char *line = strchr(after, '\n'), *kept = after, *end;

	for (; line[1]; line = end) {
		const size_t length = (size_t)((end = strchr(line + 1, '\n')) - line);

		if (memmem(before, strlen(before), line, length + 1))
			continue;
		memmove(kept, line + 1, length);
		kept += length;
	}
	*kept = '\0';
}

/* Takes a word and a space from a line.  False: the line begins with another word. */
static bool facts_skip_word(const char **line, const char *word)
{
	const size_t length = strlen(word);

	if (strncmp(*line, word, length) != 0 || (*line)[length] != ' ')
		return false;
	*line += length + 1;
	return true;
}

static bool facts_parse_type(const char *line, struct facts_type *type)
{
	int used = 0;

	if (sscanf(line, "%15s %zu%n", type->method, &type->align, &used) != 2 || !used ||
	    line[used] != ' ')
		return false;
	return (size_t)snprintf(type->why, sizeof(type->why), "%s", line + used + 1) <
	       sizeof(type->why);
}

static bool facts_is_whole(const struct facts *facts)
{
	return *facts->type[IMPORT_HOST].method && *facts->type[IMPORT_DMABUF].method;
}

/* The process of the tests has ended.  In a test that the driver may not survive, what was known stays. */
static void facts_set_ended(struct facts *facts, const char *why)
{
	facts->is_best = false;
	facts->has_images |= !facts_is_whole(facts); /* there are no imports */
	for (int i = 0; i < IMPORT_TYPES && !facts_is_whole(facts); i++) {
		strcpy(facts->type[i].method, "-");
		snprintf(facts->type[i].why, sizeof(facts->type[i].why), "%s", why);
	}
}

/* No image is known to be at fault. */
static void facts_set_lost(struct facts *facts)
{
	facts->is_unknown = true;
	for (unsigned int i = 0; i < IMAGE_RULES; i++)
		if (facts->images[i].found == IMAGE_FATAL)
			facts->images[i].found = IMAGE_UNPROVED;
}

static bool facts_parse_end(const char *line, struct facts *facts)
{
	if (facts_skip_word(&line, "died"))
		facts->has_died = true;
	else if (facts_skip_word(&line, "lost"))
		facts_set_lost(facts);
	else
		return false;
	facts_set_ended(facts, line);
	return true;
}

static bool facts_parse_image(const char *line, struct facts *facts)
{
	unsigned int number;
	int used = 0;

	return sscanf(line, "%u %n", &number, &used) == 1 && used && number < IMAGE_RULES &&
	       image_rule_parse(line + used, &facts->images[number]);
}

static bool facts_parse_switch(const char *text, bool *value)
{
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return false;
	*value = *text == '1';
	return true;
}

static bool facts_parse_exporters(const char *line, struct facts *facts)
{
	int used = 0;

	return sscanf(line, "%x%n", &facts->exporters, &used) == 1 && !line[used];
}

static bool facts_parse_large(const char *line, struct facts *facts)
{
	const char number[] = { line[0], '\0' };

	return facts_parse_switch(number, &facts->takes_large) && line[1] == ' ' &&
	       (size_t)snprintf(facts->large_why, sizeof(facts->large_why), "%s", line + 2) <
		       sizeof(facts->large_why);
}

/* A line of a section.  False: it is none. */
static bool facts_parse_line(const char *line, struct facts *facts)
{
	for (int i = 0; i < IMPORT_TYPES; i++)
		if (facts_skip_word(&line, type_names[i]))
			return facts_parse_type(line, &facts->type[i]);
	if (facts_skip_word(&line, "rule"))
		return host_rule_parse(line, &facts->rule);
	if (facts_skip_word(&line, "exporters"))
		return facts_parse_exporters(line, facts);
	if (facts_skip_word(&line, "unknown"))
		return facts_parse_switch(line, &facts->is_unknown);
	if (facts_skip_word(&line, "image2d"))
		return facts_parse_switch(line, &facts->image2d);
	if (facts_skip_word(&line, "best"))
		return facts_parse_switch(line, &facts->is_best);
	if (facts_skip_word(&line, "large_memory"))
		return facts_parse_large(line, facts);
	if (facts_skip_word(&line, "test"))
		return ++facts->begun;
	if (facts_skip_word(&line, "images"))
		return facts_parse_switch(line, &facts->has_images);
	if (facts_skip_word(&line, "image"))
		return facts_parse_image(line, facts);
	return facts_parse_end(line, facts);
}

/* Takes a section's lines from @text, up to the line "end". */
static bool facts_parse_section(char **text, struct facts *facts)
{
	char *line;

	while ((line = strsep(text, "\n")) && strcmp(line, "end") != 0)
		if (!facts_parse_line(line, facts))
			return false;
	return line && facts_is_whole(facts);
}

/* "device NUMBER NAME" */
static bool facts_parse_device(const char *line, unsigned int number, struct facts *facts)
{
	char *end;

	if (!facts_skip_word(&line, "device") || strtoul(line, &end, 10) != number || end == line ||
	    *end != ' ')
		return false;
	snprintf(facts->name, sizeof(facts->name), "%s", end + 1);
	return true;
}

/* Of @sections devices. */
static bool facts_parse_copy(char *text, struct facts_record *record, unsigned int sections)
{
	while (text && *text) {
		struct facts *facts = &record->device[record->count];

		if (record->count == sections ||
		    !facts_parse_device(strsep(&text, "\n"), record->count, facts) ||
		    !facts_parse_section(&text, facts))
			return false;
		record->count++;
	}
	return true;
}

struct facts_record *facts_parse(const char *text)
{
	const unsigned int sections = facts_count_sections(text);
	struct facts_record *record =
		calloc(1, sizeof(*record) + sections * sizeof(record->device[0]));
	char *copy = record && sections <= FACTS_DEVICES ? strdup(text) : NULL;

	if (!copy || !facts_parse_copy(copy, record, sections)) {
		free(record);
		record = NULL;
	}
	free(copy);
	return record;
}

unsigned int facts_count_sections(const char *text)
{
	static const char end[] = "\nend\n";
	unsigned int count = 0;

	while ((text = strstr(text, end))) {
		text += sizeof(end) - 2; /* the newline may begin the next */
		count++;
	}
	return count;
}

bool facts_are_whole(const struct facts_record *record)
{
	for (unsigned int i = 0; i < record->count; i++)
		if (record->device[i].is_unknown)
			return false;
	return record->count;
}

bool facts_have_images(const struct facts_record *record)
{
	for (unsigned int i = 0; i < record->count; i++)
		if (!record->device[i].has_images)
			return false;
	return record->count;
}
