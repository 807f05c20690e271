"""A communication hook with which the ranks of a host share the memory of gradients."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from tutti import _native
from tutti.torch._adopt import adopt
from tutti.torch._group import ours

Hook = Callable[[object, dist.GradBucket], torch.futures.Future[torch.Tensor]]


def shared_buckets(group: dist.ProcessGroup | None = None) -> Hook:
    """A communication hook for DistributedDataParallel: `model.register_comm_hook(None, shared_buckets())`.

    adopt()s each bucket of gradients when it first comes, so that no rank copies gradients to another rank of its host.
    It keeps the buckets of the last step adopted for as long as the model has the hook. The gradients become the mean
    over the ranks: the canonical sum, divided by their number. (Without a hook PyTorch divides before it adds; the bits
    differ if the number of ranks is no power of two.)

    The last bucket of a step is waited for in backward(), as nothing is left to be computed beside it. Buckets of a GPU
    are combined where they are.

    group: the process group of the model; None: the default one. Raises ValueError if it is of another backend. In
    backward(): tutti.Error, as RuntimeError, for memory that the library cannot share.
    """
    of = ours(group, "shared_buckets()")
    kept: dict[int, _native.Adoption] = {}  # by address
    used: set[int] = set()  # in this step

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer = bucket.buffer()
        if buffer.is_cpu and buffer.nbytes > 0:
            address = buffer.data_ptr()
            if address not in kept:
                kept[address] = adopt(buffer, of)
            used.add(address)
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
