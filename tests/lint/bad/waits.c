/* SPDX-License-Identifier: Apache-2.0 */
/* A pause for another thread, which a busy machine starts later. */
#include <unistd.h>

void waits_for_luck(void);

void waits_for_luck(void)
{
	usleep(10000);
}
