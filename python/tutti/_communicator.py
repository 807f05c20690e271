"""Communicators over NumPy arrays, and over whatever else has the buffer protocol."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from tutti import _native
from tutti._error import Error
from tutti._types import DType, Op, Order, dtype_of, is_swapped_or_opaque

#: What has the buffer protocol, C-contiguous: a NumPy array, a bytearray, a memoryview, a Memory. Outputs are writable.
Buffer = Any
#: Seconds, or a timedelta.
Duration = float | datetime.timedelta


def milliseconds(duration: Duration | None) -> int:
    """Of a duration, at least 1; of None 0, which the library takes for "not set"."""
    if duration is None:
        return 0
    if not seconds(duration) > 0:
        raise ValueError(f"a duration must be positive, not {duration}")
    return max(1, round(min(seconds(duration), 1e9) * 1000))


def seconds(duration: Duration) -> float:
    return duration.total_seconds() if isinstance(duration, datetime.timedelta) else float(duration)


def _memory_of(buffer: Buffer, name: str, writable: bool) -> _native.Buffer:
    try:
        return _native.Buffer(buffer, writable)
    except (BufferError, ValueError, TypeError) as error:
        wanted = "a writable C-contiguous buffer" if writable else "a C-contiguous buffer"
        raise TypeError(f"{name} must be {wanted}, such as a NumPy array: {error}") from None


class _Elements:
    """A buffer as the library takes it: an address, a number of elements, and their type. It holds the buffer."""

    __slots__ = ("address", "count", "dtype", "_view")

    def __init__(self, buffer: Buffer, name: str, writable: bool, dtype: DType | None):
        view = _memory_of(buffer, name, writable)
        if is_swapped_or_opaque(view.format):
            raise TypeError(f'{name} has elements "{view.format}": of the other byte order, or no numbers')
        if dtype is not None:
            dtype = DType(dtype)
        else:
            dtype = dtype_of(view.format, view.item_bytes)
            if dtype is None:
                raise TypeError(
                    f'{name} has elements of {view.item_bytes} bytes, "{view.format}", which are no type of the library; '
                    "dtype= can name the one that they are to be taken for"
                )
        if view.bytes % dtype.bytes != 0:
            raise ValueError(f"{name} has {view.bytes} bytes, which are no whole number of {dtype.name} elements")
        self.address = view.address if view.bytes else 0
        self.count = view.bytes // dtype.bytes
        self.dtype = dtype
        self._view = view


class Work:
    """A started call. It goes on if it is dropped; its buffers are kept until it is over.

    Threads: any, several at once too.
    """

    def __init__(self, native: _native.Work, result: Any):
        self._native = native
        self._result = result

    def wait(self, timeout: Duration | None = None) -> Any:
        """Blocks until the call is over, and returns its output. Raises the call's Error.

        timeout: how long to block, at most. Then TimeoutError is raised, and the call goes on.
        """
        if not self._native.wait(-1.0 if timeout is None else milliseconds(timeout) / 1000):
            raise TimeoutError(f"the call is not over after {timeout}; it goes on")
        return self._result

    def test(self) -> bool:
        """Whether the call is over; advances what can advance. Does not block. Raises the call's Error."""
        if not self._native.is_over():
            return False
        self._native.wait(-1.0)
        return True

    def add_done_callback(self, tell: Callable[[Error | None], None]) -> None:
        """Once the call is over, a thread of the library calls tell(None), or tell(error).

        If it is over now, this thread does so at once. From now on that thread also advances the call. `tell` must not
        block. What it raises is reported as unraisable.
        """
        self._native.on_complete(tell)


