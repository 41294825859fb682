/* SPDX-License-Identifier: Apache-2.0 */
#include "diag_read.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_path(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	text[0] = '\0';
	if (fd < 0)
		return -1;
	while (used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	text[used] = '\0';
	return n < 0 && !used ? -1 : (ssize_t)used;
}

ssize_t read_bytes(const char *dir, const char *name, char *text, size_t size)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return read_path(path, text, size);
}

const char *diag_read_line(const char *dir, const char *name, char *text, size_t size)
{
	read_bytes(dir, name, text, size);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

int read_exists(const char *root, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return !access(path, F_OK);
}

unsigned int read_number(const char *dir, const char *name)
{
	char text[32];

	return (unsigned int)strtoul(diag_read_line(dir, name, text, sizeof(text)), NULL, 16);
}

const char *read_word_after(char *text, const char *name)
{
	char *word = strstr(text, name);

	if (!word)
		return "";
	word += strlen(name);
	word += strspn(word, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	return word;
}
