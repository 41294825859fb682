/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of RM and the answers to ioctls.  An answer is 0, an errno, or a status of RM with a
 * minus sign.  The order of the checks is the real RM's (escape.c, os.c, osmemdesc.c).
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rm.h"

enum { OBJECTS = 1024 };

/* nvstatuscodes.h: what climport does not know by name. */
enum {
	INVALID_CLASS = 0x22,
	INVALID_CLIENT = 0x23,
	INVALID_COMMAND = 0x24,
	INVALID_FLAGS = 0x29,
	INVALID_OBJECT_HANDLE = 0x33,
	INVALID_OBJECT_PARENT = 0x36,
	INVALID_PARAM_STRUCT = 0x3a,
	INVALID_PARAMETER = 0x3b,
};

static struct fake_rm_object fake_rm_objects[OBJECTS];
static struct fake_rm_memory fake_rm_memories[OBJECTS];
/* resserv.h and rs_client.h: where RM's handles of clients and of other objects begin. */
static uint32_t fake_rm_next_client = 0xc1d00000, fake_rm_next_handle = 0xcaf00000;

void fake_rm_memory_put(struct fake_rm_memory *memory)
{
	if (!memory || --memory->refs)
		return;
	if (memory->is_mapped)
		munmap(memory->bytes, memory->size);
}

static struct fake_rm_memory *fake_rm_memory_find_free(void)
{
	for (int i = 0; i < OBJECTS; i++)
		if (!fake_rm_memories[i].refs)
			return &fake_rm_memories[i];
	return NULL;
}

static struct fake_rm_memory *fake_rm_memory_create(void *bytes, size_t size, int gpu)
{
	struct fake_rm_memory *memory = fake_rm_memory_find_free();

	if (!memory) {
		fake_rm_files_collect();
		memory = fake_rm_memory_find_free();
	}
	if (memory)
		*memory = (struct fake_rm_memory){
			.refs = 1,
			.bytes = bytes,
			.size = size,
			.gpu = gpu,
		};
	return memory;
}

static struct fake_rm_object *fake_rm_object_find(uint32_t client, uint32_t handle, uint32_t class)
{
	for (struct fake_rm_object *o = fake_rm_objects; o < fake_rm_objects + OBJECTS; o++)
		if (o->handle && o->handle == handle && o->client == client &&
		    (!class || o->class == class))
			return o;
	return NULL;
}

static struct fake_rm_object *fake_rm_object_create(uint32_t client, uint32_t handle,
						    uint32_t class)
{
	uint32_t *next = class == RM_CLASS_CLIENT ? &fake_rm_next_client : &fake_rm_next_handle;
	struct fake_rm_object *o = fake_rm_objects;

	while (o < fake_rm_objects + OBJECTS && o->handle)
		o++;
	if (o == fake_rm_objects + OBJECTS)
		return NULL;
	*o = (struct fake_rm_object){
		.handle = handle ? handle : (*next)++,
		.client = client,
		.class = class,
		.process = getpid(),
	};
	return o;
}

/* With all that the object is the parent of. */
static void fake_rm_object_end(struct fake_rm_object *object)
{
	const struct fake_rm_object gone = *object;

	fake_rm_memory_put(object->memory);
	*object = (struct fake_rm_object){ 0 };
	for (struct fake_rm_object *o = fake_rm_objects; o < fake_rm_objects + OBJECTS; o++)
		if (o->handle && o->client == gone.client && o->parent == gone.handle)
			fake_rm_object_end(o);
}

void fake_rm_objects_end(const struct fake_rm_file *control)
{
	for (struct fake_rm_object *o = fake_rm_objects; o < fake_rm_objects + OBJECTS; o++)
		if (o->handle && o->file == control)
			fake_rm_object_end(o);
}

void fake_rm_objects_count(struct fake_rm_held *held)
{
	for (int i = 0; i < OBJECTS; i++) {
		const struct fake_rm_object *o = &fake_rm_objects[i];

		held->clients += o->handle && o->class == RM_CLASS_CLIENT;
		held->devices += o->handle && o->class == RM_CLASS_DEVICE;
		held->objects += o->handle && o->class == RM_CLASS_OS_DESCRIPTOR;
		held->memories += fake_rm_memories[i].refs > 0;
		held->bytes += fake_rm_memories[i].refs ? fake_rm_memories[i].size : 0;
	}
}

/* A client answers on its own control node, and on device nodes registered with it. */
static struct fake_rm_object *fake_rm_client_of(const struct fake_rm_file *file, uint32_t handle)
{
	struct fake_rm_object *client = fake_rm_object_find(handle, handle, RM_CLASS_CLIENT);

