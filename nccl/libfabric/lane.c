/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/libfabric/fabric.h"
#include "nccl/log.h"
#include "util/thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define COMPLETIONS 16 /* read at once */
#define CQ_SIZE 4096
/* How long a thread looks for work before the thread sleeps, in microseconds. */
#define SPIN_IDLE 5    /* without posted operations: until the next fabric_queue() */
#define SPIN_POSTED 20 /* with posted operations, since something happened: until the peer acts */

static ssize_t lane_call_endpoint(struct fabric_operation *o)
{
	struct fid_ep *endpoint = o->rail->endpoint;

	if (o->kind == FABRIC_SEND)
		return fi_sendv(endpoint, o->vectors, o->descriptors, o->count, 0, o);
	if (o->kind == FABRIC_RECEIVE)
		return fi_recvv(endpoint, o->vectors, o->descriptors, o->count, 0, o);
	return fi_readv(endpoint, o->vectors, o->descriptors, o->count, 0, o->from, o->key, o);
}

/* Pairs with the operation's readers. */
static void lane_end_operation(struct fabric_operation *operation, size_t length, int error)
{
	operation->length = length;
	operation->error = error;
	atomic_store_explicit(&operation->state, FABRIC_DONE, memory_order_release);
}

bool fabric_post(struct fabric_operation *operation)
{
	struct fabric_rail *rail = operation->rail;
	ssize_t ret;

	if (!rail->endpoint) {
		lane_end_operation(operation, 0, rail->error);
		return true;
	}
	/* The completion may come before the call returns, in another thread. */
	atomic_store(&operation->state, FABRIC_POSTED);
	atomic_fetch_add(&rail->lane->posted, 1);
	ret = lane_call_endpoint(operation);
	if (!ret)
		return true;
	atomic_fetch_sub(&rail->lane->posted, 1);
	atomic_store(&operation->state, FABRIC_IDLE);
	if (ret == -FI_EAGAIN)
		return false;
	lane_end_operation(operation, 0, (int)ret);
	return true;
}

static struct fabric_operation *lane_queue_first(struct fabric_lane *lane)
{
	struct fabric_operation *first;

	pthread_mutex_lock(&lane->queue_lock);
	first = lane->first;
	pthread_mutex_unlock(&lane->queue_lock);
	return first;
}

static void lane_queue_remove_first(struct fabric_lane *lane)
{
	pthread_mutex_lock(&lane->queue_lock);
	lane->first = lane->first->next;
	if (!lane->first)
		lane->last = NULL;
	pthread_mutex_unlock(&lane->queue_lock);
}

/*
 * The operation leaves the queue before the operation is posted: once posted, the operation may end,
 * and be another's.
 */
static bool lane_post_first(struct fabric_lane *lane)
{
	struct fabric_operation *first = lane_queue_first(lane);

	if (!first)
		return false;
	lane_queue_remove_first(lane);
	if (fabric_post(first))
		return true;
	pthread_mutex_lock(&lane->queue_lock);
	atomic_store(&first->state, FABRIC_QUEUED);
	first->next = lane->first;
	lane->first = first;
	if (!lane->last)
		lane->last = first;
	pthread_mutex_unlock(&lane->queue_lock);
	return false;
}

static bool lane_post_queued(struct fabric_lane *lane)
{
	bool any = false;

	if (pthread_mutex_trylock(&lane->post_lock))
		return false;
	while (lane_post_first(lane))
		any = true;
	pthread_mutex_unlock(&lane->post_lock);
	return any;
}

static bool lane_read_error(struct fabric_lane *lane)
{
	struct fi_cq_err_entry entry = { 0 };

	if (fi_cq_readerr(lane->cq, &entry, 0) != 1)
		return false;
	if (!entry.op_context)
		return true;
	atomic_fetch_sub(&lane->posted, 1);
	lane_end_operation(entry.op_context, 0, entry.err == FI_ETRUNC ? -EMSGSIZE : -entry.err);
	return true;
}

static bool lane_read_completions(struct fabric_lane *lane)
{
	struct fi_cq_msg_entry entries[COMPLETIONS];
	ssize_t count = fi_cq_read(lane->cq, entries, COMPLETIONS);

	if (count == -FI_EAVAIL)
		return lane_read_error(lane);
	if (count <= 0)
		return false;
	atomic_fetch_sub(&lane->posted, (int)count);
	for (ssize_t i = 0; i < count; i++)
		lane_end_operation(entries[i].op_context, entries[i].len, 0);
	return true;
}

