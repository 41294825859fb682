/* SPDX-License-Identifier: Apache-2.0 */
/* CLIMPORT_LOG, which is read once: each value in a process of its own. */
#include "harness.h"

#include "util/log.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static void log_everything(void)
{
	for (int i = 0; i < 2; i++) {
		if (log_errno(EIO, "fault %d", i) != -EIO)
			_exit(2);
		log_debug("decision %d", i);
	}
	if (strcmp(log_last(), "fault 1"))
		_exit(3);
}

/* What a process prints whose CLIMPORT_LOG is @value. */
static const char *log_print_with(const char *value)
{
	static char text[1024];
	int pipes[2], status = -1;
	size_t n = 0;
	ssize_t got;
	pid_t child;

	EXPECT(!pipe(pipes));
	fflush(stdout);
	child = fork();
	if (!child) {
		unsetenv("CLIMPORT_LOG");
		if (value)
			setenv("CLIMPORT_LOG", value, 1);
		dup2(pipes[1], STDERR_FILENO);
		log_everything();
		_exit(0);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(pipes[0]);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	return text;
}

#define FAULTS "climport: fault 0\nclimport: fault 1\n"

TEST(unset, "Log lines are not printed where CLIMPORT_LOG is not set.")
{
	EXPECT(!strcmp(log_print_with(NULL), ""));
}

TEST(off, "CLIMPORT_LOG=off, none, 0 and the empty string print nothing.")
{
	EXPECT(!strcmp(log_print_with("off"), ""));
	EXPECT(!strcmp(log_print_with("none"), ""));
	EXPECT(!strcmp(log_print_with("0"), ""));
	EXPECT(!strcmp(log_print_with(""), ""));
}

TEST(error, "CLIMPORT_LOG=error prints faults.")
{
	EXPECT(!strcmp(log_print_with("error"), FAULTS));
}

TEST(debug, "CLIMPORT_LOG=debug prints decisions as well.")
{
	EXPECT(!strcmp(log_print_with("debug"), "climport: fault 0\nclimport: decision 0\n"
						"climport: fault 1\nclimport: decision 1\n"));
}

TEST(other, "Any other value is named once, with those that are valid, and prints faults.")
{
	const char *text = log_print_with("verbose");
	const char *faults = strstr(text, FAULTS);

	EXPECT(strstr(text, "CLIMPORT_LOG=verbose"));
	EXPECT(strstr(text, "error, debug or off"));
	EXPECT(faults && !strcmp(faults, FAULTS));
	EXPECT_EQ(strstr(text, "CLIMPORT_LOG") - text, strlen("climport: "));
	EXPECT(!strstr(faults, "CLIMPORT_LOG"));
}
