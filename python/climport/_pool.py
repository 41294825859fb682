# SPDX-License-Identifier: Apache-2.0
"""Blocks of memory for reuse, ordered by events of the device.

A *slab* is memory of a source: 2 MiB in equal *parts*, or a single part of a multiple of 2 MiB.  A
part that the program frees may still be in use by kernels that run, so the part waits for an *event*
that the device reaches after those kernels.  Only then the part is *ready* for reuse.

Finalizers of Python call free() at any time: in any thread, in the middle of alloc() of the same
thread, after reset(), and at the end of the interpreter.  So free() takes no lock, calls no driver,
and does nothing for a token that is gone.  All else happens in alloc(), under the lock.
"""
import collections
import itertools
import threading
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple

SLAB = 2 << 20
SMALLEST = 512


class Slab:
    """Memory of the source.  @carved: parts that were used once; @ready: of these, parts to reuse."""
    __slots__ = ("base", "part", "parts", "carved", "ready")

    def __init__(self, base: int, size: int, part: int):
        self.base = base
        self.part = part
        self.parts = size // part
        self.carved = 0
        self.ready = 0


class Part(NamedTuple):
    """A part in use: what alloc() returns.  Tokens are never used again, as addresses are."""
    token: int
    address: int
    slab: Slab


def part_size(size: int) -> int:
    """The size of the part for @size bytes."""
    if size > SLAB // 2:
        return -(-size // SLAB) * SLAB
    return max(SMALLEST, 1 << (size - 1).bit_length())


class Pool:
    """A pool over a source and the events of a device.

    The source has alloc(size), which raises MemoryError if no memory is left, free(base), and
    for close() alone
    detach(base) and abandon(base).  The order has record(), is_reached(event) and
    wait(event).  @limit: bytes that may be kept without use.
    """

    def __init__(self, source: Any, order: Any, limit: int):
        self._source = source
        self._order = order
        self._limit = limit
        self._lock = threading.Lock()
        self._tokens = itertools.count(1)
        self._live: Dict[int, Part] = {}
        self._freed: Deque[Part] = collections.deque()
        self._waiting: Deque[Tuple[Any, List[Part]]] = collections.deque()
        self._ready: Dict[int, List[Tuple[int, Slab]]] = collections.defaultdict(list)
        self._slabs: Dict[int, Slab] = {}
        self._uncarved: Dict[int, Slab] = {}  # of each part size, the slab with parts never used
        self._waiting_bytes = 0
        self._keeps = 0
        self._is_closed = False

    def alloc(self, size: int) -> Part:
        """A part of at least @size bytes that no kernel uses."""
        part = part_size(max(size, 1))
        with self._lock:
            address, slab = self._take(part)
            taken = Part(next(self._tokens), address, slab)
            self._live[taken.token] = taken
            return taken

    def free(self, token: int) -> None:
        """Gives a part back.  A second call does nothing."""
        part = self._live.pop(token, None)
        if part is None:
            return
        self._freed.append(part)
        if self._is_closed and not self._live:
            self._abandon()

    def _take(self, part: int) -> Tuple[int, Slab]:
        ready = self._ready[part]
        if not ready and part in self._uncarved:
            return self._carve(self._uncarved[part])
        if not ready:
            self._collect()
        while not ready and self._waiting_bytes > self._limit:
            self._wait_oldest()
        slab = None if ready else self._open_slab(part)
        if slab is not None:
            return self._carve(slab)
        address, slab = ready.pop()
        slab.ready -= 1
        return address, slab

    def _carve(self, slab: Slab) -> Tuple[int, Slab]:
        """A part that was never used.  So an event is for all frees of parts of a slab."""
        address = slab.base + slab.carved * slab.part
        slab.carved += 1
        if slab.carved == slab.parts:
            del self._uncarved[slab.part]
        return address, slab

    def _open_slab(self, part: int) -> Optional[Slab]:
        """None: the source has no memory, and a part of the size has become ready."""
        size = max(part, SLAB)
        base = self._source_alloc(size, part)
        if base is None:
            return None
        slab = Slab(base, size, part)
        self._slabs[slab.base] = slab
        self._uncarved[part] = slab
        return slab

    def _source_alloc(self, size: int, part: int) -> Optional[int]:
        self._trim(self._limit)
        try:
            return self._source.alloc(size)
        except MemoryError:
            self._collect_all()
            if self._ready[part]:
                return None
            self._trim(0)
            return self._source.alloc(size)

    def _seal(self) -> None:
        """An event for the parts that were freed so far."""
        parts = [self._freed.popleft() for _ in range(len(self._freed))]
        if parts:
            self._waiting.append((self._order.record(), parts))
            self._waiting_bytes += sum(part.slab.part for part in parts)

    def _make_ready(self) -> None:
        """The parts of the oldest event.  A free that ran beside reset() is of a slab that is gone."""
        for part in self._waiting.popleft()[1]:
            self._waiting_bytes -= part.slab.part
            if self._slabs.get(part.slab.base) is part.slab:
                self._ready[part.slab.part].append((part.address, part.slab))
                part.slab.ready += 1

    def _collect(self) -> None:
        """Parts whose event is reached are ready.  Events are reached in their order."""
        self._seal()
        while self._waiting and self._order.is_reached(self._waiting[0][0]):
            self._make_ready()

    def _wait_oldest(self) -> None:
        self._order.wait(self._waiting[0][0])
        self._make_ready()

    def _collect_all(self) -> None:
        """Waits for the device."""
        self._seal()
        while self._waiting:
            self._wait_oldest()

    def _unused_slabs(self) -> List[Slab]:
        return [slab for slab in self._slabs.values() if slab.ready == slab.carved]

    def _trim(self, limit: int) -> None:
        """Gives unused slabs back to the source, the oldest first, down to @limit bytes."""
        if self._keeps:
            return
        unused = self._unused_slabs()
        kept = sum(slab.part * slab.parts for slab in unused)
        for slab in unused:
            if kept <= limit:
                return
            kept -= slab.part * slab.parts
            self._close_slab(slab)

    def _close_slab(self, slab: Slab) -> None:
        ready = self._ready[slab.part]
        ready[:] = [entry for entry in ready if entry[1] is not slab]
        if self._uncarved.get(slab.part) is slab:
            del self._uncarved[slab.part]
        del self._slabs[slab.base]
        self._source.free(slab.base)

    def keep(self) -> None:
        """Until release(), no slab goes back to the source.  Calls nest."""
        self._keeps += 1

    def release(self) -> None:
        """Ends keep()."""
        self._keeps -= 1

    def free_bytes(self) -> int:
        """Bytes of slabs that the program does not use."""
        with self._lock:
            used = sum(part.slab.part for part in list(self._live.values()))
            return sum(slab.part * slab.parts for slab in self._slabs.values()) - used

    def reset(self) -> None:
        """Gives all memory back, also parts in use, when the device has finished.  The pool is as
        new: tokens of before are gone."""
        with self._lock:
            self._order.wait(self._order.record())
            self._live.clear()
            self._freed.clear()
            self._waiting.clear()
            self._waiting_bytes = 0
            self._ready.clear()
            self._uncarved.clear()
            while self._slabs:
                self._source.free(self._slabs.popitem()[0])

    def close(self) -> None:
        """The context ends, and the program keeps the parts in use.  Slabs go with the last part.
        The pool makes no parts from now on."""
        with self._lock:
            self._order.wait(self._order.record())
            for base in self._slabs:
                self._source.detach(base)
            self._is_closed = True
        if not self._live:
            self._abandon()

    def _abandon(self) -> None:
        while self._slabs:
            try:
                base, _ = self._slabs.popitem()
            except KeyError:
                return
            self._source.abandon(base)
