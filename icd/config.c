/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "util/setting.h"

static cl_version version_read(void)
{
	return setting_is("CLIMPORT_VERSION", "1.1.0") ? CL_MAKE_VERSION(1, 1, 0)
						       : CL_MAKE_VERSION(1, 0, 0);
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
	return setting_get("CLIMPORT_VERSION");
}

bool config_host_access(void)
{
	return config_version() >= CL_MAKE_VERSION(1, 1, 0);
}

/* FFmpeg uses no device without cl_khr_image2d_from_buffer, and makes images of imports alone. */
static bool config_is_ffmpeg(void)
{
	return !strcmp(program_invocation_short_name, "ffmpeg") ||
	       !strcmp(program_invocation_short_name, "ffplay");
}

bool config_image2d_is_set(void)
{
	return setting_get("CLIMPORT_IMAGE2D_FROM_BUFFER");
}

bool config_image2d_from_buffer(void)
{
	const char *value = setting_get("CLIMPORT_IMAGE2D_FROM_BUFFER");

	return value ? !strcmp(value, "1") : config_is_ffmpeg();
}

bool config_is_disabled(void)
{
	return setting_is("CLIMPORT_DISABLE", "1");
}

/* Asked where a context learns its method. */
bool config_verify(void)
{
	enum { UNREAD, OFF, ON };
	static atomic_int known;
	int verify = atomic_load_explicit(&known, memory_order_relaxed);

	if (verify == UNREAD) {
		verify = setting_is("CLIMPORT_VERIFY", "1") ? ON : OFF;
		atomic_store_explicit(&known, verify, memory_order_relaxed);
	}
	return verify == ON;
}

enum config_probe config_probe(void)
{
	return setting_is("CLIMPORT_PROBE", "here")  ? PROBE_HERE
	       : setting_is("CLIMPORT_PROBE", "off") ? PROBE_OFF
						     : PROBE_DEFAULT;
}
