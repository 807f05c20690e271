"""A started call, as torch.distributed has it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from tutti import _native
from tutti._error import Error
from tutti.torch._futures import Callbacks, Future, on_callback_thread

_NativeWork = _native.Work
# How long get_future() waits for the call by itself, in seconds: a short call is over by then, and no other thread has
# to be woken to say so.
_SHORT = 50e-6


class Work(dist.Work):
    """Calls that were started together, and what remains to be done when all are over.

    finish() is called once, by the thread that finds out first: it copies what the library wrote into a buffer of its
    own to where the caller wants it.
    """

    _number = 0  # of the group's collective calls; 0: it is none
    _callbacks: Callable[[], Callbacks]  # its group's

    def __init__(self, natives: Sequence[_NativeWork], result: list[torch.Tensor],
                 finish: Callable[[], None] | None = None, source: int = -1):
        super().__init__()
        self._natives = natives
        self._result = result
        self._finish = finish
        self._source = source
        self._future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Blocks until the call is over. Raises its Error; and RuntimeError after `timeout`, but the call goes on."""
        seconds = timeout.total_seconds() if timeout else -1.0
        for native in self._natives:
            if not native.wait(seconds):
                raise RuntimeError(f"the call is not over after {seconds} s; it goes on")
        if self._finish is not None:
            self._finish_once()
        return True

    def is_completed(self) -> bool:
        for native in self._natives:
            if not native.is_over():
                return False
        if self._finish is not None and self.exception() is None:
            self._finish_once()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        for native in self._natives:
            if native.is_over() and (failure := native.failure()) is not None:
                return failure
        return None

    def result(self) -> list[torch.Tensor]:
        return self._result

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank

    def _get_sequence_number(self) -> int:
        return self._number

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> torch.futures.Future[Any]:
        """Holds the outputs once the call is over, or its Error. On the thread of callbacks it waits for that: who
        would complete the future is this thread."""
        if self._future is None:
            self._future = Future(self._callbacks)
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
            if error is None and self._finish is not None:
                self._finish_once()
        except Exception as raised:
            error = raised
        if error is None:
            self._future.set_result(self._result)
        else:
            self._future.set_exception(error)

    def _finish_once(self) -> None:
        with _finishing:
            finish, self._finish = self._finish, None
            if finish is not None:
                finish()


_finishing = threading.RLock()

#: Of a call that its caller has waited for already.
OVER = Work([], [])


class OnStream(dist.Work):
    """A call of device memory. It is in the order of a stream; wait() has the current stream wait for it."""

    _number = 0  # of the group's collective calls; 0: it is none
    _callbacks: Callable[[], Callbacks]  # its group's

    def __init__(self, natives: Sequence[_NativeWork], result: list[torch.Tensor], stream: torch.cuda.Stream,
                 source: int = -1):
        super().__init__()
        self._natives = natives  # with their buffers, which must live until then
        self._result = result
        self._source = source
        self._device = stream.device
        self._over = torch.cuda.Event()
        self._over.record(stream)

    def wait(self, timeout: timedelta | None = None) -> bool:
        torch.cuda.current_stream(self._device).wait_event(self._over)
        return True

    synchronize = block_current_stream = lambda self: (self.wait(), None)[1]

    def is_completed(self) -> bool:
        return self._over.query()

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        for native in self._natives:
            failure = native.failure()
            if failure is not None:
                return failure
        return None

    def result(self) -> list[torch.Tensor]:
        return self._result

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank

    def _get_sequence_number(self) -> int:
        return self._number

    def get_future(self) -> torch.futures.Future[Any]:
        """Holds the outputs at once; who uses them does so on a stream that waits for the call."""
        future: torch.futures.Future[Any] = torch.futures.Future(devices=[self._device])
        self.wait()
        future.set_result(self._result)
        return future
