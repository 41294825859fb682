# SPDX-License-Identifier: Apache-2.0
"""Allocators of PyTorch, CuPy and cuda.core on the fake libcuda.

The packages themselves need a GPU.  Stand-ins call libclimport as the packages do: by the name of a
file and of functions, by addresses, and by methods.
"""
import ctypes
import gc
import sys
import types
import unittest
from unittest import mock

FAKE = ctypes.CDLL("libcuda.so.1")
FAKE.fake_cuda_reset(1)
MIB = 1 << 20
STREAM = 2  # cudaStreamPerThread


class PluggableAllocator:
    """torch.cuda.memory.CUDAPluggableAllocator"""

    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        self.alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int,
                                      ctypes.c_void_p)((alloc, library))
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int,
                                     ctypes.c_void_p)((free, library))

    def allocator(self):
        return self

    def set_record_stream_fn(self, address):
        self.record_stream = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)


class CFunctionAllocator:
    """cupy.cuda.CFunctionAllocator"""

    def __init__(self, param, alloc, free, owner):
        self.param, self.owner = param, owner
        self.alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                      ctypes.c_int)(alloc)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(free)

    def malloc(self, size):
        return types.SimpleNamespace(ptr=self.alloc(self.param, size, 0))


class CUDARuntimeError(RuntimeError):
    """cupy.cuda.runtime.CUDARuntimeError"""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


class Buffer:
    """cuda.core.Buffer"""

    def __init__(self, handle, size, mr, stream):
        self.handle, self.size, self.mr, self.stream = handle, size, mr, stream

    @classmethod
    def from_handle(cls, ptr, size, mr=None, *, stream=None):
        return cls(ptr, size, mr, stream)

    def close(self):
        self.mr.deallocate(self.handle, self.size, stream=self.stream)


def add_module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


add_module("torch", cuda=types.SimpleNamespace(
    memory=types.SimpleNamespace(CUDAPluggableAllocator=PluggableAllocator)))
add_module("cupy", cuda=types.SimpleNamespace(
    CFunctionAllocator=CFunctionAllocator,
    runtime=types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError)))
add_module("cuda")
add_module("cuda.core", Buffer=Buffer, MemoryResource=object)

import climport.allocators  # noqa: E402  pylint: disable=wrong-import-position
import climport.cuda_core  # noqa: E402  pylint: disable=wrong-import-position
from climport import _library  # noqa: E402  pylint: disable=wrong-import-position


class Allocators(unittest.TestCase):
    def setUp(self):
        FAKE.fake_cuda_set_busy(0)

    def test_torch(self):
        """PyTorch's allocator reuses memory of a stream, and waits for memory of several streams."""
        allocator = climport.allocators.torch_allocator()
        address = allocator.alloc(4 * MIB, 0, None)
        allocator.free(address, 4 * MIB, 0, None)
        self.assertEqual(allocator.alloc(4 * MIB, 0, None), address)
        calls = FAKE.fake_cuda_calls(b"cuCtxSynchronize")
        allocator.record_stream(address, STREAM)
        allocator.free(address, 4 * MIB, 0, None)
        self.assertEqual(allocator.alloc(4 * MIB, 0, None), address)
        self.assertEqual(FAKE.fake_cuda_calls(b"cuCtxSynchronize"), calls + 1)

    def test_cupy(self):
        """CuPy's allocator gives memory, and raises CuPy's exception when no memory is left."""
        malloc = climport.allocators.cupy_malloc()
        self.assertTrue(malloc(1000).ptr)
        self.assertFalse(malloc(0).ptr)
        with self.assertRaises(CUDARuntimeError) as caught:
            malloc(1 << 62)
        self.assertEqual(caught.exception.status, 2)

    def test_resource(self):
        """A buffer of cuda.core's is of the pool, and the same stream gets its memory again."""
        resource = climport.cuda_core.MemoryResource(0)
        stream = types.SimpleNamespace(handle=0)
        FAKE.fake_cuda_set_busy(1)
        buffer = resource.allocate(4 * MIB, stream=stream)
        address = buffer.handle
        buffer.close()
        self.assertEqual(resource.allocate(4 * MIB, stream=stream).handle, address)
        self.assertNotEqual(resource.allocate(4 * MIB).handle, address)
        self.assertEqual((resource.device_id, resource.is_device_accessible,
                          resource.is_host_accessible), (0, True, False))

    def test_resource_ends(self):
        """The memory goes with the resource."""
        before = _library.stats().bytes_allocated
        resource = climport.cuda_core.MemoryResource(0)
        resource.allocate(4 * MIB)
        self.assertEqual(_library.stats().bytes_allocated, before + 4 * MIB)
        del resource
        gc.collect()
        self.assertEqual(_library.stats().bytes_allocated, before)

    def test_resource_cycle(self):
        """A buffer that the garbage collector finalizes after its resource frees nothing."""
        class Kept:
            def __init__(self, resource):
                self.resource, self.buffer = resource, resource.allocate(4 * MIB)
                resource.kept = self

            def __del__(self):
                self.buffer.close()

        with mock.patch.multiple(_library, pool_destroy=mock.DEFAULT,
                                 pool_free_one=mock.DEFAULT) as calls:
            resource = climport.cuda_core.MemoryResource(0)
            Kept(resource)
            del resource
            gc.collect()
        calls["pool_destroy"].assert_called_once()
        calls["pool_free_one"].assert_not_called()
        _library.pool_destroy(calls["pool_destroy"].call_args.args[0])

    def test_resource_ipc(self):
        """A resource for IPC has memory of cuMemAlloc()."""
        calls = FAKE.fake_cuda_calls(b"cuMemAlloc_v2")
        climport.cuda_core.MemoryResource(0, ipc=True).allocate(1000)
        self.assertEqual(FAKE.fake_cuda_calls(b"cuMemAlloc_v2"), calls + 1)

    def test_resource_full(self):
        """Without memory OSError is raised."""
        with self.assertRaisesRegex(OSError, "bytes"):
            climport.cuda_core.MemoryResource(0).allocate(1 << 62)


if __name__ == "__main__":
    unittest.main(verbosity=2)
