/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preloaded library: behind each mapping lies a page that can be read, or with DRIVER_BEHIND=hole a page
 * that cannot.  If a test dies with the hole and passes with the page, something reads behind the last
 * byte of a mapping.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) void *mmap(void *address, size_t size, int protection,
						  int flags, int fd, off_t offset);

static void *behind_map(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
#ifdef SYS_mmap
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
#else
	return (void *)syscall(SYS_mmap2, address, size, protection, flags, fd, offset >> 12);
#endif
}

static int behind_protection(void)
{
	const char *behind = getenv("DRIVER_BEHIND");

	return behind && !strcmp(behind, "hole") ? PROT_NONE : PROT_READ;
}

/* A new mapping at any place is put over the beginning of a mapping that is a page longer. */
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
	unsigned char *room;
	void *found;

	if (address || !size || whole < size || flags & (MAP_GROWSDOWN | MAP_HUGETLB))
		return behind_map(address, size, protection, flags, fd, offset);
	room = behind_map(NULL, whole + page, behind_protection(),
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return MAP_FAILED;
	found = behind_map(room, size, protection, flags | MAP_FIXED, fd, offset);
	if (found == MAP_FAILED)
		munmap(room, whole + page);
	return found;
}
