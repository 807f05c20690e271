"""A communication hook with which the ranks of a host share the memory of gradients."""

import warnings
from collections.abc import Callable

import torch
import torch.distributed as dist

from tutti import _native
from tutti._error import Error
from tutti.torch._adopt import adopt
from tutti.torch._group import ours

Hook = Callable[[object, dist.GradBucket], torch.futures.Future[torch.Tensor]]


def shared_buckets(group: dist.ProcessGroup | None = None) -> Hook:
    """A communication hook for DistributedDataParallel: `model.register_comm_hook(None, shared_buckets())`.

    adopt()s each bucket of gradients when it first comes, so that the ranks of a host read each other's gradients where
    they lie. Where memory cannot be shared, it warns once, and goes on as without. The buckets of the last step stay
    adopted for as long as the model has the hook. The gradients become the mean over the ranks: the canonical sum,
    divided by their number. (Without a hook PyTorch divides before it adds; the bits differ if the number of ranks is
    no power of two.)

    backward() waits for the last bucket of a step at once: this model has nothing left to compute beside it. Buckets of a
    GPU are combined where they are.

    group: the process group of the model; None: the default one. Raises ValueError if it is of another backend.
    """
    of = ours(group, "shared_buckets()")
    kept: dict[int, _native.Adoption] = {}  # by address
    used: set[int] = set()  # in this step
    can_share = True

    def share(buffer: torch.Tensor) -> None:
        nonlocal can_share
        address = buffer.data_ptr()
        used.add(address)
        if address in kept or not can_share:
            return
        try:
            kept[address] = adopt(buffer, of)
        except Error as error:
            can_share = False
            warnings.warn(f"shared_buckets() goes on without sharing: {error}", stacklevel=2)

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer = bucket.buffer()
        if buffer.is_cpu and buffer.nbytes > 0:
            share(buffer)
        is_last = bucket.is_last()
        if is_last:  # PyTorch arranges the buckets anew after the first step
            for old in kept.keys() - used:
                kept.pop(old).release()
            used.clear()
        if not is_last or buffer.is_cuda:
            work = dist.all_reduce(buffer, dist.ReduceOp.AVG, group=of, async_op=True)
            return work.get_future().then(lambda done: done.value()[0])
        dist.all_reduce(buffer, dist.ReduceOp.AVG, group=of)
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(buffer)
        return future

    return hook
