"""A group that has hooks: its calls go through PyTorch's C++, which fires them.

PyTorch calls hooks between a group and its backend. Group makes its calls in Python and goes round that place, because
a call is then shorter. Once a hook is registered, the group becomes a Hooked:

    Hooked.allreduce -> ProcessGroup.allreduce, in C++: pre hooks -> Passing.allreduce -> Group.allreduce, post hooks

Whoever made the call gets the work of Group.allreduce, as without hooks. PyTorch's C++ would give one that only waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti.torch._group import Backend, Group
from tutti.torch._work import OVER, FromAnybody, OnStream, Work

_here = threading.local()
_CPP = vars(dist.ProcessGroup)


def _passed(name: str) -> Callable[..., dist.Work]:
    def call(backend: Passing, *arguments: Any) -> dist.Work:
        group = backend.group()
        work = getattr(super(Hooked, group), name)(*arguments)
        _here.work = work if work is not OVER else group._registered(Work([], arguments[0]))
        return _here.work

    return call


class Passing(Backend):
    """The backend of a Hooked. PyTorch's C++ calls it between the hooks; it makes the call as Group makes it."""

    allgather = _passed("allgather")
    all_gather_single = _passed("all_gather_single")
    all_gather_single_coalesced = _passed("all_gather_single_coalesced")
    allgather_coalesced = _passed("allgather_coalesced")
    all_to_all_single = _passed("all_to_all_single")
    allreduce = _passed("allreduce")
    allreduce_coalesced = _passed("allreduce_coalesced")
    allreduce_sparse = _passed("allreduce")
    alltoall = _passed("alltoall")
    barrier = _passed("barrier")
    broadcast = _passed("broadcast")
    gather = _passed("gather")
    recv = _passed("recv")
    recv_anysource = _passed("recv_anysource")
    reduce = _passed("reduce")
    reduce_scatter = _passed("reduce_scatter")
    reduce_scatter_single = _passed("reduce_scatter_single")
    reduce_scatter_single_coalesced = _passed("reduce_scatter_single_coalesced")
    scatter = _passed("scatter")
    send = _passed("send")


def _own(_: dist.Work) -> dist.Work:
    """The work that Group has made, for the one in which PyTorch's C++ holds it."""
    work: dist.Work = _here.work
    _here.work = None
    return work


def _kept(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call. Raises ValueError if what it writes into the first of them would be lost: instead of a
    tensor with a bit that says to negate it, PyTorch's C++ gives the backend a copy."""
    for tensor in _tensors(arguments[:1]):
        if tensor.is_neg() or tensor.is_conj():
            raise ValueError("a group with hooks does not write to a view that is negated or conjugated; use "
                             "resolve_neg() or resolve_conj()")
    return arguments


def _tensors(of: Any) -> Iterator[torch.Tensor]:
    if isinstance(of, torch.Tensor):
        yield of
    elif isinstance(of, (list, tuple)):
        for part in of:
            yield from _tensors(part)


class Hooked(Group):
    """A group whose hooks see its calls.

    An error that a pre hook raises reaches the caller, and the call is not made on this rank. After one of a post hook
    the call goes on. Hooks are called in the thread that makes the call, in the order of their numbers.
    """

    # Each must be a function of the name that it calls: that tells PyTorch's C++ not to call it once more.

    def allgather(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.allgather(self, *_kept(arguments), **named))

    def all_gather_single(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.all_gather_single(self, *_kept(arguments), **named))

    def all_gather_single_coalesced(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.all_gather_single_coalesced(self, *_kept(arguments), **named))

    def allgather_coalesced(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.allgather_coalesced(self, *_kept(arguments), **named))

    def all_to_all_single(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.all_to_all_single(self, *_kept(arguments), **named))

    def allreduce(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.allreduce(self, *_kept(arguments), **named))

    def allreduce_coalesced(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.allreduce_coalesced(self, *_kept(arguments), **named))

    def alltoall(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.alltoall(self, *_kept(arguments), **named))

    def barrier(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.barrier(self, *_kept(arguments), **named))

    def broadcast(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.broadcast(self, *_kept(arguments), **named))

    def gather(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.gather(self, *_kept(arguments), **named))

    def gather_single(self, output: torch.Tensor | None, input: torch.Tensor, opts: Any) -> dist.Work:
        # PyTorch's C++ has no way to a gather_single of a backend in Python.
        return self.gather([list(output.chunk(self._size))] if output is not None else [], [input], opts)

    gather_into_tensor = gather_single

    def recv(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.recv(self, *_kept(arguments), **named))

    def recv_anysource(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.recv_anysource(self, *_kept(arguments), **named))

    def reduce(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.reduce(self, *_kept(arguments), **named))

    def reduce_scatter(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.reduce_scatter(self, *_kept(arguments), **named))

    def reduce_scatter_single(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.reduce_scatter_single(self, *_kept(arguments), **named))

    def reduce_scatter_single_coalesced(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.reduce_scatter_single_coalesced(self, *_kept(arguments), **named))

    def scatter(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.scatter(self, *_kept(arguments), **named))

    def send(self, *arguments: Any, **named: Any) -> dist.Work:
        return _own(dist.ProcessGroup.send(self, *arguments, **named))

    def _registered(self, work: Work | OnStream | FromAnybody) -> dist.Work:
        work.is_registered = c10d._allow_inflight_collective_as_graph_input()  # by PyTorch's C++, once it has the work
        return work

    # The older names: PyTorch's C++ calls those above for them, unless it finds a function of Python.
    _allgather_base = _CPP["_allgather_base"]
    _reduce_scatter_base = _CPP["_reduce_scatter_base"]
    allgather_into_tensor_coalesced = _CPP["allgather_into_tensor_coalesced"]
    alltoall_base = _CPP["alltoall_base"]
    reduce_scatter_tensor_coalesced = _CPP["reduce_scatter_tensor_coalesced"]
