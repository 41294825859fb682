/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's memory as a dma-buf, which other processes and drivers take by its descriptor: a network
 * adapter, a camera, a screen.  On NVIDIA that is CUDA memory.  Elsewhere it is host memory, for which
 * the kernel module gdmabuf or udmabuf has to be there.
 *
 * A kernel writes through the dma-buf.  Host memory is then looked at through its own address.
 */
#include <CL/climport.h>

#include "session.h"

#include <stdio.h>
#include <unistd.h>

enum { SIZE = 4 << 20 };

static const char source[] = "__kernel void fill(__global uchar *dmabuf, ulong offset)\n"
			     "{\n"
			     "	dmabuf[offset + get_global_id(0)] = 42;\n"
			     "}\n";

/* The range may begin inside of the dma-buf, which has whole pages: an offset. */
static void export_fill(struct session *cl, const struct climport_dmabuf *dmabuf)
{
	const size_t global = SIZE;
	const cl_ulong offset = dmabuf->offset;
	cl_kernel kernel = session_kernel(cl, source, "fill");
	cl_mem mem = session_import_dmabuf(cl, CL_MEM_READ_WRITE, dmabuf->fd, dmabuf->whole);

	session_check(clSetKernelArg(kernel, 0, sizeof(mem), &mem), "clSetKernelArg");
	session_check(clSetKernelArg(kernel, 1, sizeof(offset), &offset), "clSetKernelArg");
	session_check(
		clEnqueueNDRangeKernel(cl->queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
		"clEnqueueNDRangeKernel");
	session_check(clFinish(cl->queue), "clFinish");
	session_release(mem);
	clReleaseKernel(kernel);
}

int main(void)
{
	struct session cl;
	struct climport_dmabuf dmabuf;
	unsigned int kind;
	void *memory;

	session_program = "export";
	session_open(&cl, NULL);
	session_print(&cl);
	if (climport_alloc_for_device(cl.device, SIZE, 0, CLIMPORT_NO_CPU, &memory, &kind) ||
	    climport_export_dmabuf(memory, SIZE, 0, &dmabuf, sizeof(dmabuf)))
		session_fail("%s", climport_last_error());
	export_fill(&cl, &dmabuf);
	if (kind == CLIMPORT_HOST && ((unsigned char *)memory)[SIZE - 1] != 42)
		session_fail("the kernel did not write to the program's memory");
	printf("export: ok, %d MiB of %s memory as a dma-buf, descriptor %d\n", SIZE >> 20,
	       kind == CLIMPORT_HOST ? "host" : "device", dmabuf.fd);
	close(dmabuf.fd);
	climport_free(memory);
	session_close(&cl);
	return 0;
}
