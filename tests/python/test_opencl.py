# SPDX-License-Identifier: Apache-2.0
"""climport.opencl on PoCL with the layer.  CMakeLists.txt has the environment."""
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import weakref

import climport.opencl
import numpy
import pyopencl
from climport import _dlpack, _library
from pyopencl import mem_flags

PAGE = os.sysconf("SC_PAGESIZE")
SOURCE = "kernel void increment(global int *a) { a[get_global_id(0)]++; }"

# An array of zeros, behind the kernel of an example.
INCREMENTED = "print((array == 1).all())"

# What the example of docs/external-memory.md takes as given.
EXTERNAL = """
import os, pyopencl
context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
program = pyopencl.Program(context, "kernel void increment(global uchar *a) { a[get_global_id(0)]++; }").build()
size = 4096
fd = __import__("ctypes").CDLL(None).fake_dmabuf_create(b"document", size)
os.pwrite(fd, b"\\7" * size, 0)
"""


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds  # time: a limit on a hang
    while not condition() and time.monotonic() < end:  # time: a limit on a hang
        gc.collect()
        time.sleep(0.001)  # time: between two looks
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

    def test_scalar(self):
        """A scalar of NumPy raises TypeError: its interface describes a copy that is gone."""
        for scalar in (numpy.void(bytes(8192)), numpy.float64(3), numpy.zeros(10).sum()):
            with self.assertRaisesRegex(TypeError, "scalar"):
                climport.opencl.import_host(self.context, scalar)

    def test_times(self):
        """An array of dates or of durations is imported."""
        for kind in ("M8[ns]", "m8[25s]", "S3", "U3", "c16"):
            array = numpy.zeros(1000, kind)
            buffer = climport.opencl.import_host(self.context, array)
            self.assertEqual(buffer.size, array.nbytes)

    def test_objects(self):
        """An array of Python's objects raises TypeError."""
        with self.assertRaisesRegex(TypeError, "objects"):
            climport.opencl.import_host(self.context, numpy.zeros(100, object))

    def test_wrong_interface(self):
        """An interface that describes a copy, or no memory, raises TypeError or ValueError."""
        good = {"shape": (64,), "typestr": "|u1", "data": (PAGE, False), "version": 3}
        wrong = [None, 3, {}, dict(good, data=bytes(64)), dict(good, data=(PAGE,)),
                 dict(good, data=("here", False)), dict(good, data=(-PAGE, False)),
                 dict(good, shape=(-8, -8)), dict(good, shape=(1 << 63, 1 << 63)),
                 dict(good, shape=64), dict(good, shape=((1 << 64) + 64,)), dict(good, shape=("a",)),
                 dict(good, typestr="u"), dict(good, typestr=3), dict(good, typestr="|u-1"),
                 dict(good, strides=3), dict(good, shape=None),
                 dict(good, data=((1 << 64) - 32, False))]
        for interface in wrong:
            with self.subTest(interface=interface):
                array = type("Array", (), {"__array_interface__": interface})()
                with self.assertRaises((TypeError, ValueError)):
                    climport.opencl.import_host(self.context, array)

    def test_wrong_flags(self):
        """Flags that no integer of 64 bits has raise ValueError."""
        with self.assertRaises(ValueError):
            climport.opencl.import_host(self.context, numpy.zeros(100), (1 << 64) + 1)

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

    def test_error_pickles(self):
        """Error goes to another process with its sentence and its code."""
        error = pickle.loads(pickle.dumps(climport.opencl.Error("a sentence", -59)))
        self.assertEqual((str(error), error.code), ("a sentence", -59))

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

    def test_no_weak_reference(self):
        """The array dies with a buffer of a PyOpenCL whose buffers have no weak references."""
        def refuse(*_arguments):
            raise TypeError("cannot create weak reference to 'Buffer' object")

        with unittest.mock.patch.object(climport.opencl, "_watch", refuse):
            buffer, array = self.import_mortal()
        self.increment(buffer, 1024)
        del buffer
        self.assertTrue(wait_until(lambda: array() is None))

    def test_interrupt(self):
        """An interrupt at any moment of an import releases the memory object once."""
        done = run_python("""if True:
            import climport.opencl, numpy, pyopencl, signal, sys
            context = pyopencl.create_some_context(interactive=False)
            array = numpy.zeros(1024, numpy.int32)
            climport.opencl.import_host(context, array)

            def interrupt(*_):
                raise KeyboardInterrupt

            signal.signal(signal.SIGALRM, interrupt)
            interrupts = 0
            while interrupts < 100:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 + interrupts % 100 * 1e-6)  # time: noise
                    for _ in range(1000):
                        climport.opencl.import_host(context, array)
                except KeyboardInterrupt:
                    interrupts += 1
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            print(interrupts)
            """)
        self.assertEqual((done.returncode, done.stdout, "SystemError" in done.stderr),
                         (0, "100\n", False), done.stderr[-2000:])

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

    def test_range(self):
        """Descriptors, sizes, offsets and flags that C would cut raise ValueError."""
        wrong = [(self.fd + (1 << 32), PAGE, 0, 1), (-1, PAGE, 0, 1),
                 (self.fd, (1 << 64) + PAGE, 0, 1), (self.fd, -1, 0, 1), (self.fd, 0, 0, 1),
                 (self.fd, PAGE, 1 << 64, 1), (self.fd, PAGE, -PAGE, 1),
                 (self.fd, PAGE, 0, (1 << 64) + 1), (self.fd, PAGE, 0, -1)]
        for arguments in wrong:
            with self.subTest(arguments=arguments):
                with self.assertRaises(ValueError):
                    climport.opencl.import_dmabuf(self.context, *arguments)

    def test_misaligned(self):
        """An offset that the device does not take raises Error, which names the offset."""
        with self.assertRaisesRegex(climport.opencl.Error, "offset 3 is no multiple") as caught:
            climport.opencl.import_dmabuf(self.context, self.fd, PAGE, 3)
        self.assertEqual(caught.exception.code,
                         pyopencl.status_code.MISALIGNED_SUB_BUFFER_OFFSET)

    def test_no_dmabuf(self):
        """A descriptor of another kind raises Error with a sentence."""
        with open("/dev/null", "rb") as other:
            with self.assertRaisesRegex(climport.opencl.Error, "dma-buf"):
                climport.opencl.import_dmabuf(self.context, other.fileno(), PAGE)


