# SPDX-License-Identifier: Apache-2.0
"""climport.opencl on PoCL with the layer.  CMakeLists.txt has the environment."""
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

import climport.opencl
import numpy
import pyopencl
from pyopencl import mem_flags

PAGE = os.sysconf("SC_PAGESIZE")
SOURCE = "kernel void increment(global int *a) { a[get_global_id(0)]++; }"


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.001)
    return condition()


def run_python(program, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True,
                          text=True, timeout=120, check=False)


class OpenCL(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = pyopencl.create_some_context(interactive=False)
        cls.queue = pyopencl.CommandQueue(cls.context)
        cls.program = pyopencl.Program(cls.context, SOURCE).build()

    def increment(self, buffer, count):
        self.program.increment(self.queue, (count,), None, buffer)
        self.queue.finish()

    def import_mortal(self):
        """A buffer, and a weak reference to its array."""
        array = numpy.zeros(1024, numpy.int32)
        return climport.opencl.import_host(self.context, array), weakref.ref(array)


class ImportHost(OpenCL):
    def test_kernel(self):
        """A kernel's writes are in the array, and the array's values reach the kernel."""
        array = numpy.arange(100000, dtype=numpy.int32)
        self.increment(climport.opencl.import_host(self.context, array), array.size)
        self.assertTrue((array == numpy.arange(1, 100001)).all())

    def test_later_writes(self):
        """A write to the array after the import reaches the next kernel."""
        array = numpy.zeros(1024, numpy.int32)
        buffer = climport.opencl.import_host(self.context, array)
        self.increment(buffer, array.size)
        array[:] = 41
        self.increment(buffer, array.size)
        self.assertEqual(set(array), {42})

    def test_size(self):
        """The buffer has the size of the array."""
        buffer = climport.opencl.import_host(self.context, numpy.zeros(1000, numpy.int16))
        self.assertEqual(buffer.size, 2000)

    def test_fortran(self):
        """An array in Fortran's order is imported."""
        array = numpy.zeros((64, 32), numpy.int32, order="F")
        self.increment(climport.opencl.import_host(self.context, array), array.size)
        self.assertTrue((array == 1).all())

    def test_part(self):
        """A contiguous part of an array is imported, and the rest stays as it was."""
        array = numpy.zeros(4096, numpy.int32)
        self.increment(climport.opencl.import_host(self.context, array[1024:2048]), 1024)
        self.assertEqual(array[1024:2048].sum(), 1024)
        self.assertEqual(array.sum(), 1024)

    def test_not_contiguous(self):
        """An array with gaps raises ValueError."""
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            climport.opencl.import_host(self.context, numpy.zeros(100, numpy.int32)[::2])

    def test_empty(self):
        """An empty array raises ValueError."""
        with self.assertRaisesRegex(ValueError, "empty"):
            climport.opencl.import_host(self.context, numpy.zeros(0))

    def test_list(self):
        """A list raises TypeError, because an import of a list would be a copy."""
        with self.assertRaises(TypeError):
            climport.opencl.import_host(self.context, [1, 2, 3])

    def test_read_only(self):
        """An array that is not writable raises ValueError, unless kernels only read."""
        array = numpy.zeros(1024, numpy.int32)
        array.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "not writable"):
            climport.opencl.import_host(self.context, array)
        climport.opencl.import_host(self.context, array, mem_flags.READ_ONLY)

    def test_refused(self):
        """A refused import raises Error with the sentence of the cause and OpenCL's code."""
        array = numpy.zeros(1024, numpy.int32)
        with self.assertRaisesRegex(climport.opencl.Error, "flags") as caught:
            climport.opencl.import_host(self.context, array, mem_flags.COPY_HOST_PTR)
        self.assertEqual(caught.exception.code, pyopencl.status_code.INVALID_VALUE)

    def test_unmapped(self):
        """An import of memory that is not mapped raises Error."""
        class Nowhere:
            __array_interface__ = {"shape": (1024,), "typestr": "<i4", "data": (PAGE, False),
                                   "version": 3}
        with self.assertRaises(climport.opencl.Error):
            climport.opencl.import_host(self.context, Nowhere())

    def test_no_layer(self):
        """An import without the layer raises Error, which names `climport run`."""
        done = run_python("import climport.opencl, numpy, pyopencl\n"
                          "context = pyopencl.create_some_context(interactive=False)\n"
                          "climport.opencl.import_host(context, numpy.zeros(100))",
                          OPENCL_LAYERS="")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "climport.opencl.Error: .*climport run")


