/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a loader reads.  Khronos' loader and ocl-icd from 2.3.2 on read the names of layers
 * from /etc/OpenCL/layers/NAME.lay: loader/linux/icd_linux.c, khrIcdOsVendorsEnumerate(), and
 * ocl_icd_loader.c, __initSystemLayers().  Earlier versions of ocl-icd, such as Debian 12's 2.3.1,
 * read the variable OPENCL_LAYERS alone.  No loader reads a file of a user's: for a user, and for
 * earlier versions, the files below set the variable.
 */
#include "enable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"
#include "paths.h"
#include "terminal.h"

struct enable_options {
	const char *root; /* a folder in the place of /; NULL: this machine's */
	bool user;	  /* for the calling user alone */
	bool environment; /* set OPENCL_LAYERS, too, although the loader reads layer files */
};

#define VALUE "\"%s${OPENCL_LAYERS:+:$OPENCL_LAYERS}\"\n"

struct enable_file {
	const char *name;
	const char *text; /* with the layer's path in the place of %s */
	bool variable;	  /* for loaders that read no layer files */
};

static const struct enable_file for_all[] = {
	{ "/etc/OpenCL/layers/climport.lay", "%s\n", false },
	{ "/etc/environment.d/60-climport.conf", "OPENCL_LAYERS=" VALUE, true },
	/* A shell of a desktop session has the variable already. */
	{ "/etc/profile.d/climport.sh",
	  "case ${OPENCL_LAYERS-} in *libCLImportMemoryLayer.so*) ;; *) export OPENCL_LAYERS=" VALUE
	  ";; esac\n",
	  true },
};

static const struct enable_file for_user[] = {
	{ "/environment.d/60-climport.conf", "OPENCL_LAYERS=" VALUE, true },
};

/* The files of the options, in the folder @base.  0: the folder is unknown, as a message says. */
static size_t enable_files(const struct enable_options *options, char *base,
			   const struct enable_file **files)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (!options->user) {
		snprintf(base, PATH_MAX, "%s", options->root ? options->root : "");
		*files = for_all;
		return sizeof(for_all) / sizeof(for_all[0]);
	}
	*files = for_user;
	if (config && *config) {
		snprintf(base, PATH_MAX, "%s", config);
	} else if (home && *home) {
		snprintf(base, PATH_MAX, "%s/.config", home);
	} else {
		terminal_line(stderr, 4, "climport: neither XDG_CONFIG_HOME nor HOME is set");
		return 0;
	}
	return 1;
}

/* A loader that reads layer files knows the variable with which a user moves the folder. */
static bool enable_reads_files(void)
{
	return loader_knows("OPENCL_LAYER_PATH");
}

static int enable_fail(const char *path)
{
	int error = errno;

	terminal_line(stderr, 4, "climport: %s: %s%s", path, strerror(error),
		      error == EACCES || error == EROFS ? "; --user is for your own programs alone"
							: "");
	return 1;
}

/* A link in the image of a container can lead to the machine's own files: these stay as they are. */
static int enable_check_inside(const char *root, const char *folder)
{
	char top[PATH_MAX], real[PATH_MAX];
	size_t length;

	if (!root || strlen(folder) <= strlen(root))
		return 0;
	if (!realpath(root, top) || !realpath(folder, real))
		return enable_fail(folder);
	length = strcmp(top, "/") ? strlen(top) : 0;
	if (!strncmp(real, top, length) && (!real[length] || real[length] == '/'))
		return 0;
	terminal_line(stderr, 4, "climport: %s is %s, which is not below %s", folder, real, root);
	return 1;
}

/* Makes the folders of a file. */
static int enable_make_folders(const char *root, char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return enable_fail(path);
		if (enable_check_inside(root, path))
			return 1;
		*slash = '/';
	}
	return 0;
}

static bool enable_write_text(FILE *file, const char *text, const char *layer)
{
	bool failed;

	for (const char *end = strstr(text, "%s"); end; end = strstr(text, "%s")) {
		fprintf(file, "%.*s%s", (int)(end - text), text, layer);
		text = end + 2;
	}
	fputs(text, file);
	failed = ferror(file);
	return !fclose(file) && !failed;
}

