"""How a group makes a call of the library."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti import _native
from tutti._communicator import milliseconds
from tutti._types import Op
from tutti.torch._futures import Callbacks
from tutti.torch._tensors import combined
from tutti.torch._work import FromAnybody, OnStream, Work

# How long a call with async_op=True is waited for, in seconds, before a thread is woken to advance it: many short ones are
# over by then.
_PATIENCE = 10e-6
_NO_TIME = timedelta(0)
# The default stream is 0 to PyTorch. To the library that is no stream; this is CUDA's other name of it.
_LEGACY_STREAM = 1  # cudaStreamLegacy
Starts = list[_native.Work]
Way = tuple[Any, ...]


class Calls(dist.ProcessGroup):
    """What the operations of a group have in common: its communicators, and how a call is made."""

    def __init__(self, native: _native.Communicator, store: dist.Store, timeout: timedelta):
        super().__init__(native.rank, native.size)
        self._native = native
        self._callbacks: Callbacks | None = None  # once there is a callback
        self._making = threading.Lock()
        self._store = store
        self._timeout = timeout
        self._rank = native.rank
        self._size = native.size
        self._parts: list[_native.Communicator] = []
        self._calls = 0  # collective ones
        self._streams: dict[tuple[torch.device, Way], torch.cuda.Stream] = {}

    @property
    def native(self) -> _native.Communicator:
        """The communicator for the calls of this thread."""
        callbacks = self._callbacks
        return callbacks.native() if callbacks is not None and callbacks.is_here() else self._native

    def _callbacks_thread(self) -> Callbacks:
        with self._making:
            if self._callbacks is None:
                this = weakref.ref(self)  # the thread does not keep the group
                self._callbacks = Callbacks(lambda: this()._part("callbacks"))
                weakref.finalize(self, self._callbacks.end)
            return self._callbacks

    def _all(self) -> list[_native.Communicator]:
        return [self._native, *self._parts]

    def _part(self, name: str) -> _native.Communicator:
        """Another communicator of the same ranks. All its members make it, each when it needs it."""
        part = self._native.subgroup(list(range(self._size)), name)
        part.set_timeout(milliseconds(self._timeout))
        self._parts.append(part)
        return part

    def _launch(self, opts: Any, tensors: Sequence[torch.Tensor], start: Callable[[int], Starts],
                result: list[torch.Tensor], finish: Callable[[], None] | None = None, source: int = -1,
                way: Way = ()) -> dist.Work:
        """Starts what start(stream) starts, and makes a work of it. `tensors`: what it reads and writes. `way`: on a GPU
        each has a stream, so calls of two ways do not wait for each other; () for collectives."""
        for tensor in tensors:
            if tensor.is_cuda:
                return self._launch_on_stream(opts, tensors, start, result, finish, source, way)
        natives = self._started(opts, start(0))
        return self._registered(Work(natives, result, self._callbacks_thread, self._numbered(opts), finish, source))

    def _registered(self, work: Work | OnStream | FromAnybody) -> dist.Work:
        """The work; within allow_inflight_collective_as_graph_input_ctx() in PyTorch's registry."""
        if c10d._allow_inflight_collective_as_graph_input():
            work.register()
        return work

    def _numbered(self, opts: Any) -> int:
        """The number of a collective call that is made now; -1 for a message."""
        if opts is None:
            return -1
        self._calls += 1
        return self._calls

    @staticmethod
    def _started(opts: Any, natives: Starts) -> Starts:
        """Messages have no options: they are as calls with async_op=True, and wait for as long as the group says."""
        if opts is not None and opts.timeout > _NO_TIME:
            for native in natives:
                native.set_timeout(milliseconds(opts.timeout))
        if opts is None or opts.asyncOp:
            for native in natives:
                native.advance_by_itself(_PATIENCE)
        return natives

    def _launch_on_stream(self, opts: Any, tensors: Sequence[torch.Tensor], start: Callable[[int], Starts],
                          result: list[torch.Tensor], finish: Callable[[], None] | None, source: int,
                          way: Way) -> dist.Work:
        device = next(tensor.device for tensor in tensors if tensor.is_cuda)
        current = torch.cuda.current_stream(device)
        stream = current
        if opts is None or opts.asyncOp:  # beside what the caller goes on to compute
            key = (device, way)
            stream = self._streams.get(key) or self._streams.setdefault(key, torch.cuda.Stream(device))
            stream.wait_stream(current)
        with torch.cuda.device(device):  # whose default stream that is
            natives = start(stream.cuda_stream or _LEGACY_STREAM)
        for tensor in tensors:
            if tensor.is_cuda:
                tensor.record_stream(stream)
        if finish is not None:
            with torch.cuda.stream(stream):
                finish()
        return self._registered(OnStream(natives, result, stream, self._numbered(opts), source))

    def _operator(self, op: dist.ReduceOp, dtype: torch.dtype) -> tuple[int, int, int]:
        """The library's type, how many elements of it are one of these, and the operator."""
        kind, many, native = combined(dtype, op)
        return kind, many, native if native >= 0 else self.native.premul_sum(op.factor, kind)

    def _drop(self, op: int) -> None:
        if op > Op.BXOR:
            self.native.destroy_operator(op)


def options_of(made: Any, given: Any, op: Any = None, timeout: timedelta | None = None) -> Any:
    """The options of a call: those that were given, or `made` with what was said in their place."""
    if isinstance(given, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
        op, given = given, None
    if given is not None:
        return given
    if op is not None:
        made.reduceOp = op
    if timeout is not None:
        made.timeout = timeout
    return made


def in_group(start: Callable[[int], Starts]) -> Callable[[int], Starts]:
    def grouped(stream: int) -> Starts:
        _native.group_start()
        try:
            return start(stream)
        finally:
            _native.group_end()

    return grouped
