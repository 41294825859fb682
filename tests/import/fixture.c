/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "util/log.h"

void fixture_expect_log(const char *words)
{
	if (!strstr(log_last(), words))
		fprintf(stderr, "# logged: %s\n", log_last());
	EXPECT(strstr(log_last(), words));
}