static bool lane_work(struct fabric_lane *lane)
{
	bool posted = lane_post_queued(lane);

	return lane_read_completions(lane) || posted;
}

/*
 * The thread of a lane posts all that is queued: a thread that sleeps because nothing is posted would
 * never see the end of what another thread has posted.
 */
bool fabric_lane_progress(struct fabric_lane *lane)
{
	return lane->is_threaded ? lane_read_completions(lane) : lane_work(lane);
}

/* The thread waits for a completion, and not for the queue. */
static void lane_wake_poll(struct fabric_lane *lane)
{
	const uint64_t one = 1;

	/* The counter cannot be full: the thread empties the counter. */
	if (write(lane->wake_fd, &one, sizeof(one)) != sizeof(one))
		net_warn("a thread cannot be woken");
}

static void lane_wake(struct fabric_lane *lane)
{
	if (!lane->is_threaded)
		lane_post_queued(lane);
	else if (atomic_load(&lane->sleep) == FABRIC_SLEEPS_IDLE)
		pthread_cond_signal(&lane->queued);
	else if (atomic_load(&lane->sleep) == FABRIC_SLEEPS_POSTED)
		lane_wake_poll(lane);
}

void fabric_queue(struct fabric_operation *operation)
{
	struct fabric_lane *lane = operation->rail->lane;

	operation->next = NULL;
	pthread_mutex_lock(&lane->queue_lock);
	atomic_store(&operation->state, FABRIC_QUEUED);
	if (lane->last)
		lane->last->next = operation;
	else
		lane->first = operation;
	lane->last = operation;
	pthread_mutex_unlock(&lane->queue_lock);
	lane_wake(lane);
}

/* A list of the rail's operations in the queue, by @next, without the others. */
static struct fabric_operation *lane_take(struct fabric_rail *rail)
{
	struct fabric_lane *lane = rail->lane;
	struct fabric_operation *all, *next, *taken = NULL;

	pthread_mutex_lock(&lane->queue_lock);
	all = lane->first;
	lane->first = NULL;
	lane->last = NULL;
	for (; all; all = next) {
		next = all->next;
		if (all->rail == rail) {
			all->next = taken;
			taken = all;
			continue;
		}
		all->next = NULL;
		if (lane->last)
			lane->last->next = all;
		else
			lane->first = all;
		lane->last = all;
	}
	pthread_mutex_unlock(&lane->queue_lock);
	return taken;
}

void fabric_unqueue(struct fabric_rail *rail)
{
	struct fabric_operation *taken, *next;

	pthread_mutex_lock(&rail->lane->post_lock);
	for (taken = lane_take(rail); taken; taken = next) {
		next = taken->next;
		taken->next = NULL;
		atomic_store(&taken->state, FABRIC_IDLE);
	}
	pthread_mutex_unlock(&rail->lane->post_lock);
}

/* What has ended may be another's at once. */
void fabric_cancel(struct fabric_rail *rail, int error)
{
	struct fabric_operation *taken, *next;

	pthread_mutex_lock(&rail->lane->post_lock);
	for (taken = lane_take(rail); taken; taken = next) {
		next = taken->next;
		lane_end_operation(taken, 0, error);
	}
	pthread_mutex_unlock(&rail->lane->post_lock);
}

/* Until an operation is in the queue, or the lane ends. */
static void lane_sleep_idle(struct fabric_lane *lane)
{
	pthread_mutex_lock(&lane->queue_lock);
	atomic_store(&lane->sleep, FABRIC_SLEEPS_IDLE);
	while (!lane->first && !atomic_load(&lane->is_stopping))
		pthread_cond_wait(&lane->queued, &lane->queue_lock);
	atomic_store(&lane->sleep, FABRIC_AWAKE);
	pthread_mutex_unlock(&lane->queue_lock);
}

