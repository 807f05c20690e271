"""Processors that the ranks of a contender do not have for themselves: a quota of a cgroup, or processes that compute."""
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

PERIOD_US = 100_000  # as container runtimes set it
COMPUTING = "x = 1\nwhile True: x = x * 1103515245 + 12345 & 0xffffffff"


@contextmanager
def group_with_quota(cores, period_us=PERIOD_US):
    """A new cgroup whose processes have so many cores together, as long as it lasts. OSError where this may not be."""
    name = f"tutti-quota-{os.getpid()}"
    old = Path("/sys/fs/cgroup/cpu")  # cgroup v1
    group = (old if old.is_dir() else Path("/sys/fs/cgroup")) / name
    group.mkdir()
    try:
        quota = round(cores * period_us)
        if old.is_dir():
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {period_us}")
        yield group
    finally:
        group.rmdir()


@contextmanager
def computing(processes):
    """So many processes that compute, as long as it lasts."""
    running = [subprocess.Popen([sys.executable, "-c", COMPUTING]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def inside(group, command):
    """The command, as a process of the cgroup."""
    enter = 'echo $$ > "$0" && exec "$@"'
    return ["sh", "-c", enter, str(group / "cgroup.procs"), *[str(word) for word in command]]
