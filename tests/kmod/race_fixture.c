/* SPDX-License-Identifier: Apache-2.0 */
#include "race_fixture.h"
#include "mockgpu.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

_Alignas(128) struct slot race_slots[SLOTS];
int race_ctx;

static atomic_long rounds;
static int importer = -1;

/* The first failed check of all threads. */
static struct {
	const char *file;
	atomic_int line;
	const char *what;
	_Atomic long long got, want;
} failure;

void race_fail(const char *file, int line, const char *what, long long got, long long want)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&failure.line, &none, line)) {
		failure.file = file;
		failure.what = what;
		failure.got = got;
		failure.want = want;
	}
	atomic_store(&rounds, 0);
}

int race_next_round(void)
{
	return atomic_fetch_sub(&rounds, 1) > 0;
}

static long race_wanted_rounds(void)
{
	const char *text = getenv("GDM_ROUNDS");

	return text ? atol(text) : 20000;
}

static _Thread_local uint64_t seed;

void race_seed(const void *arg)
{
	seed = (uintptr_t)arg * 7919;
}

uint64_t race_last_random(void)
{
	return seed;
}

uint32_t race_any(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

uint64_t race_word(const struct slot *slot, uint64_t turn)
{
	return 0xca00000000000000ULL | (uint64_t)(slot - race_slots) << 48 | turn;
}

static _Thread_local sigjmp_buf jump;
static _Thread_local volatile sig_atomic_t may_fault;

static void race_on_fault(int number)
{
	if (!may_fault) {
		signal(number, SIG_DFL);
		raise(number);
	}
	siglongjmp(jump, number);
}

static void race_catch_faults(void)
{
	struct sigaction action = { .sa_handler = race_on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

int race_read_word(const volatile void *p, uint64_t *value)
{
	int number = sigsetjmp(jump, 0);

	if (!number) {
		may_fault = 1;
		*value = *(const volatile uint64_t *)p;
	}
	may_fault = 0;
	return number;
}

int race_write_word(volatile void *p, uint64_t word)
{
	const volatile uint64_t value = word; /* sigsetjmp() may return twice */
	int number = sigsetjmp(jump, 0);

	if (!number) {
		may_fault = 1;
		*(volatile uint64_t *)p = value;
	}
	may_fault = 0;
	return number;
}

void race_view_close(struct view *v)
{
	if (v->map)
		CHECK_EQ(munmap(v->map, v->length), 0);
	if (v->slot)
		CHECK_EQ(close(v->fd), 0);
	memset(v, 0, sizeof(*v));
}

void race_view_read(const struct view *v)
{
	uint64_t value = 0;

	CHECK_EQ(race_read_word(v->map + (size_t)race_any(v->length / PAGE) * PAGE, &value), 0);
	if (v->turn)
		CHECK_EQ(value, race_word(v->slot, v->turn));
}

void race_view_enter(struct view *v, struct slot *slot, uint64_t turn)
{
	v->slot = slot;
	if (!(turn & 1) && turn == atomic_load(&slot->turn))
		v->turn = turn;
	v->map = dmabuf_map(v->fd, v->length,
			    v->flags & GDMABUF_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE);
	CHECK(v->map);
}

static void race_import(const struct view *v)
{
	struct gdmabuf_importer_map map;
	int dynamic = race_any(2), err;

	err = test_importer_attach(
		importer, v->fd, dynamic ? GDMABUF_IMPORTER_DYNAMIC : GDMABUF_IMPORTER_STATIC,
		GDMABUF_IMPORTER_PLATFORM_DEVICE | (dynamic ? GDMABUF_IMPORTER_PEER2PEER : 0),
		GDMABUF_IMPORTER_BIDIRECTIONAL);
	if (err) {
		CHECK_EQ(err, -EACCES);
		return;
	}
	for (int i = 1 + (int)race_any(3); i; i--) {
		err = test_importer_map(importer, &map);
		if (err) {
			CHECK(err == -EACCES || err == -EOPNOTSUPP ||
			      (printf("# importer_map: %d\n", err), 0));
			break;
		}
		CHECK_EQ(map.out_length, v->length);
		if (race_any(2))
			usleep(race_any(500)); /* time: noise */
		CHECK_EQ(importer_call(importer, GDMABUF_IMPORTER_UNMAP, 0), 0);
	}
	CHECK_EQ(importer_call(importer, GDMABUF_IMPORTER_DETACH, 0), 0);
}

void race_import_views(void *arg, void (*open)(struct view *v))
{
	race_seed(arg);
	while (race_next_round()) {
		struct view v = { 0 };

		open(&v);
		if (v.slot)
			race_import(&v);
		race_view_close(&v);
	}
}

void race_importer_open(void)
{
	importer = test_importer_open();
}

void race_importer_close(void)
{
	close(importer);
}

void race_run_threads(void *(*const bodies[])(void *))
{
	pthread_t threads[16];
	size_t n = 0;

	race_catch_faults();
	memset(&failure, 0, sizeof(failure));
	atomic_store(&rounds, race_wanted_rounds());
	for (; bodies[n]; n++)
		EXPECT_EQ(pthread_create(&threads[n], NULL, bodies[n], (void *)(n + 1)), 0);
	for (size_t i = 0; i < n; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
	if (failure.line)
		test_fail(failure.file, failure.line, failure.what, failure.got, failure.want);
}

void race_start(void)
{
	race_ctx = gdm_open();
	memset(race_slots, 0, sizeof(race_slots));
}

void race_expect_nothing_left(void)
{
	EXPECT_EQ(gdm_read_total("host-bytes"), 0);
	EXPECT_EQ(gdm_read_total("gpu-bytes"), 0);
	EXPECT_EQ(gdm_read_total("watches"), 0);
}
