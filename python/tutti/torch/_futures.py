"""Futures of calls, and the thread that runs what is chained to them.

A communication hook may start further calls in a callback, and wait for them: PowerSGD does. The thread that completes
calls must not run it: it would wait for itself. Nor may the moment at which a call completes decide when the callback's
calls come: each rank would order them otherwise among those of its other threads. So all callbacks of a group run on one
thread, in the order in which they were chained, and calls made there go over a communicator of their own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import torch

from tutti import _native

_LOOKS_EVERY = 0.1  # seconds between two looks whether a signal has come
_here = threading.local()


def on_callback_thread() -> bool:
    return getattr(_here, "calls_back", False)


class Callbacks:
    """The thread of a group's callbacks."""

    def __init__(self, make: Callable[[], _native.Communicator]):
        self._make = make
        self._native: _native.Communicator | None = None
        self._lock = threading.Lock()
        self._has_ended = False
        self._jobs: queue.SimpleQueue[tuple[Future, Callable[[Any], Any], Future] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_run, args=(self._jobs,), name="tutti callbacks", daemon=True)
        self._thread.start()

    def is_here(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def native(self) -> _native.Communicator:
        """The communicator of the calls that callbacks make. All ranks make it, with the first such call."""
        if self._native is None:
            self._native = self._make()
        return self._native

    def call(self, callback: Callable[[Any], Any], of: Future, result: Future) -> None:
        """Has callback(of) called once `of` is done, and all that was chained before it; `result` is what it gives. Once
        the group has left, it is called by this thread."""
        with self._lock:
            if not self._has_ended:
                self._jobs.put((of, callback, result))
                return
        _call(of, callback, result)

    def end(self) -> None:
        """The thread ends once it has called what was chained. Does not block."""
        with self._lock:
            if not self._has_ended:
                self._has_ended = True
                self._jobs.put(None)

    def finish(self, seconds: float) -> bool:
        """end(), and waits for the callbacks that were chained, for so long. False: one of them is not over."""
        self.end()
        if self.is_here():
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def call_until(self, done: Future) -> None:
        """On this thread: a callback waits for `done`, which a callback that is chained behind it may have to complete."""
        while not done.done():
            try:
                job = self._jobs.get(timeout=0.01)
            except queue.Empty:
                continue
            if job is None:
                self._jobs.put(None)  # for _run()
                return
            _call(*job)


def _run(jobs: queue.SimpleQueue[tuple[Future, Callable[[Any], Any], Future] | None]) -> None:
    _here.calls_back = True
    while (job := jobs.get()) is not None:
        _call(*job)


def _call(of: Future, callback: Callable[[Any], Any], result: Future) -> None:
    try:
        torch.futures.Future.wait(of)  # what completes it is behind none of these, and comes in its turn
    except Exception:  # the callback sees it too
        pass
    try:
        result.set_result(callback(of))
    except Exception as error:
        result.set_exception(error)


class _Failed:
    """The value of a future that has failed. PyTorch's C++ asks no future of Python whether it has failed: it takes the
    value. This one makes it raise, with the error's text, where it looks for tensors."""

    def __init__(self, error: BaseException):
        self.error = error

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self.error


def _value_or_error(value: Any) -> Any:
    if isinstance(value, _Failed):
        raise value.error
    return value


class Future(torch.futures.Future[Any]):
    """A future of a call, or of a callback."""

    def __init__(self, callbacks: Callable[[], Callbacks], is_chained: bool = False):
        super().__init__()
        self._callbacks = callbacks
        self._is_chained = is_chained  # a callback completes it

    def set_exception(self, error: BaseException) -> None:  # type: ignore[override]
        self._set_unwrap_func(_value_or_error)
        self.set_result(_Failed(error))

    def value(self) -> Any:
        return _value_or_error(super().value())

    def wait(self) -> Any:
        if self._is_chained and on_callback_thread():
            callbacks = self._callbacks()
            if callbacks.is_here():
                callbacks.call_until(self)
        if not self.done():  # PyTorch's C++ hears no Ctrl-C while it waits; a lock of Python does
            is_done = threading.Event()
            torch.futures.Future.add_done_callback(self, lambda _: is_done.set())
            while not is_done.wait(_LOOKS_EVERY):  # the system may give the signal to another thread
                pass
        return super().wait()

    def then(self, callback: Callable[[Any], Any]) -> torch.futures.Future[Any]:
        if on_callback_thread():  # get_future() has waited
            return super().then(callback)
        result = Future(self._callbacks, is_chained=True)
        self._callbacks().call(callback, self, result)
        return result

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        self.then(callback)
