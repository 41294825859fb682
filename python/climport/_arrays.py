# SPDX-License-Identifier: Apache-2.0
"""What memory an array is in.  Arrays are described by their own interfaces, and never copied."""
from typing import Any, NamedTuple, Optional, Tuple

from . import _dlpack


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


def _from_interface(interface: dict) -> Span:
    shape = tuple(interface["shape"])
    item = _item_size(interface["typestr"])
    strides = interface.get("strides")
    address, read_only = interface["data"]
    return _dense_span(address, shape, item, strides, read_only)


def _dense_span(address: int, shape: Tuple[int, ...], item: int,
                strides: Optional[Tuple[int, ...]], read_only: bool) -> Span:
    size = _count(shape) * item
    if not size:
        raise ValueError("the array is empty")
    if strides is not None and not _is_dense(shape, tuple(strides), item):
        raise ValueError("the array is not contiguous: memory between its elements would go along")
    return Span(address, size, bool(read_only))


def _interface_span(array: Any, name: str) -> Optional[Span]:
    """The span of the interface @name; None if the array has no such interface."""
    interface = getattr(array, name, None)
    if interface is None or interface.get("data") is None:
        return None
    return _from_interface(interface)


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
