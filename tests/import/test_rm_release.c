/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports with the releases of NVIDIA's driver.  A row is a series, by its last tag in
 * open-gpu-kernel-modules; tests/fake/rm-abi compares the tags' structures.
 */
#include "rm_fixture.h"

static const struct rm_series {
	const char *name;
	struct fake_rm_release release;
	bool pins;
} rm_series[] = {
	{ "515", { "515.105.01", true, true, true }, false },
	{ "520", { "520.61.07", true, true, true }, false },
	{ "525", { "525.147.05", true, true, true }, true },
	{ "530", { "530.41.03", true, false, true }, true },
	{ "535", { "535.288.01", false, false, true }, true },
	{ "545", { "545.29.06", false, false, true }, true },
	{ "550", { "550.163.01", false, false, true }, true },
	{ "555", { "555.58.02", false, false, true }, true },
	{ "560", { "560.35.03", false, false, true }, true },
	{ "565", { "565.77", false, false, true }, true },
	{ "570", { "570.211.01", false, false, true }, true },
	{ "575", { "575.64.05", false, false, false }, true },
	{ "580", { "580.142", false, false, false }, true },
	{ "590", { "590.48.01", false, false, false }, true },
	{ "595", { "595.45.04", false, false, false }, true },
};

static void rm_begin_release(const struct rm_series *series)
{
	rm_begin();
	fake_rm.release = series->release;
	if (!series->pins)
		test_skip("the release is refused");
}

TEST_EACH(release, struct rm_series, rm_series,
	  "Host memory is imported with a release that pins pages, and refused with a sentence "
	  "with an earlier release.")
{
	char *p;
	int ret;

	rm_begin();
	fake_rm.release = row->release;
	p = rm_pages(SIZE);
	ret = rm_try(p, SIZE);
	EXPECT_EQ(ret >= 0, row->pins);
	if (row->pins) {
		close(ret);
	} else {
		EXPECT_EQ(ret, -EOPNOTSUPP);
		EXPECT(strstr(log_last(), "releases of NVIDIA's driver before 525 do not pin"));
		EXPECT_EQ(fake_rm.clients_made, 0);
	}
	rm_expect_kept(row->pins, row->pins);
	rm_end();
}

TEST_EACH(release_dmabuf, struct rm_series, rm_series,
	  "A dma-buf is imported with each release that pins pages.")
{
	int fd;

	rm_begin_release(row);
	fd = rm_try_dmabuf();
	EXPECT(fd >= 0);
	close(fd);
	rm_expect_kept(1, 1);
	rm_end();
}

TEST_EACH(release_closed_node, struct rm_series, rm_series,
	  "With each release an import works after the program has closed the device's node.")
{
	rm_begin_release(row);
	rm_import_works(0);
	rm_close_all(1);
	rm_import_works(0);
	EXPECT_EQ(fake_rm.clients_made, 1);
	EXPECT_EQ(fake_rm.devices_made, 2);
	EXPECT_EQ(fake_rm_held().devices, 1);
	rm_close_all(0);
	rm_close_all(1);
	rm_end();
}

/* Calls whose status is in one of two places, and calls whose status stays. */
static const struct rm_refused_call {
	const char *name;
	int clients, devices;
} rm_refused_calls[] = {
	{ "client", 0, 0 }, { "device", 1, 0 }, { "attach", 1, 1 },
	{ "pin", 1, 0 },    { "uuid", 1, 0 },	{ "export", 1, 0 },
};

TEST_EACH_PAIR(release_refusal, struct rm_series, rm_series, struct rm_refused_call,
	       rm_refused_calls,
	       "With each release a refusal of RM's is an error, and leaves nothing behind.")
{
	rm_begin_release(row);
	rm_fail(column->name, 1, 0, 0x51);
	EXPECT_EQ(rm_try_dmabuf(), -ENOMEM);
	rm_expect_kept(column->clients, column->devices);
	rm_import_works(0);
	rm_expect_kept(1, 1);
	rm_end();
}
