"""What a call of torch.distributed may be made with."""

from __future__ import annotations

import torch


def same_number(call: str, name: str, tensors: list[torch.Tensor], size: int) -> None:
    if len(tensors) != size:
        raise ValueError(f"{call}: there must be {size} {name} tensors, one for each rank; there are {len(tensors)}")


def of_one_type(call: str, tensors: list[torch.Tensor]) -> None:
    if not tensors:
        raise ValueError(f"{call}: there must be at least one tensor")
    first = tensors[0]
    for tensor in tensors:
        if tensor.dtype != first.dtype or tensor.device != first.device:
            raise TypeError(f"{call}: all tensors must be of one type and on one device, not {first.dtype} on "
                            f"{first.device} and {tensor.dtype} on {tensor.device}")


def of_one_length(call: str, tensors: list[torch.Tensor], like: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.numel() != like.numel():
            raise ValueError(f"{call}: all tensors must have as many elements: {like.numel()} and {tensor.numel()}")


def rows_of(call: str, name: str, whole: torch.Tensor, row: torch.Tensor, size: int) -> None:
    if whole.numel() != row.numel() * size:
        raise ValueError(f"{call}: {name} must have {size} times as many elements as the other tensor, "
                         f"{size * row.numel()}; it has {whole.numel()}")
