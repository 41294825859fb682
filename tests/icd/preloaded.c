/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for LD_PRELOAD: a part of the stub driver (STUB_PRELOADED), whose behaviour the
 * environment says.  With PRELOADED_ENDS_PROBES the library ends every climport-probe, as the
 * runtime of a sanitizer may.
 */
#include "stub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

STUB_API stub_preloaded_fn stub_preloaded;

void stub_preloaded(unsigned int index)
{
	(void)index;
}

#ifdef PRELOADED_ENDS_PROBES
__attribute__((constructor)) static void preloaded_end_probe(void)
{
	if (!strcmp(program_invocation_short_name, "climport-probe"))
		abort();
}
#endif
