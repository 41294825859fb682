# SPDX-License-Identifier: Apache-2.0
"""What memory an array is in.  Arrays are described by their own interfaces, and never copied."""
import operator
import re
import sys
from typing import Any, NamedTuple, Optional, Tuple

from . import _dlpack


class Span(NamedTuple):
    """Contiguous memory: @size bytes from @address on."""
    address: int
    size: int
    read_only: bool


def whole_number(name: str, value: Any, limit: int) -> int:
    """An integer from 0 on, below the limit: C would cut another value."""
    number = operator.index(value)
    if not 0 <= number < limit:
        raise ValueError(f"{name} {number} is not from 0 to {limit - 1}")
    return number


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


def _item_size(typestr: Any) -> int:
    """The bytes of an element, by the array interface's description of types: "<M8[ns]"."""
    found = re.fullmatch(r"[<>|=]?([a-zA-Z])(\d*)(\[.*\])?", typestr)
    if found is not None and found[1] == "O":
        raise TypeError("objects of Python are no memory of kernels")
    if found is None or found[1] == "t" or not found[2]:
        raise TypeError(f"elements of type {typestr!r} have no size in bytes")
    return int(found[2]) * (4 if found[1] == "U" else 1)


def _check_scalar(array: Any) -> None:
    """The interface of a scalar of NumPy's is of a copy, which is gone with the call."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.generic):
        raise TypeError(f"{type(array).__name__} is a scalar of NumPy's, and no array")


def _dense_span(address: Any, shape: Any, item: int, strides: Any, read_only: Any) -> Span:
    lengths = tuple(whole_number("length", length, sys.maxsize) for length in shape)
    size = whole_number("size", _count(lengths) * item, sys.maxsize)
    if not size:
        raise ValueError("the array is empty")
    if strides is not None and not _is_dense(lengths, tuple(strides), item):
        raise ValueError("the array is not contiguous: memory between its elements would go along")
    return Span(whole_number("address", address, (1 << 64) - size), size, bool(read_only))


def _from_interface(name: str, interface: Any) -> Span:
    try:
        data = interface["data"]
        if not isinstance(data, tuple):
            raise TypeError(f"its data is a copy in an object of type {type(data).__name__}")
        address, read_only = data
        return _dense_span(address, interface["shape"], _item_size(interface["typestr"]),
                           interface.get("strides"), read_only)
    except (AttributeError, KeyError, TypeError) as error:
        raise TypeError(f"{name} describes no memory: {error}") from error


def _interface_span(array: Any, name: str) -> Optional[Span]:
    """The span of the interface @name; None if the array has no such interface."""
    interface = getattr(array, name, None)
    if interface is None:
        return None
    _check_scalar(array)
    return _from_interface(name, interface)


def _device_of(array: Any) -> Optional[int]:
    """DLPack's type of the array's device; None without DLPack."""
    if not hasattr(array, "__dlpack__") or not hasattr(array, "__dlpack_device__"):
        return None
    return int(array.__dlpack_device__()[0])


def _dlpack_span(array: Any, devices: Tuple[int, ...]) -> Optional[Tuple[Span, Any]]:
    device = _device_of(array)
    if device is None:
        return None
    if device not in devices:
        raise TypeError(f"{type(array).__name__} is on a device of DLPack's type {device}: "
                        f"climport takes {', '.join(map(str, devices))} here")
    capsule = _dlpack.capsule(array, device)
    tensor = _dlpack.tensor(capsule)
    return _dense_span(tensor.address, tensor.shape, tensor.item, tensor.strides,
                       tensor.read_only), capsule


def _no_array(array: Any, names: str) -> TypeError:
    return TypeError(f"{type(array).__name__} has none of {names}")


def host_span(array: Any) -> Tuple[Span, Any]:
    """The memory of an array of the host, and what keeps the memory alive."""
    memory = _interface_span(array, "__array_interface__")
    if memory is not None:
        return memory, array
    if getattr(array, "__cuda_array_interface__", None) is not None:
        raise TypeError(f"{type(array).__name__} is no array of the host: export() and "
                        "import_dmabuf() are for memory of devices")
    found = _dlpack_span(array, _dlpack.HOST)
    if found is None:
        raise _no_array(array, "__array_interface__ and __dlpack__")
    return found[0], (array, found[1])


def span(array: Any) -> Tuple[Span, Any]:
    """The memory of an array of the host or of CUDA, and what keeps the memory alive."""
    for name in ("__cuda_array_interface__", "__array_interface__"):
        memory = _interface_span(array, name)
        if memory is not None:
            return memory, array
    found = _dlpack_span(array, _dlpack.HOST + _dlpack.CUDA)
    if found is None:
        raise _no_array(array, "__cuda_array_interface__, __array_interface__ and __dlpack__")
    return found[0], (array, found[1])
