/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "icd/program.h"
#include "util/log.h"

static cl_version version_read(void)
{
	const char *value = secure_getenv("CLIMPORT_VERSION");

	if (value && !strcmp(value, "1.1.0"))
		return CL_MAKE_VERSION(1, 1, 0);
	if (value && strcmp(value, "1.0.0"))
		log_error("CLIMPORT_VERSION=%s is neither 1.0.0 nor 1.1.0: 1.0.0 is taken", value);
	return CL_MAKE_VERSION(1, 0, 0);
}

cl_version config_version(void)
{
	static atomic_uint known;
	cl_version version = atomic_load_explicit(&known, memory_order_relaxed);

	if (!version) {
		version = version_read();
		atomic_store_explicit(&known, version, memory_order_relaxed);
	}
	return version;
}

bool config_version_is_set(void)
{
	const char *value = secure_getenv("CLIMPORT_VERSION");

	return value && *value;
}

bool config_host_access(void)
{
	return config_version() >= CL_MAKE_VERSION(1, 1, 0);
}

bool config_in_place(void)
{
	const char *value = secure_getenv("CLIMPORT_HOST_PTR");

	return value && !strcmp(value, "1");
}

static const char *config_text(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

bool config_image2d_is_set(void)
{
	return config_text("CLIMPORT_IMAGE2D_FROM_BUFFER");
}

bool config_image2d_from_buffer(void)
{
	const char *value = config_text("CLIMPORT_IMAGE2D_FROM_BUFFER");

	return value ? !strcmp(value, "1") : program_makes_images_of_imports();
}

const char *config_platform(void)
{
	return config_text("CLIMPORT_PLATFORM");
}

const char *config_device(void)
{
	return config_text("CLIMPORT_DEVICE");
}

bool config_is_disabled(void)
{
	const char *value = secure_getenv("CLIMPORT_DISABLE");

	return value && *value && strcmp(value, "0") != 0;
}

enum config_probe config_probe(void)
{
	const char *value = secure_getenv("CLIMPORT_PROBE");

	if (value && !strcmp(value, "process"))
		return PROBE_PROCESS;
	if (value && !strcmp(value, "here"))
		return PROBE_HERE;
	return value && !strcmp(value, "off") ? PROBE_OFF : PROBE_DEFAULT;
}
