/* SPDX-License-Identifier: Apache-2.0 */
#include "no_tcp_info.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

bool no_tcp_info;

/* Exported for the plugin. */
__attribute__((visibility("default"))) int getsockopt(int fd, int level, int name, void *value,
						      socklen_t *size)
{
	long ret = syscall(SYS_getsockopt, fd, level, name, value, size);

	if (!ret && no_tcp_info && level == IPPROTO_TCP && name == TCP_INFO)
		memset(value, 0, *size);
	return (int)ret;
}
