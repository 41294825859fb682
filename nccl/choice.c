/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/choice.h"

#include <stdlib.h>

#include "nccl/log.h"
#include "util/setting_values.h"

const char *choice_get(const char *name)
{
	const char *value = getenv(name);
	char sentence[SETTING_SENTENCE_SIZE];

	if (!value || !*value)
		return NULL;
	if (setting_is_understood(name, value, sentence))
		return value;
	net_warn("%s", sentence);
	return NULL;
}
