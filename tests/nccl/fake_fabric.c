/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_fabric.h"

#include "harness.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <time.h>

#define FAKE_MANY 64
#define FAKE_TICK 100000000L /* nanoseconds from one look at the clock to the next */

struct fake_info {
	struct fi_info info; /* first */
	struct fi_tx_attr tx;
	struct fi_ep_attr endpoint;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
	struct sockaddr_in source;
};

/* Never freed: a call for a closed endpoint is counted. */
struct fake_endpoint {
	struct fid_ep ep; /* first */
	bool is_open, is_shut;
};

struct fake_read {
	struct fake_endpoint *endpoint; /* NULL: a free place */
	void *context;
	bool has_ended;
	int error;
};

struct fake_event {
	uint32_t kind; /* 0: none */
	size_t size;
	char bytes[sizeof(struct fi_eq_cm_entry) + 64];
};

static struct fake_endpoint fake_endpoints[FAKE_MANY];
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER; /* reads, and the ends of endpoints */
static struct fake_read fake_read_list[FAKE_MANY];
static struct fake_event fake_events[FAKE_MANY];
static struct fake_endpoint *fake_connecting;
static enum fake_reads fake_reads;
static int fake_endpoint_count, fake_pair_count, fake_closed_count, fake_shut_count,
	fake_event_count;

int fake_clock_gettime(clockid_t clock, struct timespec *now) __asm__("clock_gettime");

int fake_clock_gettime(clockid_t clock, struct timespec *now)
{
	static atomic_llong time;
	const long long nanoseconds = atomic_fetch_add(&time, FAKE_TICK);

	(void)clock;
	*now = (struct timespec){ nanoseconds / 1000000000, nanoseconds % 1000000000 };
	return 0;
}

/* Objects without a state. */
static int fake_close(struct fid *fid)
{
	(void)fid;
	return 0;
}

static struct fi_ops fake_plain = { .close = fake_close };
static struct fid_mr fake_mr = { .fid.ops = &fake_plain, .key = 7 };

static int fake_mr_reg(struct fid *fid, const void *memory, size_t size, uint64_t access,
		       uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr,
		       void *context)
{
	(void)fid, (void)memory, (void)size, (void)access, (void)offset, (void)key, (void)flags;
	(void)context;
	*mr = &fake_mr;
	return 0;
}

static int fake_mr_regattr(struct fid *fid, const struct fi_mr_attr *attributes, uint64_t flags,
			   struct fid_mr **mr)
{
	(void)fid, (void)attributes, (void)flags;
	*mr = &fake_mr;
	return 0;
}

static void fake_push(uint32_t kind, struct fid *fid, struct fi_info *info, const void *data,
		      size_t size)
{
	struct fake_event *event = &fake_events[fake_event_count++ % FAKE_MANY];

	const struct fi_eq_cm_entry entry = { .fid = fid, .info = info };

	*event = (struct fake_event){ .kind = kind, .size = sizeof(entry) + size };
	memcpy(event->bytes, &entry, sizeof(entry));
	if (size)
		memcpy(event->bytes + sizeof(entry), data, size);
}

static ssize_t fake_eq_read(struct fid_eq *eq, uint32_t *kind, void *to, size_t size,
			    uint64_t flags)
{
	(void)eq, (void)flags;
	for (int i = 0; i < FAKE_MANY; i++) {
		struct fake_event *event = &fake_events[i];

		if (!event->kind)
			continue;
		EXPECT(event->size <= size);
		memcpy(to, event->bytes, event->size);
		*kind = event->kind;
		event->kind = 0;
		return (ssize_t)event->size;
	}
	return -FI_EAGAIN;
}

static struct fi_ops_eq fake_eq_ops = { .read = fake_eq_read };
static struct fid_eq fake_eq = { .fid.ops = &fake_plain, .ops = &fake_eq_ops };

static int fake_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attributes,
			struct fid_eq **eq, void *context)
{
	(void)fabric, (void)attributes, (void)context;
	*eq = &fake_eq;
	return 0;
}

static struct fake_read *fake_find_read(bool error)
{
	for (int i = 0; i < FAKE_MANY; i++)
		if (fake_read_list[i].endpoint && fake_read_list[i].has_ended &&
		    !fake_read_list[i].error == !error)
			return &fake_read_list[i];
	return NULL;
}

static ssize_t fake_cq_read(struct fid_cq *cq, void *to, size_t count)
{
	struct fi_cq_msg_entry *entry = to;
	struct fake_read *read;
	ssize_t ret = 1;

	(void)cq, (void)count;
	pthread_mutex_lock(&fake_lock);
	read = fake_find_read(false);
	if (read) {
		*entry = (struct fi_cq_msg_entry){ .op_context = read->context, .len = 1 };
		read->endpoint = NULL;
	} else {
		ret = fake_find_read(true) ? -FI_EAVAIL : -FI_EAGAIN;
	}
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

static ssize_t fake_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct fake_read *read;

	(void)cq, (void)flags;
	pthread_mutex_lock(&fake_lock);
	read = fake_find_read(true);
	if (read) {
		entry->op_context = read->context;
		entry->err = read->error;
		read->endpoint = NULL;
	}
	pthread_mutex_unlock(&fake_lock);
	return read ? 1 : -FI_EAGAIN;
}

