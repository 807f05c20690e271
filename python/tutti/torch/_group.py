"""A group of torch.distributed whose operations are the library's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti import _native
from tutti._communicator import milliseconds
from tutti._error import Error
from tutti._types import DType, Op
from tutti.torch import _monitored
from tutti.torch._futures import Callbacks
from tutti.torch._tensors import PLAIN, OPS, combined, copied, joined, joined_room, moved, ready, room, wider
from tutti.torch._work import OVER, OnStream, Work

_NO_TIME = timedelta(0)
_Starts = list[_native.Work]
_ALL_REDUCE = c10d.AllreduceOptions
_SUM = dist.ReduceOp.RedOpType.SUM
# How long a call with async_op=True is waited for, in seconds, before a thread is woken to advance it: many short ones are
# over by then.
_PATIENCE = 10e-6
# Tags that never get in each other's way. Others share one of these, and must then come in the order of their sends.
_TAGS = 64


class _Backend(c10d.Backend):
    """What the group answers with when PyTorch asks it for the backend of a device."""

    def __init__(self, rank: int, size: int, timeout: timedelta):
        super().__init__(rank, size)
        self._options = c10d.Backend.Options("tutti", timeout)

    def getBackendName(self) -> str:
        return "tutti"

    def name(self) -> str:
        return "tutti"

    @property
    def options(self) -> c10d.Backend.Options:
        return self._options

    @property
    def supports_splitting(self) -> bool:
        return True

    @property
    def supports_coalescing(self) -> bool:
        return True

    def eager_connect_single_device(self, device: torch.device | None) -> None:
        """Connections are made when they are needed."""

    def _set_sequence_number_for_group(self) -> None:
        """The library numbers its calls by itself."""


class Group(dist.ProcessGroup):
    """A process group over a communicator of the library.

    It serves tensors of the host and of CUDA devices. A call that its caller waits for is advanced by that thread; one
    with async_op=True by a thread of the library, so it completes while its caller computes.

    After a failure every call raises the same tutti.Error, on every rank: it names the rank that is at fault. Destroy
    the group then.
    """

    def __init__(self, native: _native.Communicator, store: dist.Store, timeout: timedelta):
        super().__init__(native.rank, native.size)
        self._native = native
        self._callbacks: Callbacks | None = None  # once there is a callback
        self._store = store
        self._timeout = timeout
        self._rank = native.rank
        self._size = native.size
        self._together: list[Work] | None = None  # since _start_coalescing()
        self._of_tags: dict[int, _native.Communicator] = {}
        self._parts: list[_native.Communicator] = []
        self._calls = 0  # collective ones
        self._streams: dict[torch.device, torch.cuda.Stream] = {}
        self._monitor: _native.Communicator | None = None
        kind = dist.ProcessGroup.BackendType.CUSTOM
        self._set_default_backend(kind)
        self._backend = _Backend(self._rank, self._size, timeout)
        for device in ("cpu", "cuda"):
            self._register_backend(torch.device(device), kind, self._backend)

    # --- about the group

    @property
    def native(self) -> _native.Communicator:
        """The communicator for the calls of this thread."""
        callbacks = self._callbacks
        return callbacks.native() if callbacks is not None and callbacks.is_here() else self._native

    def _callbacks_thread(self) -> Callbacks:
        if self._callbacks is None:
            self._callbacks = Callbacks(lambda: self._part("callbacks"))
        return self._callbacks

    def getBackendName(self) -> str:
        return "tutti"

    def name(self) -> str:
        return "tutti"

    def _get_sequence_number_for_group(self) -> int:
        return self._calls

    def get_group_store(self) -> dist.Store:
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """How long later calls wait for a rank that does not come."""
        self._timeout = timeout
        for native in self._all():
            native.set_timeout(milliseconds(timeout))

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Leaves, once the calls that were started are over. Waits for no rank."""
        if self._callbacks is not None:
            self._callbacks.finish()
        for native in reversed(self._all()):
            if native.is_destroyed:
                continue
            try:
                native.finalize()
            except Error as error:
                warnings.warn(f"leaving a process group: {error}", stacklevel=2)
            native.destroy()

    def abort(self) -> None:
        """Ends all calls here, on every rank, with an error."""
        for native in self._all():
            if not native.is_destroyed:
                native.abort("the process group was aborted")

    def _all(self) -> list[_native.Communicator]:
        return [self._native, *self._parts]

    def _part(self, name: str) -> _native.Communicator:
        """Another communicator of the same ranks. All its members make it, each when it needs it."""
        part = self._native.subgroup(list(range(self._size)), name)
        part.set_timeout(milliseconds(self._timeout))
        self._parts.append(part)
        return part

    def split_group(self, new_ranks: list[int], timeout: timedelta | None = None, opts: Any = None,
                    group_name: str | None = None, group_desc: str | None = None,
                    device_types: list[torch.device] | None = None) -> Group | None:
        """A group of these ranks of this one. Ranks that are not in the list get None, and need not call it."""
        if self._rank not in new_ranks:
            return None
        native = self.native.subgroup(list(new_ranks), "split")
        wait = timeout or self._timeout
        native.set_timeout(milliseconds(wait))
        part = Group(native, self._store, wait)
        if group_name is not None:
            part._set_group_name(group_name)
        part._set_group_desc(group_desc or f"split of {self.group_desc}")
        return part

    # --- how a call is made

    def _launch(self, opts: Any, tensors: Sequence[torch.Tensor], start: Callable[[int], _Starts],
                result: list[torch.Tensor], finish: Callable[[], None] | None = None, source: int = -1) -> dist.Work | None:
        """Starts what start(stream) starts, and makes a work of it. `tensors`: what it reads and writes."""
        for tensor in tensors:
            if tensor.is_cuda:
                return self._launch_on_stream(opts, tensors, start, result, finish, source)
        return self._collected(Work(self._started(opts, start(0)), result, finish, source), opts)

    def _collected(self, work: Work | OnStream, opts: Any) -> dist.Work | None:
        """Between _start_coalescing() and _end_coalescing() PyTorch waits for no single call: it gets none."""
        work._callbacks = self._callbacks_thread
        if opts is not None:
            self._calls += 1
            work._number = self._calls
        if self._together is None:
            return work
        self._together.append(work)
        return None

    @staticmethod
    def _started(opts: Any, natives: _Starts) -> _Starts:
        if opts is None:
            for native in natives:
                native.advance_by_itself(_PATIENCE)
            return natives
        timeout = opts.timeout
        if timeout > _NO_TIME:
            for native in natives:
                native.set_timeout(milliseconds(timeout))
        if opts.asyncOp:
            for native in natives:
                native.advance_by_itself(_PATIENCE)
        return natives

    def _launch_on_stream(self, opts: Any, tensors: Sequence[torch.Tensor], start: Callable[[int], _Starts],
                          result: list[torch.Tensor], finish: Callable[[], None] | None, source: int) -> dist.Work | None:
        device = next(tensor.device for tensor in tensors if tensor.is_cuda)
        current = torch.cuda.current_stream(device)
        stream = current
        if opts is None or opts.asyncOp:  # beside what the caller goes on to compute
            stream = self._streams.get(device) or self._streams.setdefault(device, torch.cuda.Stream(device))
            stream.wait_stream(current)
        natives = start(stream.cuda_stream)
        for tensor in tensors:
            if tensor.is_cuda:
                tensor.record_stream(stream)
        if finish is not None:
            with torch.cuda.stream(stream):
                finish()
        return self._collected(OnStream(natives, result, stream, source), opts)

    def _operator(self, op: dist.ReduceOp, dtype: torch.dtype) -> tuple[int, int, int]:
        """The library's type, how many elements of it are one of these, and the operator."""
        kind, many, native = combined(dtype, op)
        return kind, many, native if native >= 0 else self.native.premul_sum(op.factor, kind)

    def _drop(self, op: int) -> None:
        if op > Op.BXOR:
            self.native.destroy_operator(op)

    # --- collectives that combine

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *,
                  op: Any = None) -> dist.Work:
        # What PyTorch asks for most, as fast as Python can: one plain tensor, whose sum is waited for at once.
        if opts.__class__ is _ALL_REDUCE and len(tensors) == 1 and not opts.asyncOp and self._together is None:
            tensor = tensors[0]
            kind = PLAIN.get(tensor.dtype)
            plain = OPS.get(opts.reduceOp.op)
            if kind is not None and plain is not None and tensor.is_cpu and tensor.is_contiguous():
                self._calls += 1
                address = tensor.data_ptr()
                timeout = opts.timeout
                native = self._native if self._callbacks is None else self.native
                native.all_reduce(address, address, tensor.numel(), kind, plain, 0,
                                  milliseconds(timeout) if timeout > _NO_TIME else 0)
                return OVER
        if type(opts) is not c10d.AllreduceOptions:
            opts = _options(c10d.AllreduceOptions(), opts, op, timeout)
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if len(tensors) == 1:
            tensor = tensors[0]
            if tensor.layout is not torch.strided:
                return self._reduce_sparse(tensor, opts)
        return self._all_reduce(tensors, opts)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> dist.Work:
        return self._all_reduce(tensors, _options(c10d.AllreduceCoalescedOptions(), opts))

    def _all_reduce(self, tensors: list[torch.Tensor], opts: Any) -> dist.Work:
        redop = opts.reduceOp
        kind, many, op = self._operator(redop, wider(tensors[0].dtype))
        buffers, pairs = [], []
        for tensor in tensors:
            buffer = ready(tensor, wider(tensor.dtype))
            buffers.append(buffer)
            if buffer is not tensor:
                pairs.append((tensor, buffer))

        def start(stream: int) -> _Starts:
            natives = []
            for buffer in buffers:
                address = buffer.data_ptr()
                natives.append(self.native.start_all_reduce(address, address, buffer.numel() * many, kind, op, stream,
                                                            buffer))
            return natives

        work = self._launch(opts, buffers, start if len(buffers) == 1 else _in_group(start), tensors, copied(pairs))
        self._drop(op)
        return work

    def _reduce_sparse(self, tensor: torch.Tensor, opts: Any) -> dist.Work:
        """Sums sparse tensors: gathers the entries of all ranks, in the order of ranks, and has PyTorch add them."""
        if opts.reduceOp.op != _SUM or tensor.layout is not torch.sparse_coo:
            raise TypeError("the backend tutti reduces sparse tensors in COO layout, and by SUM only")
        mine = tensor.coalesce()
        entries = torch.tensor([mine._nnz()], dtype=torch.int64)
        counts = [torch.zeros_like(entries) for _ in range(self._size)]
        self.allgather([counts], [entries]).wait()
        numbers = [int(count) for count in counts]
        indices = mine.indices().t().contiguous()
        values = mine.values().contiguous()
        all_indices = [indices.new_empty((number, indices.size(1))) for number in numbers]
        all_values = [values.new_empty((number, *values.shape[1:])) for number in numbers]
        first = self.allgather([all_indices], [indices])
        second = self.allgather([all_values], [values])
        first.wait()

        def add() -> None:
            total = torch.sparse_coo_tensor(torch.cat(all_indices).t(), torch.cat(all_values), tensor.shape).coalesce()
            tensor.copy_(total)

        second.wait()
        add()
        return self._collected(Work([], [tensor]), opts)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None, *,
               root: int | None = None) -> dist.Work:
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if isinstance(opts, int):
            root, opts = opts, None
        opts = _options(c10d.ReduceOptions(), opts, op, timeout)
        if root is not None:
            opts.rootRank = root
        tensor = tensors[0]
        kind, many, operator = self._operator(opts.reduceOp, wider(tensor.dtype))
        buffer = ready(tensor, wider(tensor.dtype))
        at_root = opts.rootRank == self._rank
        work = self._launch(
            opts, [buffer], lambda stream: [
                self.native.start_reduce(buffer.data_ptr(), buffer.data_ptr() if at_root else 0, buffer.numel() * many,
                                         kind, operator, opts.rootRank, stream, buffer)
            ], tensors, copied([(tensor, buffer)]) if at_root else None)
        self._drop(operator)
        return work

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                       timeout: timedelta | None = None, *, op: Any = None) -> dist.Work:
        if isinstance(output_tensors, torch.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        opts = _options(c10d.ReduceScatterOptions(), opts, op, timeout)
        output, inputs = output_tensors[0], input_tensors[0]
        _same_number("reduce_scatter", "input", inputs, self._size)
        _of_one_type("reduce_scatter", [output, *inputs])
        kind, many, operator = self._operator(opts.reduceOp, wider(output.dtype))
        whole = ready(joined(inputs), wider(output.dtype))
        counts = [tensor.numel() * many for tensor in inputs]
        if inputs[self._rank].numel() != output.numel():
            raise ValueError(f"reduce_scatter: output has {output.numel()} elements, and input {self._rank}, which is "
                             f"for this rank, has {inputs[self._rank].numel()}")
        target = room(output, wider(output.dtype))
        equal = len(set(counts)) == 1
        work = self._launch(
            opts, [whole, target], lambda stream: [
                self.native.start_reduce_scatter(whole.data_ptr(), target.data_ptr(), counts[0], kind, operator, stream,
                                                 (whole, target)) if equal else
                self.native.start_reduce_scatter_v(whole.data_ptr(), counts, None, target.data_ptr(), kind, operator,
                                                   stream, (whole, target))
            ], [output], copied([(output, target)]))
        self._drop(operator)
        return work

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> dist.Work:
        return self.reduce_scatter_single_coalesced([output], [input], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                        opts: Any = None) -> dist.Work:
        opts = _options(c10d.ReduceScatterOptions(), opts)
        operators, calls, pairs, touched = [], [], [], []
        for output, input in zip(outputs, inputs, strict=True):
            _of_one_type("reduce_scatter_tensor", [output, input])
            _rows_of("reduce_scatter_tensor", "input", input, output, self._size)
            kind, many, operator = self._operator(opts.reduceOp, wider(output.dtype))
            operators.append(operator)
            source, target = ready(input, wider(input.dtype)), room(output, wider(output.dtype))
            pairs.append((output, target))
            touched += [source, target]
            calls.append((source, target, target.numel() * many, kind, operator))

        def start(stream: int) -> _Starts:
            return [
                self.native.start_reduce_scatter(source.data_ptr(), target.data_ptr(), count, kind, operator, stream,
                                                 (source, target)) for source, target, count, kind, operator in calls
            ]

        work = self._launch(opts, touched, start, outputs, copied(pairs))
        for operator in operators:
            self._drop(operator)
        return work

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- collectives that move

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *,
                  root: int | None = None) -> dist.Work:
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if isinstance(opts, int):
            root, opts = opts, None
        opts = _options(c10d.BroadcastOptions(), opts, None, timeout)
        if root is not None:
            opts.rootRank = root
        tensor, origin = tensors[0], opts.rootRank
        kind, many = moved(tensor.dtype)
        buffer = ready(tensor) if origin == self._rank else room(tensor)
        return self._launch(
            opts, [buffer], lambda stream: [
                self.native.start_broadcast(buffer.data_ptr(), buffer.data_ptr(), buffer.numel() * many, kind, origin,
                                            stream, buffer)
            ], tensors, copied([(tensor, buffer)]) if origin != self._rank else None)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                  timeout: timedelta | None = None) -> dist.Work:
        if isinstance(input_tensors, torch.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        opts = _options(c10d.AllgatherOptions(), opts, None, timeout)
        outputs, input = output_tensors[0], input_tensors[0]
        _same_number("all_gather", "output", outputs, self._size)
        _of_one_type("all_gather", [input, *outputs])
        if outputs[self._rank].numel() != input.numel():
            raise ValueError(f"all_gather: input has {input.numel()} elements, and output {self._rank}, which is for it, "
                             f"has {outputs[self._rank].numel()}")
        kind, many = moved(input.dtype)
        source = ready(input)
        whole, pairs = joined_room(outputs)
        counts = [output.numel() * many for output in outputs]
        equal = len(set(counts)) == 1
        return self._launch(
            opts, [source, whole], lambda stream: [
                self.native.start_all_gather(source.data_ptr(), whole.data_ptr(), counts[0], kind, stream,
                                             (source, whole)) if equal else
                self.native.start_all_gather_v(source.data_ptr(), whole.data_ptr(), counts, None, kind, stream,
                                               (source, whole))
            ], outputs, copied(pairs))

    def allgather_coalesced(self, output_lists: list[list[torch.Tensor]], input_list: list[torch.Tensor],
                            opts: Any = None) -> dist.Work:
        works = [self.allgather([outputs], [input], opts)
                 for outputs, input in zip(_by_input(output_lists, len(input_list)), input_list, strict=True)]
        return _both(works)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> dist.Work:
        return self.all_gather_single_coalesced([output], [input], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                    opts: Any = None) -> dist.Work:
        opts = _options(c10d.AllgatherOptions(), opts)
        calls, pairs, touched = [], [], []
        for output, input in zip(outputs, inputs, strict=True):
            _of_one_type("all_gather_into_tensor", [output, input])
            _rows_of("all_gather_into_tensor", "output", output, input, self._size)
            kind, many = moved(input.dtype)
            source, target = ready(input), room(output)
            pairs.append((output, target))
            touched += [source, target]
            calls.append((source, target, source.numel() * many, kind))

        def start(stream: int) -> _Starts:
            return [
                self.native.start_all_gather(source.data_ptr(), target.data_ptr(), count, kind, stream,
                                             (source, target)) for source, target, count, kind in calls
            ]

        return self._launch(opts, touched, start, outputs, copied(pairs))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
               timeout: timedelta | None = None, *, root: int | None = None) -> dist.Work:
        if isinstance(input_tensors, torch.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if isinstance(opts, int):
            root, opts = opts, None
        opts = _options(c10d.GatherOptions(), opts, None, timeout)
        origin = opts.rootRank if root is None else root
        input = input_tensors[0]
        source = ready(input)
        kind, many = moved(input.dtype)
        count = source.numel() * many
        outputs: list[torch.Tensor] = []
        whole, pairs = None, []
        if origin == self._rank:
            outputs = output_tensors[0]
            _same_number("gather", "output", outputs, self._size)
            _of_one_type("gather", [input, *outputs])
            _of_one_length("gather", outputs, input)
            whole, pairs = joined_room(outputs)
        elif output_tensors and output_tensors[0]:
            raise ValueError(f"gather: rank {origin} is the root; only it passes outputs")
        address = whole.data_ptr() if whole is not None else 0
        return self._launch(
            opts, [source] if whole is None else [source, whole], lambda stream: [
                self.native.start_gather(source.data_ptr(), address, count, kind, origin, stream, (source, whole))
            ], outputs, copied(pairs))

    def gather_single(self, output: torch.Tensor | None, input: torch.Tensor, opts: Any = None) -> dist.Work:
        opts = _options(c10d.GatherOptions(), opts)
        origin = opts.rootRank
        source = ready(input)
        kind, many = moved(input.dtype)
        target = None
        if origin == self._rank:
            assert output is not None
            _of_one_type("gather", [output, input])
            _rows_of("gather", "output", output, input, self._size)
            target = room(output)
        return self._launch(
            opts, [source] if target is None else [source, target], lambda stream: [
                self.native.start_gather(source.data_ptr(), target.data_ptr() if target is not None else 0,
                                         source.numel() * many, kind, origin, stream, (source, target))
            ], [] if output is None else [output], copied([(output, target)]) if target is not None else None)

    gather_into_tensor = gather_single

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                timeout: timedelta | None = None, *, root: int | None = None) -> dist.Work:
        if isinstance(output_tensors, torch.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if isinstance(opts, int):
            root, opts = opts, None
        opts = _options(c10d.ScatterOptions(), opts, None, timeout)
        origin = opts.rootRank if root is None else root
        output = output_tensors[0]
        kind, many = moved(output.dtype)
        target = room(output)
        whole = None
        if origin == self._rank:
            inputs = input_tensors[0]
            _same_number("scatter", "input", inputs, self._size)
            _of_one_type("scatter", [output, *inputs])
            _of_one_length("scatter", inputs, output)
            whole = joined(inputs)
        elif input_tensors and input_tensors[0]:
            raise ValueError(f"scatter: rank {origin} is the root; only it passes inputs")
        address = whole.data_ptr() if whole is not None else 0
        return self._launch(
            opts, [target] if whole is None else [whole, target], lambda stream: [
                self.native.start_scatter(address, target.data_ptr(), target.numel() * many, kind, origin, stream,
                                          (whole, target))
            ], [output], copied([(output, target)]))

    def all_to_all_single(self, output: torch.Tensor, input: torch.Tensor, output_split_sizes: list[int],
                          input_split_sizes: list[int], opts: Any = None,
                          timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.AllToAllOptions(), opts, None, timeout)
        _of_one_type("all_to_all_single", [output, input])
        if not input.is_contiguous() or not output.is_contiguous():  # as the other backends have it
            raise ValueError("all_to_all_single: Tensors must be contiguous")
        kind, many = moved(input.dtype)
        sent = self._splits_of("input", input, input_split_sizes, many)
        received = self._splits_of("output", output, output_split_sizes, many)
        return self._all_to_all(opts, input, sent, output, received, kind, [output], None)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None,
                 timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.AllToAllOptions(), opts, None, timeout)
        _same_number("all_to_all", "output", outputs, self._size)
        _same_number("all_to_all", "input", inputs, self._size)
        _of_one_type("all_to_all", [*outputs, *inputs])
        kind, many = moved(inputs[0].dtype)
        source = joined(inputs)
        whole, pairs = joined_room(outputs)
        return self._all_to_all(opts, source, [tensor.numel() * many for tensor in inputs], whole,
                                [tensor.numel() * many for tensor in outputs], kind, outputs, copied(pairs))

    def _splits_of(self, name: str, tensor: torch.Tensor, sizes: list[int], many: int) -> list[int]:
        rows = tensor.size(0) if tensor.dim() > 0 else tensor.numel()
        if not sizes:
            if rows % self._size != 0:
                raise ValueError(f"all_to_all_single: the first dimension of {name}, {rows}, is no multiple of the "
                                 f"{self._size} ranks; say the splits")
            sizes = [rows // self._size] * self._size
        if len(sizes) != self._size or sum(sizes) != rows:
            raise ValueError(f"all_to_all_single: the {name} splits {sizes} must be {self._size} numbers whose sum is "
                             f"{rows}, the first dimension")
        row = tensor.numel() // rows * many if rows else 0
        return [size * row for size in sizes]

    def _all_to_all(self, opts: Any, source: torch.Tensor, sent: list[int], target: torch.Tensor, received: list[int],
                    kind: int, result: list[torch.Tensor], finish: Callable[[], None] | None) -> dist.Work:
        keep = (source, target)
        # Which form the ranks take must not depend on what one of them has: the form of different lengths always does.
        return self._launch(
            opts, keep, lambda stream: [
                self.native.start_all_to_all_v(source.data_ptr(), sent, None, target.data_ptr(), received, None, kind,
                                               stream, keep)
            ], result, finish)

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        opts = _options(c10d.BarrierOptions(), opts, None, timeout)
        work = self._launch(opts, [], lambda stream: [self.native.start_barrier(0, None)], [])
        if opts.device is not None and opts.device.type == "cuda":
            torch.cuda.current_stream(opts.device).synchronize()
        return work

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Blocks until all ranks have come. Rank 0 raises RuntimeError if a rank does not come within `timeout`, and
        names the first such rank, or all of them; the others then raise too."""
        if self._monitor is None:
            self._monitor = self._part("monitored_barrier")
        wait = self._timeout if timeout is None else timeout
        _monitored.barrier(self._monitor, wait.total_seconds(), wait_all_ranks)

    # --- send and receive

    def send(self, tensors: list[torch.Tensor], dstRank: int, tag: int = 0) -> dist.Work:
        tensor = tensors[0]
        source = ready(tensor)
        kind, many = moved(tensor.dtype)
        lane = self._lane(tag)
        return self._launch(
            None, [source], lambda stream: [
                lane.start_send(source.data_ptr(), source.numel() * many, kind, dstRank, tag & 0xFFFF, stream, source)
            ], tensors)

    def recv(self, tensors: list[torch.Tensor], srcRank: int, tag: int = 0) -> dist.Work:
        tensor = tensors[0]
        target = room(tensor)
        kind, many = moved(tensor.dtype)
        lane = self._lane(tag)
        return self._launch(
            None, [target], lambda stream: [
                lane.start_receive(target.data_ptr(), target.numel() * many, kind, srcRank, tag & 0xFFFF, stream, target)
            ], tensors, copied([(tensor, target)]), srcRank)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> dist.Work:
        raise NotImplementedError("the backend tutti receives from a rank that is named: pass src")

    def _lane(self, tag: int) -> _native.Communicator:
        """The communicator for messages with this tag: so that a receive finds its tag in whatever order they come."""
        place = tag % _TAGS
        if place == 0:
            return self.native
        if place not in self._of_tags:
            self._of_tags[place] = self._part(f"tag {place}")
        return self._of_tags[place]

    def _start_coalescing(self, device: torch.device) -> None:
        self._together = []

    def _end_coalescing(self, device: torch.device) -> dist.Work:
        works, self._together = self._together or [], None
        return _both(works)


def _options(made: Any, given: Any, op: Any = None, timeout: timedelta | None = None) -> Any:
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


def _in_group(start: Callable[[int], _Starts]) -> Callable[[int], _Starts]:
    def grouped(stream: int) -> _Starts:
        _native.group_start()
        try:
            return start(stream)
        finally:
            _native.group_end()

    return grouped


def _both(works: list[Any]) -> dist.Work:
    """One work of several."""
    if len(works) == 1:
        return works[0]
    if any(isinstance(work, OnStream) for work in works):
        last = works[-1]
        for work in works[:-1]:
            last._natives += work._natives
            last._result += work._result
        return last
    natives = [native for work in works for native in work._natives]
    finishes = [work._finish for work in works if work._finish is not None]

    def finish() -> None:
        for each in finishes:
            each()

    both = Work(natives, [tensor for work in works for tensor in work._result], finish if finishes else None)
    if works:
        both._callbacks, both._number = works[-1]._callbacks, works[-1]._number
    return both


def _by_input(lists: list[list[torch.Tensor]], inputs: int) -> list[list[torch.Tensor]]:
    """all_gather_coalesced has its outputs by rank and then by input; this is by input and then by rank."""
    if any(len(row) != inputs for row in lists):
        raise ValueError(f"all_gather_coalesced: each list of outputs must have {inputs} tensors, one for each input")
    return [[row[i] for row in lists] for i in range(inputs)]


def _same_number(call: str, name: str, tensors: list[torch.Tensor], size: int) -> None:
    if len(tensors) != size:
        raise ValueError(f"{call}: there must be {size} {name} tensors, one for each rank; there are {len(tensors)}")


def _of_one_type(call: str, tensors: list[torch.Tensor]) -> None:
    first = tensors[0]
    for tensor in tensors:
        if tensor.dtype != first.dtype or tensor.device != first.device:
            raise TypeError(f"{call}: all tensors must be of one type and on one device, not {first.dtype} on "
                            f"{first.device} and {tensor.dtype} on {tensor.device}")


def _of_one_length(call: str, tensors: list[torch.Tensor], like: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.numel() != like.numel():
            raise ValueError(f"{call}: all tensors must have as many elements: {like.numel()} and {tensor.numel()}")


def _rows_of(call: str, name: str, whole: torch.Tensor, row: torch.Tensor, size: int) -> None:
    if whole.numel() != row.numel() * size:
        raise ValueError(f"{call}: {name} must have {size} times as many elements as the other tensor, "
                         f"{size * row.numel()}; it has {whole.numel()}")
