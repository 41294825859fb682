/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-buffers and images of imports. */
#include "mutants.h"

#include <stdlib.h>
#include <string.h>

#define ACCESSES (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_ACCESSES (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)
#define HOST_PTRS (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)

static bool derive_is_unaligned(struct mutant_object *object)
{
	return (uintptr_t)mutant_root(object)->memory % mutant_page();
}

/* Where the object begins. */
static unsigned char *derive_memory_of(struct mutant_object *object)
{
	return mutant_root(object)->memory + object->origin;
}

/* A new import of copied bytes, or of memory in front of the object. */
static cl_mem derive_import_of(struct mutant_object *object, unsigned char *memory, size_t size)
{
	return mutant_next_import(object->context)(object->context, CL_MEM_READ_WRITE, NULL, memory,
						   size, NULL);
}

static cl_mem derive_copy_of(struct mutant_object *object, size_t origin, size_t size)
{
	unsigned char *copy =
		aligned_alloc(mutant_page(), (size / mutant_page() + 1) * mutant_page());

	memcpy(copy, derive_memory_of(object) + origin, size);
	return derive_import_of(object, copy, size);
}

/* A call of clCreateSubBuffer. */
struct sub {
	struct mutant_object *parent;
	cl_mem mem;
	cl_mem_flags flags;
	cl_buffer_create_type type;
	const void *info;
	cl_buffer_region region;
	cl_int error;
};

static cl_mem derive_sub_create(struct sub *sub)
{
	return mutant_next.clCreateSubBuffer(sub->mem, sub->flags, sub->type, sub->info,
					     &sub->error);
}

static cl_int derive_sub_refuse(const struct sub *sub)
{
	if (MUTANT(sub_refused) ||
	    (MUTANT(sub_of_unaligned_refused) && derive_is_unaligned(sub->parent)))
		return CL_INVALID_MEM_OBJECT;
	if (MUTANT(sub_at_zero_refused) && !sub->region.origin)
		return CL_INVALID_VALUE;
	if (MUTANT(sub_second_refused) && sub->parent->had_sub)
		return CL_OUT_OF_RESOURCES;
	return CL_SUCCESS;
}

/* The region is a copy, which mutants change. */
static void derive_sub_change(struct sub *sub)
{
	if (MUTANT(sub_origin_ignored))
		sub->region.origin = 0;
	if (MUTANT(sub_size_of_import) && sub->region.origin < sub->parent->size)
		sub->region.size = sub->parent->size - sub->region.origin;
	if (MUTANT(sub_host_ptr_accepted))
		sub->flags &= ~(cl_mem_flags)HOST_PTRS;
	if (MUTANT(sub_type_accepted))
		sub->type = CL_BUFFER_CREATE_TYPE_REGION;
	if (MUTANT(sub_size_zero_accepted) && !sub->region.size)
		sub->region.size = 1;
	if (MUTANT(sub_region_null_accepted) && !sub->info) {
		sub->region.size = sub->parent->size;
		sub->info = &sub->region;
	}
	if (MUTANT(sub_of_sub_accepted) && sub->parent->shape == SHAPE_SUB) {
		sub->region.origin += sub->parent->origin;
		sub->mem = sub->parent->parent->mem;
	}
}

static bool derive_sub_is_beyond(const struct sub *sub)
{
	return sub->info && sub->region.origin + sub->region.size > sub->parent->size;
}

static void derive_sub_cut(struct sub *sub)
{
	if (sub->region.origin >= sub->parent->size)
		sub->region.origin = 0;
	sub->region.size = sub->parent->size - sub->region.origin;
}

/* What climport's layer refuses and the mutant accepts. */
static cl_mem derive_sub_accept(struct sub *sub)
{
	if (MUTANT(sub_beyond_accepted) && derive_sub_is_beyond(sub))
		derive_sub_cut(sub);
	else if (MUTANT(sub_misaligned_accepted) && sub->error == CL_MISALIGNED_SUB_BUFFER_OFFSET)
		sub->region.origin = sub->region.origin / 4096 * 4096;
	else if (MUTANT(sub_access_accepted) && sub->flags & ACCESSES)
		sub->flags &= ~(cl_mem_flags)ACCESSES;
	else if (MUTANT(sub_host_access_accepted) && sub->flags & HOST_ACCESSES)
		sub->flags &= ~(cl_mem_flags)HOST_ACCESSES;
	else
		return NULL;
	return derive_sub_create(sub);
}

static cl_int derive_sub_code(const struct sub *sub)
{
	if (sub->error && MUTANT(sub_beyond_as_size) && derive_sub_is_beyond(sub))
		return CL_INVALID_BUFFER_SIZE;
	if (sub->error && MUTANT(sub_size_zero_as_value) && sub->info && !sub->region.size)
		return CL_INVALID_VALUE;
	if (sub->error && MUTANT(sub_of_sub_as_operation) && sub->parent->shape == SHAPE_SUB)
		return CL_INVALID_OPERATION;
	return sub->error;
}