static struct fi_ops_cq fake_cq_ops = { .read = fake_cq_read, .readerr = fake_cq_readerr };
static struct fid_cq fake_cq = { .fid.ops = &fake_plain, .ops = &fake_cq_ops };

static int fake_cq_open(struct fid_domain *domain, struct fi_cq_attr *attributes,
			struct fid_cq **cq, void *context)
{
	(void)domain, (void)attributes, (void)context;
	*cq = &fake_cq;
	return 0;
}

/* What an adapter does with the reads of an endpoint that is shut. */
static void fake_end_reads_of(const struct fake_endpoint *endpoint)
{
	for (int i = 0; i < FAKE_MANY && fake_reads != FAKE_READS_LOST; i++)
		if (fake_read_list[i].endpoint == endpoint && !fake_read_list[i].has_ended) {
			fake_read_list[i].has_ended = true;
			fake_read_list[i].error = ECANCELED;
		}
}

static ssize_t fake_post_read(struct fake_endpoint *endpoint, void *context)
{
	if (!endpoint->is_open) {
		fake_closed_count++;
		return -ECONNRESET;
	}
	if (fake_reads == FAKE_READS_FULL)
		return -FI_EAGAIN;
	if (endpoint->is_shut)
		fake_shut_count++;
	for (int i = 0; i < FAKE_MANY; i++) {
		if (fake_read_list[i].endpoint)
			continue;
		fake_read_list[i] = (struct fake_read){
			.endpoint = endpoint,
			.context = context,
			.has_ended = !endpoint->is_shut && (fake_reads == FAKE_READS_END ||
							    fake_reads == FAKE_READS_FAIL),
			.error = fake_reads == FAKE_READS_FAIL ? EACCES : 0,
		};
		return 0;
	}
	return -FI_EAGAIN;
}

static ssize_t fake_readv(struct fid_ep *ep, const struct iovec *vectors, void **descriptors,
			  size_t count, fi_addr_t address, uint64_t from, uint64_t key,
			  void *context)
{
	ssize_t ret;

	(void)vectors, (void)descriptors, (void)count, (void)address, (void)from, (void)key;
	pthread_mutex_lock(&fake_lock);
	ret = fake_post_read((struct fake_endpoint *)ep, context);
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

static int fake_endpoint_close(struct fid *fid)
{
	struct fake_endpoint *endpoint = (struct fake_endpoint *)fid;

	pthread_mutex_lock(&fake_lock);
	EXPECT(endpoint->is_open);
	endpoint->is_open = false;
	fake_end_reads_of(endpoint);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int fake_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid, (void)to, (void)flags;
	return 0;
}

static int fake_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return 0;
}

static int fake_connect(struct fid_ep *ep, const void *address, const void *data, size_t size)
{
	(void)address;
	fake_connecting = (struct fake_endpoint *)ep;
	fake_push(FI_CONNREQ, NULL, fabric_library.dupinfo(NULL), data, size);
	return 0;
}

static int fake_accept(struct fid_ep *ep, const void *data, size_t size)
{
	(void)data, (void)size;
	fake_push(FI_CONNECTED, &fake_connecting->ep.fid, NULL, NULL, 0);
	fake_push(FI_CONNECTED, &ep->fid, NULL, NULL, 0);
	fake_pair_count++;
	return 0;
}

static int fake_shutdown(struct fid_ep *ep, uint64_t flags)
{
	struct fake_endpoint *endpoint = (struct fake_endpoint *)ep;

	(void)flags;
	pthread_mutex_lock(&fake_lock);
	EXPECT(endpoint->is_open);
	endpoint->is_shut = true;
	fake_end_reads_of(endpoint);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static struct fi_ops fake_endpoint_ops = { .close = fake_endpoint_close,
					   .bind = fake_bind,
					   .control = fake_control };
static struct fi_ops_cm fake_endpoint_cm = { .connect = fake_connect,
					     .accept = fake_accept,
					     .shutdown = fake_shutdown };
static struct fi_ops_rma fake_endpoint_rma = { .readv = fake_readv };

static int fake_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			      void *context)
{
	struct fake_endpoint *endpoint = &fake_endpoints[fake_endpoint_count++];

	(void)domain, (void)info;
	EXPECT(fake_endpoint_count < FAKE_MANY);
	*endpoint = (struct fake_endpoint){
		.ep = { .fid = { .context = context, .ops = &fake_endpoint_ops },
			.cm = &fake_endpoint_cm,
			.rma = &fake_endpoint_rma },
		.is_open = true,
	};
	*ep = &endpoint->ep;
	return 0;
}

