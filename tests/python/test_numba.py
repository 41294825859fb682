# SPDX-License-Identifier: Apache-2.0
"""climport.numba_emm with Debian's Numba on the fake libcuda."""
import ctypes
import errno
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest

import climport
import climport.opencl
import numpy
import pyopencl
from climport import _device, _library
from numba import cuda

FAKE = ctypes.CDLL("libcuda.so.1")
FAKE.fake_cuda_reset(1)
MIB = 1 << 20
OUT_OF_MEMORY = 2
LARGE = 20 * MIB  # of the fake's 1 GiB, too much for a second part before an event


def sum_of_array(handle, results):
    with handle as array:
        results.put(int(array.copy_to_host().sum()))


def run_with_handler(moment, handler, work):
    """Runs @work, in which @handler runs before a bytecode of _device.  False: there are fewer."""
    def trace(frame, event, _):
        nonlocal moment
        if frame.f_code.co_filename != _device.__file__:
            return None
        frame.f_trace_opcodes = True
        moment -= event == "opcode"
        if moment == 0:
            sys.settrace(None)
            handler()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return moment == 0


class Manager(unittest.TestCase):
    def setUp(self):
        cuda.current_context().reset()
        FAKE.fake_cuda_set_busy(0)
        self.context = cuda.current_context()

    def address(self, array):
        return array.__cuda_array_interface__["data"][0]

    def test_manager(self):
        """Numba uses the manager of the environment."""
        manager = self.context.memory_manager
        self.assertEqual(type(manager).__module__, "climport.numba_emm")
        self.assertEqual(manager.interface_version, 1)

    def test_copies(self):
        """Arrays keep their values beside others."""
        arrays = [cuda.to_device(numpy.full(1000, i)) for i in range(100)]
        for i, array in enumerate(arrays):
            self.assertTrue((array.copy_to_host() == i).all())

    def test_slice_lives(self):
        """A slice that is dropped leaves the array alone, and a slice keeps the array's memory."""
        array = cuda.to_device(numpy.arange(100))
        part = array[10:20]
        del part
        gc.collect()
        part = array[30:40]
        del array
        gc.collect()
        cuda.to_device(numpy.zeros(100))
        self.assertEqual(list(part.copy_to_host()), list(range(30, 40)))

    def test_busy(self):
        """Memory that a kernel may use is not reused, until the device is done."""
        array = cuda.device_array(LARGE, numpy.uint8)
        address = self.address(array)
        FAKE.fake_cuda_set_busy(1)
        del array
        other = cuda.device_array(LARGE, numpy.uint8)
        self.assertNotEqual(self.address(other), address)
        FAKE.fake_cuda_set_busy(0)
        self.assertEqual(self.address(cuda.device_array(LARGE, numpy.uint8)), address)

    def test_few_events(self):
        """An event is for several frees: an event for each would cost more than an allocation."""
        for size, most in ((1000, 1), (MIB, 30), (4 * MIB, 101)):
            events = FAKE.fake_cuda_calls(b"cuEventRecord")
            for _ in range(300):
                cuda.device_array(size, numpy.uint8)
            self.assertLessEqual(FAKE.fake_cuda_calls(b"cuEventRecord") - events, most)

    def test_free_bytes_bounded(self):
        """Freed memory of sizes that are used no more goes back to CUDA, but for a fifth."""
        for size in range(10, 60):
            cuda.device_array(size * MIB, numpy.uint8)
        total = self.context.get_memory_info().total
        free = ctypes.c_size_t()
        FAKE.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(ctypes.c_size_t()))
        self.assertGreater(free.value, total // 2)

    def test_free_twice(self):
        """A second free of memory raises RuntimeError, and frees nothing."""
        memory = self.context.memalloc(LARGE)
        memory.free()
        other = self.context.memalloc(LARGE)
        with self.assertRaises(RuntimeError):
            memory.free()
        del memory
        self.assertNotEqual(self.context.memalloc(LARGE).address, other.address)

    def test_finalizer(self):
        """A finalizer of the program that the garbage collector runs in an allocation may allocate."""
        done = []

        class Logger:
            def __init__(self):
                self.itself = self

            def __del__(self):
                done.append(cuda.device_array(10).size + cuda.current_context().get_memory_info().free)

        thresholds = gc.get_threshold()
        self.addCleanup(gc.set_threshold, *thresholds)
        for i in range(500):
            gc.set_threshold(1 + i % 97, 1, 1)
            Logger()
            cuda.device_array(1000 + i * 50)
            cuda.pinned_array(1000 + i * 50)
        gc.set_threshold(*thresholds)
        gc.collect()
        self.assertGreater(len(done), 100)

    def test_handler(self):
        """A signal handler at any moment of an allocation may allocate and free."""
        size, live, doubles, dying = 200000, {}, [], []

        def allocate(count):
            for memory in [self.context.memalloc(size) for _ in range(count)]:
                if live.setdefault(memory.address, memory) is not memory:
                    doubles.append(memory)

        def handler():
            while dying:
                del live[dying.pop()]
            allocate(150)

        for moment in range(1, 2000):
            live.clear()
            allocate(128)
            dying[:] = [*live][:64]
            for address in [*live][64:]:
                del live[address]
            if not run_with_handler(moment, handler, lambda: allocate(64)):
                break
            allocate(64)
        self.assertEqual(doubles, [])
        self.assertIn(moment, range(100, 1999))

    def test_handler_close(self):
        """A signal handler at any moment of an allocation may close the pool."""
        for moment in range(1, 2000):
            pool = _device.DevicePool(0, _library.POOL_IPC)
            for size in (LARGE, MIB):
                pool.refill(size)[1](pool.refill(size)[0]())

            def allocate():
                try:
                    pool.refill(LARGE)
                except OSError as error:
                    self.assertEqual(error.errno, errno.EINVAL)

            has_come = run_with_handler(moment, pool.close, allocate)
            pool.close()
            if not has_come:
                break
        self.assertIn(moment, range(100, 1999))

    def test_interrupts(self):
        """Interrupts at any moment leave the manager in order, and lose few allocations."""
        def interrupt(*_):
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        interrupts = 0
        while interrupts < 100:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + interrupts % 100 * 1e-6)  # time: noise
                for i in range(10000):
                    cuda.device_array(1 << i % 22, numpy.uint8)
            except KeyboardInterrupt:
                interrupts += 1
        gc.collect()
        used = self.context.get_memory_info()
        self.assertLess(used.total - used.free, 64 * MIB)
        for _ in range(100):
            arrays = [cuda.to_device(numpy.full(1000, i)) for i in range(100)]
            self.assertTrue(all((array.copy_to_host() == i).all()
                                for i, array in enumerate(arrays)))

    def test_wrong_sizes(self):
        """A negative or too large size is out of memory, and numbers of NumPy are sizes."""
        for alloc in (self.context.memalloc, self.context.memhostalloc):
            kept = [alloc(size) for size in (0, 1, MIB, 4 * MIB)]
            for size in (-1, -2 * MIB, -88 * MIB, -128 * MIB, 1 << 62, 1 << 64, (1 << 64) + 100,
                         numpy.uint32((1 << 32) - 88 * MIB)):
                with self.assertRaises(cuda.cudadrv.driver.CudaAPIError) as caught:
                    alloc(size)
                self.assertEqual(caught.exception.code, OUT_OF_MEMORY)
            self.assertEqual([alloc(size).size for size in (0, numpy.int64(100), numpy.uint8(5),
                                                            numpy.uint64(4 * MIB))],
                             [0, 100, 5, 4 * MIB])
            del kept

    def test_stream_after_reset(self):
        """After a reset a stream of the program's own is still known."""
        self.context.create_external_stream(0x12345)
        self.context.reset()
        array = cuda.device_array(LARGE, numpy.uint8)
        del array
        calls = FAKE.fake_cuda_calls(b"cuCtxSynchronize")
        cuda.device_array(LARGE, numpy.uint8)
        self.assertEqual(FAKE.fake_cuda_calls(b"cuCtxSynchronize"), calls + 1)

    def test_event_fails(self):
        """An error while an event is recorded loses no memory."""
        cuda.device_array(LARGE, numpy.uint8)
        before = self.context.get_memory_info()
        FAKE.fake_cuda_fail(b"cuEventRecord", 1, OUT_OF_MEMORY)
        for _ in range(10):
            cuda.device_array(LARGE, numpy.uint8)
        gc.collect()
        self.assertEqual(self.context.get_memory_info(), before)

    def test_reset_in_defer_cleanup(self):
        """A reset in defer_cleanup() is in order."""
        with cuda.defer_cleanup():
            cuda.device_array(1000)
            pinned = cuda.pinned_array(1000)
            self.context.reset()
        pinned[:] = 1
        cuda.device_array(1000)

    def test_sizes(self):
        """A part is as large as the array, and the same magazine has all sizes of a part."""
        for size in (0, 1, 511, 512, 513, 4000, 4096, MIB, MIB + 1, 2 * MIB, 2 * MIB + 1, 9 * MIB):
            self.assertGreaterEqual(_device.part_size(size), max(size, 512))
            self.assertLess(_device.part_size(size), max(2 * size, 513) + 2 * MIB)
        keys = {}
        for size in [*range(0, 5000, 7), *range(MIB - 10, MIB + 10), *range(2 * MIB, 9 * MIB, 99999)]:
            part = keys.setdefault(_device.magazine_key(size), _device.part_size(size))
            self.assertEqual(part, _device.part_size(size))

    def test_threads(self):
        """Threads allocate, fill and free at once."""
        failures = []

        def work(value):
            for i in range(100):
                arrays = [cuda.to_device(numpy.full(size, value))
                          for size in (10, 1000, 1 << (i % 17))]
                if not all((array.copy_to_host() == value).all() for array in arrays):
                    failures.append(value)

        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_free_calls_nothing(self):
        """A free calls no function of CUDA."""
        arrays = [cuda.device_array(1000) for _ in range(10)]
        calls = FAKE.fake_cuda_calls(None)
        del arrays
        gc.collect()
        self.assertEqual(FAKE.fake_cuda_calls(None), calls)

    def test_external_stream(self):
        """With a stream of the program's own, reuse waits for the whole context."""
        self.context.create_external_stream(0x12345)
        array = cuda.device_array(LARGE, numpy.uint8)
        address = self.address(array)
        del array
        calls = FAKE.fake_cuda_calls(b"cuCtxSynchronize")
        self.assertEqual(self.address(cuda.device_array(LARGE, numpy.uint8)), address)
        self.assertEqual(FAKE.fake_cuda_calls(b"cuCtxSynchronize"), calls + 1)

    def test_out_of_memory(self):
        """Without memory Numba's exception is raised, and unused memory is tried first."""
        for _ in range(4):
            cuda.device_array(700 * MIB, numpy.uint8)
            cuda.device_array(900 * MIB, numpy.uint8)
        with self.assertRaises(cuda.cudadrv.driver.CudaAPIError) as caught:
            cuda.device_array(2000 * MIB, numpy.uint8)
        self.assertEqual(caught.exception.code, OUT_OF_MEMORY)

    def test_memory_info(self):
        """Free memory includes the free parts of slabs."""
        before = self.context.get_memory_info()
        array = cuda.device_array(MIB, numpy.uint8)
        self.assertEqual(self.context.get_memory_info().free, before.free - MIB)
        del array
        gc.collect()
        self.assertEqual(self.context.get_memory_info(), before)

    def test_defer_cleanup(self):
        """No memory goes back to CUDA in defer_cleanup(), which nests."""
        arrays = [cuda.device_array(100 * MIB, numpy.uint8) for _ in range(5)]
        calls = FAKE.fake_cuda_calls(b"cuMemFree_v2")
        with cuda.defer_cleanup():
            with cuda.defer_cleanup():
                del arrays
            cuda.device_array(6 * MIB, numpy.uint8)
            self.assertEqual(FAKE.fake_cuda_calls(b"cuMemFree_v2"), calls)
        cuda.device_array(8 * MIB, numpy.uint8)
        self.assertGreater(FAKE.fake_cuda_calls(b"cuMemFree_v2"), calls)

    def test_reset(self):
        """A reset frees all memory of the device, and finalizers that run later do nothing."""
        before = self.context.get_memory_info()
        array, mapped = cuda.to_device(numpy.zeros(1000)), cuda.mapped_array(1000)
        pinned = cuda.pinned_array(1000)
        cuda.current_context().reset()
        self.assertEqual(self.context.get_memory_info(), before)
        pinned[:] = 1
        new = cuda.to_device(numpy.arange(1000))
        del array, mapped, pinned
        gc.collect()
        cuda.to_device(numpy.zeros(1000))
        self.assertEqual(list(new.copy_to_host()), list(range(1000)))

    def test_export(self):
        """A slice of an array is exported with the slice's offset."""
        array = cuda.to_device(numpy.arange(3000, dtype=numpy.int32))
        made = climport.export(array[100:200])
        self.addCleanup(os.close, made.fd)
        values = numpy.frombuffer(os.pread(made.fd, made.size, made.offset), numpy.int32)
        self.assertEqual(list(values), list(range(100, 200)))

    def test_ipc_pickle(self):
        """A handle of a slice pickles, and keeps its place in the allocation."""
        cuda.to_device(numpy.zeros(10))
        handle = cuda.to_device(numpy.arange(1000, dtype=numpy.int32))[100:].get_ipc_handle()
        copy = pickle.loads(pickle.dumps(handle))
        self.assertEqual((copy._ipc_handle.offset, copy._ipc_handle.size, copy._ipc_handle.base),
                         (handle._ipc_handle.offset, handle._ipc_handle.size, None))

    def test_ipc(self):
        """Another process reads two arrays of a slab."""
        spawn = multiprocessing.get_context("spawn")
        keep = cuda.to_device(numpy.ones(1000, numpy.int32))
        array = cuda.to_device(numpy.arange(1000, dtype=numpy.int32))
        results = spawn.Queue()
        for wanted, exported in ((1000, keep), (499500, array)):
            process = spawn.Process(target=sum_of_array,
                                    args=(exported.get_ipc_handle(), results))
            process.start()
            self.assertEqual(results.get(timeout=120), wanted)
            process.join()

    def test_host(self):
        """Pinned and mapped arrays are imported by OpenCL, and kernels write to the arrays."""
        context = pyopencl.create_some_context(interactive=False)
        queue = pyopencl.CommandQueue(context)
        program = pyopencl.Program(
            context, "kernel void increment(global int *a) { a[get_global_id(0)]++; }").build()
        for make in (cuda.pinned_array, cuda.mapped_array):
            array = make(1000, numpy.int32)
            array[:] = 41
            program.increment(queue, array.shape, None,
                              climport.opencl.import_host(context, array))
            queue.finish()
            self.assertEqual(set(array), {42})

    def test_host_close(self):
        """close() waits for an allocation of another thread."""
        pool, order = _device.HostPool(0), []
        closer = threading.Thread(target=lambda: (pool.close(), order.append("closed")))

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def hold(_):
            closer.start()
            closer.join(0.2)  # long enough for a close() that does not wait
            order.append("allocated")

        FAKE.fake_cuda_at(b"cuMemHostAlloc", 1, hold, None)
        address = pool.alloc(MIB)
        closer.join()
        self.assertEqual(order, ["allocated", "closed"])
        pool.free(address)

    def test_host_lives(self):
        """Memory of a pinned array lives as long as a buffer of OpenCL's."""
        context = pyopencl.create_some_context(interactive=False)
        array = cuda.pinned_array(4 * MIB, numpy.uint8)
        address = array.ctypes.data
        buffer = climport.opencl.import_host(context, array)
        del array
        gc.collect()
        self.assertNotEqual(cuda.pinned_array(4 * MIB, numpy.uint8).ctypes.data, address)
        del buffer

    def test_write_combined(self):
        """Write-combined memory is CUDA's own."""
        calls = FAKE.fake_cuda_calls(b"cuMemHostAlloc")
        memory = [self.context.memhostalloc(100, wc=True) for _ in range(2)]
        self.assertEqual(FAKE.fake_cuda_calls(b"cuMemHostAlloc"), calls + 2)
        del memory

    def test_pin(self):
        """cuda.pinned() of an array pins the array, and unpins it."""
        array = numpy.zeros(1000)
        with cuda.pinned(array):
            self.assertEqual(FAKE.fake_cuda_calls(b"cuMemHostUnregister"),
                             FAKE.fake_cuda_calls(b"cuMemHostRegister_v2") - 1)

    def test_vmm(self):
        """With CLIMPORT_NUMBA_VMM=1 arrays are of VMM memory, and IPC handles raise OSError."""
        program = """if True:
            import ctypes, numpy
            fake = ctypes.CDLL("libcuda.so.1")
            fake.fake_cuda_reset(1)
            from numba import cuda
            arrays = [cuda.to_device(numpy.full(1000, i)) for i in range(10)]
            assert all((a.copy_to_host() == i).all() for i, a in enumerate(arrays))
            assert fake.fake_cuda_calls(b"cuMemCreate") == 1
            assert fake.fake_cuda_calls(b"cuMemAlloc_v2") == 0
            try:
                arrays[0].get_ipc_handle()
            except OSError as error:
                print(error.strerror)
            """
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env=dict(os.environ, CLIMPORT_NUMBA_VMM="1"), timeout=120,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "no IPC handles for VMM memory")


if __name__ == "__main__":
    unittest.main(verbosity=2)
