/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/preload.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "icd/start.h"

#define PRELOAD_SEPARATORS " :" /* ld.so(8): "separated by spaces or colons" */

/* The beginnings of file names. */
static const char *const preload_runtimes[] = {
	"libasan.", "libtsan.",	  "libubsan.",	  "liblsan.",
	"libmsan.", "libhwasan.", "libclang_rt.", "vgpreload_",
};

/* @path has @length characters. */
static bool preload_is_runtime(const char *path, size_t length)
{
	const char *slash = memrchr(path, '/', length), *name = slash ? slash + 1 : path;
	const size_t rest = length - (size_t)(name - path);

	for (size_t i = 0; i < sizeof(preload_runtimes) / sizeof(preload_runtimes[0]); i++)
		if (rest >= strlen(preload_runtimes[i]) &&
		    !memcmp(name, preload_runtimes[i], strlen(preload_runtimes[i])))
			return true;
	return false;
}

char *preload_for_probe(void)
{
	const char *at = start_variable("LD_PRELOAD");
	char *kept = calloc(1, at ? strlen(at) + 1 : 1), *end = kept;

	while (kept && at && *(at += strspn(at, PRELOAD_SEPARATORS))) {
		const size_t length = strcspn(at, PRELOAD_SEPARATORS);

		if (!preload_is_runtime(at, length)) {
			if (end != kept)
				*end++ = ':';
			end = mempcpy(end, at, length);
		}
		at += length;
	}
	return kept;
}

static void preload_describe_one(FILE *out, const char *path)
{
	struct stat st;

	fputs(path, out);
	if (strchr(path, '/') && !stat(path, &st))
		fprintf(out, " %lld %lld.%09ld", (long long)st.st_size,
			(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	fputc(':', out);
}

char *preload_describe(void)
{
	char *libraries = preload_for_probe(), *rest = libraries, *path, *text = NULL;
	size_t length;
	FILE *out = libraries ? open_memstream(&text, &length) : NULL;

	while (out && (path = strsep(&rest, ":")))
		if (*path)
			preload_describe_one(out, path);
	if (out)
		fclose(out);
	free(libraries);
	return text;
}
