/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a platform: what is known of each of its root devices.  climport-probe makes records
 * (queries/make_facts.h), applications read them (facts/store.h).  A record is text:
 *
 *	device NUMBER NAME	in the order of clGetDeviceIDs()
 *	host METHOD ALIGN WHY	"-": the device takes no such memory
 *	dma_buf METHOD ALIGN WHY
 *	unknown 0|1		1: something could not be tested now, for lack of memory perhaps
 *	image2d 0|1
 *	best 0|1		0: a library, a device file or huge pages may make it better
 *	rule ...		struct host_rule
 *	exporters BITS
 *	large_memory 0|1 WHY	0: large allocations of the device's own memory are not imported
 *	images 0|1		1: images are tested, with lines of them:
 *	image NUMBER ...	struct image_rule
 *	end
 *
 * Behind these come tests that the driver may not survive.  Each begins with a line "test NAME".  What it finds follows
 * as lines from above: the last line of a name counts, and what stood before holds if the test ends its process.
 *
 *	died WHY		the driver crashed or hung the process
 *	lost WHY		others ended the process
 *
 * Without a line "test" before, nothing else is known of the device.
 */
#ifndef ICD_FACTS_FACTS_H
#define ICD_FACTS_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/facts/host_rule.h"
#include "icd/facts/image_rule.h"
#include "import/import.h"

#define FACTS_DEVICES 64
#define FACTS_METHOD_SIZE 16
#define FACTS_WHY_SIZE 192
#define FACTS_NAME_SIZE 128
#define FACTS_SECTION_SIZE 4096					     /* bytes: of a device */
#define FACTS_TEXT_SIZE ((size_t)FACTS_DEVICES * FACTS_SECTION_SIZE) /* bytes: of a record */

/* How a device takes a type of memory. */
struct facts_type {
	char method[FACTS_METHOD_SIZE]; /* a method's name, or "-" */
	size_t align;			/* bytes: of addresses and sizes */
	char why[FACTS_WHY_SIZE];	/* a sentence */
};

struct facts {
	char name[FACTS_NAME_SIZE]; /* of device and driver: another may have come in its place */
	struct facts_type type[IMPORT_TYPES];
	bool is_unknown; /* something could not be tested now, perhaps a type that is not taken */
	bool is_best;	 /* nothing better can be hoped for */
	bool image2d;	 /* 2D images on imports are the layer's */
	struct host_rule rule; /* of the method host_ptr */
	bool has_images;       /* images are tested: */
	struct image_rule images[IMAGE_RULES];
	unsigned int exporters; /* of the method opaque_fd: a bit for each that was zero copy */
	bool takes_large; /* of the method opaque_fd: large allocations of the device's own memory */
	char large_why[FACTS_WHY_SIZE]; /* part of a sentence, if they are refused */
	bool has_died;			/* the driver died or hung in the tests */
	unsigned int begun;		/* tests that the driver may not survive */
};

struct facts_record {
	struct facts_record *older; /* store.c's */
	unsigned int count;	    /* of devices; those behind are unknown */
	struct facts device[];
};

/* The name as records have it: in one line, and shortened.  NULL: unknown. */
void facts_set_name(char name[FACTS_NAME_SIZE], const char *device, const char *driver);

#define FACTS_END "end\n"

/* The section of a device, without end.  Returns the length; more than @size: no room. */
size_t facts_format(const struct facts *facts, unsigned int number, char *text, size_t size);

/* Leaves in the text of a section the lines that are not in an older one of the device. */
void facts_keep_changes(const char *before, char *after);

/* The caller frees the record.  NULL: no memory, or the text is no record, or cut off within a section. */
struct facts_record *facts_parse(const char *text);

/* The sections that have ended, in a text that may be cut off. */
unsigned int facts_count_sections(const char *text);

/* Whether nothing is unknown in a record but images: others are not kept. */
bool facts_are_whole(const struct facts_record *record);

/* Whether images have been tested. */
bool facts_have_images(const struct facts_record *record);

#endif /* ICD_FACTS_FACTS_H */
