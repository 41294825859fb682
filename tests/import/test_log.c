/* SPDX-License-Identifier: Apache-2.0 */
/* CLIMPORT_LOG.  A process reads the variable once, so each value has a new process. */
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

/* The output of a process with CLIMPORT_LOG=@value. */
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

TEST(unset, "Without CLIMPORT_LOG no log lines are printed.")
{
	EXPECT(!strcmp(log_print_with(NULL), ""));
}

static const struct log_value {
	const char *name;
	const char *value;
} values_off[] = {
	{ "off", "off" },
	{ "none", "none" },
	{ "0", "0" },
	{ "empty", "" },
};

TEST_EACH(value, struct log_value, values_off, "A value that means off prints nothing.")
{
	EXPECT(!strcmp(log_print_with(row->value), ""));
}

TEST(error, "CLIMPORT_LOG=error prints faults.")
{
	EXPECT(!strcmp(log_print_with("error"), FAULTS));
}

TEST(debug, "CLIMPORT_LOG=debug prints faults and decisions.")
{
	EXPECT(!strcmp(log_print_with("debug"), "climport: fault 0\nclimport: decision 0\n"
						"climport: fault 1\nclimport: decision 1\n"));
}

TEST(other, "An unknown value is named once, with the valid values, and prints faults.")
{
	const char *text = log_print_with("verbose");
	const char *faults = strstr(text, FAULTS);

	EXPECT(strstr(text, "CLIMPORT_LOG=verbose"));
	EXPECT(strstr(text, "error, debug or off"));
	EXPECT(faults && !strcmp(faults, FAULTS));
	EXPECT_EQ(strstr(text, "CLIMPORT_LOG") - text, strlen("climport: "));
	EXPECT(!strstr(faults, "CLIMPORT_LOG"));
}
