/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/rm/rm_version.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "import/nvidia/pinnable.h"
#include "import/nvidia/rm/rm_abi.h"
#include "import/nvidia/rm/rm_client.h"

/* Releases before 530 do not tell their number, and compare a number with theirs. */
static bool rm_version_is(int control, const char *beginning)
{
	struct rm_version version = { .command = RM_VERSION_COMPARE };

	strcpy(version.text, beginning);
	return !rm_try_ioctl(control, RM_VERSION, &version);
}

int rm_version_check(int control)
{
	struct rm_version version = { .command = RM_VERSION_QUERY };
	int ret = rm_ioctl(control, RM_VERSION, &version, "the version of NVIDIA's driver");

	if (ret)
		return ret;
	if (version.text[0])
		return pinnable_check_release((unsigned int)strtoul(version.text, NULL, 10));
	return pinnable_check_release(rm_version_is(control, "525.") ? 525 : 0);
}
