/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tests: each version of the interface. */
#ifndef TESTS_NCCL_VERSIONS_H
#define TESTS_NCCL_VERSIONS_H

struct version {
	const char *name;
	int number;
};

static const struct version versions[] = {
	{ "v6", 6 },   { "v7", 7 },   { "v8", 8 },   { "v9", 9 },
	{ "v10", 10 }, { "v11", 11 }, { "v12", 12 },
};

#endif /* TESTS_NCCL_VERSIONS_H */
