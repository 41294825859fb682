/* SPDX-License-Identifier: Apache-2.0 */
#include "exports.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cuda.h"
#include "gdmabuf.h"
#include "lock.h"
#include "log.h"

struct export
{
	struct export *next;
	ino_t inode;
	struct exported memory;
	struct exports_origin origin;
};

static struct lock exports_lock = LOCK_INIT; /* the three below; taken last */
static struct export *exports GUARDED_BY(exports_lock);
static size_t count GUARDED_BY(exports_lock), prune_at GUARDED_BY(exports_lock) = 64;

/* Whether the address still means what was exported. */
static bool is_current(const struct export *e)
{
	const struct gdmabuf_range range = {
		.slot = e->origin.slot,
		.generation = e->origin.generation,
	};

	if (e->origin.buffer_id)
		return cuda_buffer_id(e->memory.address) == e->origin.buffer_id;
	return e->origin.generation && gdmabuf_is_current(&range);
}

/* Forgets what was freed; the list doubles before it is looked through again. */
static void prune(void) REQUIRES(exports_lock)
{
	for (struct export **link = &exports; *link;) {
		struct export *e = *link;

		if (is_current(e)) {
			link = &e->next;
			continue;
		}
		*link = e->next;
		count--;
		free(e);
	}
	prune_at = count > 32 ? 2 * count : 64;
}

static int inode_of(int fd, ino_t *inode)
{
	struct stat st;

	if (fstat(fd, &st))
		return log_errno(EBADF, "descriptor %d: %m", fd);
	*inode = st.st_ino;
	return 0;
}

int exports_add(int fd, const struct exported *exported, const struct exports_origin *origin)
{
	struct export *e = malloc(sizeof(*e));
	int ret = e ? inode_of(fd, &e->inode) : -ENOMEM;

	if (ret) {
		free(e);
		return ret;
	}
	e->memory = *exported;
	e->origin = *origin;
	lock_acquire(&exports_lock);
	if (count >= prune_at)
		prune();
	e->next = exports;
	exports = e;
	count++;
	lock_release(&exports_lock);
	return 0;
}

int exports_find(int fd, struct exported *exported)
{
	int ret = -ENOENT;
	ino_t inode;

	if (inode_of(fd, &inode))
		return -EBADF;
	lock_acquire(&exports_lock);
	for (const struct export *e = exports; e && ret == -ENOENT; e = e->next) {
		if (e->inode != inode)
			continue;
		*exported = e->memory;
		ret = is_current(e) ? 0 : -ENODEV;
	}
	lock_release(&exports_lock);
	if (ret == -ENODEV)
		log_error("the memory at %#zx was freed since it was exported as a dma-buf",
			  (size_t)exported->address);
	return ret;
}
