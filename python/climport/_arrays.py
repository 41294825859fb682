# SPDX-License-Identifier: Apache-2.0
"""What memory an array is in.  Arrays are described by their own interfaces, and never copied."""
from typing import Any, NamedTuple, Optional, Tuple


class Span(NamedTuple):
    """Contiguous memory: @size bytes from @address on."""
    address: int
    size: int
    read_only: bool


def _count(shape: Tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _strides(shape: Tuple[int, ...], item: int) -> Tuple[int, ...]:
    """Strides of an array in C's order."""
    strides = []
    for length in reversed(shape):
        strides.append(item)
        item *= length
    return tuple(reversed(strides))


def _is_dense(shape: Tuple[int, ...], strides: Tuple[int, ...], item: int) -> bool:
    """Whether elements lie side by side, in C's or Fortran's order."""
    used = [(length, stride) for length, stride in zip(shape, strides) if length != 1]
    lengths = tuple(length for length, _ in used)
    given = tuple(stride for _, stride in used)
    return given in (_strides(lengths, item), _strides(lengths[::-1], item)[::-1])


def _item_size(typestr: str) -> int:
    return int(typestr[2:]) * (4 if typestr[1] == "U" else 1)


def _interface(array: Any) -> Optional[dict]:
    for name in ("__cuda_array_interface__", "__array_interface__"):
        found = getattr(array, name, None)
        if found is not None:
            return found
    return None


def span(array: Any) -> Span:
    """The memory of an array with __cuda_array_interface__ or __array_interface__."""
    interface = _interface(array)
    if interface is None or interface.get("data") is None:
        raise TypeError(f"{type(array).__name__} has neither __cuda_array_interface__ nor "
                        "__array_interface__")
    shape = tuple(interface["shape"])
    item = _item_size(interface["typestr"])
    strides = interface.get("strides")
    size = _count(shape) * item
    if not size:
        raise ValueError("the array is empty")
    if strides is not None and not _is_dense(shape, tuple(strides), item):
        raise ValueError("the array is not contiguous: memory between its elements would go along")
    address, read_only = interface["data"]
    return Span(address, size, read_only)
