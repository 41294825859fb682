/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/pinnable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/kinds/maps.h"
#include "util/log.h"

#define PINNABLE_RELEASE 525
#define PINNABLE_SHOWN 48 /* bytes of a name */

/* The end of a long name: the end of the message, which has 255 bytes, is the advice. */
static const char *pinnable_shown(const char *name)
{
	size_t size = name ? strlen(name) : 0;

	if (!size)
		return "anonymous";
	return size > PINNABLE_SHOWN ? name + size - PINNABLE_SHOWN : name;
}

static int pinnable_refuse(const struct maps_mapping *m)
{
	char *name = maps_name(m->start);
	int ret;

	if (m->access & IMPORT_WRITE)
		ret = log_errno(EOPNOTSUPP,
				"host memory at %#lx is a mapping of %s, which this device cannot "
				"pin",
				m->start, pinnable_shown(name));
	else
		ret = log_errno(
			EOPNOTSUPP,
			"host memory at %#lx (%s) is mapped without write access, which "
			"this device needs to pin the memory: map the memory writable, with "
			"MAP_PRIVATE if the file must not change",
			m->start, pinnable_shown(name));
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
