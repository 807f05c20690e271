"""Tensors, as the library takes them: an address, a number of elements and their type."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from tutti._types import DType, Op

# The type of the library, and how many of its elements are one of PyTorch's.
_NATIVE: dict[torch.dtype, tuple[int, int]] = {
    torch.int8: (DType.INT8.value, 1),
    torch.uint8: (DType.UINT8.value, 1),
    torch.int32: (DType.INT32.value, 1),
    torch.uint32: (DType.UINT32.value, 1),
    torch.int64: (DType.INT64.value, 1),
    torch.uint64: (DType.UINT64.value, 1),
    torch.float16: (DType.FLOAT16.value, 1),
    torch.bfloat16: (DType.BFLOAT16.value, 1),
    torch.float32: (DType.FLOAT32.value, 1),
    torch.float64: (DType.FLOAT64.value, 1),
    torch.float8_e4m3fn: (DType.FLOAT8_E4M3.value, 1),
    torch.float8_e5m2: (DType.FLOAT8_E5M2.value, 1),
    torch.bool: (DType.BOOL.value, 1),
    torch.complex64: (DType.FLOAT32.value, 2),
    torch.complex128: (DType.FLOAT64.value, 2),
}
# Types that the library does not combine, and a wider one: cut off again, a sum or a product has the same bits, and a mean
# does not wrap around.
_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32}

_Red = dist.ReduceOp.RedOpType
OPS = {
    _Red.SUM: Op.SUM.value,
    _Red.PRODUCT: Op.PROD.value,
    _Red.MAX: Op.MAX.value,
    _Red.MIN: Op.MIN.value,
    _Red.AVG: Op.AVG.value,
    _Red.BAND: Op.BAND.value,
    _Red.BOR: Op.BOR.value,
    _Red.BXOR: Op.BXOR.value,
}
# Those that need no care.
PLAIN = {dtype: native for dtype, (native, many) in _NATIVE.items() if many == 1 and dtype is not torch.bool}
# PyTorch adds and multiplies booleans as truth values.
_OPS_OF_BOOL = OPS | {_Red.SUM: Op.BOR.value, _Red.MAX: Op.BOR.value, _Red.PRODUCT: Op.BAND.value,
                       _Red.MIN: Op.BAND.value}
_LINEAR = (_Red.SUM, _Red.AVG, _Red.PREMUL_SUM)  # of the real and the imaginary part apart


def moved(dtype: torch.dtype) -> tuple[int, int]:
    """The library's type for elements that are moved and not combined, and how many of them are one of these."""
    return _NATIVE.get(dtype) or (DType.UINT8.value, dtype.itemsize)


def combined(dtype: torch.dtype, op: dist.ReduceOp) -> tuple[int, int, int]:
    """Likewise for elements that are combined; and the library's operator. PREMUL_SUM is -1. Raises TypeError."""
    kind = op.op
    native = _NATIVE.get(dtype)
    if native is None:
        raise TypeError(f"the backend tutti does not reduce {dtype}")
    if native[1] != 1 and kind not in _LINEAR:
        raise TypeError(f"{kind.name} is not defined for {dtype}: complex numbers have SUM, AVG and PREMUL_SUM")
    if kind == _Red.PREMUL_SUM:
        return native[0], native[1], -1
    return native[0], native[1], (_OPS_OF_BOOL if dtype == torch.bool else OPS)[kind]


def wider(dtype: torch.dtype) -> torch.dtype:
    """The type in which elements of this one are combined."""
    return _WIDER.get(dtype, dtype)


def refuse_unless_plain(tensor: torch.Tensor) -> None:
    """Raises TypeError for a tensor whose memory the library cannot read: on every rank that has one, and before the
    call is made."""
    if tensor.layout is not torch.strided or not (tensor.is_cpu or tensor.is_cuda):
        raise TypeError("the backend tutti takes strided tensors of the host or of a CUDA device, and for all_reduce also "
                        f"sparse ones; this one has the layout {tensor.layout}, and is on {tensor.device}")


def ready(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The tensor itself if it lies in one piece, else a copy that does; converted to `dtype` if one is given."""
    refuse_unless_plain(tensor)
    if dtype is not None and dtype != tensor.dtype:
        tensor = tensor.to(dtype)
    return tensor.resolve_conj().resolve_neg().contiguous()


def room(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The tensor itself if the library can write it, else a new one of its shape: give it back with copied()."""
    refuse_unless_plain(tensor)
    if (dtype is None or dtype == tensor.dtype) and _is_plain(tensor):
        return tensor
    return torch.empty(tensor.shape, dtype=dtype or tensor.dtype, device=tensor.device)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Its memory holds its elements, in order: no stride, and no bit that says to negate or conjugate them."""
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def copied(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Callable[[], None] | None:
    """What copies, for each (to, from) of two tensors, from one to the other; None if there are none."""
    pairs = [(to, what) for to, what in pairs if to is not what]
    if not pairs:
        return None

    def copy() -> None:
        for to, what in pairs:
            # This may be another thread than the caller's: what the caller is within holds there only.
            with torch.inference_mode() if to.is_inference() else torch.no_grad():
                to.copy_(what)

    return copy


def side_by_side(tensors: list[torch.Tensor]) -> torch.Tensor | None:
    """One flat tensor over all of these, if each begins where the one before it ends. None if not."""
    for tensor in tensors:
        refuse_unless_plain(tensor)
    first = tensors[0]
    at = first.data_ptr()
    storage = first.untyped_storage()
    for tensor in tensors:
        if (tensor.numel() == 0 or not _is_plain(tensor) or tensor.dtype != first.dtype or tensor.data_ptr() != at
                or tensor.untyped_storage().data_ptr() != storage.data_ptr()):
            return None
        at += tensor.numel() * tensor.element_size()
    total = sum(tensor.numel() for tensor in tensors)
    return first.detach().as_strided((total,), (1,), first.storage_offset())


def joined(tensors: list[torch.Tensor]) -> torch.Tensor:
    """One flat tensor with the elements of all."""
    whole = side_by_side(tensors)
    return whole if whole is not None else torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def joined_room(tensors: list[torch.Tensor]) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
    """One flat tensor that is to receive the elements of all, and what is then to be copied where."""
    whole = side_by_side(tensors)
    if whole is not None:
        return whole, []
    first = tensors[0]
    whole = torch.empty(sum(tensor.numel() for tensor in tensors), dtype=first.dtype, device=first.device)
    pieces = whole.split([tensor.numel() for tensor in tensors])
    return whole, [(tensor, piece.view(tensor.shape)) for tensor, piece in zip(tensors, pieces)]
