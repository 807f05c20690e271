"""A started call, as torch.distributed has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti import _native
from tutti._error import Error
from tutti.torch._futures import Callbacks, Future, on_callback_thread

# How long get_future() waits for the call by itself, in seconds: a short call is over by then, and no other thread has
# to be woken to say so.
_SHORT = 50e-6


class _WithOutputs(dist.Work):
    """A work that PyTorch's registry can hold, so that wait_tensor() of an output waits for it."""

    def __init__(self, result: list[torch.Tensor]):
        super().__init__()
        self._result = result
        self.is_registered = False

    def register(self) -> None:
        for tensor in self._result:
            c10d._register_work(tensor, self)
        self.is_registered = True

    def _leave_registry(self) -> None:
        """PyTorch lets no work in Python leave alone: all works of the outputs leave, and are waited for."""
        self.is_registered = False
        for tensor in self._result:
            torch.ops._c10d_functional.wait_tensor(tensor)

    def result(self) -> list[torch.Tensor]:
        return self._result


class _Started(_WithOutputs):
    """Calls that were started together."""

    def __init__(self, natives: Sequence[_native.Work], result: list[torch.Tensor], number: int, source: int):
        super().__init__(result)
        self._natives = natives  # with their buffers
        self._number = number
        self._source = source

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        for native in self._natives:
            if native.is_over() and (failure := native.failure()) is not None:
                return failure
        return None

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank

    def _get_sequence_number(self) -> int:
        return self._number


class Work(_Started):
    """Calls of host memory.

    finish() is called once, by the thread that finds out first that all calls are over: it copies what the library wrote
    into a buffer of its own to where the caller wants it.
    """

    def __init__(self, natives: Sequence[_native.Work], result: list[torch.Tensor],
                 callbacks: Callable[[], Callbacks] | None = None, number: int = -1,
                 finish: Callable[[], None] | None = None, source: int = -1):
        super().__init__(natives, result, number, source)
        self._callbacks = callbacks  # the group's; None: a future has its callbacks called by whoever completes it
        self._finish = finish
        self._finishing = threading.Lock() if finish is not None else None
        self._broken: Exception | None = None  # what finish() raised
        self._future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Blocks until the call is over. Raises its Error; and RuntimeError after `timeout`, but the call goes on.
        PyTorch's timeout of zero is none."""
        until = time.monotonic() + timeout.total_seconds() if timeout else None
        for native in self._natives:
            if not native.wait(-1.0 if until is None else max(0.0, until - time.monotonic())):
                raise RuntimeError(f"the call is not over after {timeout}; it goes on")
        self._finish_once()
        if self.is_registered:
            self._leave_registry()
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        if not all(native.is_over() for native in self._natives):
            return False
        if super().exception() is None:
            try:
                self._finish_once()
            except Exception:  # exception() says so
                pass
        return True

    def exception(self) -> Exception | None:
        return super().exception() or self._broken

    def get_future(self) -> torch.futures.Future[Any]:
        """Holds the outputs once the call is over, or its Error. On the thread of callbacks it waits for that: who
        would complete the future is this thread."""
        if self._future is None:
            self._future = torch.futures.Future() if self._callbacks is None else Future(self._callbacks)
            if on_callback_thread():
                self._tell_future(self._failure_waited_for())
            elif all(native.wait_shortly(_SHORT) for native in self._natives):
                self._tell_future(self.exception())
            else:
                self._follow(0, None)
        return self._future

    def _failure_waited_for(self) -> Exception | None:
        try:
            self.wait()
        except Error as error:
            return error
        return None

    def _follow(self, index: int, failure: Exception | None) -> None:
        if index == len(self._natives) or failure is not None:
            self._tell_future(failure)
        else:
            self._natives[index].on_complete(lambda failure: self._follow(index + 1, failure))

    def _tell_future(self, error: Exception | None) -> None:
        assert self._future is not None
        try:
            if error is None:
                self._finish_once()
        except Exception as raised:
            error = raised
        if error is None:
            self._future.set_result(self._result)
        else:
            self._future.set_exception(error)

    def _finish_once(self) -> None:
        if self._finishing is None:
            return
        with self._finishing:
            if self._broken is not None:
                raise self._broken
            if self._finish is None:
                return
            try:
                self._finish()
            except Exception as error:
                self._broken = error
                raise
            self._finish = None


