/* SPDX-License-Identifier: Apache-2.0 */
/* An error of OpenCL without its name. */
#include "util/log.h"

void numbers_refuse(int err);

void numbers_refuse(int err)
{
	log_error("the driver's clCreateImage failed with error %d", err);
}
