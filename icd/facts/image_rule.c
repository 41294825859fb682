/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/image_rule.h"

#include <stdint.h>
#include <stdio.h>

#include "icd/facts/host_rule.h"
#include "util/cl_names.h"
#include "util/log.h"

/* Logs what such images do, or the property that is outside the rule. */
static void image_rule_explain(const struct image_rule *rule, const struct image_shape *image)
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
	char property[96] = "";

	if (rule->found != IMAGE_ZERO_COPY)
		;
	else if ((uintptr_t)image->addr % rule->align)
		snprintf(property, sizeof(property), " at %p", image->addr);
	else if (!image->pixel)
		snprintf(property, sizeof(property), " with pixels of an unknown size");
	else if (!(rule->pixels & image->pixel))
		snprintf(property, sizeof(property), " with pixels of %zu bytes", image->pixel);
	else if (!(rule->accesses & 1u << host_rule_access(image->flags)))
		snprintf(property, sizeof(property), " with %s", cl_mem_flags_names(image->flags));
	else if (image->width > rule->width || image->height > rule->height)
		snprintf(property, sizeof(property), " of %zux%zu", image->width, image->height);
	else
		snprintf(property, sizeof(property), " with rows of %zu bytes",
			 image->pitch ? image->pitch : image->width * image->pixel);
	log_error("%s images made from %s%s %s", image->is_2d ? "2D" : "1D", of[image->from],
		  property, says[rule->found]);
}

/*
 * A driver may copy for the sake of a pitch, whether the rows have gaps or not.  Where no gap was zero copy, what is
 * known is packed rows of powers of two.
 */
static bool image_rule_has_rows(const struct image_rule *rule, const struct image_shape *image)
{
	const size_t pitch = image->pitch ? image->pitch : image->width * image->pixel;

	if (!image->is_2d)
		return true;
	return rule->pitch ? !(pitch % rule->pitch)
			   : pitch == image->width * image->pixel && !(pitch & (pitch - 1));
}

cl_int image_rule_check(const struct image_rule *rules, const struct image_shape *image)
{
	const struct image_rule *rule = &rules[IMAGE_RULE(image->from, image->is_2d)];

	if (rule->found == IMAGE_ZERO_COPY &&
	    (rule->is_all ||
	     (!((uintptr_t)image->addr % rule->align) && rule->pixels & image->pixel &&
	      rule->accesses & 1u << host_rule_access(image->flags) &&
	      image->width <= rule->width && image->height <= rule->height &&
	      image_rule_has_rows(rule, image))))
		return CL_SUCCESS;
	image_rule_explain(rule, image);
	return CL_INVALID_OPERATION;
}
