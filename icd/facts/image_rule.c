/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/image_rule.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "icd/facts/host_rule.h"
#include "util/cl_names.h"
#include "util/log.h"

/* Part of a sentence: the property of an image that is outside the rule; "": none is. */
static void image_rule_compare(const struct image_rule *rule, const struct image_shape *image,
			       char *property, size_t size)
{
	const unsigned int number = (unsigned int)__builtin_ctzl(image->pixel);
	const unsigned int unit = number < IMAGE_PIXELS ? rule->unit[number] : 0;
	const unsigned int access = 1u << host_rule_access(image->flags);
	const size_t align = rule->page_accesses & access ? (size_t)sysconf(_SC_PAGESIZE)
							  : rule->align;

	*property = '\0';
	if (!unit)
		snprintf(property, size, " with pixels of %zu bytes", image->pixel);
	else if ((uintptr_t)image->addr % unit || (uintptr_t)image->addr % align)
		snprintf(property, size, " at %p", image->addr);
	else if (!(rule->accesses & access))
		snprintf(property, size, " with %s", cl_mem_flags_names(image->flags));
	else if (image->width > rule->width || image->height > rule->height)
		snprintf(property, size, " of %zux%zu", image->width, image->height);
	else if (image->is_2d && image->pitch % unit)
		snprintf(property, size, " with rows of %zu bytes", image->pitch);
}

cl_int image_rule_check(const struct image_rule *rules, const struct image_shape *image)
{
	static const char *const of[IMAGE_FROMS] = {
		[IMAGE_OF_BUFFER] = "a buffer",
		[IMAGE_OF_MEMORY] = "host memory",
		[IMAGE_OF_SUB_BUFFER] = "a sub-buffer",
		[IMAGE_OF_DMABUF] = "a dma-buf",
		[IMAGE_OF_PART_OF_DMABUF] = "a part of a dma-buf",
	};
	static const char *const says[IMAGE_FOUNDS] = {
		[IMAGE_UNPROVED] = "could not be proved to be zero copy on this device",
		[IMAGE_ZERO_COPY] = "are not proved to be zero copy on this device",
		[IMAGE_COPIES] = "are not zero copy on this device",
		[IMAGE_FATAL] = "crashed or hung this device's driver in a self-test",
	};
	const struct image_rule *rule = &rules[IMAGE_RULE(image->from, image->is_2d)];
	char property[96] = "";

	if (rule->found == IMAGE_ZERO_COPY && !rule->is_all)
		image_rule_compare(rule, image, property, sizeof(property));
	if (rule->found == IMAGE_ZERO_COPY && !*property)
		return CL_SUCCESS;
	log_error("%s images made from %s%s %s", image->is_2d ? "2D" : "1D", of[image->from],
		  property, says[rule->found]);
	return CL_INVALID_OPERATION;
}