	if (!client || client->file != (file->control ? file->control : file))
		return NULL;
	if (client->process != getpid())
		fake_rm.inherited++;
	return client;
}

static int fake_rm_answer_client(struct fake_rm_file *file, struct rm_allocation *a)
{
	struct fake_rm_object *client = fake_rm_object_create(0, 0, RM_CLASS_CLIENT);

	if (!client)
		return -RM_NO_MEMORY;
	if (file->node != FAKE_RM_CONTROL || file->memory)
		fake_rm_note_misuse("a client on a node that is no control node");
	client->client = client->handle;
	client->file = file;
	a->object = client->handle;
	fake_rm.clients_made++;
	return 0;
}

static bool fake_rm_has_node(const struct fake_rm_file *control, int gpu)
{
	const struct fake_rm_file *files = fake_rm_file_first();

	for (int i = 0; i < FAKE_RM_FILES; i++)
		if (files[i].is_open && files[i].node == gpu + 1 && files[i].control == control)
			return true;
	return false;
}

static bool fake_rm_has_device(const struct fake_rm_object *client, int gpu)
{
	for (struct fake_rm_object *o = fake_rm_objects; o < fake_rm_objects + OBJECTS; o++)
		if (o->handle && o->client == client->handle && o->class == RM_CLASS_DEVICE &&
		    o->gpu == gpu)
			return true;
	return false;
}

static int fake_rm_answer_device(const struct fake_rm_object *client, struct rm_allocation *a)
{
	const struct rm_device_parameters *p = (const void *)(uintptr_t)a->parameters;
	struct fake_rm_object *device;
	unsigned int gpu = 0;

	if (a->parent != client->handle)
		return -INVALID_OBJECT_PARENT;
	while (gpu < fake_rm.gpu_count && p && fake_rm.gpu[gpu].instance != p->instance)
		gpu++;
	if (!p || gpu == fake_rm.gpu_count)
		return -RM_INVALID_ARGUMENT;
	if (fake_rm.release.has_one_device && fake_rm_has_device(client, (int)gpu))
		return -RM_INSUFFICIENT_RESOURCES;
	if (!fake_rm_has_node(client->file, (int)gpu))
		return -RM_INSUFFICIENT_PERMISSIONS;
	device = fake_rm_object_create(client->handle, a->object, RM_CLASS_DEVICE);
	if (!device)
		return -RM_NO_MEMORY;
	device->parent = client->handle;
	device->gpu = (int)gpu;
	a->object = device->handle;
	fake_rm.devices_made++;
	return 0;
}

/* rs_client.c: the handle of a new object; 0: RM chooses. */
static int fake_rm_check_handle(const struct fake_rm_object *client, uint32_t handle)
{
	if (handle == client->handle)
		return -INVALID_OBJECT_HANDLE;
	return handle && fake_rm_object_find(client->handle, handle, 0) ? -RM_HANDLE_IS_TAKEN : 0;
}

static int fake_rm_add_memory(const struct fake_rm_object *device, uint32_t handle,
			      struct fake_rm_memory *memory)
{
	struct fake_rm_object *o =
		memory ? fake_rm_object_create(device->client, handle, RM_CLASS_OS_DESCRIPTOR)
		       : NULL;

	if (!o) {
		fake_rm_memory_put(memory);
		return -RM_NO_MEMORY;
	}
	o->parent = device->handle;
	o->gpu = device->gpu;
	o->memory = memory;
	return 0;
}

static int fake_rm_answer_attach(const struct fake_rm_object *device, const struct rm_allocation *a)
{
	const struct rm_file_memory *f = (const void *)(uintptr_t)a->parameters;
	struct fake_rm_memory *memory;
	size_t size = f->limit + 1;
	void *bytes;

	if (f->descriptor_type != RM_FILE_HANDLE || !f->limit)
		return -INVALID_PARAM_STRUCT;
	if (f->attributes != (RM_FILE_PCI | RM_FILE_PAGES | RM_FILE_WRITE_BACK))
		return -INVALID_FLAGS;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)f->descriptor, 0);
	if (bytes == MAP_FAILED)
		return -RM_INVALID_ARGUMENT;
	memory = fake_rm_memory_create(bytes, size, device->gpu);
	if (memory) {
		memory->is_mapped = true;
		memory->is_cached = !(f->attributes2 & RM_FILE_GPU_CACHEABLE_NO);
	}
	fake_rm.attaches_made++;
	return fake_rm_add_memory(device, a->object, memory);
}