/* Until a completion, too. */
static void lane_sleep_posted(struct fabric_lane *lane)
{
	struct pollfd events[] = {
		{ .fd = lane->cq_fd, .events = POLLIN },
		{ .fd = lane->wake_fd, .events = POLLIN },
	};
	struct fid *waits_for = &lane->cq->fid;
	uint64_t wakes;

	atomic_store(&lane->sleep, FABRIC_SLEEPS_POSTED);
	if (!lane_queue_first(lane) && !atomic_load(&lane->is_stopping) &&
	    !fi_trywait(lane->fabric, &waits_for, 1))
		poll(events, 2, -1);
	atomic_store(&lane->sleep, FABRIC_AWAKE);
	if (events[1].revents && read(lane->wake_fd, &wakes, sizeof(wakes)) < 0)
		net_warn("the counter of a thread cannot be read");
}

static uint64_t lane_time_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void *lane_run(void *arg)
{
	const size_t spin_idle = fabric_setting("CLIMPORT_NET_SPIN", SPIN_IDLE, 0, 1000000);
	const size_t spin_posted = fabric_setting("CLIMPORT_NET_PATIENCE", SPIN_POSTED, 0, 1000000);
	struct fabric_lane *lane = arg;
	uint64_t busy = lane_time_us();

	while (!atomic_load(&lane->is_stopping)) {
		bool waits = atomic_load(&lane->posted) > 0;

		if (lane_work(lane)) {
			busy = lane_time_us();
		} else if (lane_time_us() - busy <= (waits ? spin_posted : spin_idle)) {
			sched_yield();
		} else {
			waits ? lane_sleep_posted(lane) : lane_sleep_idle(lane);
			busy = lane_time_us();
		}
	}
	return NULL;
}

/*
 * The thread keeps the processors of its creator: the core calls on threads that the core has bound
 * near the GPU.
 */
static int lane_start(struct fabric_lane *lane)
{
	sigset_t blocked, before;
	int err;

	err = fi_control(&lane->cq->fid, FI_GETWAIT, &lane->cq_fd);
	if (err)
		return err;
	lane->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lane->wake_fd < 0)
		return -errno;
	thread_blocked_signals(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	err = pthread_create(&lane->thread, NULL, lane_run, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		close(lane->wake_fd);
		return -err;
	}
	pthread_setname_np(lane->thread, "climport-net");
	return 0;
}

/*
 * Without an object to wait on, the provider tcp before libfabric 1.18 looks at all sockets of a lane in
 * turn for each completion; with a descriptor, at those alone that have something.
 */
static enum fi_wait_obj lane_wait_object(const struct fabric_device *device, bool threaded)
{
	bool is_old_tcp = !fabric_device_needs_mappings(device) &&
			  fabric_library.version() < FI_VERSION(1, 18);

	return threaded || is_old_tcp ? FI_WAIT_FD : FI_WAIT_NONE;
}

int fabric_lane_open(struct fabric_lane *lane, const struct fabric_device *device, bool threaded)
{
	struct fi_cq_attr attributes = {
		.size = CQ_SIZE,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = lane_wait_object(device, threaded),
	};
	int err;

	memset(lane, 0, sizeof(*lane));
	pthread_mutex_init(&lane->queue_lock, NULL);
	pthread_mutex_init(&lane->post_lock, NULL);
	pthread_cond_init(&lane->queued, NULL);
	lane->fabric = device->fabric;
	lane->is_threaded = threaded;
	err = fi_domain(device->fabric, device->info, &lane->domain, NULL);
	if (err)
		goto destroy;
	err = fi_cq_open(lane->domain, &attributes, &lane->cq, NULL);
	if (err)
		goto close_domain;
	if (threaded)
		err = lane_start(lane);
	if (!err)
		return 0;
	fi_close(&lane->cq->fid);
close_domain:
	fi_close(&lane->domain->fid);
destroy:
	pthread_cond_destroy(&lane->queued);
	pthread_mutex_destroy(&lane->post_lock);
	pthread_mutex_destroy(&lane->queue_lock);
	return err;
}

void fabric_lane_close(struct fabric_lane *lane)
{
	if (lane->is_threaded) {
		pthread_mutex_lock(&lane->queue_lock);
		atomic_store(&lane->is_stopping, true);
		pthread_mutex_unlock(&lane->queue_lock);
		pthread_cond_signal(&lane->queued);
		lane_wake_poll(lane);
		pthread_join(lane->thread, NULL);
		close(lane->wake_fd);
	}
	fi_close(&lane->cq->fid);
	fi_close(&lane->domain->fid);
	pthread_cond_destroy(&lane->queued);
	pthread_mutex_destroy(&lane->post_lock);
	pthread_mutex_destroy(&lane->queue_lock);
}
