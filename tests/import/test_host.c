/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"
#include "import/import.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define BOTH (IMPORT_READ | IMPORT_WRITE)

static char *host_map_pages(void)
{
	static char *p;

	if (!p)
		p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	return p;
}

static int host_get_region(void *addr, size_t size, unsigned int access,
			   struct import_region **region)
{
	const struct import_desc desc = { IMPORT_HOST, addr, size, access, false, 0 };

	*region = NULL;
	return import_get(&desc, region);
}

TEST(in_place, "A host region is the memory itself.")
{
	struct import_region *r;

	EXPECT_EQ(host_get_region(host_map_pages() + 100, 300, BOTH, &r), 0);
	EXPECT(r->addr == host_map_pages() + 100);
	EXPECT_EQ(r->size, 300);
	EXPECT_EQ(import_needs_bracket(r), 0);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_BEGIN), 0);
	import_put(r);
}

TEST(refused_outputs, "A refused range leaves the output unchanged.")
{
	struct import_region *r;

	EXPECT_EQ(host_get_region((void *)8, 8, BOTH, &r), -EFAULT);
	EXPECT(!r);
}

TEST(unaligned_same_flags, "Unaligned ranges with the same access may share pages.")
{
	struct import_region *a, *b;

	EXPECT_EQ(host_get_region(host_map_pages() + 64, 64, BOTH, &a), 0);
	EXPECT_EQ(host_get_region(host_map_pages() + 128, 64, BOTH, &b), 0);
	import_put(a);
	import_put(b);
}

TEST(unaligned_other_flags, "Two unaligned ranges with different access must not share a page.")
{
	struct import_region *a, *b;

	EXPECT_EQ(host_get_region(host_map_pages() + 64, 64, BOTH, &a), 0);
	EXPECT_EQ(host_get_region(host_map_pages() + 2048, 64, IMPORT_READ, &b), -EBUSY);
	EXPECT_EQ(host_get_region(host_map_pages() + PAGE + 64, 64, IMPORT_READ, &b), 0);
	import_put(b);
	import_put(a);
	EXPECT_EQ(host_get_region(host_map_pages() + 2048, 64, IMPORT_READ, &b), 0);
	import_put(b);
}

TEST(unaligned_among_others,
     "Ranges may share a page while a range with different access is alive elsewhere.")
{
	struct import_region *a, *b, *elsewhere;

	EXPECT_EQ(host_get_region(host_map_pages() + 8 * PAGE + 1, 8, IMPORT_READ, &elsewhere), 0);
	EXPECT_EQ(host_get_region(host_map_pages() + 64, 64, BOTH, &a), 0);
	EXPECT_EQ(host_get_region(host_map_pages() + 128, 64, BOTH, &b), 0);
	import_put(a);
	import_put(b);
	import_put(elsewhere);
}

#ifdef __aarch64__
/* The processor ignores the top byte of an address. */
static unsigned char *host_tag(unsigned char *p)
{
	return (unsigned char *)((uintptr_t)p | (uintptr_t)0x2a << 56);
}

TEST(tagged, "A pointer with a tag is imported, and stays as it is.")
{
	unsigned char *p = host_tag((unsigned char *)host_map_pages());
	struct import_region *a;

	EXPECT_EQ(host_get_region((void *)p, PAGE, BOTH, &a), 0);
	EXPECT_EQ((uintptr_t)a->addr, (uintptr_t)p);
	import_put(a);
}

TEST(tagged_shares_page, "A pointer with a tag means the page of the pointer without the tag.")
{
	unsigned char *p = (unsigned char *)host_map_pages();
	struct import_region *a, *b;

	EXPECT_EQ(host_get_region((void *)(p + 64), 64, BOTH, &a), 0);
	EXPECT_EQ(host_get_region((void *)(host_tag(p) + 2048), 64, IMPORT_READ, &b), -EBUSY);
	import_put(a);
}
#endif

TEST(unaligned_around, "A range shares the pages of every range inside.")
{
	struct import_region *a, *b;

	EXPECT_EQ(host_get_region(host_map_pages() + 5 * PAGE + 1, 2, IMPORT_READ, &a), 0);
	EXPECT_EQ(host_get_region(host_map_pages() + 10, 10 * PAGE, BOTH, &b), -EBUSY);
	import_put(a);
	EXPECT_EQ(host_get_region(host_map_pages() + 10, 10 * PAGE, BOTH, &b), 0);
	import_put(b);
}

TEST(aligned_is_free, "Aligned ranges may share pages with any range.")
{
	struct import_region *a, *b;

	EXPECT_EQ(host_get_region(host_map_pages(), 2 * PAGE, BOTH, &a), 0);
	EXPECT_EQ(host_get_region(host_map_pages() + 64, 64, IMPORT_READ, &b), 0);
	import_put(b);
	import_put(a);
}

TEST(release_in_any_order, "The list of unaligned ranges survives any order of release.")
{
	struct import_region *r[4], *x;

	for (int i = 0; i < 4; i++)
		EXPECT_EQ(host_get_region(host_map_pages() + 64 * i + 1, 8, BOTH, &r[i]), 0);
	import_put(r[1]);
	import_put(r[3]);
	import_put(r[0]);
	EXPECT_EQ(host_get_region(host_map_pages() + 999, 8, IMPORT_READ, &x), -EBUSY);
	import_put(r[2]);
	EXPECT_EQ(host_get_region(host_map_pages() + 999, 8, IMPORT_READ, &x), 0);
	import_put(x);
}

TEST(held_twice, "A region lives until the last reference is put.")
{
	struct import_region *a, *b;

	EXPECT_EQ(host_get_region(host_map_pages() + 1, 8, BOTH, &a), 0);
	import_hold(a);
	import_put(a);
	EXPECT_EQ(host_get_region(host_map_pages() + 9, 8, IMPORT_READ, &b), -EBUSY);
	import_put(a);
	EXPECT_EQ(host_get_region(host_map_pages() + 9, 8, IMPORT_READ, &b), 0);
	import_put(b);
	import_put(NULL);
}
