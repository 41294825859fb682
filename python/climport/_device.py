# SPDX-License-Identifier: Apache-2.0
"""Memory of pools of libclimport's (climport_pool_create).

Device memory takes no foreign call for each allocation.  A *magazine* has parts of a size: parts that
are *ready* for the next allocations, and parts that were *freed*.  When no part is ready, the freed
parts go back to the pool together, which takes an event of the device for all of them, and the pool
gives as many parts as it has.  Until so many parts were freed that the event is worth its time, new
parts come instead.

Finalizers of Python free at any time: in any thread, in the middle of an allocation of the same
thread, after close(), and at the end of the interpreter.  A free appends to a deque, and nothing else.

Finalizers and signal handlers also allocate, and close the pool, in the middle of an allocation, so the
lock is an RLock, and each function below may run again between any two bytecodes of its own.  Two rules
follow.  A part is in one list of one magazine, or of one call.  A bytecode calls libclimport, keeps the
result, and sees to it that the pool is open (_call()).  An interrupt (KeyboardInterrupt) loses the parts
of the one call in which the interrupt comes at most, until close().
"""
import collections
import ctypes
import errno
import itertools
import threading
from typing import Any, Callable, Dict, List, Tuple

from . import _library

SLAB = 2 << 20
SMALL = SLAB // 2
SMALLEST = 512
# The most parts in a magazine, and their share of the bytes that the pool may keep without use.
MOST_PARTS = 64
SHARE = 8


