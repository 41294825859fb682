#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy that PyOpenCL gives to OpenCL with CL_MEM_USE_HOST_PTR.  Prints what kernels make of them."""
import mmap

import numpy
import pyopencl as cl

SIZE = 1 << 16
SOURCE = """
kernel void add(global const float *a, global const float *b, global float *sum)
{ size_t i = get_global_id(0); sum[i] = a[i] + b[i]; }
kernel void scale(global float *a, float by)
{ a[get_global_id(0)] *= by; }
"""


def array(values):
    """An array that begins at a page."""
    memory = numpy.frombuffer(mmap.mmap(-1, values.nbytes), dtype=values.dtype)
    memory[:] = values
    return memory


def show(name, values):
    print(f"{name}: {values[:4].tolist()} {float(values.sum(dtype='float64'))}")


def main():
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    program = cl.Program(context, SOURCE).build()
    flags = cl.mem_flags
    use = flags.USE_HOST_PTR
    a = array(numpy.arange(SIZE, dtype=numpy.float32))
    b = array(numpy.arange(SIZE, dtype=numpy.float32)[::-1] / 2)
    total = array(numpy.zeros(SIZE, dtype=numpy.float32))
    a_buffer = cl.Buffer(context, flags.READ_WRITE | use, hostbuf=a)
    b_buffer = cl.Buffer(context, flags.READ_ONLY | use, hostbuf=b)
    total_buffer = cl.Buffer(context, flags.WRITE_ONLY | use, hostbuf=total)

    program.add(queue, (SIZE,), None, a_buffer, b_buffer, total_buffer)
    mapped, event = cl.enqueue_map_buffer(queue, total_buffer, cl.map_flags.READ, 0, (SIZE,),
                                          numpy.float32, is_blocking=False)
    event.wait()
    show("sum", mapped)
    print("the map is the array:", mapped.ctypes.data == total.ctypes.data)
    mapped.base.release(queue)
    show("array", total)

    half = a_buffer.get_sub_region(SIZE * 2, SIZE * 2)
    program.scale(queue, (SIZE // 2,), None, half, numpy.float32(3))
    back = numpy.empty_like(a)
    cl.enqueue_copy(queue, back, a_buffer)
    show("scaled", back[SIZE // 2:])
    cl.enqueue_copy(queue, a_buffer, b_buffer)
    cl.enqueue_fill_buffer(queue, b_buffer, numpy.float32(7), 0, 1024)
    cl.enqueue_migrate_mem_objects(queue, [a_buffer, b_buffer], 0)
    mapped, _ = cl.enqueue_map_buffer(queue, a_buffer, cl.map_flags.WRITE, 0, (4,), numpy.float32)
    mapped[:] = 5
    mapped.base.release(queue)
    cl.enqueue_copy(queue, a, a_buffer)  # to the buffer's own place
    show("copied", a)
    mapped, _ = cl.enqueue_map_buffer(queue, b_buffer, cl.map_flags.READ, 0, (SIZE,),
                                      numpy.float32)
    show("filled", mapped)
    mapped.base.release(queue)
    queue.finish()
    print("size:", a_buffer.get_info(cl.mem_info.SIZE),
          "uses the pointer:", bool(a_buffer.get_info(cl.mem_info.FLAGS) & use),
          "maps:", a_buffer.get_info(cl.mem_info.MAP_COUNT))


if __name__ == "__main__":
    main()
