# SPDX-License-Identifier: Apache-2.0
"""A kernel adds 1 to the elements of a NumPy array in place: climport run -- python3 numpy_import.py"""
import climport.opencl
import numpy
import pyopencl

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
program = pyopencl.Program(context, """
    kernel void increment(global int *a) { a[get_global_id(0)]++; }
""").build()

array = climport.opencl.empty(context, 1 << 20, numpy.int32)
array[:] = numpy.arange(array.size)
buffer = climport.opencl.import_host(context, array)
program.increment(queue, array.shape, None, buffer)
queue.finish()
print(array)
