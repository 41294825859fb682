/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods: the ways in which a driver takes memory.  A method is a file or a folder with a
 * struct method_ops, and a row in method.c; docs/architecture.md has the recipe.
 *
 * Shared code calls a method through the ops alone, and asks no method by name.  A method keeps its
 * own state of devices, contexts and imports.
 *
 * No method copies: where no row of the table takes a type of memory, the import is an error.
 */
#ifndef ICD_OBJECTS_METHOD_H
#define ICD_OBJECTS_METHOD_H

#include "icd/cl_compat.h"
#include "icd/facts/facts.h"

struct backing;
struct context;
struct context_import;
struct device;
struct memobj;

/* A buffer from a method. */
struct method_buffer {
	cl_mem handle;		 /* for the application */
	struct backing *backing; /* NULL, or a use of the buffer of which the handle is a part */
	size_t offset;		 /* bytes from the backing buffer's first to the handle's */
};

/* The arguments of a function that creates an image, or where desc is NULL a buffer. */
struct image_request {
	const char *function; /* the name */
	bool with_properties; /* the function is clCreateImageWithProperties */
	cl_context context;
	const cl_mem_properties *properties;
	cl_mem_flags flags;
	const cl_image_format *format;
	const cl_image_desc *desc;
	void *host_ptr;
};

enum method_quirk {
	/* On out-of-order queues the driver's markers wait for their wait list. */
	METHOD_MARKERS_WAIT = 1 << 0,
	/*
	 * A destructor callback that calls the driver, and so ends the last use of a context on the
	 * driver's thread, makes the driver crash at exit or hang.
	 */
	METHOD_NO_CALLS_IN_CALLBACKS = 1 << 1,
	/*
	 * If a context has a destructor callback, and so has a memory object, the last
	 * clReleaseContext() may wait for ever: of whose callbacks the two are, does not matter.
	 * The driver counts the application's references of a context alone.
	 */
	METHOD_NO_CONTEXT_CALLBACKS = 1 << 2,
};

struct method_ops {
	const char *name;

	/*
	 * Whether a device takes memory of a type by the method, by self-test.  A positive answer sets the align and
	 * the sentence of @answer, which is the device's, a negative answer the sentence.  What cannot be tested now
	 * sets device->facts.is_unknown.
	 */
	bool (*probe)(struct device *device, enum import_type type, struct facts_type *answer);

	/*
	 * A buffer over a region, which is unknown to other threads, or an error, logged: the driver's, or the
	 * devices are not proved to take such memory for a buffer of @flags, which are valid and hold no
	 * CL_MEM_USE_HOST_PTR.  @context: how->context, or a test's of the same devices.
	 * NULL: the driver's own clImportMemoryARM creates the buffer.
	 */
	cl_int (*create)(cl_context context, const struct context_import *how, cl_mem_flags flags,
			 struct import_region *region, struct method_buffer *buffer);

	/*
	 * NULL, or whether the device works on the memory itself in contexts of several root devices, too, if all do.
	 * NULL: such contexts are refused.
	 */
	bool (*shares)(const struct device *device);

	/*
	 * An image on @parent, an import or an object that is made from an import, or an error,
	 * logged.  An error of the driver may come with a handle.  NULL: imports have no images.
	 * @context: of the parent; NULL: the context has no record any more
	 * @hides_parent: set if the driver does not know the parent.  The image then holds the
	 *	parent until the driver has destroyed the image.
	 */
	cl_mem (*create_image)(struct context *context, const struct memobj *parent,
			       const struct image_request *request, bool *hides_parent,
			       cl_int *err);

	/* With create and create_image: the rule of images of a whole buffer. */
	enum image_from images;

	/*
	 * NULL, or gives up driver objects of the method for a context.  Called before
	 * the application's last clReleaseContext: a driver may count such objects as users of
	 * the context.  If the context lives on, the method makes the objects again when an
	 * import needs them.
	 */
	void (*context_release)(cl_context context);

	/* NULL, or changes @memory, which has the align of the device's facts. */
	void (*describe)(const struct device *device, enum import_type type,
			 struct device_description *memory);

	/*
	 * NULL, or a command before, and one behind, each command that uses imports: their device acquires or
	 * releases them.  @imports have no parents.  Returns the driver's error; *event is set on success.
	 */
	cl_int (*enqueue_edge)(cl_command_queue queue, bool acquires, cl_uint count,
			       const cl_mem *imports, cl_uint num_wait, const cl_event *wait,
			       cl_event *event);

	unsigned int quirks;   /* enum method_quirk; of all drivers with the extension, too */
	const char *extension; /* by which a driver shows that the method may be for it; or NULL */
	bool cpu_optional;     /* dma-bufs need no CPU mapping */
	bool unsynced; /* no CPU mapping is used: the self-test has no DMA_BUF_IOCTL_SYNC, and no import */
};

extern const struct method_ops method_native_ops;

/* Whether the driver may know types of memory that the layer does not know: it gets the application's arguments. */
bool native_takes_others(const struct device *device);

extern const struct method_ops method_opaque_fd_ops;
extern const struct method_ops method_host_ptr_ops;
extern const struct method_ops method_khr_ops;

/* Fills device->ops and device->facts.  Runs self-tests. */
void method_probe(struct device *device);

/* Fills both with what the driver itself takes.  False: it does not take all types. */
bool method_take_native(struct device *device);

/* Fills both with that, and the record; @facts: NULL, unknown because of @why, or the device is not selected. */
void method_recall(struct device *device, const struct facts *facts, const char *why);

/*
 * Tests that the driver may not survive have numbers, in the order in which they run.  Those that take long or
 * compile come last, and only if the facts have images: an image, or a large import, asks for them.  Images have the
 * numbers of their rules behind DANGER_IMAGES.
 */
enum { DANGER_EVENTS, DANGER_LARGE, DANGER_IMAGES, DANGERS = DANGER_IMAGES + IMAGE_RULES };

bool method_has_danger(const struct device *device, unsigned int danger);

/* Sets what holds if the process dies in the test. */
void method_expect_death(struct facts *facts, unsigned int danger);

/* Changes what is known of the device. */
void method_run_danger(struct device *device, unsigned int danger);

/* The method of the layer with a name, for a type of memory; NULL: none. */
const struct method_ops *method_find(const char *name, enum import_type type);

/* Whether a driver with @extensions has the quirk.  Runs no self-test. */
bool method_driver_has(enum method_quirk quirk, const char *extensions);

/* Calls context_release of every method. */
void method_context_release(cl_context context);

#endif /* ICD_OBJECTS_METHOD_H */