static bool derive_sub_is_copied(const struct sub *sub)
{
	return MUTANT(sub_copied) ||
	       (MUTANT(sub_copied_read_only) && sub->flags & CL_MEM_READ_ONLY);
}

static void derive_sub_note(const struct sub *sub, cl_mem mem)
{
	struct mutant_object *object = mutant_add(mem, SHAPE_SUB, sub->parent->mem, sub->flags);

	object->origin = sub->region.origin;
	object->size = sub->region.size;
	sub->parent->had_sub = true;
	if (MUTANT(sub_buffer_leaks_memory))
		mutant_leak_mapping();
	if (MUTANT(sub_buffer_leaks_import))
		mutant_next.clRetainMemObject(sub->parent->mem);
}

static cl_mem derive_sub_make(struct sub *sub)
{
	cl_mem mem, copy;

	sub->error = derive_sub_refuse(sub);
	if (sub->error)
		return NULL;
	derive_sub_change(sub);
	mem = derive_sub_create(sub);
	if (!mem)
		mem = derive_sub_accept(sub);
	if (mem && derive_sub_is_copied(sub)) {
		copy = derive_copy_of(sub->parent, sub->region.origin, sub->region.size);
		mutant_next.clReleaseMemObject(mem);
		mem = copy;
	}
	return mem;
}

static cl_mem CL_API_CALL mutant_clCreateSubBuffer(cl_mem parent, cl_mem_flags flags,
						   cl_buffer_create_type type, const void *info,
						   cl_int *errcode_ret)
{
	struct sub sub = { mutant_find(parent), parent, flags, type, info, { 0, 0 }, CL_SUCCESS };
	cl_mem mem;

	if (!sub.parent)
		return mutant_next.clCreateSubBuffer(parent, flags, type, info, errcode_ret);
	if (!errcode_ret && MUTANT(sub_code_needed))
		abort();
	if (info) {
		sub.region = *(const cl_buffer_region *)info;
		sub.info = &sub.region;
	}
	mem = derive_sub_make(&sub);
	if (mem)
		derive_sub_note(&sub, mem);
	if (errcode_ret)
		*errcode_ret = derive_sub_code(&sub);
	return mem;
}

/* A call of clCreateImage, or of clCreateImageWithProperties. */
struct image {
	struct mutant_object *parent;
	cl_context context;
	bool by_properties;
	const cl_mem_properties *properties;
	cl_mem_flags flags;
	const cl_image_format *format;
	cl_image_format own_format;
	cl_image_desc desc;
	void *host_ptr;
	cl_int error;
};