/* A reader finds the whole file, or the file as it was. */
static int enable_write_file(char *path, const char *text, const char *layer)
{
	char partial[2 * PATH_MAX + 8];
	FILE *file;
	int fd;

	snprintf(partial, sizeof(partial), "%s.XXXXXX", path);
	fd = mkostemp(partial, O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return enable_fail(path);
	if (enable_write_text(file, text, layer) && !chmod(partial, 0644) && !rename(partial, path))
		return 0;
	enable_fail(path);
	unlink(partial);
	return 1;
}

/* A signal waits until the file is whole, so that no part of the file stays. */
static int enable_write(const char *root, char *path, const char *text, const char *layer)
{
	sigset_t all, before;
	int failed;

	if (enable_make_folders(root, path))
		return 1;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	failed = enable_write_file(path, text, layer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

/* Shells and systemd read the path within quotes. */
static bool enable_can_quote(const char *layer)
{
	if (!strpbrk(layer, "\"$`\\\n"))
		return true;
	terminal_line(stderr, 4,
		      "climport: the layer is at %s, and shells take a character of this path for "
		      "their own",
		      layer);
	return false;
}

static void enable_print_rest(const struct enable_options *options, const char *base)
{
	if (options->user) {
		terminal_line(stdout, 0,
			      "Sessions and services of systemd's have the variable from the next "
			      "login on.");
		terminal_line(stdout, 0, "For shells, add this line to ~/.profile:");
		terminal_line(stdout, -1, "    set -a; . \"%s%s\"; set +a", base, for_user[0].name);
	} else if (!options->root && !enable_reads_files()) {
		terminal_line(stdout, 0,
			      "This machine's OpenCL loader reads no layer files, so the variable "
			      "OPENCL_LAYERS is set, from the next login on.");
		terminal_line(
			stdout, 0,
			"Services of the system's need a line of their own: see climport(7).");
	}
}

static int enable_command(const struct enable_options *options)
{
	char base[PATH_MAX], path[2 * PATH_MAX];
	const struct enable_file *files;
	size_t count = enable_files(options, base, &files);
	const char *layer = path_layer();
	bool variable = options->user || options->environment ||
			(!options->root && !enable_reads_files());

	/* The layer has to load here, too. */
	if (!count || !layer || !enable_layer() || !enable_can_quote(layer))
		return 1;
	/* Every user's programs read the files for all. */
	if (!options->user)
		umask(022);
	for (size_t i = 0; i < count; i++) {
		if (files[i].variable && !variable)
			continue;
		snprintf(path, sizeof(path), "%s%s", base, files[i].name);
		if (enable_write(options->root, path, files[i].text, layer))
			return 1;
		terminal_line(stdout, 4, "wrote %s", path);
	}
	enable_print_rest(options, base);
	return 0;
}

static int disable_file(const char *root, char *path, bool *removed)
{
	char *slash = strrchr(path, '/');

	*slash = '\0';
	if (!access(path, F_OK) && enable_check_inside(root, path))
		return 1;
	*slash = '/';
	if (unlink(path))
		return errno == ENOENT || errno == ENOTDIR ? 0 : enable_fail(path);
	terminal_line(stdout, 4, "removed %s", path);
	*removed = true;
	/* The folder, if enable_command() has made the folder. */
	*slash = '\0';
	if (strcmp(strrchr(path, '/'), "/profile.d"))
		rmdir(path);
	return 0;
}

static int disable_command(const struct enable_options *options)
{
	char base[PATH_MAX], path[2 * PATH_MAX];
	const struct enable_file *files;
	size_t count = enable_files(options, base, &files);
	int status = count ? 0 : 1;
	bool removed = false;

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s%s", base, files[i].name);
		status |= disable_file(options->root, path, &removed);
	}
	if (!status && !removed)
		terminal_line(stdout, 4, "there is nothing to turn off%s",
			      options->user ? " for your own programs" : "");
	return status;
}

static int enable_parse(int argc, char **argv, struct enable_options *options)
{
	struct arguments a = { argv[0], argc, argv, 1, NULL };
	struct stat st = { 0 };

	while (option_next(&a)) {
		if (option_is(&a, "--user"))
			options->user = true;
		else if (option_is(&a, "--environment"))
			options->environment = true;
		else if (!option_is(&a, "--root"))
			return fail_option(&a);
		else if (!(options->root = option_value(&a)))
			return WRONG_USAGE;
	}
	if (options->root && !*options->root)
		return fail_usage("%s: --root names no folder", a.command);
	if (options->user && options->root)
		return fail_usage("%s: --user and --root exclude each other", a.command);
	if (options->root && (stat(options->root, &st) || !S_ISDIR(st.st_mode)))
		return fail_usage("%s: --root %s: no folder that can be reached", a.command,
				  options->root);
	return a.next == argc ? 0 : fail_usage("%s takes no argument %s", a.command, argv[a.next]);
}

int enable_start(int argc, char **argv)
{
	struct enable_options options = { 0 };
	int status = enable_parse(argc, argv, &options);

	if (status)
		return status;
	return strcmp(argv[0], "enable") ? disable_command(&options) : enable_command(&options);
}
