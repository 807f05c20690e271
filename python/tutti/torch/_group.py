"""A group of torch.distributed whose operations are the library's."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti import _native
from tutti._communicator import milliseconds
from tutti._error import Error
from tutti.torch import _monitored
from tutti.torch._messages import Messages
from tutti.torch._moving import Moving
from tutti.torch._reducing import Reducing


class Backend(c10d.Backend):
    """What the group answers with when PyTorch asks it for the backend of a device."""

    def __init__(self, group: Group, timeout: timedelta):
        super().__init__(group._rank, group._size)
        self.group = weakref.ref(group)
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
        return False

    @property
    def supports_shrinking(self) -> bool:
        return False

    def eager_connect_single_device(self, device: torch.device | None) -> None:
        """Connections are made when they are needed."""

    def _set_sequence_number_for_group(self) -> None:
        """The library numbers its calls by itself."""


class Group(Reducing, Moving, Messages):
    """A process group over a communicator of the library.

    It serves tensors of the host and of CUDA devices. A call that its caller waits for is advanced by that thread; one
    with async_op=True by a thread of the library, so it completes while its caller computes.

    After a failure every call raises the same tutti.Error, on every rank: it names the rank that is at fault. Destroy
    the group then.
    """

    def __init__(self, native: _native.Communicator, store: dist.Store, timeout: timedelta):
        super().__init__(native, store, timeout)
        self._monitor: _native.Communicator | None = None
        kind = dist.ProcessGroup.BackendType.CUSTOM
        self._set_default_backend(kind)
        self._backend = Backend(self, timeout)
        for device in ("cpu", "cuda"):
            self._register_backend(torch.device(device), kind, self._backend)

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
        limit = milliseconds(timeout)  # raises for one that is not positive: then nothing has changed
        self._timeout = timeout
        for native in self._all():
            native.set_timeout(limit)

    _set_default_timeout = set_timeout

    def register_pre_hook(self, hook_id: int, hook: Callable[[Any], None]) -> None:
        """`hook` is called before each later call, in the thread that makes it. Calls then take longer."""
        super().register_pre_hook(hook_id, hook)
        self.show_calls_to_hooks()

    def register_post_hook(self, hook_id: int, hook: Callable[[Any], None]) -> None:
        """Likewise after each call was started."""
        super().register_post_hook(hook_id, hook)
        self.show_calls_to_hooks()

    def show_calls_to_hooks(self) -> None:
        """Has PyTorch's C++ see later calls. Not to be called beside a call."""
        from tutti.torch._hooked import Hooked, Passing  # which are made of this module

        self._backend.__class__ = Passing
        self.__class__ = Hooked

    def shutdown(self) -> None:
        """Leaves, once the calls that were started are over. Waits for no rank."""
        if self._callbacks is not None and not self._callbacks.finish(self._timeout.total_seconds()):
            warnings.warn("leaving a process group: a callback of a future does not end", stacklevel=2)
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

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Blocks until all ranks have come. Rank 0 raises RuntimeError if a rank does not come within `timeout`, and
        names the first such rank, or all of them; the others then raise too."""
        if self._monitor is None:
            self._monitor = self._part("monitored_barrier")
        wait = self._timeout if timeout is None else timeout
        _monitored.barrier(self._monitor, wait.total_seconds(), wait_all_ranks)


def ours(group: dist.ProcessGroup | None, caller: str) -> Group:
    """The group that a user has named; None: the default one. Raises ValueError if it is of another backend."""
    of = group if group is not None else dist.GroupMember.WORLD
    if not isinstance(of, Group):
        raise ValueError(f'{caller} needs a process group of the backend "tutti"')
    return of
