/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a platform: what is known of each of its root devices.  climport-probe makes records
 * (queries/make_facts.c), applications read them (facts/store.h).  A record is bytes: a file has the structure below
 * up to the last device, which no other build of climport takes for a record (FACTS_LAYOUT).
 */
#ifndef ICD_FACTS_FACTS_H
#define ICD_FACTS_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/facts/host_rule.h"
#include "icd/facts/image_rule.h"
#include "icd/probe/interface.h"
#include "import/import.h"

#define FACTS_DEVICES 64
#define FACTS_METHOD_SIZE 16
#define FACTS_WHY_SIZE 192
#define FACTS_NAME_SIZE 128

#define FACTS_REVISION 9 /* of the tests: with a new number every driver is tested again */
#define FACTS_LAYOUT ((unsigned int)(FACTS_REVISION << 16 | sizeof(struct facts)))

/* How a device takes a type of memory. */
struct facts_type {
	char method
		[FACTS_METHOD_SIZE]; /* a method's name, or "-": the device takes no such memory */
	size_t align;		     /* bytes: of addresses and sizes that are proved zero copy */
	bool is_reason; /* of a refusal: @why is the reason for people, whatever later methods say */
	char why[FACTS_WHY_SIZE]; /* a sentence: the proof, or the reason for a refusal */
};

struct facts {
	char name[FACTS_NAME_SIZE]; /* of device and driver: another may have come in its place */
	struct facts_type type[IMPORT_TYPES];
	bool is_unknown; /* something could not be tested now, perhaps a type that is not taken */
	bool is_best; /* nothing better can be hoped for: a library, a device file or huge pages */
	bool image2d; /* 2D images on imports are the layer's */
	bool driver_dma_bufs; /* the driver imports dma-bufs itself, whether that is zero copy or not */
	struct host_rule rule; /* of the method host_ptr */
	bool has_images;       /* images are tested: */
	struct image_rule images[IMAGE_RULES];
	unsigned int exporters; /* of the method opaque_fd: a bit for each that was zero copy */
	bool takes_large; /* of the method opaque_fd: large allocations of the device's own memory */
	char large_why[FACTS_WHY_SIZE]; /* part of a sentence, if they are refused */
	unsigned int begun;		/* the next test that the driver may not survive */
	bool is_tested; /* the tests that a driver survives are done.  Last: it is written last */
};

struct facts_record {
	struct probe_progress progress; /* with FACTS_LAYOUT the record is sealed */
	struct facts_record *older;	/* in the store alone */
	unsigned long long sum;		/* of what follows */
	unsigned long long limits;	/* identity_limits() of the tests */
	unsigned int count;		/* of devices; those behind are unknown */
	bool is_open;			/* the last device's tests have not ended */
	bool has_died;			/* the driver died or hung in the tests of a device */
	/* By facts_seal(), of all devices, of which there is one: */
	bool is_whole;	 /* nothing is unknown but images: others are not kept */
	bool has_images; /* images are tested */
	bool is_best;	 /* nothing better can be hoped for */
	struct facts device[FACTS_DEVICES];
};

/* Makes a record valid whose tests have ended. */
void facts_seal(struct facts_record *record);

/* The bytes of a record in a file. */
size_t facts_size(const struct facts_record *record);

/* Whether @size bytes are a sealed record. */
bool facts_are_valid(const struct facts_record *record, size_t size);

#endif /* ICD_FACTS_FACTS_H */
