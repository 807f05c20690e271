"""Collectives that move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from operator import index
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti import _native
from tutti.torch._calls import Calls, options_of
from tutti.torch._checks import of_one_length, of_one_type, rows_of, same_number
from tutti.torch._tensors import copied, joined, joined_room, moved, ready, room


_Pairs = list[tuple[torch.Tensor, torch.Tensor]]  # to copy to, and from


class Moving(Calls):
    """broadcast, all_gather, gather, scatter, all_to_all and barrier, in their forms."""

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *,
                  root: int | None = None) -> dist.Work:
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if isinstance(opts, int):
            root, opts = opts, None
        opts = options_of(c10d.BroadcastOptions(), opts, None, timeout)
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
        opts = options_of(c10d.AllgatherOptions(), opts, None, timeout)
        outputs = output_tensors[0]
        pairs: _Pairs = []
        touched: list[torch.Tensor] = []
        call = self._gather_all(outputs, input_tensors[0], pairs, touched)
        return self._launch(opts, touched, lambda stream: [call(stream)], outputs, copied(pairs))

    def _gather_all(self, outputs: list[torch.Tensor], input: torch.Tensor, pairs: _Pairs,
                    touched: list[torch.Tensor]) -> Callable[[int], _native.Work]:
        """What starts an all_gather into a list; it adds to what is then to be copied, and to what the call touches."""
        same_number("all_gather", "output", outputs, self._size)
        of_one_type("all_gather", [input, *outputs])
        if outputs[self._rank].numel() != input.numel():
            raise ValueError(f"all_gather: input has {input.numel()} elements, and output {self._rank}, which is for it, "
                             f"has {outputs[self._rank].numel()}")
        kind, many = moved(input.dtype)
        source = ready(input)
        whole, copies = joined_room(outputs)
        pairs += copies
        touched += [source, whole]
        counts = [output.numel() * many for output in outputs]
        if len(set(counts)) == 1:
            return lambda stream: self.native.start_all_gather(source.data_ptr(), whole.data_ptr(), counts[0], kind, stream,
                                                               (source, whole))
        return lambda stream: self.native.start_all_gather_v(source.data_ptr(), whole.data_ptr(), counts, None, kind,
                                                             stream, (source, whole))

    def allgather_coalesced(self, output_lists: list[list[torch.Tensor]], input_list: list[torch.Tensor],
                            opts: Any = None) -> dist.Work:
        opts = options_of(c10d.AllgatherOptions(), opts)
        calls, pairs, touched, results = [], [], [], []
        for outputs, input in zip(_by_input(output_lists, len(input_list)), input_list, strict=True):
            calls.append(self._gather_all(outputs, input, pairs, touched))
            results += outputs
        return self._launch(opts, touched, lambda stream: [call(stream) for call in calls], results, copied(pairs))

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> dist.Work:
        return Moving.all_gather_single_coalesced(self, [output], [input], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                    opts: Any = None) -> dist.Work:
        opts = options_of(c10d.AllgatherOptions(), opts)
        calls, pairs, touched = [], [], []
        for output, input in zip(outputs, inputs, strict=True):
            of_one_type("all_gather_into_tensor", [output, input])
            rows_of("all_gather_into_tensor", "output", output, input, self._size)
            kind, many = moved(input.dtype)
            source, target = ready(input), room(output)
            pairs.append((output, target))
            touched += [source, target]
            calls.append((source, target, source.numel() * many, kind))

        def start(stream: int) -> Starts:
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
        opts = options_of(c10d.GatherOptions(), opts, None, timeout)
        origin = opts.rootRank if root is None else root
        input = input_tensors[0]
        source = ready(input)
        kind, many = moved(input.dtype)
        count = source.numel() * many
        outputs: list[torch.Tensor] = []
        whole, pairs = None, []
        if origin == self._rank:
            outputs = output_tensors[0]
            same_number("gather", "output", outputs, self._size)
            of_one_type("gather", [input, *outputs])
            of_one_length("gather", outputs, input)
            whole, pairs = joined_room(outputs)
        elif output_tensors and output_tensors[0]:
            raise ValueError(f"gather: rank {origin} is the root; only it passes outputs")
        address = whole.data_ptr() if whole is not None else 0
        return self._launch(
            opts, [source] if whole is None else [source, whole], lambda stream: [
                self.native.start_gather(source.data_ptr(), address, count, kind, origin, stream, (source, whole))
            ], outputs, copied(pairs))

    def gather_single(self, output: torch.Tensor | None, input: torch.Tensor, opts: Any = None) -> dist.Work:
        opts = options_of(c10d.GatherOptions(), opts)
        origin = opts.rootRank
        source = ready(input)
        kind, many = moved(input.dtype)
        target = None
        if origin == self._rank:
            if output is None:
                raise ValueError(f"gather: rank {origin} is the root, and needs an output")
            of_one_type("gather", [output, input])
            rows_of("gather", "output", output, input, self._size)
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
        opts = options_of(c10d.ScatterOptions(), opts, None, timeout)
        origin = opts.rootRank if root is None else root
        output = output_tensors[0]
        kind, many = moved(output.dtype)
        target = room(output)
        whole = None
        if origin == self._rank:
            inputs = input_tensors[0]
            same_number("scatter", "input", inputs, self._size)
            of_one_type("scatter", [output, *inputs])
            of_one_length("scatter", inputs, output)
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
        opts = options_of(c10d.AllToAllOptions(), opts, None, timeout)
        of_one_type("all_to_all_single", [output, input])
        if not input.is_contiguous() or not output.is_contiguous():  # as the other backends have it
            raise ValueError("all_to_all_single: Tensors must be contiguous")
        kind, many = moved(input.dtype)
        sent = self._splits_of("input", input, input_split_sizes, many)
        received = self._splits_of("output", output, output_split_sizes, many)
        return self._all_to_all(opts, input, sent, output, received, kind, [output], None)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None,
                 timeout: timedelta | None = None) -> dist.Work:
        opts = options_of(c10d.AllToAllOptions(), opts, None, timeout)
        same_number("all_to_all", "output", outputs, self._size)
        same_number("all_to_all", "input", inputs, self._size)
        of_one_type("all_to_all", [*outputs, *inputs])
        kind, many = moved(inputs[0].dtype)
        source = joined(inputs)
        whole, pairs = joined_room(outputs)
        return self._all_to_all(opts, source, [tensor.numel() * many for tensor in inputs], whole,
                                [tensor.numel() * many for tensor in outputs], kind, outputs, copied(pairs))

    def _splits_of(self, name: str, tensor: torch.Tensor, sizes: list[int], many: int) -> list[int]:
        rows = tensor.size(0) if tensor.dim() > 0 else tensor.numel()
        if not sizes:
            if rows % self._size != 0:
                raise RuntimeError(f"all_to_all_single: the first dimension of {name}, {rows}, does not divide equally "
                                   f"across group size {self._size}; say the splits")
            sizes = [rows // self._size] * self._size
        sizes = [index(size) for size in sizes]
        if len(sizes) != self._size or min(sizes) < 0 or sum(sizes) != rows:
            raise RuntimeError(f"all_to_all_single: the {name} splits {sizes} must be {self._size} integers, none "
                               f"negative, whose sum is {rows}, the first dimension")
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
        opts = options_of(c10d.BarrierOptions(), opts, None, timeout)
        work = self._launch(opts, [], lambda stream: [self.native.start_barrier(0, None)], [])
        if opts.device is not None and opts.device.type == "cuda":
            torch.cuda.current_stream(opts.device).synchronize()
        return work


def _by_input(lists: list[list[torch.Tensor]], inputs: int) -> list[list[torch.Tensor]]:
    """all_gather_coalesced has its outputs by rank and then by input; this is by input and then by rank."""
    if any(len(row) != inputs for row in lists):
        raise ValueError(f"all_gather_coalesced: each list of outputs must have {inputs} tensors, one for each input")
    return [[row[i] for row in lists] for i in range(inputs)]