static int fake_rm_answer_allocate(struct fake_rm_file *file, struct rm_allocation *a)
{
	const struct fake_rm_object *client, *device;

	if (a->size || a->status)
		fake_rm_note_misuse("an allocation whose size and status are not zero");
	if (a->class == RM_CLASS_CLIENT)
		return fake_rm_answer_client(file, a);
	client = fake_rm_client_of(file, a->client);
	if (!client)
		return -INVALID_CLIENT;
	if (fake_rm_check_handle(client, a->object))
		return fake_rm_check_handle(client, a->object);
	if (a->class == RM_CLASS_DEVICE)
		return fake_rm_answer_device(client, a);
	device = fake_rm_object_find(a->client, a->parent, RM_CLASS_DEVICE);
	if (!device)
		return -INVALID_OBJECT_PARENT;
	return a->class == RM_CLASS_OS_DESCRIPTOR && a->parameters
		       ? fake_rm_answer_attach(device, a)
		       : -INVALID_CLASS;
}

/* get_user_pages() for writing: the pages are populated. */
static bool fake_rm_can_pin(void *address, size_t size)
{
	return address != fake_rm.refused && !madvise(address, size, MADV_POPULATE_WRITE);
}

static int fake_rm_answer_pin(struct fake_rm_file *file, const struct rm_host_memory *m)
{
	const uint32_t needed = RM_HOST_NO_MAP | RM_HOST_CACHED | RM_HOST_PAGES;
	const struct fake_rm_object *client = fake_rm_client_of(file, m->client), *device;
	struct fake_rm_memory *memory;

	if (file->node == FAKE_RM_CONTROL)
		return EINVAL;
	if (m->class != RM_CLASS_OS_DESCRIPTOR)
		return -INVALID_CLASS;
	if ((m->flags & ~(1u << 18)) != needed)
		return -INVALID_FLAGS;
	if (!client)
		return -INVALID_CLIENT;
	device = fake_rm_object_find(m->client, m->parent, RM_CLASS_DEVICE);
	if (!device)
		return -INVALID_OBJECT_PARENT;
	if (device->gpu != file->node - 1)
		fake_rm_note_misuse("memory of a device on the node of another");
	if (fake_rm_check_handle(client, m->object))
		return fake_rm_check_handle(client, m->object);
	if ((m->address | (m->limit + 1)) % (uint64_t)sysconf(_SC_PAGESIZE))
		return -RM_NOT_SUPPORTED;
	if (!(m->limit + 1))
		return -RM_INVALID_LIMIT;
	if (!fake_rm_can_pin((void *)(uintptr_t)m->address, m->limit + 1))
		return -RM_INVALID_ADDRESS;
	memory = fake_rm_memory_create((void *)(uintptr_t)m->address, m->limit + 1, device->gpu);
	if (memory)
		memory->is_cached = m->flags & 1u << 18;
	fake_rm.bytes_pinned += m->limit + 1;
	fake_rm.pins_made++; /* a handle that RM chooses is not told (escape.c) */
	return fake_rm_add_memory(device, m->object, memory);
}

static int fake_rm_answer_uuid(struct rm_uuid_info *info)
{
	if (info->flags != RM_UUID_BINARY)
		return -RM_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < fake_rm.gpu_count; i++) {
		if (memcmp(info->uuid, fake_rm.gpu[i].uuid, 16))
			continue;
		info->gpu = fake_rm.gpu[i].id;
		info->device_instance = fake_rm.gpu[i].instance;
		return 0;
	}
	return -RM_OBJECT_NOT_FOUND;
}

static int fake_rm_write_descriptor(const struct rm_export *e, const struct fake_rm_file *file,
				    const struct fake_rm_memory *memory)
{
	struct fake_opaque opaque = {
		.magic = FAKE_OPAQUE_MAGIC,
		.memory = memory->bytes,
		.size = memory->size,
		.cached = memory->is_cached,
		.copied = fake_rm.copied,
	};

	memcpy(opaque.uuid, fake_rm.gpu[memory->gpu].uuid, sizeof(opaque.uuid));
	return pwrite(e->fd, &opaque, sizeof(opaque), fake_rm_file_place(file)) == sizeof(opaque)
		       ? 0
		       : -RM_NO_MEMORY;
}

static bool fake_rm_is_empty(const struct fake_rm_file *file)
{
	for (const struct fake_rm_object *o = fake_rm_objects; o < fake_rm_objects + OBJECTS; o++)
		if (o->handle && o->file == file)
			return false;
	return file->node == FAKE_RM_CONTROL && !file->memory;
}