static bool derive_is_1d(const struct image *image)
{
	return image->desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

static bool derive_is_of_sub(const struct image *image)
{
	return image->parent->shape == SHAPE_SUB;
}

static cl_mem derive_image_create(struct image *image)
{
	if (image->by_properties)
		return mutant_next.clCreateImageWithProperties(
			image->context, image->properties, image->flags, image->format,
			&image->desc, image->host_ptr, &image->error);
	return mutant_next.clCreateImage(image->context, image->flags, image->format, &image->desc,
					 image->host_ptr, &image->error);
}

static cl_int derive_image_refuse(const struct image *image)
{
	const bool is_2d = !derive_is_1d(image);

	if ((MUTANT(image_refused) && is_2d) || (MUTANT(image_1d_refused) && !is_2d) ||
	    (MUTANT(image_1d_of_sub_refused) && !is_2d && derive_is_of_sub(image)) ||
	    (MUTANT(image_of_sub_refused) && is_2d && derive_is_of_sub(image)) ||
	    (MUTANT(image_of_unaligned_refused) && derive_is_unaligned(image->parent)) ||
	    (MUTANT(image_by_properties_fails) && image->by_properties) ||
	    (MUTANT(image_2d_by_properties_fails) && image->by_properties && is_2d))
		return CL_INVALID_OPERATION;
	if (MUTANT(image_second_refused) && image->parent->had_image)
		return CL_OUT_OF_RESOURCES;
	if (MUTANT(image_no_pitch_refused) && is_2d && !image->desc.image_row_pitch)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	return CL_SUCCESS;
}

static void derive_image_change_parent(struct image *image)
{
	struct mutant_object *root = mutant_root(image->parent);
	const size_t in_page = (uintptr_t)root->memory % mutant_page();

	if ((MUTANT(image_origin_ignored) && !derive_is_1d(image)) ||
	    (MUTANT(image_1d_origin_ignored) && derive_is_1d(image)))
		image->desc.buffer = root->mem;
	if (MUTANT(image_of_unaligned_at_page) && in_page)
		image->desc.buffer =
			derive_import_of(root, root->memory - in_page, root->size + in_page);
	if ((MUTANT(image_copied) && !derive_is_1d(image)) ||
	    (MUTANT(image_1d_copied) && derive_is_1d(image)) ||
	    (MUTANT(image_copied_read_only) && image->flags & CL_MEM_READ_ONLY))
		image->desc.buffer = derive_copy_of(image->parent, 0, image->parent->size);
}

static void derive_image_change(struct image *image)
{
	derive_image_change_parent(image);
	if (MUTANT(image_pitch_ignored))
		image->desc.image_row_pitch = 0;
	if (MUTANT(image_host_ptr_accepted)) {
		image->host_ptr = NULL;
		image->flags &= ~(cl_mem_flags)HOST_PTRS;
	}
	if (MUTANT(image_samples_accepted))
		image->desc.num_samples = 0;
	if (MUTANT(image_format_ignored) && image->format &&
	    image->format->image_channel_order == CL_RGBA) {
		image->own_format = *image->format;
		image->own_format.image_channel_order = CL_BGRA;
		image->format = &image->own_format;
	}
}

/* What climport's layer refuses and the mutant accepts. */
static cl_mem derive_image_accept(struct image *image)
{
	static const cl_image_format plain = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc *desc = &image->desc;
	const size_t pixel = 4;

	if ((MUTANT(image_too_large_accepted) && !derive_is_1d(image) && desc->image_height) ||
	    (MUTANT(image_1d_too_large_accepted) && derive_is_1d(image)) ||
	    (MUTANT(image_width_zero_accepted) && !desc->image_width)) {
		desc->image_width = 1;
		desc->image_height = derive_is_1d(image) ? 0 : 1;
		desc->image_row_pitch = 0;
	} else if ((MUTANT(image_short_pitch_accepted) &&
		    desc->image_row_pitch < desc->image_width * pixel) ||
		   (MUTANT(image_odd_pitch_accepted) && desc->image_row_pitch % pixel)) {
		desc->image_row_pitch = 0;
	} else if (MUTANT(image_access_accepted) && image->flags & ACCESSES) {
		image->flags &= ~(cl_mem_flags)ACCESSES;
	} else if (MUTANT(image_format_null_accepted) && !image->format) {
		image->format = &plain;
	} else {
		return NULL;
	}
	return derive_image_create(image);
}

static void derive_image_note(const struct image *image, cl_mem mem)
{
	struct mutant_object *object =
		mutant_add(mem, derive_is_1d(image) ? SHAPE_IMAGE_1D : SHAPE_IMAGE,
			   image->parent->mem, image->flags);

	object->by_properties = image->by_properties;
	image->parent->had_image = true;
	if (MUTANT(image_leaks_memory))
		mutant_leak_mapping();
	if (MUTANT(image_leaks_import))
		mutant_next.clRetainMemObject(mutant_root(object)->mem);
	if (MUTANT(image_of_sub_buffer_leaks) && derive_is_of_sub(image))
		mutant_next.clRetainMemObject(image->parent->mem);
}

static cl_mem derive_image_make(struct image *image, cl_int *errcode_ret)
{
	cl_mem mem = NULL;

	if (!errcode_ret && MUTANT(image_code_needed))
		abort();
	image->error = derive_image_refuse(image);
	if (!image->error) {
		derive_image_change(image);
		mem = derive_image_create(image);
		if (!mem)
			mem = derive_image_accept(image);
	}
	if (mem)
		derive_image_note(image, mem);
	if (errcode_ret)
		*errcode_ret = image->error;
	return mem;
}

static cl_mem CL_API_CALL mutant_clCreateImage(cl_context context, cl_mem_flags flags,
					       const cl_image_format *format,
					       const cl_image_desc *desc, void *host_ptr,
					       cl_int *errcode_ret)
{
	struct image image = {
		.context = context, .flags = flags, .format = format, .host_ptr = host_ptr
	};
	cl_mem mem;

	image.parent = desc ? mutant_find(desc->buffer) : NULL;
	if (image.parent) {
		image.desc = *desc;
		return derive_image_make(&image, errcode_ret);
	}
	mem = mutant_next.clCreateImage(context, flags, format, desc, host_ptr, errcode_ret);
	if (mem)
		mutant_forget(mem);
	return mem;
}

static cl_mem CL_API_CALL mutant_clCreateImageWithProperties(cl_context context,
							     const cl_mem_properties *properties,
							     cl_mem_flags flags,
							     const cl_image_format *format,
							     const cl_image_desc *desc,
							     void *host_ptr, cl_int *errcode_ret)
{
	struct image image = { .context = context,
			       .by_properties = true,
			       .properties = properties,
			       .flags = flags,
			       .format = format,
			       .host_ptr = host_ptr };
	cl_mem mem;

	image.parent = desc ? mutant_find(desc->buffer) : NULL;
	if (image.parent) {
		image.desc = *desc;
		return derive_image_make(&image, errcode_ret);
	}
	mem = mutant_next.clCreateImageWithProperties(context, properties, flags, format, desc,
						      host_ptr, errcode_ret);
	if (mem)
		mutant_forget(mem);
	return mem;
}

void mutant_offer_derive(struct _cl_icd_dispatch *offered)
{
	MUTANT_OFFER(offered, clCreateSubBuffer);
	MUTANT_OFFER(offered, clCreateImage);
	MUTANT_OFFER(offered, clCreateImageWithProperties);
}
