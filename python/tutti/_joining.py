"""How a process becomes a rank."""

from __future__ import annotations

from typing import Any, Protocol

from tutti import _native
from tutti._communicator import Communicator, Duration, milliseconds
from tutti._types import Order

_LEVELS = {"warn": 0, "info": 1, "trace": 2}
_PROGRESS = {"caller": 0, "thread": 1}


class Store(Protocol):
    """A key-value store of the caller, through which the ranks find each other.

    It is called while a rank joins only, by the thread that joins. What it raises ends the join.
    """

    def set(self, key: str, value: bytes) -> None:
        """Makes the value visible under the key to every rank."""

    def get(self, key: str, timeout: float) -> bytes:
        """Blocks until the key is set, at most so many seconds; then raises."""

    # May be left out: def add(self, key: str, number: int) -> int


def config(
    *,
    transport: str | None = None,
    timeout: Duration | None = None,
    connect_timeout: Duration | None = None,
    heartbeat_timeout: Duration | None = None,
    join_timeout: Duration | None = None,
    warn_after: Duration | None = None,
    interface: str | None = None,
    ports: tuple[int, int] | None = None,
    verbs_device: str | None = None,
    verbs_gid: int | None = None,
    table: str | None = None,
    order: Order = Order.CANONICAL,
    log: str | None = None,
    progress: str | None = None,
) -> _native.Config:
    """How a rank joins and waits, as the library takes it. What is None is as the environment says, and else as
    tutti::Settings has it.

    transport: "auto", "shm", "tcp" or "verbs". timeout: how long a call waits for a peer that does not come.
    connect_timeout: how long a rank tries to reach a peer that is known to exist. heartbeat_timeout: a rank of which
    nothing is heard for that long is lost; the same on every rank. join_timeout: how long the ranks may take to start.
    warn_after: a call that waits for longer is logged, once. interface: where to listen, an interface or an address. ports: the first and the last port to listen on. log: "warn", "info" or "trace". progress: who advances
    started calls, "caller", or "thread": also a thread of the library.
    """
    made = _native.Config()
    made.transport = transport
    made.interface_name = interface
    made.verbs_device = verbs_device
    made.table = table
    made.timeout_ms = milliseconds(timeout)
    made.connect_timeout_ms = milliseconds(connect_timeout)
    made.heartbeat_timeout_ms = milliseconds(heartbeat_timeout)
    made.join_timeout_ms = milliseconds(join_timeout)
    made.warn_after_ms = milliseconds(warn_after)
    made.order = order
    if ports is not None:
        made.port_first, made.port_last = ports
    if verbs_gid is not None:
        made.verbs_gid = verbs_gid
    if log is not None:
        made.log_level = _named("log", log, _LEVELS)
    if progress is not None:
        made.progress = _named("progress", progress, _PROGRESS)
    return made


def _named(what: str, name: str, numbers: dict[str, int]) -> int:
    if name not in numbers:
        raise ValueError(f'{what} is one of {", ".join(numbers)}, not "{name}"')
    return numbers[name]


def init(**settings: Any) -> Communicator:
    """Joins the job that the environment describes: started by `tutti run`, torchrun, mpirun or srun. Without any of
    them it is a job of one rank. Blocks until all ranks have joined. settings: as those of config()."""
    return Communicator(_native.Communicator.from_environment(config(**settings)))


def from_store(store: Store, size: int, rank: int, **settings: Any) -> Communicator:
    """Joins as `rank` of `size` through a store that all ranks see. Blocks until all have joined.

    If the store also has add(key, number) -> sum, which adds to the number under a key at once, the joins of a rank are
    numbered there, and the same store serves any number of joins. Else each join needs a store, or a prefix of keys, of
    its own. Who can read the store may join. settings: as those of config().
    """
    return Communicator(_native.Communicator.from_store(store, size, rank, config(**settings)))


def from_unique_id(id: bytes, size: int, rank: int, **settings: Any) -> Communicator:
    """Joins as `rank` of `size` where unique_id() says. Blocks until all have joined. settings: as those of config()."""
    return Communicator(_native.Communicator.from_id(id, size, rank, config(**settings)))