static int fake_rm_answer_export(const struct fake_rm_object *client, struct rm_export *e)
{
	struct fake_rm_file *file = fake_rm_file_get(e->fd);
	struct fake_rm_object *o;

	if (!file || !fake_rm_is_empty(file) || e->max_objects != 1 || e->object_count != 1)
		return -INVALID_PARAMETER;
	o = fake_rm_object_find(client->handle, e->objects[0], RM_CLASS_OS_DESCRIPTOR);
	if (!o)
		return -INVALID_OBJECT_HANDLE;
	if (o->parent != e->device)
		return -INVALID_PARAMETER;
	if (fake_rm_write_descriptor(e, file, o->memory))
		return -RM_NO_MEMORY;
	file->memory = o->memory;
	o->memory->refs++;
	return 0;
}

static int fake_rm_answer_control(struct fake_rm_file *file, const struct rm_control *c)
{
	const struct fake_rm_object *client = fake_rm_client_of(file, c->client);
	void *parameters = (void *)(uintptr_t)c->parameters;

	if (!client)
		return -INVALID_CLIENT;
	if (c->object != client->handle || c->flags)
		return -INVALID_OBJECT_HANDLE;
	switch (c->command) {
	case RM_GET_UUID_INFO:
		return c->size == sizeof(struct rm_uuid_info) ? fake_rm_answer_uuid(parameters)
							      : -INVALID_PARAM_STRUCT;
	case RM_EXPORT_OBJECTS_TO_FD:
		return c->size == sizeof(struct rm_export)
			       ? fake_rm_answer_export(client, parameters)
			       : -INVALID_PARAM_STRUCT;
	default:
		return -INVALID_COMMAND;
	}
}

static int fake_rm_answer_free(struct fake_rm_file *file, const struct rm_release *r)
{
	struct fake_rm_object *o = fake_rm_object_find(r->client, r->object, 0);

	if (!fake_rm_client_of(file, r->client))
		return -INVALID_CLIENT;
	if (!o)
		return -INVALID_OBJECT_HANDLE;
	if (o->parent != r->parent)
		return -INVALID_OBJECT_PARENT;
	fake_rm_object_end(o);
	return 0;
}

static int fake_rm_answer_cards(const struct fake_rm_file *file, struct rm_card *cards)
{
	if (file->node != FAKE_RM_CONTROL)
		return EINVAL;
	memset(cards, 0, RM_CARDS * sizeof(*cards));
	/* A place stays free, as after a GPU was unplugged. */
	for (unsigned int i = 0; i < fake_rm.gpu_count; i++) {
		cards[i + 1].is_valid = !fake_rm.gpu[i].no_card;
		cards[i + 1].gpu = fake_rm.gpu[i].id;
		cards[i + 1].minor = fake_rm.gpu[i].wrong_minor ? fake_rm.gpu[i].wrong_minor
								: fake_rm.gpu[i].minor;
	}
	return 0;
}

static int fake_rm_answer_register(struct fake_rm_file *file, const int32_t *control)
{
	struct fake_rm_file *to = fake_rm_file_get(*control);

	if (file->control || !to || to == file || to->node != FAKE_RM_CONTROL || to->memory)
		return EINVAL;
	file->control = to;
	return 0;
}

static int fake_rm_answer_version(const struct fake_rm_file *file, struct rm_version *v)
{
	const char *version = fake_rm.release.version;

	if (file->node != FAKE_RM_CONTROL)
		return EINVAL;
	v->reply = 1;
	if (v->command == RM_VERSION_COMPARE)
		return strncmp(v->text, version, strcspn(version, ".") + 1) ? EINVAL : 0;
	if (v->command == RM_VERSION_QUERY && !fake_rm.release.hides_version)
		snprintf(v->text, sizeof(v->text), "%s", version);
	return 0;
}

int fake_rm_answer(struct fake_rm_file *file, unsigned long request, void *parameters)
{
	switch (request) {
	case RM_ALLOCATE:
		return fake_rm_answer_allocate(file, parameters);
	case RM_ALLOCATE_HOST_MEMORY:
		return fake_rm_answer_pin(file, parameters);
	case RM_CONTROL:
		return fake_rm_answer_control(file, parameters);
	case RM_FREE:
		return fake_rm_answer_free(file, parameters);
	case RM_CARD_INFO:
		return fake_rm_answer_cards(file, parameters);
	case RM_REGISTER_FD:
		return fake_rm_answer_register(file, parameters);
	case RM_VERSION:
		return fake_rm_answer_version(file, parameters);
	default:
		fake_rm_note_misuse("an ioctl of another number or size");
		return EINVAL;
	}
}
