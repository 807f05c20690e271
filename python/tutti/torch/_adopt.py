"""Tensors whose memory the ranks of a host share."""

import torch
import torch.distributed as dist

from tutti import _native
from tutti.torch._group import ours


def adopt(tensor: torch.Tensor, group: dist.ProcessGroup | None = None) -> _native.Adoption:
    """Shares the memory of a tensor with the ranks of this host, in place: `kept = adopt(tensor)`.

    The tensor and all views of its storage stay as they are. Collectives of 32 KiB and more on them are then quicker,
    as no rank copies them to another first. Not collective: a rank adopts what it likes.

    Until release() of the result, or the end of `with adopt(tensor):`, or until the result is dropped; it keeps the
    tensor. Blocks while the memory is copied, twice. No thread may use the tensor meanwhile. A fork()ed child, such as a
    worker of a DataLoader, shares the memory: it must not write there, nor read there after the release. The storage
    must not be resized meanwhile, as FSDP does.

    group: a process group of the backend "tutti"; None: the default one. Adopted memory serves all groups of the job.
    Raises ValueError for a tensor of a GPU or another backend; tutti.Error for memory that the library cannot share.
    Nothing has changed then.
    """
    of = ours(group, "adopt()")
    if tensor.device.type != "cpu":
        raise ValueError(f"adopt() takes tensors of the host, not of {tensor.device}")
    storage = tensor.untyped_storage()
    return of.native.adopt(storage.data_ptr(), storage.nbytes(), storage)
