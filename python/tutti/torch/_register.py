"""What PyTorch calls to get a group of the backend."""

from __future__ import annotations

import time

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti import _native
from tutti._joining import config
from tutti.torch._group import Group

NAME = "tutti"


def register() -> None:
    """Makes the backend known to torch.distributed. Does nothing if it is known."""
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _make, extended_api=True, devices=["cpu", "cuda"])
        _tell_groups_of_nan_checks()


def _tell_groups_of_nan_checks() -> None:
    """Has NanCheckHook.attach() tell the group. The check registers itself with ProcessGroup::registerPreHook(), which
    PyTorch does not hand to a group in Python, and what is registered there cannot be asked for."""
    check = getattr(c10d, "NanCheckHook", None)
    if check is None:
        return
    attach = check.attach

    def attach_and_tell(pg: dist.ProcessGroup) -> object:
        hook = attach(pg)
        if isinstance(pg, Group):
            pg.show_calls_to_hooks()
        return hook

    check.attach = staticmethod(attach_and_tell)


class _TorchStore:
    """A store of PyTorch, as the library asks for one."""

    def __init__(self, store: dist.Store):
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)

    def get(self, key: str, timeout: float) -> bytes:
        # It looks again and again, so that the thread that joins ends soon when Python does.
        until = time.monotonic() + timeout
        while not self._store.check([key]):
            if time.monotonic() > until or _native.python_ends():
                raise TimeoutError(f"nobody has set {key} in the store within {timeout} s")
            time.sleep(0.01)
        return self._store.get(key)

    def add(self, key: str, number: int) -> int:
        return self._store.add(key, number)


def _make(options: dist.distributed_c10d._DistributedBackendOptions, backend_options: object) -> Group:
    others = {device.type for device in options.process_group._device_types} if options.process_group else set()
    if others:
        raise ValueError(
            f"the backend tutti serves all devices of a group, and this group has another backend for {sorted(others)}; "
            'make a group of its own for it, with backend="tutti"'
        )
    ranks = list(options.global_ranks_in_group)
    native = None
    if ranks:
        native = _part_of_world(ranks)
    if native is None:
        native = _native.Communicator.from_store(
            _TorchStore(options.store), options.group_size, options.group_rank,
            config(timeout=options.timeout, join_timeout=options.timeout))
    else:
        native.set_timeout(round(options.timeout.total_seconds() * 1000))
    return Group(native, options.store, options.timeout)


def _part_of_world(ranks: list[int]) -> _native.Communicator | None:
    """A communicator of these ranks of the default group, which only they make, if that is of this backend.

    Not by PyTorch's name of the group: that counts groups of which other members may know nothing."""
    world = dist.GroupMember.WORLD
    if not isinstance(world, Group) or world.native.is_destroyed:
        return None
    return world.native.subgroup(ranks, "new_group")
