/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/setting.h"

struct config config;

/* FFmpeg uses no device without cl_khr_image2d_from_buffer, and makes images of imports alone. */
static bool config_is_ffmpeg(void)
{
	return !strcmp(program_invocation_short_name, "ffmpeg") ||
	       !strcmp(program_invocation_short_name, "ffplay");
}

void config_read(void)
{
	const char *image2d = setting_get("CLIMPORT_IMAGE2D_FROM_BUFFER");
	const bool is_newer = setting_is("CLIMPORT_VERSION", "1.1.0");

	config = (struct config){
		.is_disabled = setting_is("CLIMPORT_DISABLE", "1"),
		.version = CL_MAKE_VERSION(1, is_newer ? 1 : 0, 0),
		.version_is_set = setting_get("CLIMPORT_VERSION"),
		.host_access = is_newer,
		.verify = setting_is("CLIMPORT_VERIFY", "1"),
		.image2d_from_buffer = image2d ? !strcmp(image2d, "1") : config_is_ffmpeg(),
		.image2d_is_set = image2d,
	};
}

enum config_probe config_probe(void)
{
	return setting_is("CLIMPORT_PROBE", "here")  ? PROBE_HERE
	       : setting_is("CLIMPORT_PROBE", "off") ? PROBE_OFF
						     : PROBE_DEFAULT;
}