def part_size(size: int) -> int:
    """The size of the part for @size bytes."""
    if size > SMALL:
        return -(-size // SLAB) * SLAB
    return max(SMALLEST, 1 << (size - 1).bit_length())


class Magazine:
    """Parts of @part bytes; @batch: how many freed parts go back together."""
    __slots__ = ("part", "batch", "ready", "freed", "ends")

    def __init__(self, part: int, limit: int):
        self.part = part
        self.batch = max(1, min(MOST_PARTS, limit // SHARE // part))
        self.ready: List[int] = []
        self.freed: "collections.deque[int]" = collections.deque()
        self.ends: Ends = (self.ready.pop, self.freed.append)

# What takes a ready part, or raises IndexError; and what frees a part.
Ends = Tuple[Callable[[], int], Callable[[int], None]]


def _take_all(parts: List[int], take: Callable[[], int], most: int) -> None:
    """Appends what @take gives.  A part is in no other list then."""
    try:
        parts.extend(itertools.islice(iter(take, None), most))
    except IndexError:  # other threads, or a finalizer, took the rest
        pass


def _call(pools: List[int], results: List[Any], function: Any, *arguments: Any) -> None:
    """Calls a function of the pool in @pools, if there is one, and appends the result, in one
    bytecode."""
    results.extend(map(function, pools, *map(itertools.repeat, arguments)))


def _check(results: List[int]) -> None:
    """The result of _call()."""
    if not results:
        raise OSError(errno.EINVAL, "the context was reset")
    _library.check(results[0])


class DevicePool:
    """A pool of a device.  @ends: the ends of magazines by magazine_key(); alloc() adds to them."""

    def __init__(self, ordinal: int, flags: int):
        self._pools = [_library.pool_create(ordinal, flags)]  # empty after close()
        self._limit = _library.pool_info(self._pools[0]).limit
        self._lock = threading.RLock()
        self._magazines: Dict[int, Magazine] = {}
        self._keeps = 0
        self._taken = 0  # bytes of parts that the pool gave
        self._flush_at = self._limit // 2  # of these bytes
        self.stream = _library.STREAMS_BLOCKING
        self.ends: Dict[int, Ends] = {}

    def refill(self, size: int) -> Ends:
        """Makes parts ready for @size bytes, which other threads may take.

        Raises OSError: ENOMEM, also after the device has finished.
        """
        _library.check_size(size)
        with self._lock:
            magazine = self._magazine(size)
            if not magazine.ready:
                self._refill(magazine)
            return magazine.ends

    def _magazine(self, size: int) -> Magazine:
        part = part_size(size)
        magazine = self._magazines.get(part)
        if magazine is None:
            magazine = self._magazines.setdefault(part, Magazine(part, self._limit))
        if size > 0:  # a negative size is to find nothing
            self.ends[magazine_key(size)] = magazine.ends
        return magazine

    def _refill(self, magazine: Magazine) -> None:
        if len(magazine.freed) >= magazine.batch:
            self._free(magazine, magazine.freed, magazine.freed.popleft)
        if self._taken + magazine.part > self._flush_at:
            self._flush()
        try:
            self._alloc(magazine, magazine.batch)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            self._flush()
            self._alloc(magazine, 1)

    def _call(self, results: List[Any], function: Any, *arguments: Any) -> None:
        _call(self._pools, results, function, *arguments)

    def _alloc(self, magazine: Magazine, most: int) -> None:
        alloc = _library.library.climport_pool_alloc
        addresses: Any = (ctypes.c_void_p * most)()
        counts: List[int] = []
        try:
            self._call(counts, alloc, magazine.part, self.stream, addresses, most)
            _check(counts)
        finally:
            if counts and counts[0] > 0:
                magazine.ready.extend(addresses[counts[0] - 1::-1])  # the first is taken first
                self._taken += counts[0] * magazine.part

    def _free(self, magazine: Magazine, parts: Any, take: Callable[[], int]) -> None:
        """Gives parts to the pool that no other thread takes, but for ready parts."""
        free = _library.library.climport_pool_free
        leaving: List[int] = []  # of this call: a finalizer may free parts of the magazine, too
        results: List[int] = []
        try:
            _take_all(leaving, take, len(parts))
            if not leaving:
                return
            addresses = (ctypes.c_void_p * len(leaving))(*leaving)
            self._call(results, free, addresses, len(leaving), self.stream)
        finally:
            if not results:  # an interrupt
                magazine.freed.extend(leaving)
        _check(results)
        self._taken -= len(leaving) * magazine.part

    def _flush(self) -> None:
        """The pool gets all parts that the program does not use, and so knows what it keeps."""
        for magazine in list(self._magazines.values()):
            self._free(magazine, magazine.freed, magazine.freed.popleft)
            self._free(magazine, magazine.ready, magazine.ready.pop)
        self._flush_at = self._taken + self._limit // 2

    def keep(self) -> None:
        """Until release(), no slab goes back unless memory runs out.  Calls nest."""
        with self._lock:
            self._keeps += 1
            self._set_limit(_library.NO_LIMIT)

    def release(self) -> None:
        """Ends keep()."""
        with self._lock:
            self._keeps -= 1
            if not self._keeps:
                self._set_limit(self._limit)

    def _set_limit(self, limit: int) -> None:
        self._call([], _library.library.climport_pool_set_limit, limit)

    def free_bytes(self) -> int:
        """Bytes of slabs that the program does not use."""
        with self._lock:
            info = _library.PoolInfo()
            self._call([], _library.library.climport_pool_get_info, info, ctypes.sizeof(info))
            held = sum(magazine.part * (len(magazine.ready) + len(magazine.freed))
                       for magazine in list(self._magazines.values()))
            return int(info.bytes - info.used) + held

    def close(self) -> None:
        """Gives all memory back, also parts in use, when the device has finished.  Frees of such
        parts do nothing from now on."""
        with self._lock:
            self.ends.clear()
            self._magazines.clear()
            while self._pools:
                _library.pool_destroy(self._pools.pop())


class HostPool:
    """A pool of pinned memory of the host.  Finalizers call free(), also after close()."""

    def __init__(self, ordinal: int):
        self._pool = _library.pool_create(ordinal, _library.POOL_HOST)
        self._open = [self._pool]  # empty after close()
        self._lock = threading.RLock()  # close() waits for allocations of other threads
        self._limit = _library.pool_info(self._pool).limit
        self._keeps = 0
        self.stream = _library.STREAMS_BLOCKING

    def alloc(self, size: int) -> int:
        """An address.  Raises OSError: ENOMEM."""
        alloc = _library.library.climport_pool_alloc
        addresses: Any = (ctypes.c_void_p * 1)()
        counts: List[int] = []
        _library.check_size(size)
        with self._lock:
            _call(self._open, counts, alloc, size, self.stream, addresses, 1)
        _check(counts)
        return int(addresses[0])

    def free(self, address: int) -> None:
        """Gives memory back."""
        _library.pool_free_one(self._pool, address, self.stream)

    def keep(self) -> None:
        """As DevicePool.keep()."""
        with self._lock:
            self._keeps += 1
            self._set_limit(_library.NO_LIMIT)

    def release(self) -> None:
        """As DevicePool.release()."""
        with self._lock:
            self._keeps -= 1
            if not self._keeps:
                self._set_limit(self._limit)

    def _set_limit(self, limit: int) -> None:
        _call(self._open, [], _library.library.climport_pool_set_limit, limit)

    def close(self) -> None:
        """No memory is allocated any more, and the program keeps what it has until free()."""
        with self._lock:
            while self._open:
                _library.pool_close(self._open.pop())


def magazine_key(size: int) -> int:
    """A number for each size of parts, which several sizes may share; -1 below a size of 1."""
    if size < 1:
        return -1
    return (size - 1).bit_length() if size <= SMALL else 64 + (size - 1 >> 21)
