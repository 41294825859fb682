/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/facts.h"

#include "icd/text.h"

_Static_assert(sizeof(struct facts) < 1 << 16, "FACTS_LAYOUT has the size");

size_t facts_size(const struct facts_record *record)
{
	return offsetof(struct facts_record, device) + record->count * sizeof(record->device[0]);
}

static unsigned long long facts_sum(const struct facts_record *record)
{
	const size_t begin = offsetof(struct facts_record, limits);

	return text_hash_bytes((const char *)record + begin, facts_size(record) - begin);
}

void facts_seal(struct facts_record *record)
{
	record->is_whole = record->has_images = record->is_best = record->count;
	for (unsigned int i = 0; i < record->count; i++) {
		record->is_whole &= !record->device[i].is_unknown;
		record->has_images &= record->device[i].has_images;
		record->is_best &= record->device[i].is_best;
	}
	record->progress.layout = FACTS_LAYOUT;
	record->sum = facts_sum(record);
}

bool facts_are_valid(const struct facts_record *record, size_t size)
{
	return size >= offsetof(struct facts_record, device) &&
	       record->progress.layout == FACTS_LAYOUT && record->count <= FACTS_DEVICES &&
	       size == facts_size(record) && record->sum == facts_sum(record);
}