class Communicator:
    """An ordered group of ranks that make the same calls in the same order.

    init() and from_store() join a job. Every collective is here twice: `all_reduce()` blocks and returns its output;
    `start_all_reduce()` returns a Work at once. Buffers have the buffer protocol; `dtype=` names the type of their
    elements where the protocol cannot, as for bfloat16 in an array of uint16. Where `output` may be None, the call is in
    place, or the output is not of this rank. Buffers must stay untouched until the call is over.

    timeout=: how long this call waits for a peer that does not come; else as long as the communicator says.

    Threads: calls of one communicator are made by one thread at a time. The interpreter's lock is given up while a call
    waits. Ctrl-C ends the wait with KeyboardInterrupt; the call itself goes on.

    Errors: Error. It says which of them leave the communicator usable. A fork()ed child cannot use its parent's.

    With `with` it is left at the end of the block.
    """

    def __init__(self, native: _native.Communicator):
        self._native = native
        self.rank: int = native.rank  #: the number of this rank, [0, size)
        self.size: int = native.size  #: how many ranks there are

    def __repr__(self) -> str:
        state = ", left" if self._native.is_destroyed else ""
        return f"<tutti.Communicator: rank {self.rank} of {self.size}{state}>"

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        if kind is None and not self._native.is_destroyed:
            self.finalize()
        else:
            self.destroy()

    # --- other communicators, and the end of this one

    def split(self, color: int, key: int = 0) -> Communicator | None:
        """Collective: ranks that pass the same color form a communicator, ordered by (key, rank here).

        A negative color takes part and gets None. Blocks.
        """
        part = self._native.split(color, key)
        return Communicator(part) if part is not None else None

    def subgroup(self, ranks: Sequence[int], name: str = "") -> Communicator:
        """A communicator of these ranks, in this order. Only they call it, with the same list and name.

        Does not block. The first that a rank makes with a list and a name belongs to the first of the others, and so on.
        """
        return Communicator(self._native.subgroup(list(ranks), name))

    def shrink(self) -> Communicator:
        """A communicator of the ranks that are neither lost nor have left, in their old order: to go on after PEER_LOST.

        All that are left call it; it waits for them. Raises PARTITIONED where these are no majority, EXPELLED if this
        rank was given up itself, and TIMEOUT if one that is left does not call it.
        """
        return Communicator(self._native.shrink())

    def finalize(self) -> None:
        """Leaves once the started calls are over. Raises the communicator's failure, or MISMATCH if a rank that left
        before had made other calls. Then only destroy() is allowed."""
        try:
            self._native.finalize()
        finally:
            self._native.destroy()

    def destroy(self) -> None:
        """Leaves now, if it has not been left. Waits for no rank, but for calls of other threads: abort() ends these."""
        self._native.destroy()

    def abort(self, reason: str) -> None:
        """Fails this communicator on every rank with ABORTED. Thread-safe: also during a call of another thread."""
        self._native.abort(reason)

    @property
    def failure(self) -> Error | None:
        """What the next call would raise, as far as is known. Does not block. Thread-safe."""
        return self._native.failure()

    # --- how later calls are made

    def set_timeout(self, timeout: Duration | None) -> None:
        """How long calls here wait for a peer that does not come; None: as long as was said when joining."""
        self._native.set_timeout(milliseconds(timeout))

    def set_algorithm(self, algorithm: str | None) -> None:
        """The algorithm of later collectives, by a name that `tutti plan --list` prints; None: the table chooses. The
        same on every rank."""
        self._native.set_algorithm(algorithm)

    def set_order(self, order: Order) -> None:
        """The order in which later calls combine. The same on every rank."""
        self._native.set_order(order)

    def choose(self, collective: str, count: int, dtype: DType) -> str:
        """The algorithm that the table chooses for such a call: "all_reduce" of `count` elements, and so on."""
        return self._native.choose(collective, count, dtype)

    def premul_sum(self, scalar: float, dtype: DType) -> int:
        """An operator: a sum before which this rank multiplies its elements by `scalar`. For calls here, and for
        elements of this type only. All ranks use such an operator in a call. Raises ValueError for a scalar that is not of
        this type, and for BOOL."""
        return self._native.premul_sum(scalar, dtype)

    def allocate(self, bytes: int) -> _native.Memory:
        """Collective: new memory that the peers of this host read and write directly. numpy.frombuffer() takes it.
        Every rank asks for the same number. Blocks."""
        return self._native.allocate(bytes)

    def adopt(self, buffer: Buffer) -> _native.Adoption:
        """Shares the memory of `buffer` with the ranks of this host, in place: the array stays where it is, and calls on
        it are as fast as on memory of allocate(). Not collective.

        Until the result's release(), or the end of `with world.adopt(array):`, or until the result is dropped. It keeps
        the array. Blocks while the memory is copied, twice. The memory is whole pages of an ordinary array: no mapped
        file. No thread may use it meanwhile. A fork()ed child shares it. Communicator::adopt() in tutti/communicator.h
        says all that. Raises TypeError, Error (INVALID_ARGUMENT, SYSTEM); then nothing has changed.
        """
        view = _memory_of(buffer, "buffer", True)
        return self._native.adopt(view.address if view.bytes else 0, view.bytes, view)

    # --- collectives, started

    def start_all_reduce(self, input: Buffer, output: Buffer = None, op: int = Op.SUM, *, dtype: DType | None = None,
                         timeout: Duration | None = None) -> Work:
        """output[0, n) on every rank = the reduction over all ranks of input[0, n). In place: output is None."""
        source, target = self._pair(input, output, dtype)
        self._same("all_reduce", source.count, "output", target.count)
        return self._started(
            self._native.start_all_reduce(source.address, target.address, source.count, source.dtype, op, 0,
                                          (source, target)), input if output is None else output, timeout)

    def start_reduce(self, input: Buffer, output: Buffer = None, root: int = 0, op: int = Op.SUM, *,
                     dtype: DType | None = None, timeout: Duration | None = None) -> Work:
        """output[0, n) on rank `root` = the reduction over all ranks of input[0, n). In place there: output is None.
        Other ranks' output is not looked at."""
        source = _Elements(input, "input", self.rank == root and output is None, dtype)
        target = source
        if self.rank == root:
            source, target = self._pair(input, output, dtype)
            self._same("reduce", source.count, "output", target.count)
        result = None if self.rank != root else input if output is None else output
        return self._started(
            self._native.start_reduce(source.address, target.address if self.rank == root else 0, source.count,
                                      source.dtype, op, root, 0, (source, target)), result, timeout)

    def start_broadcast(self, buffer: Buffer, root: int = 0, *, dtype: DType | None = None,
                        timeout: Duration | None = None) -> Work:
        """buffer[0, n) on every rank = buffer[0, n) of rank `root`."""
        data = _Elements(buffer, "buffer", self.rank != root, dtype)
        return self._started(
            self._native.start_broadcast(data.address, data.address, data.count, data.dtype, root, 0, data), buffer,
            timeout)

    def start_reduce_scatter(self, input: Buffer, output: Buffer, op: int = Op.SUM, *, counts: Sequence[int] | None = None,
                             dtype: DType | None = None, timeout: Duration | None = None) -> Work:
        """output on rank r = the reduction over all ranks of row r of input.

        Rows have n elements, the length of output; or counts[r], the same list on every rank."""
        source, target = self._pair(input, output, dtype)
        keep = (source, target)
        if counts is not None:
            counts = self._rows("reduce_scatter", counts, "input", source.count)
            self._same("reduce_scatter", counts[self.rank], "output", target.count)
            native = self._native.start_reduce_scatter_v(source.address, counts, None, target.address, source.dtype, op,
                                                         0, keep)
        else:
            self._same("reduce_scatter", self.size * target.count, "input", source.count)
            native = self._native.start_reduce_scatter(source.address, target.address, target.count, source.dtype, op, 0,
                                                       keep)
        return self._started(native, output, timeout)

    def start_all_gather(self, input: Buffer, output: Buffer, *, counts: Sequence[int] | None = None,
                         dtype: DType | None = None, timeout: Duration | None = None) -> Work:
        """Row r of output on every rank = input of rank r.

        Rows have n elements, the length of input; or counts[r], the same list on every rank."""
        source, target = self._pair(input, output, dtype)
        keep = (source, target)
        if counts is not None:
            counts = self._rows("all_gather", counts, "output", target.count)
            self._same("all_gather", counts[self.rank], "input", source.count)
            native = self._native.start_all_gather_v(source.address, target.address, counts, None, source.dtype, 0, keep)
        else:
            self._same("all_gather", self.size * source.count, "output", target.count)
            native = self._native.start_all_gather(source.address, target.address, source.count, source.dtype, 0, keep)
        return self._started(native, output, timeout)

    def start_gather(self, input: Buffer, output: Buffer = None, root: int = 0, *, counts: Sequence[int] | None = None,
                     dtype: DType | None = None, timeout: Duration | None = None) -> Work:
        """Row r of output on rank `root` = input of rank r. Other ranks' output is not looked at.

        Rows have n elements, the length of input; or counts[r] on the root. If the root passes counts, the others pass
        any list."""
        source = _Elements(input, "input", False, dtype)
        if self.rank != root:
            output = None
        target = self._at_root("gather", output, root, source.dtype, "output", dtype)
        address = target.address if target is not None else 0
        keep = (source, target)
        if counts is not None:
            if target is not None:
                counts = self._rows("gather", counts, "output", target.count)
                self._same("gather", counts[root], "input", source.count)
            native = self._native.start_gather_v(source.address, source.count, address,
                                                 counts if target is not None else None, None, source.dtype, root, 0, keep)
        else:
            if target is not None:
                self._same("gather", self.size * source.count, "output", target.count)
            native = self._native.start_gather(source.address, address, source.count, source.dtype, root, 0, keep)
        return self._started(native, output, timeout)

    def start_scatter(self, input: Buffer, output: Buffer, root: int = 0, *, counts: Sequence[int] | None = None,
                      dtype: DType | None = None, timeout: Duration | None = None) -> Work:
        """output on rank r = row r of input of rank `root`. Other ranks' input is not looked at.

        Rows have n elements, the length of output; or counts[r] on the root. If the root passes counts, the others pass
        any list."""
        target = _Elements(output, "output", True, dtype)
        source = self._at_root("scatter", input if self.rank == root else None, root, target.dtype, "input", dtype)
        address = source.address if source is not None else 0
        keep = (source, target)
        if counts is not None:
            if source is not None:
                counts = self._rows("scatter", counts, "input", source.count)
                self._same("scatter", counts[root], "output", target.count)
            native = self._native.start_scatter_v(address, counts if source is not None else None, None, target.address,
                                                  target.count, target.dtype, root, 0, keep)
        else:
            if source is not None:
                self._same("scatter", self.size * target.count, "input", source.count)
            native = self._native.start_scatter(address, target.address, target.count, target.dtype, root, 0, keep)
        return self._started(native, output, timeout)

    def start_scan(self, input: Buffer, output: Buffer = None, op: int = Op.SUM, *, dtype: DType | None = None,
                   timeout: Duration | None = None) -> Work:
        """output[0, n) on rank r = the reduction over the ranks [0, r + 1) of input[0, n). In place: output is None."""
        source, target = self._pair(input, output, dtype)
        self._same("scan", source.count, "output", target.count)
        return self._started(
            self._native.start_scan(source.address, target.address, source.count, source.dtype, op, 0, (source, target)),
            input if output is None else output, timeout)

    def start_exclusive_scan(self, input: Buffer, output: Buffer = None, op: int = Op.SUM, *, dtype: DType | None = None,
                             timeout: Duration | None = None) -> Work:
        """output[0, n) on rank r > 0 = the reduction over the ranks [0, r) of input[0, n). Rank 0's output stays as it
        is. In place: output is None."""
        source, target = self._pair(input, output, dtype)
        self._same("exclusive_scan", source.count, "output", target.count)
        return self._started(
            self._native.start_exclusive_scan(source.address, target.address, source.count, source.dtype, op, 0,
                                              (source, target)), input if output is None else output, timeout)

    def start_all_to_all(self, input: Buffer, output: Buffer, *, input_counts: Sequence[int] | None = None,
                         output_counts: Sequence[int] | None = None, dtype: DType | None = None,
                         timeout: Duration | None = None) -> Work:
        """Row s of output on rank r = row r of input of rank s.

        Rows are of one length, or input_counts[r] and output_counts[s]; both lists, or none."""
        source, target = self._pair(input, output, dtype)
        keep = (source, target)
        if (input_counts is None) != (output_counts is None):
            raise ValueError("all_to_all takes input_counts and output_counts, or none of them")
        if input_counts is not None and output_counts is not None:
            sent = self._rows("all_to_all", input_counts, "input", source.count)
            received = self._rows("all_to_all", output_counts, "output", target.count)
            native = self._native.start_all_to_all_v(source.address, sent, None, target.address, received, None,
                                                     source.dtype, 0, keep)
        else:
            self._same("all_to_all", source.count, "output", target.count)
            if source.count % self.size != 0:
                raise ValueError(f"all_to_all: {source.count} elements are no {self.size} rows of one length")
            native = self._native.start_all_to_all(source.address, target.address, source.count // self.size,
                                                   source.dtype, 0, keep)
        return self._started(native, output, timeout)

    def start_barrier(self, *, timeout: Duration | None = None) -> Work:
        """Is over once every rank has started it."""
        return self._started(self._native.start_barrier(0, None), None, timeout)

    def start_send(self, input: Buffer, peer: int, tag: int = 0, *, dtype: DType | None = None,
                   timeout: Duration | None = None) -> Work:
        """Sends input to rank `peer`. The first send belongs to the first receive there, and so on; both have the same
        length, type and tag, 0 to 65535, else both raise MISMATCH. Neither waits for collectives."""
        source = _Elements(input, "input", False, dtype)
        return self._started(
            self._native.start_send(source.address, source.count, source.dtype, peer, tag, 0, source), None, timeout)

    def start_receive(self, output: Buffer, peer: int, tag: int = 0, *, dtype: DType | None = None,
                      timeout: Duration | None = None) -> Work:
        """output = what rank `peer` sends. See start_send()."""
        target = _Elements(output, "output", True, dtype)
        return self._started(
            self._native.start_receive(target.address, target.count, target.dtype, peer, tag, 0, target), output, timeout)

    def probe(self, timeout: Duration = 0.0) -> int | None:
        """For a rank that does not know who sends next: a rank whose next message has come, and which no receive is
        waiting for. If several have sent, each gets its turn. None if there is none after `timeout` seconds. A message
        of this rank to itself is not found."""
        if not seconds(timeout) >= 0:
            raise ValueError(f"a timeout must not be negative, not {timeout}")
        return self._native.probe(seconds(timeout))

    # --- the same, blocking

    def all_reduce(self, input: Buffer, output: Buffer = None, op: int = Op.SUM, **more: Any) -> Any:
        """start_all_reduce(), and waits. Returns the output."""
        return self.start_all_reduce(input, output, op, **more).wait()

    def reduce(self, input: Buffer, output: Buffer = None, root: int = 0, op: int = Op.SUM, **more: Any) -> Any:
        """start_reduce(), and waits. Returns the output; None on other ranks than the root."""
        return self.start_reduce(input, output, root, op, **more).wait()

    def broadcast(self, buffer: Buffer, root: int = 0, **more: Any) -> Any:
        """start_broadcast(), and waits. Returns the buffer."""
        return self.start_broadcast(buffer, root, **more).wait()

    def reduce_scatter(self, input: Buffer, output: Buffer, op: int = Op.SUM, **more: Any) -> Any:
        """start_reduce_scatter(), and waits. Returns the output."""
        return self.start_reduce_scatter(input, output, op, **more).wait()

    def all_gather(self, input: Buffer, output: Buffer, **more: Any) -> Any:
        """start_all_gather(), and waits. Returns the output."""
        return self.start_all_gather(input, output, **more).wait()

    def gather(self, input: Buffer, output: Buffer = None, root: int = 0, **more: Any) -> Any:
        """start_gather(), and waits. Returns the output; None on other ranks than the root."""
        return self.start_gather(input, output, root, **more).wait()

    def scatter(self, input: Buffer, output: Buffer, root: int = 0, **more: Any) -> Any:
        """start_scatter(), and waits. Returns the output."""
        return self.start_scatter(input, output, root, **more).wait()

    def scan(self, input: Buffer, output: Buffer = None, op: int = Op.SUM, **more: Any) -> Any:
        """start_scan(), and waits. Returns the output."""
        return self.start_scan(input, output, op, **more).wait()

    def exclusive_scan(self, input: Buffer, output: Buffer = None, op: int = Op.SUM, **more: Any) -> Any:
        """start_exclusive_scan(), and waits. Returns the output."""
        return self.start_exclusive_scan(input, output, op, **more).wait()

    def all_to_all(self, input: Buffer, output: Buffer, **more: Any) -> Any:
        """start_all_to_all(), and waits. Returns the output."""
        return self.start_all_to_all(input, output, **more).wait()

    def barrier(self, **more: Any) -> None:
        """Returns once every rank has entered it."""
        self.start_barrier(**more).wait()

    def send(self, input: Buffer, peer: int, tag: int = 0, **more: Any) -> None:
        """start_send(), and waits until input may be written again."""
        self.start_send(input, peer, tag, **more).wait()

    def receive(self, output: Buffer, peer: int, tag: int = 0, **more: Any) -> Any:
        """start_receive(), and waits. Returns the output."""
        return self.start_receive(output, peer, tag, **more).wait()

    # --- what they have in common

    def _pair(self, input: Buffer, output: Buffer, dtype: DType | None) -> tuple[_Elements, _Elements]:
        source = _Elements(input, "input", output is None, dtype)
        if output is None:
            return source, source
        target = _Elements(output, "output", True, dtype)
        if target.dtype != source.dtype:
            raise TypeError(f"input is {source.dtype.name}, and output is {target.dtype.name}; they must be the same")
        return source, target

    def _at_root(self, call: str, buffer: Buffer, root: int, wanted: DType, name: str,
                 dtype: DType | None) -> _Elements | None:
        if self.rank != root:
            return None
        if buffer is None:
            raise ValueError(f"{call}: rank {root} is the root, and needs {name}")
        elements = _Elements(buffer, name, name == "output", dtype)
        if elements.dtype != wanted:
            raise TypeError(f"{call}: {name} is {elements.dtype.name}, and the other buffer is {wanted.name}")
        return elements

    def _rows(self, call: str, counts: Sequence[int], name: str, count: int) -> list[int]:
        rows = [int(row) for row in counts]
        if len(rows) != self.size or min(rows) < 0:
            raise ValueError(f"{call}: counts must have {self.size} numbers, one for each rank, none negative; got {rows}")
        self._same(call, sum(rows), name, count)
        return rows

    @staticmethod
    def _same(call: str, wanted: int, name: str, count: int) -> None:
        if wanted != count:
            raise ValueError(f"{call}: {name} must have {wanted} elements, and has {count}")

    @staticmethod
    def _started(native: _native.Work, result: Any, timeout: Duration | None) -> Work:
        if timeout is not None:
            native.set_timeout(milliseconds(timeout))
        return Work(native, result)
