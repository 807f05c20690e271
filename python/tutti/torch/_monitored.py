"""A barrier that says which ranks have not come."""

from __future__ import annotations

import time

from tutti import _native
from tutti._error import Error
from tutti._types import DType

_SLACK = 5.0  # seconds that other ranks wait for longer than rank 0, so that rank 0 speaks first


def barrier(comm: _native.Communicator, seconds: float, all_ranks: bool) -> None:
    """Blocks until all ranks of `comm` have come, at most `seconds`. Rank 0 raises RuntimeError, and names the first
    rank that has not come; or all of them, if `all_ranks`, which takes the whole time. Then the communicator is
    aborted, and the other ranks raise what rank 0 says. The errors are in the words of Gloo."""
    comm.set_timeout(max(1, round((seconds + _SLACK) * 1000)))
    if comm.rank == 0:
        return _wait_for_all(comm, seconds, all_ranks)
    try:
        comm.start_send(0, 0, DType.UINT8, 0, 0, 0, None).wait(-1.0)
        comm.start_receive(0, 0, DType.UINT8, 0, 0, 0, None).wait(-1.0)
    except Error as error:
        raise RuntimeError(f"Rank {comm.rank} successfully reached monitoredBarrier, but received errors while waiting "
                           f"for send/recv from rank 0: {error}") from error


def _wait_for_all(comm: _native.Communicator, seconds: float, all_ranks: bool) -> None:
    until = time.monotonic() + seconds
    arrivals = {peer: comm.start_receive(0, 0, DType.UINT8, peer, 0, 0, None) for peer in range(1, comm.size)}
    missing, why = [], f"Rank 0 timed out in monitoredBarrier after {seconds} s"
    for peer, arrival in arrivals.items():
        try:
            if arrival.wait(max(0.0, until - time.monotonic())):
                continue
        except Error as error:
            why = str(error)
        missing.append(str(peer))
        if not all_ranks:
            break
    if missing:
        ranks = f"Rank {missing[0]}" if len(missing) == 1 else f"Ranks {', '.join(missing)}"
        text = f"{ranks} failed to pass monitoredBarrier: {why}"
        comm.abort(text)
        raise RuntimeError(text)
    for peer in range(1, comm.size):
        comm.start_send(0, 0, DType.UINT8, peer, 0, 0, None).wait(-1.0)
