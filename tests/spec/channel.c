/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { MAGIC = 0x434c494d, HIGH_DESCRIPTOR = 200 };

static int channel = -1;

/* A high number, out of the way of drivers that take a descriptor's number for granted. */
void channel_use(int fd)
{
	channel = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
	if (channel < 0)
		channel = fd;
	else
		close(fd);
}

void channel_send(enum message_kind kind, int value, const char *text)
{
	struct message message = { .magic = MAGIC, .kind = kind, .value = value };

	snprintf(message.text, sizeof(message.text), "%s", text);
	while (write(channel, &message, sizeof(message)) < 0 && errno == EINTR)
		;
}

bool channel_is_message(const struct message *message)
{
	return message->magic == MAGIC && !message->text[sizeof(message->text) - 1];
}
