/* SPDX-License-Identifier: Apache-2.0 */
#include "import/api/error.h"

#include <CL/climport.h>
#include <stdio.h>

#include "import/api/public.h"
#include "util/log.h"

static _Thread_local char climport_error_text[LOG_MESSAGE_SIZE];

void climport_error_begin(void)
{
	log_clear();
}

int climport_error_end(int ret)
{
	if (ret)
		snprintf(climport_error_text, sizeof(climport_error_text), "%s",
			 *log_last() ? log_last() : log_strerror(-ret));
	return ret;
}

PUBLIC const char *climport_last_error(void)
{
	return climport_error_text;
}