class FromAnybody(_WithOutputs):
    """A receive whose sender is not known yet. wait() and is_completed() look for one; no thread does it beside them."""

    _SLICE = 0.05  # seconds that a thread looks before it lets another one look

    def __init__(self, lane: _native.Communicator, looking: threading.Lock, receive: Callable[[int], dist.Work],
                 result: list[torch.Tensor], limit: timedelta):
        super().__init__(result)
        self._lane = lane
        self._looking = looking  # of the lane: the receive begins before the next look
        self._receive = receive
        self._limit = limit
        self._received: dist.Work | None = None  # once there is a sender
        self._failure: Exception | None = None

    def _look(self, seconds: float) -> bool:
        """Whether there is a sender by then. Raises the Error of the communicator."""
        until = time.monotonic() + seconds
        while self._received is None:
            left = until - time.monotonic()
            if self._looking.acquire(timeout=min(max(0.0, left), 1e6)):
                try:
                    if self._failure is not None:
                        raise self._failure
                    if self._received is None and (source := self._lane.probe(min(max(0.0, left), self._SLICE))) is not None:
                        self._received = self._receive(source)
                except Error as error:
                    self._failure = error
                    raise
                finally:
                    self._looking.release()
            if left <= 0:
                break
        return self._received is not None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Blocks until a message has come, and is received. Raises the Error of a communicator that has failed; and
        RuntimeError if nobody has sent after `timeout`, or that of the group, but the receive goes on."""
        until = time.monotonic() + (timeout or self._limit).total_seconds()
        if not self._look(max(0.0, until - time.monotonic())):
            raise RuntimeError(f"receive from any rank: nobody has sent within the timeout of {timeout or self._limit}; "
                               "it goes on")
        assert self._received is not None
        self._received.wait(timedelta(seconds=max(1e-3, until - time.monotonic())) if timeout else timedelta(0))
        if self.is_registered:
            self._leave_registry()
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        try:
            return self._look(0.0) and self._received is not None and self._received.is_completed()
        except Error:  # exception() says so
            return True

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        return self._failure or (self._received.exception() if self._received is not None else None)

    def source_rank(self) -> int:
        """The sender, once it is known; -1 before."""
        return self._received._source_rank() if self._received is not None else -1

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future[Any]:
        raise NotImplementedError("a receive from any rank has no future: wait for it")


#: Of a call that its caller has waited for already.
OVER = Work([], [])


class OnStream(_Started):
    """Calls of device memory. They are in the order of a stream; wait() has the current stream wait for them, and does not
    block: its timeout says nothing."""

    def __init__(self, natives: Sequence[_native.Work], result: list[torch.Tensor], stream: torch.cuda.Stream,
                 number: int = -1, source: int = -1):
        super().__init__(natives, result, number, source)
        self._device = stream.device
        self._over = torch.cuda.Event()
        self._over.record(stream)

    def wait(self, timeout: timedelta | None = None) -> bool:
        failure = self.exception()
        if failure is not None:
            raise failure
        torch.cuda.current_stream(self._device).wait_event(self._over)
        if self.is_registered:
            self._leave_registry()
        return True

    synchronize = wait

    def block_current_stream(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._over.query()

    def get_future(self) -> torch.futures.Future[Any]:
        """Holds the outputs at once; who uses them does so on a stream that waits for the call."""
        future: torch.futures.Future[Any] = torch.futures.Future(devices=[self._device])
        self.wait()
        future.set_result(self._result)
        return future
