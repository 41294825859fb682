# SPDX-License-Identifier: Apache-2.0
"""On each device, a kernel writes to an imported array, and its buffer has the array's address: tests/packages/wheel."""
import numpy
import pyopencl

import climport.opencl

SOURCE = "kernel void addresses(global ulong *a) { a[get_global_id(0)] = (ulong)(a + get_global_id(0)); }"

for platform in pyopencl.get_platforms():
    for device in platform.get_devices():
        context = pyopencl.Context([device])
        queue = pyopencl.CommandQueue(context)
        array = climport.opencl.zeros(context, 1 << 20, numpy.uint64)
        buffer = climport.opencl.import_host(context, array)
        program = pyopencl.Program(context, SOURCE).build()
        pyopencl.Kernel(program, "addresses")(queue, array.shape, None, buffer)
        queue.finish()
        expected = array.ctypes.data + 8 * numpy.arange(array.size, dtype=numpy.uint64)
        assert (array == expected).all(), (platform.version, array[:4], array.ctypes.data)
        print("zero copy:", platform.version)
