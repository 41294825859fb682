/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/pinnable.h"

#include <errno.h>
#include <stdlib.h>

#include "import/kinds/maps.h"
#include "util/log.h"

#define PINNABLE_RELEASE 525

static int pinnable_refuse(const struct maps_mapping *m)
{
	char *name = maps_name(m->start);
	const char *shown = name && name[0] ? name : "anonymous";
	int ret;

	if (m->access & IMPORT_WRITE)
		ret = log_errno(EOPNOTSUPP,
				"host memory at %#lx is a mapping of %s, which this device cannot "
				"pin",
				m->start, shown);
	else
		ret = log_errno(
			EOPNOTSUPP,
			"host memory at %#lx (%s) is mapped without write access, which "
			"this device needs to pin the memory: map the memory writable, with "
			"MAP_PRIVATE if the file must not change",
			m->start, shown);
	free(name);
	return ret;
}

static int pinnable_check_one(const struct maps_mapping *m, void *kinds)
{
	if (m->access & IMPORT_WRITE && 1u << maps_kind(m) & *(const unsigned int *)kinds)
		return 0;
	return pinnable_refuse(m);
}

int pinnable_check(const void *addr, size_t size, unsigned int kinds)
{
	return maps_for_each(addr, size, pinnable_check_one, &kinds);
}

int pinnable_check_release(unsigned int release)
{
	if (release >= PINNABLE_RELEASE)
		return 0;
	return log_errno(EOPNOTSUPP,
			 "releases of NVIDIA's driver before %d do not pin host memory: after a "
			 "fork() kernels would see old pages",
			 PINNABLE_RELEASE);
}
