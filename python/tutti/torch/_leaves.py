"""A communication hook with which the weights do not depend on the number of ranks."""

from collections.abc import Iterator

import torch
import torch.distributed as dist

from tutti.torch._group import ours
from tutti.torch._shared_buckets import Hook


def leaves(n: int, group: dist.ProcessGroup | None = None) -> Hook:
    """A communication hook for DistributedDataParallel: `model.register_comm_hook(None, leaves(n))`.

    A step of training has n micro-batches, the leaves, whatever the number of ranks. A rank computes whole leaves, those
    in the range `hook.mine`, in their order, with a backward() for each, and without no_sync(). The gradient of the step
    is the mean over the leaves, added along the canonical tree over all n of them: a rank adds its own along its part of
    the tree, and the group the rest. So the same leaves give the same bits on 1, 2, 4 … n ranks. It is there after the
    last leaf; before that, gradients are zero.

    n is the number of ranks times a power of two: then each rank has a whole subtree. What else differs between ranks
    must not decide: dropout draws from the leaf's own seed, no BatchNorm over a leaf's statistics, and each process
    computes with the same number of threads. Each leaf uses every parameter: with find_unused_parameters=True PyTorch drops
    the gradient of one that the last leaf does not use.

    group: the process group of the model; None: the default one. It is of the backend "tutti". Raises ValueError.
    """
    of = ours(group, "leaves()")
    each, rest = divmod(n, of.size())
    if rest or each & (each - 1) or n < 1:
        raise ValueError(f"leaves(n): n must be a power of two times the number of ranks, {of.size()}; it is {n}")
    # Of each parameter, the sums of whole subtrees that have no sibling yet, the largest first; and how many leaves came.
    sums: dict[torch.Tensor, list[torch.Tensor]] = {}
    counts: dict[torch.Tensor, int] = {}

    def take(parameter: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor | None:
        """One more leaf of a parameter. The sum, once all are there."""
        count = counts.get(parameter, 0) + 1
        # A copy, in the type in which the library accumulates; and -0, which no sum of later leaves can be, becomes 0.
        total = gradient.to(torch.promote_types(gradient.dtype, torch.float32)) + 0.0
        subtrees = sums.setdefault(parameter, [])
        size = count
        while size % 2 == 0:
            total = subtrees.pop() + total
            size //= 2
        if count < each:
            counts[parameter] = count
            subtrees.append(total)
            return None
        counts[parameter] = 0
        return total

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer, gradients = bucket.buffer(), bucket.gradients()
        totals = [take(parameter, gradient) for parameter, gradient in zip(bucket.parameters(), gradients)]
        whole = [total.reshape(-1) for total in totals if total is not None]
        if 0 < len(whole) < len(totals):
            raise RuntimeError("parameters of one bucket have had different numbers of leaves: each needs a gradient of each")
        if len(whole) < len(totals):
            future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
            future.set_result(buffer.zero_())
            return future
        flat = torch.cat(whole)

        def hand_over(done: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
            pieces = done.value()[0].div_(n).split([gradient.numel() for gradient in gradients])
            for gradient, piece in zip(gradients, pieces):
                gradient.copy_(piece.view_as(gradient))
            return buffer

        return dist.all_reduce(flat, group=of, async_op=True).get_future().then(hand_over)

    hook.mine = _Mine(range(of.rank() * each, (of.rank() + 1) * each), counts)  # type: ignore[attr-defined]
    return hook


class _Mine:
    """The leaves of this rank, to be computed in this order in each step."""

    def __init__(self, leaves: range, counts: dict[torch.Tensor, int]):
        self._leaves = leaves
        self._counts = counts

    def __len__(self) -> int:
        return len(self._leaves)

    def __iter__(self) -> Iterator[int]:
        came = max(self._counts.values(), default=0)
        if came != 0:
            raise RuntimeError(f"leaves(): a step begins, and of the one before it only {came} of {len(self)} leaves have "
                               "come to the hook; was backward() called in no_sync(), or a leaf left out?")
        return iter(self._leaves)
