/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of commands on memory, without their order. */
#include "internal.h"

void op_hold(struct op *op)
{
	for (int i = 0; i < 2; i++)
		if (op->mem[i])
			object_retain(op->mem[i]);
	if (op->list)
		object_retain(op->list);
}

void op_drop(struct op *op)
{
	for (int i = 0; i < 2; i++)
		if (op->mem[i])
			mem_put(op->mem[i]);
	if (op->launch)
		launch_destroy(op->launch);
	if (op->list)
		stub_command_buffer_put(op->list);
}

static unsigned char *row_at(const struct box *box, size_t row, size_t slice)
{
	return box->at + row * box->row_pitch + slice * box->slice_pitch;
}

static void op_copy(const struct op *op)
{
	for (size_t slice = 0; slice < op->slices; slice++)
		for (size_t row = 0; row < op->rows; row++)
			memmove(row_at(&op->dst, row, slice), row_at(&op->src, row, slice),
				op->bytes);
}

static void op_fill(const struct op *op)
{
	for (size_t slice = 0; slice < op->slices; slice++)
		for (size_t row = 0; row < op->rows; row++)
			for (size_t at = 0; at < op->bytes; at += op->pattern_size)
				memcpy(row_at(&op->dst, row, slice) + at, op->pattern,
				       op->pattern_size);
}

/* A map copies a copying driver's memory to the host, and an unmap copies the memory back. */
static void sync_with_host(const struct op *op, bool out)
{
	const struct mem *mem = op->mem[0];

	if (!mem->host_ptr || mem->host_ptr == mem->data)
		return;
	memcpy(out ? mem->host_ptr : mem->data, out ? mem->data : mem->host_ptr, mem->size);
}

static bool op_is_edge(const struct op *op)
{
	return op->kind == OP_ACQUIRE || op->kind == OP_RELEASE;
}

cl_int op_run(struct op *op, struct device *device)
{
	for (int i = 0; i < 2 && !op_is_edge(op); i++)
		if (op->mem[i])
			khr_note_use(op->mem[i]);
	switch (op->kind) {
	case OP_NOTHING:
		return (cl_int)stub_get(STUB_NOTHING_FAIL);
	case OP_COPY:
		op_copy(op);
		break;
	case OP_FILL:
		op_fill(op);
		break;
	case OP_LAUNCH:
		return launch_run(op->launch, device);
	case OP_SYNC_OUT:
	case OP_SYNC_IN:
		sync_with_host(op, op->kind == OP_SYNC_OUT);
		break;
	case OP_ACQUIRE:
	case OP_RELEASE:
		khr_run(op->mem[0], op->kind == OP_ACQUIRE);
		break;
	case OP_LIST:
		return command_buffer_run(op->list, device);
	}
	return CL_COMPLETE;
}
