/* SPDX-License-Identifier: Apache-2.0 */
/* The abilities of each device, found out on first use. */
#ifndef ICD_OBJECTS_DEVICE_H
#define ICD_OBJECTS_DEVICE_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/facts/store.h"
#include "icd/objects/handle_table.h"
#include "import/import.h"

struct method_ops;

/* Never changed or freed once device_get() returned it: what is found out later is in a record of its own. */
struct device {
	struct handle_record record;
	cl_device_id id; /* a root device */
	cl_platform_id platform;
	char *extensions;     /* the driver's own */
	struct device *older; /* of which less is known, and which threads may still use */
	const struct method_ops *ops[IMPORT_TYPES]; /* NULL: the device takes no such memory */
	struct facts facts;
	const struct method_ops *others; /* for types that only a driver can know; or NULL */
	bool image2d_from_buffer;	 /* the driver has cl_khr_image2d_from_buffer */
	size_t base_align;		 /* bytes: CL_DEVICE_MEM_BASE_ADDR_ALIGN, of sub-buffers */
	bool has_uuid;			 /* @uuid is CL_DEVICE_UUID_KHR */
	unsigned char uuid[IMPORT_UUID_SIZE];
};

/**
 * device_get - the record of a device, or of the root device of a sub-device
 *
 * @wait: FACTS_IMPORT; or FACTS_KEPT: what the last call has found, known or not, if there was one
 *
 * The first call for a device asks for the facts of its platform (facts/store.h).  If something is unknown, a later call asks again, so a function of the application makes one such call.
 * Any thread; no lock is held meanwhile.  NULL if @id is no device, or without memory.
 */
const struct device *device_get(cl_device_id id, enum facts_wait wait);

/* In climport-probe: a record of which nothing is known but the device's name.  NULL if @id is no device, or without memory. */
struct device *device_create(cl_device_id id);

/* NULL is fine. */
void device_free(struct device *device);

/**
 * device_facts - what the record of the platform says of a root device
 * @why: set to the reason if nothing is known
 *
 * Returns NULL if nothing is known.
 */
const struct facts *device_facts(cl_platform_id platform, cl_device_id root, enum facts_wait wait,
				 char why[FACTS_WHY_SIZE]);

/* Whether nothing is known now of how the device takes a type: a later call asks again. */
bool device_is_unknown(const struct device *device, enum import_type type);

/* Whether that is so of no type. */
bool device_is_whole(const struct device *device);

/**
 * device_tested - what all tests say of a device, also those that an image or a large import asks for
 * @why: set to the reason if nothing is known
 *
 * The first call of a platform's asks for a record with images, unless it is kept.  Returns NULL if something is
 * unknown now; then a call a second later asks again.
 */
const struct facts *device_tested(cl_device_id id, char why[FACTS_WHY_SIZE]);

/* The name of a device in records. */
void device_name_in_record(cl_device_id root, char name[FACTS_NAME_SIZE]);

#endif /* ICD_OBJECTS_DEVICE_H */
