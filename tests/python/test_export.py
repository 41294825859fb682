# SPDX-License-Identifier: Apache-2.0
"""climport.export() with the fake libcuda and without the kernel module."""
import ctypes
import os
import subprocess
import sys
import unittest

import climport
import numpy
from climport import _dlpack

FAKE = ctypes.CDLL("libcuda.so.1")
FAKE.fake_cuda_alloc.restype = ctypes.c_uint64
FAKE.fake_cuda_memory.argtypes = [ctypes.c_uint64]
FAKE.fake_cuda_memory.restype = ctypes.c_void_p
FAKE.fake_cuda_free.argtypes = [ctypes.c_uint64]
FAKE.fake_cuda_reset(1)
CUDA = {"version": 3, "typestr": "<i4", "strides": None}


class DeviceArray:
    """An array as CuPy's, Numba's or PyTorch's, of the fake's memory."""

    def __init__(self, count):
        self.address = FAKE.fake_cuda_alloc(0, ctypes.c_size_t(4 * count))
        self.memory = (ctypes.c_int32 * count).from_address(FAKE.fake_cuda_memory(self.address))
        self.__cuda_array_interface__ = dict(CUDA, shape=(count,), data=(self.address, False))

    def part(self, begin, end):
        part = DeviceArray.__new__(DeviceArray)
        part.__cuda_array_interface__ = dict(CUDA, shape=(end - begin,),
                                             data=(self.address + 4 * begin, False))
        return part


class ExportDevice(unittest.TestCase):
    def setUp(self):
        self.array = DeviceArray(10000)
        self.array.memory[:] = range(10000)
        self.addCleanup(FAKE.fake_cuda_free, self.array.address)

    def read(self, made):
        self.addCleanup(os.close, made.fd)
        return numpy.frombuffer(os.pread(made.fd, made.size, made.offset), numpy.int32)

    def test_array(self):
        """The dma-buf of an array has the array's values."""
        values = self.read(climport.export(self.array))
        self.assertEqual(list(values), list(range(10000)))

    def test_part(self):
        """The dma-buf of a part of an array has the part at the offset."""
        values = self.read(climport.export(self.array.part(5000, 5100)))
        self.assertEqual(list(values), list(range(5000, 5100)))

    def test_closes(self):
        """The descriptor is the caller's, and no program that is executed inherits it."""
        made = climport.export(self.array)
        self.assertFalse(os.get_inheritable(made.fd))
        os.close(made.fd)

    def test_freed(self):
        """An array at an address that is no memory raises OSError."""
        gone = DeviceArray(1000)
        FAKE.fake_cuda_free(gone.address)
        with self.assertRaises(OSError):
            climport.export(gone)

    def test_gaps(self):
        """An array with gaps raises ValueError."""
        gaps = self.array.part(0, 10)
        gaps.__cuda_array_interface__["strides"] = (8,)
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            climport.export(gaps)


    def test_scalar(self):
        """A scalar of NumPy raises TypeError: its interface describes a copy that is gone."""
        with self.assertRaisesRegex(TypeError, "scalar"):
            climport.export(numpy.float64(3))

    def test_dlpack(self):
        """An array that has DLPack alone, on a GPU, is exported, and DLPack orders no stream."""
        lengths = (ctypes.c_int64 * 1)(100)
        managed = _dlpack._Tensor(self.array.address, 2, 0, 1, 0, 32, 1, lengths, None, 4 * 5000)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        streams = []

        class Tensor:
            def __dlpack_device__(self):
                return 2, 0

            def __dlpack__(self, stream=None):
                streams.append(stream)
                return new(ctypes.addressof(managed), b"dltensor", None)
        self.assertEqual(list(self.read(climport.export(Tensor()))), list(range(5000, 5100)))
        self.assertEqual(streams, [-1])


@unittest.skipIf(os.path.exists("/dev/gdmabuf"), "the kernel module is loaded")
class ExportHost(unittest.TestCase):
    def test_no_module(self):
        """A NumPy array without the kernel module raises FileNotFoundError's kin with a sentence."""
        with self.assertRaisesRegex(OSError, "/dev/gdmabuf"):
            climport.export(numpy.zeros(1000))


class Package(unittest.TestCase):
    def test_version(self):
        """The package's version is the version of libclimport."""
        number = ".".join(map(str, climport.version()))
        self.assertIn(climport.__version__, (number, number + ".dev0"))  # before the release

    def test_no_library(self):
        """A missing libclimport raises ImportError, which names CLIMPORT_LIBRARY."""
        environment = dict(os.environ, CLIMPORT_LIBRARY="/nonexistent/libclimport.so.0")
        done = subprocess.run([sys.executable, "-c", "import climport"], env=environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertRegex(done.stderr, "ImportError: /nonexistent.*CLIMPORT_LIBRARY")


if __name__ == "__main__":
    unittest.main(verbosity=2)
