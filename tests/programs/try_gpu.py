# SPDX-License-Identifier: Apache-2.0
"""Opens a GPU, else the CPU, as many programs do, and runs a kernel on arrays."""
import numpy
import pyopencl
import pyopencl.array

for platform in pyopencl.get_platforms():
    print(platform.name)
    properties = [(pyopencl.context_properties.PLATFORM, platform)]
    try:
        context = pyopencl.Context(dev_type=pyopencl.device_type.GPU, properties=properties)
        print("a GPU")
    except pyopencl.Error as error:
        print("no GPU:", error)
        context = pyopencl.Context(dev_type=pyopencl.device_type.ALL, properties=properties)
    queue = pyopencl.CommandQueue(context)
    numbers = pyopencl.array.to_device(queue, numpy.arange(1000, dtype=numpy.int32))
    print((numbers * 3 + 1).get().sum())
    program = pyopencl.Program(context, """
        kernel void square(global int *a) { a[get_global_id(0)] *= a[get_global_id(0)]; }
    """).build()
    program.square(queue, numbers.shape, None, numbers.data)
    print(numbers.get()[[1, 10, 100]])
    print(len(pyopencl.get_supported_image_formats(context, pyopencl.mem_flags.READ_ONLY,
                                                   pyopencl.mem_object_type.IMAGE2D)), "formats")
