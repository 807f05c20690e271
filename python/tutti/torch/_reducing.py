"""Collectives that combine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti._communicator import milliseconds
from tutti.torch._calls import Calls, Starts, in_group, options_of
from tutti.torch._checks import of_one_type, rows_of, same_number
from tutti.torch._tensors import OPS, PLAIN, copied, joined, ready, room, wider
from tutti.torch._work import OVER, Work

_NO_TIME = timedelta(0)
_STRIDED = torch.strided
_ALL_REDUCE = c10d.AllreduceOptions
_SUM = dist.ReduceOp.RedOpType.SUM
_PLAIN_SUM = OPS[_SUM]


class Reducing(Calls):
    """all_reduce, reduce and reduce_scatter, in their forms."""

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *,
                  op: Any = None) -> dist.Work:
        # What PyTorch asks for most, as fast as Python can: one plain tensor, whose sum is waited for at once.
        if opts.__class__ is _ALL_REDUCE and len(tensors) == 1 and not opts.asyncOp:
            tensor = tensors[0]
            kind = PLAIN.get(tensor.dtype)
            plain = _PLAIN_SUM if opts.reduceOp == _SUM else OPS.get(opts.reduceOp.op)  # hashing takes long
            if (kind is not None and plain is not None and tensor.is_cpu and tensor.layout is _STRIDED
                    and tensor.is_contiguous() and not tensor.is_neg()):
                self._calls += 1
                address = tensor.data_ptr()
                timeout = opts.timeout
                native = self._native if self._callbacks is None else self.native
                native.all_reduce(address, address, tensor.numel(), kind, plain, 0,
                                  milliseconds(timeout) if timeout > _NO_TIME else 0, tensor)
                return OVER
        if type(opts) is not c10d.AllreduceOptions:
            opts = options_of(c10d.AllreduceOptions(), opts, op, timeout)
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if len(tensors) == 1:
            tensor = tensors[0]
            if tensor.layout is not torch.strided:
                return self._reduce_sparse(tensor, opts)
        return self._all_reduce(tensors, opts)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> dist.Work:
        return self._all_reduce(tensors, options_of(c10d.AllreduceCoalescedOptions(), opts))

    def _all_reduce(self, tensors: list[torch.Tensor], opts: Any) -> dist.Work:
        of_one_type("all_reduce", tensors)
        buffers, pairs = [], []
        for tensor in tensors:
            buffer = ready(tensor, wider(tensor.dtype))
            buffers.append(buffer)
            if buffer is not tensor:
                pairs.append((tensor, buffer))

        kind, many, op = self._operator(opts.reduceOp, wider(tensors[0].dtype))

        def start(stream: int) -> Starts:
            natives = []
            for buffer in buffers:
                address = buffer.data_ptr()
                natives.append(self.native.start_all_reduce(address, address, buffer.numel() * many, kind, op, stream,
                                                            buffer))
            return natives

        try:
            return self._launch(opts, buffers, start if len(buffers) == 1 else in_group(start), tensors, copied(pairs))
        finally:
            self._drop(op)

    def _reduce_sparse(self, tensor: torch.Tensor, opts: Any) -> dist.Work:
        """Sums sparse tensors: gathers the entries of all ranks, in the order of ranks, and has PyTorch add them."""
        if opts.reduceOp.op != _SUM or tensor.layout is not torch.sparse_coo:
            raise TypeError("the backend tutti reduces sparse tensors in COO layout, and by SUM only; this one has the "
                            f"layout {tensor.layout}, and the operator is {opts.reduceOp.op.name}")
        mine = tensor.coalesce()
        entries = torch.tensor([mine._nnz()], dtype=torch.int64)
        counts = [torch.zeros_like(entries) for _ in range(self._size)]
        super().allgather([counts], [entries]).wait()
        numbers = [int(count) for count in counts]
        indices = mine.indices().t().contiguous()
        values = mine.values().contiguous()
        all_indices = [indices.new_empty((number, indices.size(1))) for number in numbers]
        all_values = [values.new_empty((number, *values.shape[1:])) for number in numbers]
        first = super().allgather([all_indices], [indices])
        second = super().allgather([all_values], [values])
        first.wait()

        def add() -> None:
            total = torch.sparse_coo_tensor(torch.cat(all_indices).t(), torch.cat(all_values), tensor.shape).coalesce()
            tensor.copy_(total)

        second.wait()
        add()
        return Work([], [tensor], self._callbacks_thread, self._numbered(opts))

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None, *,
               root: int | None = None) -> dist.Work:
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if isinstance(opts, int):
            root, opts = opts, None
        opts = options_of(c10d.ReduceOptions(), opts, op, timeout)
        if root is not None:
            opts.rootRank = root
        tensor = tensors[0]
        buffer = ready(tensor, wider(tensor.dtype))
        at_root = opts.rootRank == self._rank
        kind, many, operator = self._operator(opts.reduceOp, wider(tensor.dtype))
        try:
            return self._launch(
                opts, [buffer], lambda stream: [
                    self.native.start_reduce(buffer.data_ptr(), buffer.data_ptr() if at_root else 0,
                                             buffer.numel() * many, kind, operator, opts.rootRank, stream, buffer)
                ], tensors, copied([(tensor, buffer)]) if at_root else None)
        finally:
            self._drop(operator)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None,
                       timeout: timedelta | None = None, *, op: Any = None) -> dist.Work:
        if isinstance(output_tensors, torch.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        opts = options_of(c10d.ReduceScatterOptions(), opts, op, timeout)
        output, inputs = output_tensors[0], input_tensors[0]
        same_number("reduce_scatter", "input", inputs, self._size)
        of_one_type("reduce_scatter", [output, *inputs])
        whole = ready(joined(inputs), wider(output.dtype))
        if inputs[self._rank].numel() != output.numel():
            raise ValueError(f"reduce_scatter: output has {output.numel()} elements, and input {self._rank}, which is "
                             f"for this rank, has {inputs[self._rank].numel()}")
        target = room(output, wider(output.dtype))
        kind, many, operator = self._operator(opts.reduceOp, wider(output.dtype))
        counts = [tensor.numel() * many for tensor in inputs]
        equal = len(set(counts)) == 1
        try:
            return self._launch(
                opts, [whole, target], lambda stream: [
                    self.native.start_reduce_scatter(whole.data_ptr(), target.data_ptr(), counts[0], kind, operator,
                                                     stream, (whole, target)) if equal else
                    self.native.start_reduce_scatter_v(whole.data_ptr(), counts, None, target.data_ptr(), kind,
                                                       operator, stream, (whole, target))
                ], [output], copied([(output, target)]))
        finally:
            self._drop(operator)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> dist.Work:
        return Reducing.reduce_scatter_single_coalesced(self, [output], [input], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                        opts: Any = None) -> dist.Work:
        opts = options_of(c10d.ReduceScatterOptions(), opts)
        operators, calls, pairs, touched = [], [], [], []

        def start(stream: int) -> Starts:
            return [
                self.native.start_reduce_scatter(source.data_ptr(), target.data_ptr(), count, kind, operator, stream,
                                                 (source, target)) for source, target, count, kind, operator in calls
            ]

        try:
            for output, input in zip(outputs, inputs, strict=True):
                of_one_type("reduce_scatter_tensor", [output, input])
                rows_of("reduce_scatter_tensor", "input", input, output, self._size)
                kind, many, operator = self._operator(opts.reduceOp, wider(output.dtype))
                operators.append(operator)
                source, target = ready(input, wider(input.dtype)), room(output, wider(output.dtype))
                pairs.append((output, target))
                touched += [source, target]
                calls.append((source, target, target.numel() * many, kind, operator))
            return self._launch(opts, touched, start, outputs, copied(pairs))
        finally:
            for operator in operators:
                self._drop(operator)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