static int fake_listen(struct fid_pep *listener)
{
	(void)listener;
	return 0;
}

static int fake_getname(fid_t fid, void *address, size_t *size)
{
	(void)fid;
	*size = sizeof(struct sockaddr_in);
	memset(address, 0, *size);
	return 0;
}

static struct fi_ops fake_listener_ops = { .close = fake_close, .bind = fake_bind };
static struct fi_ops_cm fake_listener_cm = { .listen = fake_listen, .getname = fake_getname };
static struct fid_pep fake_listener = { .fid.ops = &fake_listener_ops, .cm = &fake_listener_cm };

static int fake_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			   void *context)
{
	(void)fabric, (void)info, (void)context;
	*pep = &fake_listener;
	return 0;
}

static struct fi_ops_mr fake_mr_ops = { .reg = fake_mr_reg, .regattr = fake_mr_regattr };
static struct fi_ops_domain fake_domain_ops = { .cq_open = fake_cq_open,
						.endpoint = fake_endpoint_open };
static struct fid_domain fake_domain = { .fid.ops = &fake_plain,
					 .ops = &fake_domain_ops,
					 .mr = &fake_mr_ops };

static int fake_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			    struct fid_domain **domain, void *context)
{
	(void)fabric, (void)info, (void)context;
	*domain = &fake_domain;
	return 0;
}

static struct fi_ops_fabric fake_fabric_ops = { .domain = fake_domain_open,
						.passive_ep = fake_passive_ep,
						.eq_open = fake_eq_open };
static struct fid_fabric fake_fabric = { .fid.ops = &fake_plain, .ops = &fake_fabric_ops };

static uint32_t fake_version(void)
{
	return FI_VERSION(1, 20);
}

/* The members of the plugin's own copies point into the copy. */
static struct fi_info *fake_dupinfo(const struct fi_info *of)
{
	struct fake_info *info = calloc(1, sizeof(*info));

	if (of)
		memcpy(info, of, sizeof(*info));
	info->info.next = NULL;
	info->info.dest_addr = NULL;
	info->info.src_addr = &info->source;
	info->info.tx_attr = &info->tx;
	info->info.ep_attr = &info->endpoint;
	info->info.domain_attr = &info->domain;
	info->info.fabric_attr = &info->fabric;
	info->fabric.prov_name = of ? strdup(of->fabric_attr->prov_name) : NULL;
	return &info->info;
}

static void fake_freeinfo(struct fi_info *info)
{
	free(info->dest_addr);
	free(info->fabric_attr->prov_name);
	free(info);
}

static int fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **result)
{
	struct fake_info *info;

	(void)version, (void)node, (void)service, (void)flags;
	if (strcmp(hints->fabric_attr->prov_name, "verbs") != 0)
		return -FI_ENODATA;
	info = (struct fake_info *)fake_dupinfo(hints);
	info->source.sin_family = AF_INET;
	info->domain.name = (char *)"fake";
	info->domain.mr_mode = FI_MR_LOCAL;
	info->info.caps = FI_MSG | FI_RMA;
	info->endpoint.max_msg_size = 1 << 20;
	*result = &info->info;
	return 0;
}

static int fake_fabric_create(struct fi_fabric_attr *attributes, struct fid_fabric **fabric,
			      void *context)
{
	(void)attributes, (void)context;
	*fabric = &fake_fabric;
	return 0;
}

void fake_fabric_install(enum fake_reads reads)
{
	fabric_library = (struct fabric_library){
		.version = fake_version,
		.getinfo = fake_getinfo,
		.freeinfo = fake_freeinfo,
		.dupinfo = fake_dupinfo,
		.fabric = fake_fabric_create,
	};
	memset(fake_endpoints, 0, sizeof(fake_endpoints));
	memset(fake_read_list, 0, sizeof(fake_read_list));
	memset(fake_events, 0, sizeof(fake_events));
	fake_endpoint_count = fake_pair_count = fake_closed_count = fake_shut_count = 0;
	fake_event_count = 0;
	fake_reads = reads;
}

void fake_fabric_set_reads(enum fake_reads reads)
{
	fake_reads = reads;
}

void fake_fabric_end_reads(void)
{
	for (int i = 0; i < FAKE_MANY; i++)
		fake_read_list[i].has_ended = true;
}

int fake_fabric_pairs(void)
{
	return fake_pair_count;
}

int fake_fabric_open(void)
{
	int count = 0;

	for (int i = 0; i < FAKE_MANY; i++)
		count += fake_endpoints[i].is_open;
	return count;
}

int fake_fabric_reads_closed(void)
{
	return fake_closed_count;
}

int fake_fabric_reads_shut(void)
{
	return fake_shut_count;
}
