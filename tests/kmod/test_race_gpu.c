/* SPDX-License-Identifier: Apache-2.0 */
/* Races on GPU memory: threads free and allocate while other threads export, map and read. */
#include "mockgpu.h"
#include "race_fixture.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PAGES_GPU = 2 * GPU_PAGE };

static int gpu;

static void gpu_slot_new(struct slot *slot)
{
	static _Thread_local uint64_t bytes[PAGES_GPU / sizeof(uint64_t)];
	uint64_t turn = atomic_load(&slot->turn) + 1, va;

	for (size_t i = 0; i < PAGES_GPU / sizeof(uint64_t); i += PAGE / sizeof(uint64_t))
		bytes[i] = race_word(slot, turn);
	struct mock_alloc alloc = { .length = PAGES_GPU, .flags = race_any(4) ? 0 : MOCK_SCATTER };

	CHECK_EQ(ioctl(gpu, MOCK_ALLOC, &alloc), 0);
	va = alloc.va;
	struct mock_copy copy = {
		.va = va,
		.user = (uintptr_t)bytes,
		.length = PAGES_GPU,
		.to_gpu = 1,
	};

	CHECK_EQ(ioctl(gpu, MOCK_COPY, &copy), 0);
	atomic_store(&slot->address, va);
	atomic_store(&slot->turn, turn);
}

static void gpu_slot_free(struct slot *slot)
{
	atomic_fetch_add(&slot->turn, 1);
	CHECK_EQ(mockgpu_try_free(gpu, atomic_load(&slot->address)), 0);
}

static int gpu_error_is_expected(int err)
{
	/* The memory is freed, or other pins leave no room. */
	return err == -EFAULT || err == -ENOSPC || err == -ENOMEM;
}

static void gpu_view_open(struct view *v)
{
	struct slot *slot = &race_slots[race_any(SLOTS)];
	uint64_t turn = atomic_load(&slot->turn);
	int err, part = !race_any(4);

	v->length = part ? GPU_PAGE : PAGES_GPU;
	v->address = atomic_load(&slot->address) + (part ? GPU_PAGE : 0);
	err = gdm_export_gpu(race_ctx, v->address, v->length, 0, &v->fd);
	if (err) {
		CHECK(gpu_error_is_expected(err) || (printf("# export: %d\n", err), 0));
		return;
	}
	race_view_enter(v, slot, turn);
}

static void *gpu_allocator(void *arg)
{
	race_seed(arg);
	while (race_next_round()) {
		struct slot *slot = &race_slots[(uintptr_t)arg % 2 + 2 * race_any(SLOTS / 2)];

		gpu_slot_free(slot);
		if (race_any(2))
			usleep(race_any(300)); /* time: noise */
		gpu_slot_new(slot);
		if (race_any(2))
			usleep(race_any(2000)); /* time: noise */
	}
	return NULL;
}

static void *gpu_exporter(void *arg)
{
	struct view views[VIEWS] = { 0 };

	race_seed(arg);
	while (race_next_round()) {
		struct view *v = &views[race_any(VIEWS)];

		if (!v->slot)
			gpu_view_open(v);
		else if (race_any(3))
			race_view_read(v);
		else
			race_view_close(v);
	}
	for (int i = 0; i < VIEWS; i++)
		race_view_close(&views[i]);
	return NULL;
}

static void *gpu_importer(void *arg)
{
	race_import_views(arg, gpu_view_open);
	return NULL;
}

static void gpu_start(void)
{
	gpu = mockgpu_open();
	race_start();
	for (int i = 0; i < SLOTS; i++) {
		atomic_store(&race_slots[i].turn, 1);
		gpu_slot_new(&race_slots[i]);
	}
}

static void gpu_end(void)
{
	race_expect_nothing_left();
	EXPECT_EQ(mockgpu_stats(gpu).pins, 0);
	EXPECT_EQ(mockgpu_stats(gpu).pages_pinned, 0);
	for (int i = 0; i < SLOTS; i++)
		mockgpu_free(gpu, race_slots[i].address);
	EXPECT_EQ(mockgpu_stats(gpu).pages_used, 0);
	close(race_ctx);
	close(gpu);
}

static void gpu_race(void *(*const bodies[])(void *))
{
	gpu_start();
	race_run_threads(bodies);
	gpu_end();
}

TEST(race_gpu, "While threads free and export, a mapping of GPU memory shows the exported memory.")
{
	static void *(*const bodies[])(void *) = { gpu_allocator, gpu_allocator, gpu_exporter,
						   gpu_exporter,  gpu_exporter,	 NULL };

	gpu_race(bodies);
}

TEST(race_gpu_import,
     "While threads free, export and import, a mapping of GPU memory shows the exported memory.")
{
	static void *(*const bodies[])(void *) = { gpu_allocator, gpu_exporter, gpu_importer,
						   NULL };

	race_importer_open();
	gpu_race(bodies);
	race_importer_close();
}