class Empty(OpenCL):
    def test_kernel(self):
        """A kernel writes to an array of empty(), which has the shape, type and order asked for."""
        array = climport.opencl.empty(self.context, (64, 32), numpy.int32, order="F")
        array[:] = 41
        self.increment(climport.opencl.import_host(self.context, array), array.size)
        self.assertEqual((array.shape, array.dtype, array.flags.f_contiguous, set(array.flat)),
                         ((64, 32), numpy.int32, True, {42}))

    def test_alignment(self):
        """Arrays of empty() begin at multiples of 512, which NVIDIA's OpenCL needs."""
        arrays = [climport.opencl.empty(self.context, size, numpy.uint8)
                  for size in (1, 1000, 5000, 3 << 20)]
        self.assertEqual([array.ctypes.data % 512 for array in arrays], [0] * 4)

    def test_zeros(self):
        """An array of zeros() is 0, also at an address that was used before."""
        for _ in range(2):
            array = climport.opencl.zeros(self.context, 1000, "U8")
            self.assertEqual(set(array), {""})
            array[:] = "climport"

    def test_shapes(self):
        """Shapes are numpy.empty()'s: none, a number, numbers of NumPy, and no elements."""
        shapes = [climport.opencl.empty(self.context, shape).shape
                  for shape in ((), 3, numpy.int64(3), (numpy.int32(2), 3), (0, 3))]
        self.assertEqual(shapes, [(), (3,), (3,), (2, 3), (0, 3)])

    def test_wrong(self):
        """A negative length raises ValueError, and a type of Python's objects TypeError."""
        with self.assertRaises(ValueError):
            climport.opencl.empty(self.context, (-1, 2))
        with self.assertRaises(TypeError):
            climport.opencl.empty(self.context, 3, object)

    def test_too_large(self):
        """An array that no memory is left for raises OSError with a sentence."""
        for count, dtype in ((1 << 60, numpy.uint8), ((1 << 61) + 512, numpy.int64)):
            with self.assertRaisesRegex(OSError, "bytes"):
                climport.opencl.empty(self.context, count, dtype)

    def test_memory_goes(self):
        """The memory goes with the array and its buffers."""
        gc.collect()
        before = _library.stats().bytes_allocated
        array = climport.opencl.zeros(self.context, 8 << 20, numpy.uint8)
        buffer = climport.opencl.import_host(self.context, array)
        del array
        gc.collect()
        self.assertEqual(_library.stats().bytes_allocated, before + (8 << 20))
        del buffer
        self.assertTrue(wait_until(lambda: (climport.opencl._sweep(),
                                            _library.stats().bytes_allocated)[1] == before))

    def test_exit(self):
        """A program with arrays, views and buffers of empty() ends in order."""
        done = run_python("""if True:
            import climport.opencl, numpy, pyopencl
            context = pyopencl.create_some_context(interactive=False)
            array = climport.opencl.empty(context, 1000)
            part = array[10:]
            buffer = climport.opencl.import_host(context, array)
            """)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Tensor:
    """An array that has DLPack alone, of a DLPack before version 1.0 as NumPy 1.24's."""

    def __init__(self, array, device=1):
        self.array = array
        self.device = device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, stream=None):
        assert stream is None
        return self.array.__dlpack__()


