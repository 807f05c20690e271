"""Runs a function on several ranks, each a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Each rank is forked from a process that has imported what takes long, and has done nothing else.
_CONTEXT = multiprocessing.get_context("forkserver")


def free_port() -> int:
    """Below those that the kernel gives to connections, which may take any of these before a rank listens there."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    low = range(15000, min(28000, first))
    for port in (*random.sample(low, min(100, len(low))), 0):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:  # another one has it
                continue
            return probe.getsockname()[1]
    raise OSError("no port is free")


def meet(name: str, ranks: Iterable[int] = ()) -> None:
    """Waits until these ranks have come here; else all. It uses files, not the library: a failure cannot end it, and
    once it is over no rank is in an earlier call."""
    folder, until = Path(os.environ["RANKS_FOLDER"]), time.monotonic() + 60
    (folder / f"{name} {os.environ['RANK']}").touch()
    for rank in ranks or range(int(os.environ["WORLD_SIZE"])):
        while not (folder / f"{name} {rank}").exists():
            assert time.monotonic() < until, f"rank {rank} does not come to {name!r}"
            time.sleep(0.005)


def _run(function: Callable[..., Any], rank: int, size: int, environment: dict[str, str], arguments: tuple[Any, ...],
         results: Any) -> None:
    os.environ.update(environment)
    try:
        results.put((rank, True, function(rank, size, *arguments)))
    except BaseException:
        results.put((rank, False, traceback.format_exc()))
        raise SystemExit(1) from None


class Ranks:
    """`size` processes that run function(rank, size, *arguments), with the variables of torchrun."""

    def __init__(self, size: int, function: Callable[..., Any], *arguments: Any, **environment: str):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # for meet()
        common = dict(WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), OMP_NUM_THREADS="1",
                      TUTTI_SECRET="of-this-test", RANKS_FOLDER=self._folder.name, **environment)
        _CONTEXT.set_forkserver_preload([name for name in ("tutti", "torch.distributed") if name in sys.modules])
        self._results = _CONTEXT.Queue()
        self.processes = []
        for rank in range(size):
            own = dict(common, RANK=str(rank), LOCAL_RANK=str(rank))
            process = _CONTEXT.Process(target=_run, args=(function, rank, size, own, arguments, self._results))
            process.start()
            self.processes.append(process)

    def results(self, seconds: float = 60) -> list[Any]:
        """What the function returned on each rank. Fails if it raised, or if a process died or is late."""
        until = time.monotonic() + seconds
        got: dict[int, Any] = {}
        size = len(self.processes)
        try:
            while len(got) < size:
                try:
                    rank, good, value = self._results.get(timeout=0.5)
                except queue.Empty:
                    dead = [rank for rank, process in enumerate(self.processes) if rank not in got
                            and process.exitcode is not None]
                    if dead and self._results.empty():
                        raise AssertionError(f"rank {dead[0]} exited with {self.processes[dead[0]].exitcode}") from None
                    if time.monotonic() > until:
                        raise AssertionError(f"after {seconds} s only the ranks {sorted(got)} are done") from None
                    continue
                if not good:
                    raise AssertionError(f"rank {rank} raised:\n{value}")
                got[rank] = value
            for process in self.processes:
                process.join(10)
                assert process.exitcode == 0, f"a rank exited with {process.exitcode}"
        finally:
            for process in self.processes:
                process.kill()
        return [got[rank] for rank in range(size)]


def run(size: int, function: Callable[..., Any], *arguments: Any, **environment: str) -> list[Any]:
    """What function(rank, size, *arguments) returns on each of `size` ranks."""
    return Ranks(size, function, *arguments, **environment).results()