class Lifetime(OpenCL):
    def test_array_lives(self):
        """The buffer keeps an array that the program has no reference to."""
        buffer, array = self.import_mortal()
        gc.collect()
        self.assertIsNotNone(array())
        self.increment(buffer, 1024)
        self.assertEqual(set(array()), {1})

    def test_array_dies(self):
        """The array dies with the buffer."""
        buffer, array = self.import_mortal()
        del buffer
        self.assertTrue(wait_until(lambda: array() is None))

    def test_many_die(self):
        """A thousand arrays die with their buffers."""
        pairs = [self.import_mortal() for _ in range(1000)]
        arrays = [array for _, array in pairs]
        pairs.clear()
        self.assertTrue(wait_until(lambda: not any(array() is not None for array in arrays)))

    def test_release(self):
        """A buffer that is released keeps its array no longer than until the next import."""
        buffer, array = self.import_mortal()
        buffer.release()
        self.import_mortal()
        self.assertTrue(wait_until(lambda: array() is None))

    def test_command_keeps_array(self):
        """A command that waits keeps the array, though the Python object of the buffer is gone."""
        buffer, array = self.import_mortal()
        gate = pyopencl.UserEvent(self.context)
        kernel = pyopencl.Kernel(self.program, "increment")
        kernel.set_arg(0, buffer)
        event = pyopencl.enqueue_nd_range_kernel(self.queue, kernel, (1024,), None,
                                                 wait_for=[gate])
        del buffer, kernel
        gc.collect()
        self.import_mortal()
        kept = array()
        self.assertIsNotNone(kept)
        gate.set_status(pyopencl.command_execution_status.COMPLETE)
        event.wait()
        self.assertEqual(set(kept), {1})
        del kept, event, gate
        self.queue.finish()
        self.assertTrue(wait_until(lambda: (self.import_mortal(), array())[1] is None))

    def test_threads(self):
        """Threads import, run kernels and release at once."""
        failures = []

        def work():
            queue = pyopencl.CommandQueue(self.context)
            kernel = pyopencl.Kernel(self.program, "increment")
            for _ in range(50):
                array = numpy.zeros(1024, numpy.int32)
                buffer = climport.opencl.import_host(self.context, array)
                kernel(queue, (1024,), None, buffer)
                queue.finish()
                if array.sum() != 1024:
                    failures.append(array)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_exit(self):
        """A program ends in order while a command with an imported array is running."""
        done = run_python(f"""if True:
            import climport.opencl, numpy, pyopencl
            context = pyopencl.create_some_context(interactive=False)
            queue = pyopencl.CommandQueue(context)
            program = pyopencl.Program(context, {SOURCE!r}).build()
            array = numpy.zeros(1 << 22, numpy.int32)
            program.increment(queue, array.shape, None,
                              climport.opencl.import_host(context, array))
            queue.flush()
            """)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class ImportDmabuf(OpenCL):
    def setUp(self):
        fakes = ctypes.CDLL(None)  # libfakedmabuf.so is preloaded
        self.fd = fakes.fake_dmabuf_create(b"python", 4 * PAGE)
        self.addCleanup(os.close, self.fd)

    def test_kernel(self):
        """A kernel's writes are in the dma-buf."""
        self.increment(climport.opencl.import_dmabuf(self.context, self.fd, PAGE), PAGE // 4)
        self.assertEqual(os.pread(self.fd, 8, 0), b"\1\0\0\0\1\0\0\0")

    def test_offset(self):
        """A buffer may begin inside of the dma-buf."""
        buffer = climport.opencl.import_dmabuf(self.context, self.fd, PAGE, 2 * PAGE)
        self.increment(buffer, PAGE // 4)
        self.assertEqual(os.pread(self.fd, 4, 2 * PAGE), b"\1\0\0\0")
        self.assertEqual(os.pread(self.fd, 2 * PAGE, 0), bytes(2 * PAGE))

    def test_closed(self):
        """The descriptor may be closed after the import."""
        copy = os.dup(self.fd)
        buffer = climport.opencl.import_dmabuf(self.context, copy, PAGE)
        os.close(copy)
        self.increment(buffer, 16)
        self.assertEqual(os.pread(self.fd, 4, 0), b"\1\0\0\0")

    def test_no_dmabuf(self):
        """A descriptor of another kind raises Error with a sentence."""
        with open("/dev/null", "rb") as other:
            with self.assertRaisesRegex(climport.opencl.Error, "dma-buf"):
                climport.opencl.import_dmabuf(self.context, other.fileno(), PAGE)


class Example(unittest.TestCase):
    def test_example(self):
        """The example of the documents prints an array that a kernel changed in place."""
        example = os.path.join(os.environ["CLIMPORT_SOURCE"], "examples/numpy_import.py")
        done = subprocess.run([sys.executable, example], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split()[:3], ["[", "1", "2"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