class DLPack(OpenCL):
    def test_kernel(self):
        """A kernel's writes are in an array that has DLPack alone."""
        array = numpy.full((100, 10), 41, numpy.int32)
        self.increment(climport.opencl.import_host(self.context, Tensor(array)), array.size)
        self.assertTrue((array == 42).all())

    def test_part(self):
        """A part of an array begins where DLPack says."""
        array = numpy.zeros(4096, numpy.int32)
        buffer = climport.opencl.import_host(self.context, Tensor(array[1024:2048]))
        self.assertEqual(buffer.size, 4096)
        self.increment(buffer, 1024)
        self.assertEqual((array[1024:2048].sum(), array.sum()), (1024, 1024))

    def test_not_contiguous(self):
        """An array with gaps raises ValueError."""
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            climport.opencl.import_host(self.context, Tensor(numpy.zeros(100)[::2]))

    def test_lives(self):
        """The buffer keeps the memory, and the memory goes with the buffer."""
        array = numpy.zeros(1024, numpy.int32)
        gone = weakref.ref(array)
        buffer = climport.opencl.import_host(self.context, Tensor(array))
        del array
        gc.collect()
        self.increment(buffer, 1024)
        self.assertEqual(set(gone()), {1})
        del buffer
        self.assertTrue(wait_until(lambda: (self.import_mortal(), gone())[1] is None))

    def test_device(self):
        """An array of a device raises TypeError, and its memory is not asked for."""
        with self.assertRaisesRegex(TypeError, "device of DLPack's type 2"):
            climport.opencl.import_host(self.context, Tensor(None, device=2))

    def versioned(self, major=1, flags=0, bits=32):
        """An array of a DLPack of version 1.0, as NumPy 2.1's and PyTorch 2.8's."""
        array = numpy.full(1000, 41, numpy.int32)
        lengths = (ctypes.c_int64 * 1)(1000)
        managed = _dlpack._Versioned(major, 0, None, None, flags, _dlpack._Tensor(
            array.ctypes.data, 1, 0, 1, 0, bits, 1, lengths, None, 0))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        capsule = new(ctypes.addressof(managed), b"dltensor_versioned", None)

        class Versioned:
            keep = managed, lengths

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, stream=None, max_version=None):
                assert max_version == (1, 0)
                return capsule
        return array, Versioned()

    def test_version_1(self):
        """An array of DLPack 1.0 is imported."""
        array, tensor = self.versioned()
        self.increment(climport.opencl.import_host(self.context, tensor), array.size)
        self.assertEqual(set(array), {42})

    def test_read_only(self):
        """An array that DLPack 1.0 calls read-only raises ValueError, unless kernels only read."""
        _, tensor = self.versioned(flags=1)
        with self.assertRaisesRegex(ValueError, "not writable"):
            climport.opencl.import_host(self.context, tensor)
        climport.opencl.import_host(self.context, tensor, mem_flags.READ_ONLY)

    def test_unknown(self):
        """An array of a later DLPack, or with elements of half bytes, is refused."""
        with self.assertRaisesRegex(TypeError, "DLPack 2.0"):
            climport.opencl.import_host(self.context, self.versioned(major=2)[1])
        with self.assertRaisesRegex(ValueError, "4 bits"):
            climport.opencl.import_host(self.context, self.versioned(bits=4)[1])


class Example(unittest.TestCase):
    def check_document(self, document, number, before="", after=""):
        """Runs an example of a document."""
        with open(os.path.join(os.environ["CLIMPORT_SOURCE"], document), encoding="utf-8") as text:
            example = text.read().split("```python\n")[number].partition("```")[0]
        # ctypes asks the dynamic linker for a name, and the package for CLIMPORT_LIBRARY.
        folder = os.path.dirname(os.environ["CLIMPORT_LIBRARY"])
        path = os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
        done = run_python(before + example + after, LD_LIBRARY_PATH=path)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "True\n"))

    def test_document(self):
        """The example of docs/python.md runs, and its kernel writes to the array."""
        self.check_document("docs/python.md", 1, after=INCREMENTED)

    def test_ctypes(self):
        """So does the example that needs no package of climport's."""
        self.check_document("docs/python.md", 2, after=INCREMENTED)

    def test_external_memory(self):
        """The example of docs/external-memory.md runs on a dma-buf, whose descriptor stays open."""
        self.check_document("docs/external-memory.md", 1, before=EXTERNAL,
                            after="print(set(os.pread(fd, size, 0)) == {8})")

    def test_example(self):
        """The example of the documents prints an array that a kernel changed in place."""
        example = os.path.join(os.environ["CLIMPORT_SOURCE"], "examples/numpy_import.py")
        done = subprocess.run([sys.executable, example], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split()[:3], ["[", "1", "2"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
