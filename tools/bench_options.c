/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of climport bench. */
#include "bench.h"

#include <stdlib.h>

#include "arguments.h"

static int bench_set_device(struct bench_options *options, const char *value)
{
	options->device = value;
	return 0;
}

static int bench_set_size(struct bench_options *options, const char *value)
{
	options->size = parse_size(value);
	if (options->size >= BENCH_SMALLEST)
		return 0;
	return fail_usage("bench: --size is %zuK or more, not %s: bytes, or with K, M or G",
			  BENCH_SMALLEST >> 10, value);
}

/* Of a part: the text stays the command line's, which outlives the environment's use. */
static int bench_set_variable(struct bench_options *options, const char *value)
{
	(void)options;
	return putenv((char *)value) ? 1 : 0;
}

static int bench_set_platform(struct bench_options *options, const char *value)
{
	options->platform = value;
	return 0;
}

static int bench_set_part(struct bench_options *options, const char *value)
{
	options->part = value;
	return 0;
}

static int bench_set_json(struct bench_options *options, const char *value)
{
	options->json = value;
	return 0;
}

static int bench_set_svg(struct bench_options *options, const char *value)
{
	options->svg = value;
	return 0;
}

static int bench_set(struct arguments *a, struct bench_options *options)
{
	static const struct {
		const char *name;
		int (*set)(struct bench_options *options, const char *value);
	} known[] = {
		{ "--platform", bench_set_platform }, { "--device", bench_set_device },
		{ "--size", bench_set_size },	      { "--json", bench_set_json },
		{ "--svg", bench_set_svg },	      { "--part", bench_set_part },
		{ "--set", bench_set_variable },
	};
	const char *value;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!option_is(a, known[i].name))
			continue;
		value = option_value(a);
		return value ? known[i].set(options, value) : WRONG_USAGE;
	}
	return fail_option(a);
}

int bench_parse(int argc, char **argv, struct bench_options *options)
{
	struct arguments a = { "bench", argc, argv, 1, NULL };
	int status = 0;

	while (!status && option_next(&a)) {
		if (option_is(&a, "--quick"))
			options->quick = true;
		else
			status = bench_set(&a, options);
	}
	if (!status && a.next < argc)
		status = fail_usage("bench takes no argument %s", argv[a.next]);
	return status;
}
