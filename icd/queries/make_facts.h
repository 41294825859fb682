/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the record of a platform: in climport-probe alone, which the tests of a driver may end. */
#ifndef ICD_QUERIES_MAKE_FACTS_H
#define ICD_QUERIES_MAKE_FACTS_H

#include "icd/probe/interface.h"

/* See probe_fn. */
cl_int CL_API_CALL facts_make(cl_platform_id platform, const char *key, bool with_images, int fd,
			      int status);

#endif /* ICD_QUERIES_MAKE_FACTS_H */
